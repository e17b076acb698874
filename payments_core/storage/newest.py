"""Pages of newest-first lists, limited to the range of their time comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from payments_core.clock import bound_of
from payments_core.storage.port import Operator, Page, Position, Snapshot, Where
from payments_core.storage.records import R, Value


def find_newest(
    snapshot: Snapshot,
    kind: type[R],
    index: str,
    key: Sequence[Value] = (),
    *,
    where: Sequence[Where] = (),
    after: Position | None = None,
    limit: int,
) -> Page[R]:
    """A page of an index ordered by `created_at`, descending.

    Like `Snapshot.find` with `skip_damaged`; but records newer than `where` allows are not walked
    through, and the list ends at the first that is older.
    """
    page = snapshot.find(
        kind, index, key, where=where, after=_start(where, after), limit=limit, skip_damaged=True
    )
    if page.next is not None and _is_older(page.next[0], where):
        return Page(page.records, None)
    return page


def where_matches(
    *,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    **columns: Value,
) -> list[Where]:
    """The comparisons of a list's filters: columns that equal a value, and a window (contract §1).

    A None compares nothing. The window's first instant belongs to it and the last does not, so
    that windows side by side lose and double nothing.
    """
    bounds: tuple[tuple[str, Operator, Value], ...] = (
        *((name, "=", value) for name, value in columns.items()),
        ("created_at", ">=", None if created_after is None else bound_of(created_after)),
        ("created_at", "<", None if created_before is None else bound_of(created_before)),
    )
    return [Where(name, operator, value) for name, operator, value in bounds if value is not None]


def _start(where: Sequence[Where], after: Position | None) -> Position | None:
    """The oldest position from which no matching record is missed.

    The empty id comes before all others, so the position includes all of its instant.
    """
    positions = [] if after is None else [after]
    for item in where:
        if item.column == "created_at" and isinstance(item.value, int):
            if item.operator == "<":
                positions.append((item.value, ""))
            elif item.operator == "<=":
                positions.append((item.value + 1, ""))
    return min(positions, default=None)


def _is_older(created_at: Value, where: Sequence[Where]) -> bool:
    """Whether nothing at this instant or before it can match."""
    assert isinstance(created_at, int)
    for item in where:
        if item.column == "created_at" and isinstance(item.value, int):
            if item.operator == ">" and created_at <= item.value:
                return True
            if item.operator == ">=" and created_at < item.value:
                return True
    return False
