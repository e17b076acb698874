"""The meaning of `find` and `locate` in plain Python, over column values.

Adapters without their own query language can use it as it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeVar

from payments_core.storage.port import MAX_LOCATE_KEYS, Position, Where
from payments_core.storage.records import Collection, Index, Lookup, Value, fits_column
from payments_core.validation.faults import UnfitPosition

T = TypeVar("T")
Columns = Mapping[str, Value]
PrimaryKey = tuple[str, str]
"""The place of a record: its partition and its id."""
LookupKey = tuple[str | int, ...]

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def validate_query(
    collection: Collection, index: str, key: Sequence[Value], after: Position | None, limit: int
) -> Index:
    """The index of a query. Raises ValueError if the query does not fit it, and
    UnfitPosition, which is a ValueError, for an `after` that no page of it can have returned."""
    chosen = collection.index(index)
    if len(key) != len(chosen.key):
        raise ValueError(f"the index {index} takes {len(chosen.key)} key values")
    if limit < 1:
        raise ValueError("a page holds at least one record")
    if after is not None:
        validate_position(after, *(collection.columns[column] for column in chosen.order), str)
    return chosen


def validate_position(after: Position, *kinds: type[str | int]) -> None:
    """Raise UnfitPosition for a value that is not a tuple of these types."""
    if type(after) is not tuple or len(after) != len(kinds):
        raise UnfitPosition(f"a position is a tuple of {len(kinds)} values here")
    for kind, value in zip(kinds, after, strict=True):
        if type(value) is not kind or not fits_column(value):
            raise UnfitPosition(f"a {type(value).__name__} cannot be in this place of a position")


def matches(columns: Columns, where: Sequence[Where]) -> bool:
    """Whether a row satisfies every comparison; a null satisfies none."""
    return all(
        columns[item.column] is not None
        and _OPERATORS[item.operator](columns[item.column], item.value)
        for item in where
    )


def is_behind(position: Position, after: Position | None, index: Index) -> bool:
    """Whether a row comes after the end of another page, if there was one."""
    return not after or (position < after if index.descending else position > after)


def select_page(
    collection: Collection,
    index: str,
    key: Sequence[Value],
    rows: Mapping[str, Columns],
    where: Sequence[Where],
    after: Position | None,
    limit: int,
    scan_limit: int,
) -> tuple[list[str], Position | None]:
    """The ids of one page and where the next begins, from rows by id."""
    chosen = validate_query(collection, index, key, after, limit)

    def position(id: str) -> Position:
        return (*(rows[id][column] for column in chosen.order), id)

    inside = [
        id for id in rows if all(rows[id][c] == v for c, v in zip(chosen.key, key, strict=True))
    ]
    inside.sort(key=position, reverse=chosen.descending)
    inside = [id for id in inside if is_behind(position(id), after, chosen)]
    return take_page(inside, position, rows.__getitem__, where, limit, scan_limit)


def take_page(
    rows: Iterable[T],
    position_of: Callable[[T], Position],
    columns_of: Callable[[T], Columns],
    where: Sequence[Where],
    limit: int,
    scan_limit: int,
) -> tuple[list[T], Position | None]:
    """The rows of one page and where the next begins, from the rows that an index leads to."""
    chosen: list[T] = []
    last: Position | None = None
    for scanned, row in enumerate(rows):
        if len(chosen) == limit or scanned == scan_limit:
            return chosen, last
        last = position_of(row)
        if matches(columns_of(row), where):
            chosen.append(row)
    return chosen, None


def valid_lookup_keys(
    collection: Collection, lookup: Lookup, keys: Sequence[Sequence[Value]], limit: int
) -> list[LookupKey]:
    """The keys that a stored record can have, each once.

    Raises ValueError for a query that does not fit the lookup.
    """
    if len(keys) > MAX_LOCATE_KEYS:
        raise ValueError(f"{lookup.name} takes up to {MAX_LOCATE_KEYS} keys at once")
    if limit < 1:
        raise ValueError("at least one record is located")
    kinds = [collection.columns[column] for column in lookup.columns]
    found: dict[LookupKey, None] = {}
    for key in keys:
        if len(key) != len(kinds):
            raise ValueError(f"a key of the lookup {lookup.name} has {len(kinds)} values")
        for kind, value in zip(kinds, key, strict=True):
            # A database might treat "1" as 1, and true as both.
            if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
                raise ValueError(f"a key of the lookup {lookup.name} needs a {kind.__name__}")
        present = [value for value in key if value is not None and fits_column(value)]
        if len(present) == len(kinds):
            found[tuple(kind(value) for kind, value in zip(kinds, present, strict=True))] = None
    return list(found)


def find_primary_keys(
    lookup: Lookup,
    keys: Sequence[LookupKey],
    rows: Mapping[PrimaryKey, Columns],
    where: Sequence[Where],
    after: PrimaryKey | None,
    limit: int,
) -> list[PrimaryKey]:
    """The places of the located records, in order, from rows by place and `valid_lookup_keys`."""
    wanted = frozenset(keys)
    found = [
        place
        for place, columns in rows.items()
        if tuple(columns[column] for column in lookup.columns) in wanted and matches(columns, where)
    ]
    return sorted(place for place in found if after is None or place > after)[:limit]


def interleave(lists: Iterable[Sequence[T]], limit: int) -> list[T]:
    """One item of each list, then a second of each, and so on, up to `limit`."""
    found = [item for items in zip_longest(*lists) for item in items if item is not None]
    return found[:limit]
