"""kill -9 of a copy at every step: its target is empty or whole, and it can be begun again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from payments_core.record_types import RECORD_TYPES
from payments_core.storage.maintenance import RecordRow
from payments_core.storage.port import Storage, StorageError
from payments_core.storage_loader import open_storage
from payments_core.tenants.record import KeyUse
from tests.maintenance.copy_victim import NOTE
from tests.maintenance.shop import Shop, all_rows
from tests.maintenance.stepping import steps_until

VICTIM = "tests.maintenance.copy_victim"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def target_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/target.db"
    return str(request.getfixturevalue("emptied_schema"))


@pytest.fixture
def source_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/source.db"


@pytest.fixture
def target(target_url: str) -> Iterator[Storage]:
    storage = open_storage(target_url, RECORD_TYPES)
    storage.migrate()
    yield storage
    storage.close()


def without_marks(rows: list[tuple[str, RecordRow]]) -> list[tuple[str, RecordRow]]:
    """Each beginning of a move leaves one."""
    return [row for row in rows if row[0] != "copy_marks"]


def collections(rows: list[tuple[str, RecordRow]]) -> int:
    return len({collection for collection, _ in rows})


@pytest.mark.slow
def test_a_copy_that_is_killed_leaves_nothing_or_everything_and_can_be_begun_again(
    source_url: str, target_url: str, target: Storage
) -> None:
    source = open_storage(source_url, RECORD_TYPES)
    source.migrate()
    Shop(source).stock(3)
    last_copy = collections(all_rows(source, RECORD_TYPES)) + 1  # the mark of the move
    for kill_at in (1, last_copy // 2, last_copy):
        steps = steps_until(VICTIM, source_url, target_url, kill_at=kill_at)
        assert [step.split()[0] for step in steps] == ["copy"] * kill_at
        assert all_rows(target, RECORD_TYPES) == []
        write_and_delete(source)
    steps = steps_until(VICTIM, source_url, target_url, kill_at=last_copy + 1)
    assert steps[-1] == "retire"  # all is committed, and the source does not know it yet
    everything = all_rows(target, RECORD_TYPES)
    assert everything == all_rows(source, RECORD_TYPES)
    write_and_delete(source)
    assert steps_until(VICTIM, source_url, target_url) == ["retire", "done 0"]
    assert all_rows(target, RECORD_TYPES) == all_rows(source, RECORD_TYPES)
    assert without_marks(all_rows(target, RECORD_TYPES)) == without_marks(everything)
    with pytest.raises(StorageError, match=NOTE):
        write_and_delete(source)
    source.close()


def write_and_delete(source: Storage) -> None:
    """What a process does that was not stopped; in the end nothing has changed."""
    source.transact("env_a", lambda tx: tx.insert(KeyUse(id="mine", last_used_at_ms=1)))
    source.transact("env_a", lambda tx: tx.delete(KeyUse(id="mine", last_used_at_ms=1, version=1)))
