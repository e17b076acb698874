"""Documents into wire classes, and the canonical text, without an application."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

import attrs
import msgspec
import pytest
import rfc8785

from payments_core.errors import InvalidJson, ValidationFailed
from payments_core.validation.readers import JSON
from payments_core_http.wire import json_text
from tests.http.api_harness import MakeThing


@attrs.frozen(kw_only=True)
class Receive:
    """One side of a union at the top."""

    intent: Literal["receive"]
    amount: str


@attrs.frozen(kw_only=True)
class Send:
    """The other side."""

    intent: Literal["send"]
    source: str


@attrs.frozen(kw_only=True)
class Change:
    """A change, in which absent and null differ."""

    label: str | msgspec.UnsetType | None = msgspec.UNSET
    rate: Decimal = Decimal(1)


def paths(kind: Any, document: Any) -> list[str]:
    with pytest.raises(ValidationFailed) as caught:
        JSON.read(document, kind)
    return [fault.path for fault in caught.value.fields]


def test_a_union_at_the_top_is_distinguished_by_its_intent() -> None:
    kind = Receive | Send
    assert JSON.read({"intent": "send", "source": "s"}, kind) == Send(intent="send", source="s")
    assert paths(kind, {}) == ["intent"]
    assert paths(kind, {"intent": "collect"}) == ["intent"]
    assert paths(kind, {"intent": "receive", "source": "s"}) == ["amount", "source"]
    assert paths(kind, []) == [""]


@attrs.frozen(kw_only=True)
class Counted:
    """A number, or its digits."""

    nonce: Annotated[int, msgspec.Meta(ge=0)] | Annotated[str, msgspec.Meta(max_length=3)]
    limit: int | str | None = None


def test_a_number_or_a_text_is_distinguished_by_its_type() -> None:
    reader = JSON
    assert reader.read({"nonce": 7}, Counted) == Counted(nonce=7)
    assert reader.read({"nonce": "007", "limit": None}, Counted) == Counted(nonce="007")
    for wrong in (-1, "1234", True, None, Decimal(1), [], 2**53):
        assert paths(Counted, {"nonce": wrong}) == ["nonce"], wrong
    assert paths(Counted, {"nonce": 1, "limit": {}}) == ["limit"]


def test_absent_and_null_can_be_distinguished() -> None:
    reader = JSON
    assert reader.read({}, Change).label is msgspec.UNSET
    assert reader.read({"label": None}, Change).label is None
    assert reader.read({"label": "a"}, Change).label == "a"


def test_null_is_absent_in_every_optional_field_of_a_body() -> None:
    optional = ("amount", "count", "urgent", "note", "parts", "destination", "metadata")
    wanted = JSON.read({"name": "a"}, MakeThing)
    for name in optional:
        assert JSON.read({"name": "a", name: None}, MakeThing) == wanted
    assert JSON.read({"name": "a", **dict.fromkeys(optional)}, MakeThing) == wanted
    assert paths(MakeThing, {"name": None}) == ["name"]
    assert paths(MakeThing, {"name": "a", "parts": [None]}) == ["parts[0]"]


def test_a_decimal_is_the_text_of_its_number() -> None:
    assert str(JSON.read(json_text.parse(b'{"rate": 0.10}'), Change).rate) == "0.10"
    assert paths(Change, {"rate": "0.1"}) == ["rate"]
    assert paths(Change, {"rate": True}) == ["rate"]


def test_classes_that_nothing_distinguishes_are_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="no field distinguishes"):
        JSON.read({}, Change | MakeThing)


def test_an_array_of_scalars_names_the_item() -> None:
    kind = tuple[Annotated[str, msgspec.Meta(min_length=1)], ...]
    assert paths(kind, ["a", "", 1]) == ["[1]", "[2]"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a":1,"b":2}', b'{ "b" : 2, "a" : 1 }', True),
        (b'{"a":"\\u0041"}', b'{"a":"A"}', True),
        (b"[1.0]", b"[1]", False),
        (b"[1.0]", b"[1.00]", False),
        (b"[9007199254740993]", b"[9007199254740992]", False),
        (b"[null]", b"[false]", False),
        (b'["1"]', b"[1]", False),
        (b"[1,2]", b"[2,1]", False),
    ],
)
def test_the_canonical_text_compares_bodies(one: bytes, other: bytes, same: bool) -> None:
    texts = [json_text.canonicalize(json_text.parse(raw)) for raw in (one, other)]
    assert (texts[0] == texts[1]) is same


def test_the_canonical_text_is_that_of_rfc_8785() -> None:
    raw = '{"\u20ac":"E","\\r":"CR","\ufb33":"D","1":[true,null,false,-7],"\U0001f600":"s","\x80":"c","\u00f6":"\\u001f\\"\\\\/\\b"}'  # noqa: E501
    document = json_text.parse(raw.encode())
    assert json_text.canonicalize(document).encode() == rfc8785.dumps(document)


def test_the_reason_of_invalid_json_is_reported() -> None:
    with pytest.raises(InvalidJson, match="same key twice"):
        json_text.parse(b'{"a": 1, "a": 2}')
