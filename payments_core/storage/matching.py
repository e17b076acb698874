"""What a page of `find` holds, in plain Python: the meaning of the port, over column values.

Adapters without a query language of their own can use it as it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from payments_core.storage.port import Position, Where
from payments_core.storage.records import Index, Value

Columns = Mapping[str, Value]

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def require_askable(index: Index, key: Sequence[Value], after: Position | None, limit: int) -> None:
    """Raise ValueError for a question that does not fit the index."""
    if len(key) != len(index.key):
        raise ValueError(f"the index {index.name} takes {len(index.key)} key values")
    if after is not None and len(after) != len(index.order) + 1:
        raise ValueError(f"a position in {index.name} has {len(index.order) + 1} values")
    if limit < 1:
        raise ValueError("a page holds at least one record")


def matches(columns: Columns, where: Sequence[Where]) -> bool:
    """Whether a row satisfies every comparison; a null satisfies none."""
    return all(
        columns[item.column] is not None
        and _COMPARE[item.operator](columns[item.column], item.value)
        for item in where
    )


def page_of(
    index: Index,
    key: Sequence[Value],
    rows: Mapping[str, Columns],
    where: Sequence[Where],
    after: Position | None,
    limit: int,
    scan_limit: int,
) -> tuple[list[str], Position | None]:
    """The ids of one page and where the next begins, from rows by id."""
    require_askable(index, key, after, limit)

    def position(id: str) -> Position:
        return (*(rows[id][column] for column in index.order), id)

    inside = [
        id for id in rows if all(rows[id][c] == v for c, v in zip(index.key, key, strict=True))
    ]
    inside.sort(key=position, reverse=index.descending)
    if after is not None:
        before = operator.lt if index.descending else operator.gt
        inside = [id for id in inside if before(position(id), after)]
    chosen: list[str] = []
    for scanned, id in enumerate(inside, start=1):
        if matches(rows[id], where):
            chosen.append(id)
        more = scanned < len(inside)
        if len(chosen) == limit or scanned == scan_limit:
            return chosen, position(id) if more else None
    return chosen, None
