"""Forms that are a document of the API: how they are read, shown, and refused.

A field has the path that it has in the document, `branding.name`. So a form is read by the body
class of the API's own row, and what is wrong with a path is beside its field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import attrs
from msgspec import UNSET

from payments_core.engine.idempotency.record import IdempotentRequest, Response
from payments_core.errors import (
    AmountOutOfRange,
    BadInput,
    ConflictError,
    DestinationNotAllowed,
    FieldError,
    Forbidden,
    IdempotencyConflict,
    IdempotencyInProgress,
    PaymentsError,
    Unprocessable,
    UnsupportedAsset,
    UnsupportedChain,
    ValidationFailed,
    WebhookUrlInUse,
    WebhookUrlNotAllowed,
)
from payments_core.validation.readers import JSON
from payments_core.webhooks.filters import EventFilter, parse_rule, write_rule
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.rendering import render_page, run_form
from payments_core_http.errors import status_of
from payments_core_http.wire.names import name_failure

T = TypeVar("T")
Kind = Literal[
    "text", "number", "switch", "choice", "chosen_number", "several", "numbers", "lines", "pairs",
    "rules", "payee", "hidden",
]  # fmt: skip

_CHOSEN = "on"
_MAX_OPEN_CHOICES = 12
_REPORTED = (BadInput, ConflictError, Unprocessable)
"""What a caller can correct in the form."""
_NOT_REPORTED = (IdempotencyConflict, IdempotencyInProgress, Forbidden)

_PAYEES: Mapping[str, str] = {
    "accountId": "account",
    "externalUserId": "account",
    "paymentAddress": "payment_address",
    "address": "wallet",
}
"""The type of a destination, by the field that names it."""

_FIELDS_OF_ERRORS: Mapping[type[PaymentsError], str] = {
    WebhookUrlInUse: "url",
    WebhookUrlNotAllowed: "url",
    UnsupportedChain: "chainId",
    UnsupportedAsset: "assetSymbol",
    AmountOutOfRange: "amount",
    DestinationNotAllowed: "destination",
}
"""The field that an error is about which names none."""


@attrs.frozen
class Field:
    """A field of a form, by its path in the document.

    `choices` are values with their words, of which `several` and `numbers` take any number, each
    by a box of its own; none means that the document lacks the field, unless it is required.
    `lines` has an item in each line, `pairs` an item of the two `keys`, separated by a space, and
    `rules` a filter of events. A `payee` has a list of the ways to name it. `first` begins a part
    of the form with that heading.
    """

    name: str
    title: str
    kind: Kind = "text"
    hint: str = ""
    choices: Mapping[Any, str] = attrs.field(factory=dict)
    keys: tuple[str, str] = ("", "")
    constant: Mapping[str, str] = attrs.field(factory=dict)
    is_required: bool = False
    first: str = ""
    maximum: int | None = None

    @property
    def id(self) -> str:
        """Its id in the page."""
        return "field-" + self.name.replace(".", "-")

    @property
    def is_long(self) -> bool:
        """Whether its choices are folded away."""
        return len(self.choices) > _MAX_OPEN_CHOICES

    def box(self, choice: str) -> str:
        """The name of the box of a choice: no field of a form may be given twice."""
        return f"{self.name}:{choice}"


@attrs.frozen(kw_only=True)
class Form:
    """A form: where it is, the page before it if it is not a section's own, words, and fields."""

    path: str
    section: str
    title: str
    intro: str = ""
    submit: str
    back: str | None = None
    back_title: str | None = None
    fields: Sequence[Field]

    def read(self, given: Mapping[str, str], kind: type[T], **fixed: Any) -> T:
        """The form as an instance of a body class; `fixed` is what no field says.

        Raises ValidationFailed.
        """
        document: dict[str, Any] = dict(fixed)
        for field in self.fields:
            value = _READ[field.kind](field, given)
            if value is not None:
                _nest(document, field.name.split("."), value)
        found: T = JSON.read(document, kind)
        return found

    def fill(self, document: Mapping[str, Any]) -> dict[str, str]:
        """What the fields say for a document."""
        filled: dict[str, str] = {}
        for field in self.fields:
            value: Any = document
            for name in field.name.split("."):
                value = value.get(name) if isinstance(value, Mapping) else None
            if value is not None and value is not UNSET:
                filled |= _WRITE[field.kind](field, value)
        return filled

    def show(self, call: PageCall, given: Mapping[str, str], **more: Any) -> Response:
        """The page of the form with these values."""
        return self._render(call, given, {}, 200, **more)

    def submit_to(
        self,
        call: PageCall,
        operation: Callable[[IdempotentRequest | None], Any],
        answer: Callable[[Any], Response],
        **more: Any,
    ) -> Response:
        """As `run_form`; what the caller can correct is shown beside the fields, with what they
        say.

        `operation` also reads the form.
        """
        try:
            return run_form(call, operation, answer)
        except _REPORTED as error:
            if isinstance(error, _NOT_REPORTED):
                raise
            # Another request with the same key may have caused it, and have been carried out.
            call.service.parts.ports.committer.replay(call.authority, call.idempotent)
            return self._render(call, call.body, self._sort(error), status_of(type(error)), **more)

    def _sort(self, error: PaymentsError) -> dict[str, list[str]]:
        """What is wrong, by field; what is about none is under an empty name."""
        if not isinstance(error, ValidationFailed):
            name = _FIELDS_OF_ERRORS.get(type(error), "")
            known = any(field.name == name for field in self.fields)
            return {name if known else "": [error.message]}
        problems: dict[str, list[str]] = {}
        for fault in name_failure(error).fields:
            name, words = self._find(fault)
            problems.setdefault(name, []).append(words)
        return problems

    def _find(self, fault: FieldError) -> tuple[str, str]:
        for field in sorted(self.fields, key=lambda one: len(one.name), reverse=True):
            rest = fault.path.removeprefix(field.name)
            if fault.path.startswith(field.name) and rest[:1] in ("", ".", "["):
                return field.name, " ".join((*_name_place(rest), fault.message))
        return "", f"{fault.path} {fault.message}"

    def _render(
        self,
        call: PageCall,
        given: Mapping[str, str],
        problems: Mapping[str, Sequence[str]],
        status: int,
        **more: Any,
    ) -> Response:
        return render_page(
            call,
            "form.html",
            status=status,
            section=self.section,
            page=self,
            given=given,
            problems=problems,
            **more,
        )


def _name_place(rest: str) -> Iterator[str]:
    """Which item of a list, and what of it, in words."""
    index, _, name = rest.removeprefix("[").partition("]")
    if rest.startswith("["):
        yield f"Item {int(index) + 1}:"
    else:
        name = rest
    if name := name.removeprefix("."):
        yield name


def _nest(document: dict[str, Any], path: Sequence[str], value: Any) -> None:
    *outer, last = path
    for name in outer:
        document = document.setdefault(name, {})
    document[last] = value


def _to_number(text: str) -> int | str:
    """A number; what is none stays a text, which the body class refuses."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else text


def _read_text(field: Field, given: Mapping[str, str]) -> str | None:
    return given.get(field.name, "").strip() or None


def _read_number(field: Field, given: Mapping[str, str]) -> int | str | None:
    text = _read_text(field, given)
    return None if text is None else _to_number(text)


def _read_switch(field: Field, given: Mapping[str, str]) -> bool:
    return field.name in given


def _read_several(field: Field, given: Mapping[str, str]) -> list[str] | None:
    chosen = [one for one in field.choices if field.box(one) in given]
    return chosen if chosen or field.is_required else None


def _read_numbers(field: Field, given: Mapping[str, str]) -> list[int | str] | None:
    chosen = _read_several(field, given)
    return None if chosen is None else [_to_number(one) for one in chosen]


def _read_payee(field: Field, given: Mapping[str, str]) -> dict[str, str] | None:
    """Who is paid, by the kind of name that the list beside it says."""
    name, by = _read_text(field, given), given.get(field.box("by"), "")
    if name is None or by not in _PAYEES:
        return None
    return {"type": _PAYEES[by], by: name}


def _read_lines(field: Field, given: Mapping[str, str]) -> list[str] | None:
    lines = given.get(field.name, "").split("\n")
    return [line.strip() for line in lines if line.strip()] or None


def _read_pairs(field: Field, given: Mapping[str, str]) -> list[dict[str, Any]] | None:
    first, second = field.keys
    pairs = [line.partition(" ") for line in _read_lines(field, given) or ()]
    return [
        {**field.constant, first: _to_number(one), second: other.strip()} for one, _, other in pairs
    ] or None


def _read_rules(field: Field, given: Mapping[str, str]) -> list[dict[str, Any]] | None:
    return [parse_rule(line) for line in _read_lines(field, given) or ()] or None


_READ: Mapping[Kind, Callable[[Field, Mapping[str, str]], Any]] = {
    "text": _read_text,
    "choice": _read_text,
    "number": _read_number,
    "chosen_number": _read_number,
    "payee": _read_payee,
    "hidden": _read_number,
    "switch": _read_switch,
    "several": _read_several,
    "numbers": _read_numbers,
    "lines": _read_lines,
    "pairs": _read_pairs,
    "rules": _read_rules,
}
"""A field's value in the document; None for one that the document lacks."""


def _write_text(field: Field, value: Any) -> dict[str, str]:
    return {field.name: str(value)}


def _write_boxes(field: Field, value: Sequence[Any]) -> dict[str, str]:
    return {field.box(str(one)): _CHOSEN for one in value}


_WRITE: Mapping[Kind, Callable[[Field, Any], dict[str, str]]] = {
    "text": _write_text,
    "choice": _write_text,
    "chosen_number": _write_text,
    "payee": _write_text,
    "hidden": _write_text,
    "number": _write_text,
    "switch": lambda field, value: {field.name: _CHOSEN} if value else {},
    "several": _write_boxes,
    "numbers": _write_boxes,
    "lines": lambda field, value: {field.name: "\n".join(value)},
    "pairs": lambda field, value: {
        field.name: "\n".join(" ".join(str(one[key]) for key in field.keys) for one in value)
    },
    "rules": lambda field, value: {
        field.name: "\n".join(write_rule(EventFilter(**one)) for one in value)
    },
}
"""What a field, and the boxes of its choices, say for a value of the document."""
