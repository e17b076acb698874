"""Of all copies of a storage, only that to which it was moved vouches for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from payments_core.maintenance.storage_copy import CopyWrittenTo, SourceRetired, copy, reinstate
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.tenants.record import KeyUse

NOTE = "moved to the other one"

Three = tuple[SqliteStorage, SqliteStorage, SqliteStorage]


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Three]:
    """A storage with a record, and two empty ones."""
    with ExitStack() as opened:
        source, one, other = (
            opened.enter_context(closing(SqliteStorage(tmp_path / f"{name}.db", RECORD_TYPES)))
            for name in ("source", "one", "other")
        )
        for storage in (source, one, other):
            storage.migrate()
        source.transact("env_a", lambda tx: tx.insert(KeyUse(id="k", last_used_at_ms=1)))
        yield source, one, other


def test_an_equal_copy_does_not_whichever_came_first(three: Three) -> None:
    source, one, other = three
    copy(source, one, RECORD_TYPES)
    copy(source, other, RECORD_TYPES)
    moved = copy(source, one, RECORD_TYPES, retire=NOTE)
    assert (moved.rows, moved.source_retired) == ({}, True)
    with pytest.raises(CopyWrittenTo):
        reinstate(source, other, RECORD_TYPES)
    assert reinstate(source, one, RECORD_TYPES)


@pytest.mark.parametrize("retire", [NOTE, None])
def test_a_retired_one_is_not_copied_to_another(three: Three, retire: str | None) -> None:
    source, one, other = three
    copy(source, one, RECORD_TYPES, retire=NOTE)
    with pytest.raises(SourceRetired, match="reinstate the source first"):
        copy(source, other, RECORD_TYPES, retire=retire)
    reinstate(source, None, RECORD_TYPES)
    assert copy(source, other, RECORD_TYPES, retire=NOTE).source_retired


def test_a_move_is_taken_up_where_it_was_broken_off(three: Three) -> None:
    source, one, _ = three
    copy(source, one, RECORD_TYPES, retire=NOTE)
    for _ in range(2):
        again = copy(source, one, RECORD_TYPES, retire=NOTE)
        assert (again.rows, again.differences.count) == ({}, 0)
