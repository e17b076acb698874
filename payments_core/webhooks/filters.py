"""Filters of an endpoint: rules over the fields of an event, all of which it must satisfy.

A rule is data: a field, an operator and a value. The operators are a table, and so are the kinds of
fields, each of which says how the values of events and of rules are compared: amounts are integers,
whatever their number of digits. The fields are those of the catalogue's payloads, in the contract
of whoever makes the rule.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, Literal, get_args

import attrs
import msgspec
from msgspec import Meta

from payments_core.brief_repr import brief_repr
from payments_core.clock import parse_iso
from payments_core.contracts.versions import Versions
from payments_core.engine.event_payloads import render_fields
from payments_core.engine.events import BY_NAME, CATALOGUE
from payments_core.errors import FieldError, ValidationFailed

MAX_RULES = 10
MAX_VALUES = 50
MAX_BYTES = 16_000
"""Of all rules of an endpoint, as JSON: each fan-out reads the endpoints of its environment."""

FilterOperator = Literal["=", "!=", ">", ">=", "<", "<=", "in", "exists", "absent"]
FilterText = Annotated[str, Meta(min_length=1, max_length=200)]
FilterTexts = Annotated[tuple[FilterText, ...], Meta(max_length=MAX_VALUES)]


@attrs.frozen(slots=False)
class EventFilter:
    """A rule over a field of an event, such as `payload.amountAtomic`: `in` takes `values`,
    `exists` and `absent` nothing, and the other operators a `value`.

    The field is `name`, `createdAt`, `payload.` with a field of the catalogue, or
    `payload.metadata.` with a key. Null counts as absent, and an absent field satisfies `absent`
    alone. A rule over a list holds if it holds for one of its items, `!=` if no item is equal.

    >>> large = EventFilter("payload.amountAtomic", ">=", "100000000")
    >>> shop.on_event("large", print, filters=(large,)).filters
    (EventFilter(field='payload.amountAtomic', op='>=', value='100000000'),)
    """

    __repr__ = brief_repr

    field: FilterText
    op: FilterOperator
    value: FilterText | None = None
    values: FilterTexts = ()


EventFilters = Annotated[tuple[EventFilter, ...], Meta(max_length=MAX_RULES)]

# The kinds of fields


@attrs.frozen
class _Kind:
    """How the values of a field are read, in events and in rules: None for one that is not of this
    kind. `rule` says in words what a rule may have, and `is_ordered` whether sizes compare."""

    read: Callable[[Any], Any]
    rule: str
    is_ordered: bool = True


_DIGITS = re.compile(r"0|-?[1-9][0-9]{0,77}", re.ASCII)
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,77})(?:\.[0-9]{1,78})?", re.ASCII)


def _read_integer(value: Any) -> int | None:
    if type(value) is int:
        return value
    return int(value) if type(value) is str and _DIGITS.fullmatch(value) else None


def _read_decimal(value: Any) -> Decimal | None:
    text = str(value) if type(value) in (int, float) else value
    return Decimal(text) if type(text) is str and _DECIMAL.fullmatch(text) else None


def _read_time(value: Any) -> int | None:
    try:
        return parse_iso(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _read_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _read_name(value: Any) -> str | None:
    return value if value in BY_NAME else None


_INTEGER = _Kind(_read_integer, "a whole number")
_AMOUNT = _Kind(_read_integer, "a whole number in the smallest unit")
_PRICE = _Kind(_read_decimal, "a decimal number")
_TIME = _Kind(_read_time, "an ISO 8601 time with a zone")
_TEXT = _Kind(_read_text, "a text", is_ordered=False)
_NAME = _Kind(_read_name, "the name of an event", is_ordered=False)

_BY_FIELD: Mapping[str, _Kind] = {
    "name": _NAME,
    "createdAt": _TIME,
    "estimatedAt": _TIME,
    "chainId": _INTEGER,
    "statusVersion": _INTEGER,
    "confirmations": _INTEGER,
    "required": _INTEGER,
    "amount": _PRICE,
}
"""The kinds of fields by their names; those that end with `Atomic` are amounts, others texts."""

_ENVELOPE = ("name", "createdAt")
_METADATA = "payload.metadata."


def _kind_of_field(field: str) -> _Kind:
    name = field.rpartition(".")[2]
    return _AMOUNT if name.endswith("Atomic") else _BY_FIELD.get(name, _TEXT)


# The operators

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_WITHOUT_VALUE = ("exists", "absent")
_OPERATORS: tuple[str, ...] = get_args(FilterOperator)

Envelope = Mapping[str, Any]
"""An event as its receivers see it."""


def satisfies(filters: Sequence[EventFilter], envelope: Envelope) -> bool:
    """Whether an event satisfies every rule."""
    return all(_compile(rule)(envelope) for rule in filters)


@lru_cache(maxsize=4_096)
def _compile(rule: EventFilter) -> Callable[[Envelope], bool]:
    judge = _judge_of(rule)

    def holds(envelope: Envelope) -> bool:
        found = _find_value(envelope, rule.field)
        if found is None:
            return rule.op == "absent"
        return judge(found if isinstance(found, list | tuple) else (found,))

    return holds


def _find_value(document: Any, path: str) -> Any:
    """The value at a path with dots; a key of metadata may have dots itself. None if it is absent
    or null."""
    if not isinstance(document, Mapping):
        return None
    found = document.get(path)
    ends = (at for at, character in enumerate(path) if character == ".")
    while found is None and (end := next(ends, None)) is not None:
        found = _find_value(document.get(path[:end]), path[end + 1 :])
    return found


def _judge_of(rule: EventFilter) -> Callable[[Sequence[Any]], bool]:
    """Judges the items of a field that is not absent: most fields have one."""
    if rule.op in _WITHOUT_VALUE:
        return lambda items: rule.op == "exists"
    kind = _kind_of(rule)
    if rule.op in _COMPARISONS:
        compare, limit = _COMPARISONS[rule.op], kind.read(rule.value)
        return lambda items: any(
            one is not None and compare(one, limit) for one in map(kind.read, items)
        )
    wanted = {kind.read(value) for value in (rule.values if rule.op == "in" else (rule.value,))}
    is_in = rule.op != "!="
    return lambda items: any(kind.read(item) in wanted for item in items) == is_in


def _kind_of(rule: EventFilter) -> _Kind:
    """The kind of a rule's field. Metadata has no kinds: sizes compare as numbers."""
    if rule.field.startswith(_METADATA):
        return _PRICE if rule.op in _COMPARISONS else _TEXT
    return _kind_of_field(rule.field)


# The check of what callers give


def check_filters(
    filters: Sequence[EventFilter], versions: Versions, date: str
) -> tuple[EventFilter, ...]:
    """The rules, each once, if each can hold for an event in the contract of a date.

    Raises ValidationFailed, with the path of each fault.
    """
    faults = [
        FieldError(f"filters[{place}].{fault.path}", fault.message)
        for place, rule in enumerate(filters)
        for fault in _find_faults(rule, versions, date)
    ]
    each_once = tuple(dict.fromkeys(filters))
    if len(msgspec.json.encode(each_once)) > MAX_BYTES:
        faults.append(FieldError("filters", f"must have at most {MAX_BYTES} bytes as JSON"))
    if faults:
        raise ValidationFailed(tuple(faults))
    return each_once


def _find_faults(rule: EventFilter, versions: Versions, date: str) -> list[FieldError]:
    if not _is_field(rule.field, versions, date):
        return [FieldError("field", "is no field of an event")]
    kind, faults = _kind_of(rule), list[FieldError]()
    if rule.op in _COMPARISONS and not kind.is_ordered:
        return [FieldError("op", "compares numbers and times, and this field is a text")]
    if (rule.value is None) == (rule.op not in (*_WITHOUT_VALUE, "in")):
        faults.append(FieldError("value", _says(rule.value is None, rule.op)))
    elif rule.value is not None and kind.read(rule.value) is None:
        faults.append(FieldError("value", f"must be {kind.rule}"))
    if bool(rule.values) != (rule.op == "in"):
        faults.append(FieldError("values", _says(not rule.values, rule.op)))
    faults += [
        FieldError(f"values[{place}]", f"must be {kind.rule}")
        for place, value in enumerate(rule.values)
        if kind.read(value) is None
    ]
    return faults


def _says(is_missing: bool, op: str) -> str:
    return f"is required with {op}" if is_missing else f"must be left out with {op}"


def _is_field(field: str, versions: Versions, date: str) -> bool:
    if field.startswith(_METADATA):
        return field != _METADATA
    return field in _ENVELOPE or field in _list_fields(versions, date)


@lru_cache(maxsize=16)
def _list_fields(versions: Versions, date: str) -> frozenset[str]:
    """The fields of all payloads whose values are not objects."""
    return frozenset(
        f"payload.{name}"
        for event in CATALOGUE
        for name, value in render_fields(event.name, event.sample, date, versions).items()
        if not isinstance(value, Mapping)
    )


# Rules as texts

_STRING = r'"(?:[^"\\]|\\.)*"'
_RULE = re.compile(rf"\s*({_STRING}(?!\S)|\S*)\s*(\S*)\s*(.*?)\s*", re.DOTALL)
_ITEM = re.compile(rf"\s*({_STRING}(?=\s*(?:,|$))|[^,]+)")
_PLAIN_FIELD = re.compile(r'[^\s"]\S*')
_PLAIN_VALUE = re.compile(r'[^\s"](?:[^\r\n]*\S)?')
_PLAIN_ITEM = re.compile(r'[^\s",](?:[^\r\n,]*[^\s,])?')


def parse_rule(text: str) -> dict[str, Any]:
    """A rule as a document, from its text: a field, an operator and a value, divided by spaces:
    `payload.amountAtomic >= 100000000`. The values of `in` are divided by commas. What the text
    would not say so, such as a value with a comma, is in double quotes, as in JSON.

    What is wrong with it is left to `check_filters`.
    """
    parts = _RULE.fullmatch(text)
    assert parts is not None, "each part may be empty"
    field, op, rest = parts.groups()
    rule: dict[str, Any] = {"field": _unquote(field), "op": op}
    if op == "in":
        items = (found[1].strip() for found in _ITEM.finditer(rest))
        rule["values"] = [_unquote(one) for one in items if one]
    elif rest:
        rule["value"] = _unquote(rest)
    return rule


def write_rule(rule: EventFilter) -> str:
    """The text of a rule, of which `parse_rule` makes the same one."""
    value = "" if rule.value is None else _quote(rule.value, _PLAIN_VALUE)
    items = ", ".join(_quote(one, _PLAIN_ITEM) for one in rule.values)
    field = _quote(rule.field, _PLAIN_FIELD)
    return " ".join(one for one in (field, rule.op, value, items) if one)


def _quote(text: str, plain: re.Pattern[str]) -> str:
    return text if plain.fullmatch(text) else msgspec.json.encode(text).decode()


def _unquote(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.DecodeError:
        return text
