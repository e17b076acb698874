"""A damaged row is found, shown, repaired from a document or removed, and nothing else changes."""

from __future__ import annotations

import hashlib

import attrs
import pytest

from payments_core.errors import NotFound, ResourceConflict, ValidationFailed
from payments_core.maintenance.damaged_rows import DamagedRow, DamagedRows, check_rows, encode_body
from payments_core.maintenance.record import RowRepair
from payments_core.payments.record import Payment
from payments_core.record_types import RECORD_TYPES
from payments_core.storage import documents
from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.maintenance import BATCH, scan_all
from payments_core.storage.port import Storage
from payments_core.tenants.record import KeyUse
from tests.service.corruption import corrupt
from tests.service.world import World, write


@pytest.fixture
def world(storage: Storage) -> World:
    return World(storage).open()


def rows_of(world: World) -> DamagedRows:
    return DamagedRows(world.service.parts.ports, RECORD_TYPES)


def corrupted(world: World) -> tuple[DamagedRow, Payment]:
    """A damaged Payment between two sound ones, and the Payment that it was."""
    payments = [world.payment() for _ in range(3)]
    before = world.paid(payments[1].payment.id)
    corrupt(world.storage, world.environment_id, before)
    return DamagedRow("payments", world.environment_id, before.id), before


def test_a_check_names_each_damaged_row(world: World) -> None:
    assert check_rows(world.storage, RECORD_TYPES).damaged == ()
    place, _ = corrupted(world)
    found = check_rows(world.storage, RECORD_TYPES)
    assert found.damaged == (place,)
    assert found.is_complete


def test_a_check_with_a_bound_looks_at_every_collection_and_then_stops(world: World) -> None:
    place, _ = corrupted(world)
    marks = [KeyUse(id=f"k{number:05d}", last_used_at_ms=1) for number in range(3 * BATCH)]
    write(world.storage, "env_large", lambda tx: [tx.insert(mark) for mark in marks])
    found = check_rows(world.storage, (KeyUse, Payment), max_rows=BATCH + 1)
    assert found.damaged == (place,)
    assert found.rows_read < 2 * BATCH
    assert not found.is_complete
    reported: dict[str, int] = {}
    whole = check_rows(world.storage, (KeyUse, Payment), progress=reported.__setitem__)
    assert whole.is_complete
    assert sum(reported.values()) == whole.rows_read > 3 * BATCH


def test_a_row_is_repaired_from_a_document(world: World) -> None:
    place, before = corrupted(world)
    damaged = rows_of(world).get(place)
    with pytest.raises(UnreadableDocument):
        damaged.read(Payment)
    document = documents.encode(before)
    repair = rows_of(world).repair(place, document)
    after = world.paid(before.id)
    assert after == attrs.evolve(before, version=damaged.version + 1)
    assert check_rows(world.storage, RECORD_TYPES).damaged == ()
    found = [details.payment for details in world.resources.payments.list().records]
    assert after in found and len(found) == 3
    assert world.get(RowRepair, repair.id) == RowRepair(
        id=repair.id,
        version=1,
        schema=RowRepair.collection.schema,
        table="payments",
        row_id=before.id,
        row_version=damaged.version,
        action="repaired",
        document_sha256=hashlib.sha256(encode_body(damaged)).hexdigest(),
        created_at_ms=repair.created_at_ms,
    )
    [entry] = world.resources.audit.list(operation="rows.repair").records
    assert (entry.object_id, entry.actor.type) == (before.id, "program")
    world.resources.payments.cancel(before.id)


def test_a_document_that_cannot_be_read_or_is_of_another_record_repairs_nothing(
    world: World,
) -> None:
    place, before = corrupted(world)
    other = documents.encode(attrs.evolve(before, id="payment_x"))
    for document, says in (
        (b'{"half', "cannot be read"),
        (b"{}", "cannot be read"),
        (b"\xff", "cannot be read"),
        (other, "is of another record: payment_x"),
    ):
        with pytest.raises(ValidationFailed) as refused:
            rows_of(world).repair(place, document)
        assert says in refused.value.fields[0].message
    assert check_rows(world.storage, RECORD_TYPES).damaged == (place,)
    assert list(scan_all(world.storage, RowRepair)) == []


def test_a_row_is_removed_with_its_unique_keys(world: World) -> None:
    account = world.account("again")
    corrupt(world.storage, world.environment_id, account)
    place = DamagedRow("accounts", world.environment_id, account.id)
    repair = rows_of(world).remove(place)
    assert (repair.action, repair.row_id) == ("removed", account.id)
    assert check_rows(world.storage, RECORD_TYPES).damaged == ()
    assert [one.record.id for one in scan_all(world.storage, RowRepair)] == [repair.id]
    assert world.account("again").id != account.id


def test_only_a_damaged_row_is_shown_repaired_or_removed(world: World) -> None:
    place, before = corrupted(world)
    sound = DamagedRow("payments", world.environment_id, world.payment().payment.id)
    document = documents.encode(before)
    for act in (
        rows_of(world).get,
        lambda place: rows_of(world).repair(place, document),
        rows_of(world).remove,
    ):
        for wrong, error in (
            (sound, ResourceConflict),
            (DamagedRow("payments", world.environment_id, "payment_"), NotFound),
            (DamagedRow("payments", "env_other", place.id), NotFound),
            (DamagedRow("pay", world.environment_id, place.id), ValidationFailed),
        ):
            with pytest.raises(error):
                act(wrong)
    assert check_rows(world.storage, RECORD_TYPES).damaged == (place,)
