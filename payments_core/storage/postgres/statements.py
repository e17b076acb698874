"""The statements that write rows of a collection in PostgreSQL.

Those for many rows name the partition once, as a constant: a distributed PostgreSQL runs them where
the partition is. `INSERT` takes a list of VALUES, since Citus would copy the rows of a SELECT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count

import attrs

from payments_core.storage.records import Collection, Record

ROWS_AT_ONCE = (16, 8, 4, 3, 2, 1)
"""The possible row counts of an INSERT: a server prepares a statement for each count."""
ARRAYS: Mapping[type[str | int], str] = {str: "text[]", int: "bigint[]"}

_ROW = "WHERE partition = $1 AND id = $2"
_GUARD = 'SELECT 1 / count(*) FROM (SELECT 1 FROM "{table}" {row} AND version = $3 {lock}) AS held'


@attrs.frozen
class Statements:
    """The SQL of one collection. `$1` is the partition.

    `$2` is the id, or an array of ids in `update_many` and `delete_many`. `hold`, `lock` and
    `delete` take the version as `$3`; `update` the new version, the columns and the body, and
    `update_many` arrays of each. `inserts` has the statement for each of ROWS_AT_ONCE; a row of it
    is an id, the version, the columns and the body.
    """

    hold: str
    lock: str
    inserts: Mapping[int, str]
    update: str
    update_many: str
    delete: str
    delete_many: str


def statements_of(collection: Collection) -> Statements:
    """The statements of a collection."""
    arrays = tuple(ARRAYS[kind] for kind in collection.columns.values())
    return _build_statements(collection.name, tuple(collection.columns), arrays)


def split_inserts(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """The records split into sizes for which there are statements."""
    done = 0
    for rows in ROWS_AT_ONCE:
        while len(records) - done >= rows:
            yield records[done : done + rows]
            done += rows


@lru_cache(maxsize=512)
def _build_statements(table: str, columns: tuple[str, ...], arrays: tuple[str, ...]) -> Statements:
    names = [f'"{name}"' for name in ("version", *columns, "body")]
    sets = ", ".join(f"{name} = ${place}" for place, name in enumerate(names, 3))
    new_sets = ", ".join(f"{name} = new.{name}" for name in names)
    types = enumerate(("text[]", "bigint[]", *arrays, "text[]"), 2)
    lists = ", ".join(f"${place}::{array}" for place, array in types)
    return Statements(
        hold=_GUARD.format(table=table, row=_ROW, lock="FOR SHARE"),
        lock=_GUARD.format(table=table, row=_ROW, lock="FOR UPDATE"),
        inserts={rows: _insert(table, names, rows) for rows in ROWS_AT_ONCE},
        update=f'UPDATE "{table}" SET {sets} {_ROW}',
        # The ids twice: without the list the planner may read the whole partition for the join.
        update_many=f'UPDATE "{table}" AS stored SET {new_sets}'
        f" FROM unnest({lists}) AS new (id, {', '.join(names)}) WHERE stored.partition = $1"
        " AND stored.id = ANY ($2::text[]) AND stored.id = new.id",
        delete=f'DELETE FROM "{table}" {_ROW} AND version = $3',
        delete_many=f'DELETE FROM "{table}" WHERE partition = $1 AND id = ANY ($2::text[])',
    )


def _insert(table: str, names: Sequence[str], rows: int) -> str:
    place = count(2)
    row_values = (", ".join(f"${next(place)}" for _ in ("id", *names)) for _ in range(rows))
    values = ", ".join(f"($1, {row})" for row in row_values)
    return f'INSERT INTO "{table}" (partition, id, {", ".join(names)}) VALUES {values}'
