"""All partitions at once, on every storage: what the conformance suite does not ask."""

from __future__ import annotations

import logging
from contextlib import suppress

import attrs
import pytest

from payments_core.storage import documents
from payments_core.storage.maintenance import (
    NoMaintenanceAccess,
    RecordRow,
    require_maintenance_access,
    scan_all,
    to_record_row,
)
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import CommitUnknown, LocatedRecord
from payments_core.storage.port import Storage as Port
from payments_core.storage.records import R, Record
from payments_core.tenants.record import KeyUse


def insert(storage: Port, partition: str, record: Record) -> None:
    while storage.read(partition, lambda snapshot: snapshot.get(type(record), record.id)) is None:
        try:
            storage.transact(partition, lambda tx: tx.insert(record))
        except CommitUnknown:
            continue


def stored(storage: Port, kind: type[R]) -> list[LocatedRecord[R]]:
    return list(scan_all(storage, kind, batch=2))


def test_what_else_ended_a_load_comes_out_at_the_end_too(storage: Port) -> None:
    good = to_record_row("env_a", documents.stamp(KeyUse(id="good", last_used_at_ms=1), 1))
    bad = attrs.evolve(good, id="bad", version=2**80)
    if isinstance(storage, MemoryStorage):  # which takes any number
        bad = attrs.evolve(good, id="bad", body="{")

    def load() -> None:
        with require_maintenance_access(storage).lock_exclusively() as alone, suppress(Exception):
            alone.load(KeyUse, [good, bad])

    with pytest.raises(Exception) as failed:
        load()
    assert "last_used_at" not in str(failed.value)
    assert stored(storage, KeyUse) == []


def test_a_walk_passes_over_what_cannot_be_read_and_reports_each_once(
    storage: Port, caplog: pytest.LogCaptureFixture
) -> None:
    if isinstance(storage, MemoryStorage):
        pytest.skip("what is in memory is not damaged")
    for id in ("b", "f"):
        insert(storage, "env_a", KeyUse(id=id, last_used_at_ms=1))
    damaged = {
        "a": '{"sesame', "c": '{"id": "c", "last_used_at": "sesame"}', "d": "{}", "e": "",
        "g": documents.encode(documents.stamp(KeyUse(id="a", last_used_at_ms=1), 1)).decode(),
        "h": "sesame",
    }  # fmt: skip
    with require_maintenance_access(storage).lock_exclusively() as alone:
        alone.load(KeyUse, [RecordRow("env_a", id, 1, (), body) for id, body in damaged.items()])
    for batch in (1, 2, 3, 100):
        caplog.clear()
        with caplog.at_level(logging.CRITICAL):
            found = [one.record.id for one in scan_all(storage, KeyUse, batch=batch)]
        assert found == ["b", "f"]
        assert [record.getMessage() for record in caplog.records] == [
            f"ALARM: {id} of env_a in key_uses cannot be read and is skipped" for id in damaged
        ]


def test_an_adapter_without_it_says_so() -> None:
    class Custom:
        pass

    with pytest.raises(NoMaintenanceAccess, match="a Custom does not offer maintenance access"):
        require_maintenance_access(Custom())  # type: ignore[arg-type]
