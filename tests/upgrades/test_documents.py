"""Documents over three releases: one that knows the old form, one that reads the new form too and
writes the old one still, and one that writes the new.

Of any two that follow each other, each may write what the other reads and rewrites.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, ClassVar

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.payment_settings.record import SETTINGS_ID, PaymentSettings, PaymentTerms
from payments_core.record_types import RECORD_TYPES
from payments_core.storage import documents
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage, Transaction
from payments_core.storage.records import Collection, Document, Record

HERE = "env_a"


def _to_parts(document: Document) -> Document:
    rest = {name: value for name, value in document.items() if name != "fee_bps"}
    return {**rest, "fee_ppm": document["fee_bps"] * 100}


def _to_hundredths(document: Document) -> Document:
    rest = {name: value for name, value in document.items() if name != "fee_ppm"}
    return {**rest, "fee_bps": document["fee_ppm"] // 100}


@attrs.frozen(kw_only=True)
class First(Record):
    """A fee in hundredths of a percent. What misread the next form would charge none."""

    collection: ClassVar[Collection] = Collection("fees", columns={"name": str})

    name: str = ""
    fee_bps: int = 0


@attrs.frozen(kw_only=True)
class Second(Record):
    """A fee in millionths, which the release before cannot read yet."""

    collection: ClassVar[Collection] = Collection(
        "fees",
        columns={"name": str},
        schema=2,
        upgrades={1: _to_parts},
        downgrades={1: _to_hundredths},
        write_schema=1,
    )

    name: str = ""
    fee_ppm: int = 0


@attrs.frozen(kw_only=True)
class Third(Record):
    """The same, written as it is."""

    collection: ClassVar[Collection] = Collection(
        "fees", columns={"name": str}, schema=2, upgrades={1: _to_parts}
    )

    name: str = ""
    fee_ppm: int = 0


@attrs.frozen(kw_only=True)
class Fourth(Record):
    """One more field, which the release before keeps without knowing it."""

    collection: ClassVar[Collection] = Collection(
        "fees",
        columns={"name": str},
        schema=3,
        upgrades={1: _to_parts},
        oldest_reader=2,
    )

    name: str = ""
    fee_ppm: int = 0
    payer: str = "recipient"


FEE: dict[type[Record], tuple[str, int]] = {
    First: ("fee_bps", 1),
    Second: ("fee_ppm", 100),
    Third: ("fee_ppm", 100),
    Fourth: ("fee_ppm", 100),
}
NEIGHBOURS = ((First, Second), (Second, Third), (Third, Fourth))


def fee_of(record: Record) -> int:
    name, unit = FEE[type(record)]
    return int(getattr(record, name)) // unit


def with_fee(kind: type[Record], fee_bps: int, **more: Any) -> Record:
    name, unit = FEE[kind]
    return kind(id="f", **{name: fee_bps * unit}, **more)


def stored(kind: type[Record], **fields: Any) -> Document:
    return msgspec.json.decode(
        documents.encode(documents.stamp(kind(id="f", **fields), 1)), type=Document
    )


@pytest.mark.parametrize("pair", NEIGHBOURS, ids=lambda pair: "-".join(k.__name__ for k in pair))
@given(turns=st.lists(st.tuples(st.booleans(), st.integers(0, 10_000)), min_size=1, max_size=8))
def test_two_releases_in_a_row_read_and_rewrite_one_another(
    pair: tuple[type[Record], type[Record]], turns: list[tuple[bool, int]]
) -> None:
    """Whichever release writes, both read the last fee that was written, and the first name."""
    storage = MemoryStorage()
    newer, fee = turns[0]
    first = with_fee(pair[newer], fee, name="monthly")
    storage.transact(HERE, lambda tx: tx.insert(first))
    for newer, fee in turns:
        storage.transact(HERE, lambda tx, kind=pair[newer], fee=fee: _rewrite(tx, kind, fee))
        for kind in pair:
            found = read(storage, kind)
            assert (fee_of(found), getattr(found, "name")) == (fee, "monthly")  # noqa: B009


def _rewrite(tx: Transaction, kind: type[Record], fee_bps: int) -> None:
    found = tx.get(kind, "f", for_update=True)
    assert found is not None
    name, unit = FEE[kind]
    tx.replace(attrs.evolve(found, **{name: fee_bps * unit}))


def read(storage: Storage, kind: type[Record]) -> Record:
    found = storage.read(HERE, lambda snapshot: snapshot.get(kind, "f"))
    assert found is not None
    return found


@given(fee=st.integers(0, 10_000))
def test_what_is_stored_in_the_older_form_comes_back_as_it_was(fee: int) -> None:
    """A lost COMMIT is found out by comparing, and a field left over would make it another."""
    record = documents.stamp(Second(id="f", fee_ppm=fee * 100), 3)
    assert documents.decode(Second, documents.encode(record)) == record


def test_a_release_writes_the_form_that_it_says() -> None:
    assert stored(Second, fee_ppm=100) == {**stored(First, fee_bps=1), "fee_bps": 1}
    assert stored(Third, fee_ppm=100)["schema"] == 2
    assert "fee_bps" not in stored(Third, fee_ppm=100)


def test_a_form_that_would_be_misread_is_refused() -> None:
    """Two releases apart: the fee would be none, and would be written back so."""
    body = msgspec.json.encode(stored(Third, fee_ppm=100))
    with pytest.raises(documents.UnreadableDocument, match="must not run next to this"):
        documents.decode(First, body)
    assert documents.decode(Second, body).fee_ppm == 100


def test_what_the_next_release_wrote_stays_in_its_form() -> None:
    """It may say what the old form cannot: half a hundredth of a percent."""
    body = msgspec.json.encode(stored(Third, fee_ppm=150))
    read_on = documents.decode(Second, body)
    assert read_on.schema == 2
    rewritten = documents.encode(documents.stamp(attrs.evolve(read_on, name="monthly"), 2))
    assert documents.decode(Third, rewritten) == Third(
        id="f", version=2, schema=2, name="monthly", fee_ppm=150
    )
    with pytest.raises(documents.UnreadableDocument):
        documents.decode(First, rewritten)


def test_a_form_with_one_field_more_is_read_two_releases_back() -> None:
    document = stored(Fourth, fee_ppm=100, payer="merchant")
    assert (document["schema"], document[documents.OLDEST_READER]) == (3, 2)
    kept = documents.decode(Second, msgspec.json.encode(document))
    assert kept.fee_ppm == 100
    rewritten = documents.encode(documents.stamp(attrs.evolve(kept, fee_ppm=200), 2))
    assert documents.decode(Fourth, rewritten) == Fourth(
        id="f", version=2, schema=3, fee_ppm=200, payer="merchant"
    )
    with pytest.raises(documents.UnreadableDocument):
        documents.decode(First, rewritten)


def test_the_field_that_says_who_may_read_is_not_taken_for_one_of_the_record() -> None:
    @attrs.frozen(kw_only=True)
    class Fifth(Fourth):
        collection: ClassVar[Collection] = attrs.evolve(
            Fourth.collection,
            schema=4,
            write_schema=4,
            upgrades=Fourth.collection.upgrades,
        )

    body = documents.encode(documents.stamp(Fourth(id="f", fee_ppm=1), 1))
    assert documents.decode(Fifth, body) == Fifth(id="f", version=1, schema=4, fee_ppm=1)


def test_keys_that_are_numbers_are_read_from_another_releases_document() -> None:
    """Chain ids are keys of settings; JSON has them as texts."""
    terms = PaymentTerms(confirmations={8453: 3})
    settings = PaymentSettings(id=SETTINGS_ID, version=1, schema=1, terms=terms)
    body = json.loads(documents.encode(settings))
    newer = json.dumps({**body, "schema": body["schema"] + 1})
    assert documents.decode(PaymentSettings, newer).terms.confirmations == {8453: 3}


def test_a_form_without_a_way_to_and_from_what_is_written_is_refused() -> None:
    for wrong, message in (
        ({"schema": 2, "write_schema": 1, "upgrades": {1: dict}}, "no downgrade to schema"),
        ({"write_schema": 2}, "write_schema <= schema"),
        ({"schema": 2, "write_schema": 1, "oldest_reader": 2}, "oldest_reader <= write_schema"),
        ({"oldest_reader": 0}, "oldest_reader"),
    ):
        with pytest.raises(ValueError, match=message):
            Collection("fees", **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("body", ["", "[]", "{", '{"id": "f"', '{"id":"f","schema":"2"}', "null"])
def test_a_body_that_is_not_a_document_is_unreadable(body: str) -> None:
    with pytest.raises(documents.UnreadableDocument, match="fees"):
        documents.decode(First, body)


@pytest.mark.parametrize("kind", RECORD_TYPES, ids=lambda kind: kind.collection.name)
def test_no_record_has_a_field_that_documents_have_for_themselves(kind: type[Record]) -> None:
    assert documents.OLDEST_READER not in {field.name for field in attrs.fields(kind)}


FIRST_READS = """
import sys, threading
from contextlib import suppress
from payments_core.record_types import RECORD_TYPES
from payments_core.storage import documents

sys.setswitchinterval(1e-6)
together = threading.Barrier(4)
body = (
    '{"id": "a", "version": 1, "schema": 1, "status": "x", "chain_id": 1, "created_at": 1,'
    ' "timeline": [{"status": "a", "at": 1}], "keys": []}'
)

def run():
    for kind in RECORD_TYPES:
        together.wait()
        for _ in range(20):
            with suppress(documents.UnreadableDocument):
                documents.decode(kind, body)

threads = [threading.Thread(target=run) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_read_a_kind_for_the_first_time_at_once_do_not_end_the_process() -> None:
    """As those of a new process do, when the first requests come."""
    for _ in range(3):  # without the lock, two of three end by a signal
        done = subprocess.run([sys.executable, "-c", FIRST_READS], timeout=60)
        assert done.returncode == 0
