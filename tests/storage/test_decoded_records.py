"""What callers share of a record that was read before, and what each has for itself."""

from typing import Any, ClassVar

import attrs
import msgspec
import pytest

from payments_core.conformance.storage.records import NewerLetter
from payments_core.payments.record import Payment
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.decoded_records import (
    MAX_BODY_BYTES,
    MAX_RECORDS,
    DecodedRecords,
    mutable_fields,
)
from payments_core.storage.documents import decode, encode, stamp
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.records import Collection, Record
from payments_core.tenants.record import Environment


@attrs.frozen(kw_only=True)
class Note(Record):
    """Texts and nothing else."""

    collection: ClassVar[Collection] = Collection("notes")

    text: str = ""


@attrs.define
class Pen:
    """It can be changed."""

    color: str = "blue"


@attrs.frozen(kw_only=True)
class Drawing(Record):
    """A frozen record with a value inside that is not."""

    collection: ClassVar[Collection] = Collection("drawings")

    pens: tuple[Pen, ...] = ()


@attrs.frozen(kw_only=True)
class Branch:
    """A value that may hold others of its kind."""

    branches: tuple["Branch", ...] = ()
    labels: list[str] | None = None


@attrs.frozen(kw_only=True)
class Tree(Record):
    """A record of such values."""

    collection: ClassVar[Collection] = Collection("trees")

    root: Branch | None = None


def test_a_body_is_decoded_once_when_it_is_written() -> None:
    note = stamp(Note(id="a", text="read"), 1)
    body = encode(note)
    assert decode(Note, body) == note
    assert decode(Note, body) is decode(Note, body)


def test_what_one_caller_does_to_a_mapping_no_other_sees() -> None:
    storage = MemoryStorage()
    letter = NewerLetter(id="a", seal="s", details={"color": "blue"})
    storage.transact("p", lambda tx: tx.insert(letter))
    first = storage.read("p", lambda snapshot: snapshot.get(NewerLetter, "a"))
    assert first is not None
    first.details["color"] = "red"
    again = storage.read("p", lambda snapshot: snapshot.get(NewerLetter, "a"))
    assert again is not None
    assert again.details == {"color": "blue"}


def test_the_rate_limits_of_an_environment_cannot_be_changed() -> None:
    environment = Environment(
        id="env_a",
        app_id="app_a",
        partner_id="partner",
        app_name="Shop",
        mode="sandbox",
        api_version="2026-09-09",
        products=(),
        rate_limits={"create": 1},
        created_at_ms=0,
        updated_at_ms=0,
    )
    read = decode(Environment, encode(stamp(environment, 1)))
    assert read.rate_limits == {"create": 1}
    limits: Any = read.rate_limits
    with pytest.raises(TypeError):
        limits["create"] = 2


def test_a_value_that_can_be_changed_makes_its_record_mutable() -> None:
    assert mutable_fields(Drawing) == ("pens",)
    assert mutable_fields(Payment) == ("metadata",)
    assert mutable_fields(Note) == ()
    assert mutable_fields(Branch) == ("labels",)
    assert mutable_fields(Tree) == ("root",)


@pytest.mark.parametrize("kind", RECORD_TYPES, ids=lambda kind: kind.__name__)
def test_every_record_is_frozen(kind: type[Record]) -> None:
    assert attrs.inspect(kind).is_frozen


def test_a_long_body_is_decoded_each_time() -> None:
    body = encode(stamp(Note(id="a", text="x" * MAX_BODY_BYTES), 1))
    assert decode(Note, body) is not decode(Note, body)


def test_the_kept_records_are_bounded() -> None:
    records = DecodedRecords(msgspec.json.Decoder)
    bodies = [encode(stamp(Note(id=str(number)), 1)) for number in range(MAX_RECORDS + 1)]
    decoded = [records.get(Note, body) for body in bodies]
    assert records.get(Note, bodies[-1]) is decoded[-1]
    assert records.get(Note, bodies[0]) is not decoded[0]
    assert records.get(Note, bodies[0]) == decoded[0]
