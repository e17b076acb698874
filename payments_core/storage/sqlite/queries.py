"""The statements of a table: for one row, and for queries."""

from __future__ import annotations

from functools import lru_cache

import attrs

from payments_core.storage.records import Collection, Index, Lookup

BODY_BYTES = "CAST(body AS BLOB)"
BODY_STORED = "CAST(stored.body AS BLOB)"
"""A damaged body need not be text, and the driver would refuse the whole batch for it."""

MAX_ROWS = 8
"""The maximum number of rows of one INSERT; a statement for each number is prepared."""


@attrs.frozen
class Statements:
    """The SQL of one collection."""

    select: str
    version: str
    delete: str


@lru_cache(maxsize=512)
def build_statements(table: str, columns: tuple[str, ...]) -> Statements:
    """The statements of a table with those declared columns."""
    where = "WHERE partition = ? AND id = ?"
    return Statements(
        select=f'SELECT {BODY_BYTES} FROM "{table}" {where}',
        version=f'SELECT version FROM "{table}" {where}',
        delete=f'DELETE FROM "{table}" {where} AND version = ?',
    )


@lru_cache(maxsize=512 * MAX_ROWS)
def insert_statement(table: str, columns: tuple[str, ...], rows: int) -> str:
    """INSERT a number of rows: partition, id, version, columns, body."""
    names = ", ".join(
        ("partition", "id", "version", *(f'"{column}"' for column in columns), "body")
    )
    marks = f"({', '.join('?' * (len(columns) + 4))})"
    return f'INSERT INTO "{table}" ({names}) VALUES {", ".join([marks] * rows)}'


def statements_of(collection: Collection) -> Statements:
    """The statements of a collection."""
    return build_statements(collection.name, tuple(collection.columns))


@lru_cache(maxsize=512)
def select_each_statement(tables: tuple[str, ...]) -> str:
    """SELECT a row of each table, with its number: the first value is the partition."""
    return " UNION ALL ".join(
        f'SELECT {number}, {BODY_BYTES} FROM "{table}" WHERE partition = ?1 AND id = ?{number + 2}'
        for number, table in enumerate(tables)
    )


@lru_cache(maxsize=2048)
def page_statement(
    table: str,
    index: Index,
    comparisons: tuple[tuple[str, str], ...],
    after: bool,
) -> str:
    """SELECT the index's rows in order: the order columns, the id, and the body if it matches.

    The comparisons are in the result and not in WHERE, so that the caller sees how many rows
    were skipped and can stop at the scan limit.
    """
    order = [*index.order, "id"]
    names = ", ".join(f'"{column}"' for column in order)
    fits = " AND ".join(f'"{column}" {operator} ?' for column, operator in comparisons)
    body = f"CASE WHEN {fits} THEN {BODY_BYTES} END" if comparisons else BODY_BYTES
    inside, sort = _range_of(index, after)
    return (
        f'SELECT {body}, {names} FROM "{table}" WHERE partition = ?{inside} ORDER BY {sort} LIMIT ?'
    )


@lru_cache(maxsize=2048)
def count_statement(
    table: str,
    index: Index,
    comparisons: tuple[tuple[str, str], ...],
    after: bool,
) -> str:
    """SELECT the number of the index's matching rows: the inner LIMIT is the scan."""
    inside, sort = _range_of(index, after)
    fits = " AND ".join(f'"{column}" {operator} ?' for column, operator in comparisons)
    return (
        f'SELECT count(*) FROM (SELECT 1 FROM (SELECT * FROM "{table}" WHERE partition = ?{inside} '
        f"ORDER BY {sort} LIMIT ?) {'WHERE ' * bool(fits)}{fits} LIMIT ?)"
    )


def _range_of(index: Index, after: bool) -> tuple[str, str]:
    """The conditions of an index's range after the partition, and its order."""
    order = [*index.order, "id"]
    names = ", ".join(f'"{column}"' for column in order)
    inside = "".join(f' AND "{column}" IS ?' for column in index.key)
    if after:
        sign = "<" if index.descending else ">"
        inside += f" AND ({names}) {sign} ({', '.join('?' * len(order))})"
    direction = "DESC" if index.descending else "ASC"
    return inside, ", ".join(f'"{column}" {direction}' for column in order)


@lru_cache(maxsize=512)
def locate_statement(
    table: str, lookup: Lookup, comparisons: tuple[tuple[str, str], ...], after: bool
) -> str:
    """SELECT partition, id and body of the rows with a key of the JSON array that comes first.

    CROSS JOIN makes SQLite take key after key, and so search the index by all its columns;
    with `IN` it searches by the first column and scans the rest.
    """
    key = " AND ".join(
        f"stored.\"{column}\" = json_extract(keys.value, '$[{place}]')"
        for place, column in enumerate(lookup.columns)
    )
    more = "".join(f' AND stored."{column}" {operator} ?' for column, operator in comparisons)
    if after:
        more += " AND (stored.partition, stored.id) > (?, ?)"
    return (
        f"SELECT stored.partition, stored.id, {BODY_STORED} FROM json_each(?) AS keys "
        f'CROSS JOIN "{table}" AS stored ON {key}{more} '
        "ORDER BY stored.partition, stored.id LIMIT ?"
    )
