"""Documents of before the names of fields said their units."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import attrs
import pytest

from payments_core.money import Atomic
from payments_core.storage import documents
from payments_core.storage.records import Collection, Record
from payments_core.storage.unit_names import add_units


@attrs.frozen
class Leg:
    """A part of a record."""

    amount_atomic: int
    at_ms: int | None = None


@attrs.frozen(kw_only=True)
class Voyage(Record):
    """Has fields with units in every place where a document can have them."""

    collection: ClassVar[Collection] = Collection("voyages", schema=3, oldest_reader=1)

    began_at_ms: int
    total_atomic: Atomic = attrs.field(default=Atomic(0), converter=Atomic)
    wait: int = 0
    wait_ms: int = 0
    first: Leg | None = None
    legs: tuple[Leg, ...] = ()
    ends: tuple[Leg, int] = (Leg(0), 0)
    more: Sequence[Leg] = ()
    named: Mapping[str, Leg] = attrs.field(factory=dict)
    marked: Annotated[Leg | None, "mark"] = None
    notes: Mapping[str, str] = attrs.field(factory=dict)


FORMER: dict[str, Any] = {
    "id": "v", "version": 1, "schema": 1, "began_at": 5, "total": "7", "wait": 8, "wait_ms": 9,
    "first": {"amount": 1, "at": 2}, "legs": [{"amount": 3}], "ends": [{"amount": 4}, 5],
    "more": [{"amount": 6, "at": 7}], "named": {"at": {"amount": 8}}, "marked": {"amount": 9},
    "notes": {"began_at": "morning", "amount": "many"},
}  # fmt: skip

NOW = Voyage(
    id="v", version=1, schema=3, began_at_ms=5, total_atomic=Atomic(7), wait=8, wait_ms=9,
    first=Leg(1, 2), legs=(Leg(3),), ends=(Leg(4), 5), more=(Leg(6, 7),), named={"at": Leg(8)},
    marked=Leg(9), notes={"began_at": "morning", "amount": "many"},
)  # fmt: skip


def read(document: Mapping[str, Any]) -> Voyage:
    return documents.decode(Voyage, json.dumps(document))


def test_the_fields_of_a_former_document_are_read_wherever_they_are() -> None:
    found = read(FORMER)
    assert attrs.evolve(found, more=tuple(found.more)) == NOW
    assert found._unknown == {}


def test_a_former_document_is_stored_with_units_when_it_is_rewritten() -> None:
    body = json.loads(documents.encode(documents.stamp(read(FORMER), 2)))
    assert (body["began_at_ms"], body["total_atomic"], body["schema"]) == (5, "7", 3)
    assert body["first"] == {"amount_atomic": 1, "at_ms": 2}
    assert {"began_at", "total"} & body.keys() == set()


def test_a_field_that_has_its_unit_already_is_left_alone() -> None:
    mixed = {**FORMER, "began_at_ms": 6, "first": {"amount_atomic": 1, "at": 2}}
    found = read(mixed)
    assert (found.began_at_ms, found.first) == (6, Leg(1, 2))
    assert found._unknown == {"began_at": 5}


def test_a_value_of_before_is_read() -> None:
    body = b'{"amount":3,"at":4}'
    assert documents.decode_value(Leg, body) == Leg(3, 4)
    assert documents.decode_value(tuple[Leg, str], b'[{"amount":3},"x"]') == (Leg(3), "x")
    with pytest.raises(documents.UnreadableDocument):
        documents.decode_value(Leg, b'{"amounts":3}')


@pytest.mark.parametrize("wrong", [5, "x", None, [], {"first": 5}, {"legs": {"amount": 1}}])
def test_what_does_not_match_the_type_is_left_as_it_is(wrong: Any) -> None:
    assert add_units(Voyage, wrong) == wrong
