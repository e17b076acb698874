"""The statements that read rows in PostgreSQL; the texts are few, and each is prepared once."""

from __future__ import annotations

from functools import lru_cache
from itertools import count
from re import sub

from payments_core.storage.port import SCAN_LIMIT
from payments_core.storage.reads import Lock
from payments_core.storage.records import Index, Lookup

SCANS = (51, 101, SCAN_LIMIT + 1)
"""How many rows a page without comparisons may scan. The number is part of the text: PostgreSQL
plans a statement anew each time if its inner LIMIT is a parameter, which takes longer than to run
it. The numbers are few, so that no caller's limits use up the prepared statements."""

_LOCKS: dict[Lock, str] = {"none": "", "shared": " FOR SHARE", "exclusive": " FOR UPDATE"}


def scan_for(most: int) -> int:
    """How many rows the scan of a page of `most` rows may read, at least."""
    return next(scan for scan in SCANS if scan >= most)


@lru_cache(maxsize=512)
def select_statement(table: str, lock: Lock) -> str:
    """SELECT one row."""
    return f'SELECT body FROM "{table}" WHERE partition = $1 AND id = $2{_LOCKS[lock]}'


@lru_cache(maxsize=512)
def select_together_statement(asked: tuple[tuple[str, Lock], ...]) -> str:
    """SELECT the bodies of some rows into one row, by their tables and locks.

    The server locks them in their order. A row inserted while it waits for another's lock is
    absent, since a statement sees one moment; locked rows are as they are then.
    """
    bodies = (
        f'(SELECT body FROM "{table}" WHERE partition = $1 AND id = ${place}{_LOCKS[lock]})'
        for place, (table, lock) in enumerate(asked, start=2)
    )
    return f"SELECT {', '.join(bodies)}"


@lru_cache(maxsize=512)
def select_many_statement(table: str, lock: Lock) -> str:
    """SELECT rows by a list of ids; they are locked in the order of their ids."""
    locking = f" ORDER BY id{_LOCKS[lock]}" if lock != "none" else ""
    return f'SELECT id, body FROM "{table}" WHERE partition = $1 AND id = ANY ($2::text[]){locking}'


@lru_cache(maxsize=2048)
def page_statement(
    table: str,
    index: Index,
    nulls: tuple[bool, ...],
    comparisons: tuple[tuple[str, str], ...],
    after: bool,
    scan: int,
    skipped: int = 0,
) -> str:
    """SELECT rows of the index in order; the inner LIMIT is the scan, the outer the page.

    The server stops the scan when it has the page.
    """
    order = [*index.order, "id"]
    names = ", ".join(f'"{column}"' for column in order)
    inside, sort = _range_of(index, nulls, after)
    return _number_parameters(
        f'SELECT body, {names} FROM (SELECT * FROM "{table}" WHERE partition = %s{inside} '
        f"ORDER BY {sort} LIMIT {scan} OFFSET {skipped}) AS scanned "
        f"{_where(comparisons)}ORDER BY {sort} LIMIT %s"
    )


@lru_cache(maxsize=2048)
def count_statement(
    table: str,
    index: Index,
    nulls: tuple[bool, ...],
    comparisons: tuple[tuple[str, str], ...],
    after: bool,
) -> str:
    """SELECT the number of matching rows of the index: the inner LIMIT is the scan."""
    inside, sort = _range_of(index, nulls, after)
    return _number_parameters(
        f'SELECT count(*) FROM (SELECT 1 FROM (SELECT * FROM "{table}" WHERE partition = %s'
        f"{inside} ORDER BY {sort} LIMIT {SCAN_LIMIT}) AS scanned "
        f"{_where(comparisons)}LIMIT %s) AS fitting"
    )


@lru_cache(maxsize=512)
def locate_statement(
    table: str,
    lookup: Lookup,
    arrays: tuple[str, ...],
    comparisons: tuple[tuple[str, str], ...],
    after: bool,
) -> str:
    """SELECT partition, id and body of the rows with a key of the arrays, one for each column.

    `|| ''` keeps the planner from the primary key: it guesses a range of (partition, id) from the
    partition alone, and would rather scan all of a large one. (OFFSET 0 in a subquery would
    too, but Citus then brings all rows to the coordinator before it compares them.)
    """
    names = ", ".join(f"key_{place}" for place in range(len(arrays)))
    lists = ", ".join(f"%s::{array}" for array in arrays)
    key = " AND ".join(
        f'stored."{column}" = keys.key_{place}' for place, column in enumerate(lookup.columns)
    )
    fits = [f'"{column}" {operator} %s' for column, operator in comparisons]
    if after:
        fits.append("(partition || '', id || '') > (%s, %s)")
    return _number_parameters(
        f"SELECT partition, id, body FROM unnest({lists}) AS keys ({names}) "
        f'JOIN "{table}" AS stored ON {key} '
        f"{'WHERE ' * bool(fits)}{' AND '.join(fits)} ORDER BY partition || '', id || '' LIMIT %s"
    )


@lru_cache(maxsize=1024)
def measure_statement(table: str, after: bool) -> str:
    """SELECT the number, the bytes and the last id of a page of rows, in the order of their ids.

    The server knows the length of a body that it stores apart, and does not read it.
    """
    start = "AND id > $3 " if after else ""
    return (
        "SELECT count(*), sum(bytes)::bigint, max(id) FROM ("
        f'SELECT id, octet_length(body) AS bytes FROM "{table}" '
        f"WHERE partition = $1 {start}ORDER BY id LIMIT $2) AS page"
    )


def _where(comparisons: tuple[tuple[str, str], ...]) -> str:
    fits = " AND ".join(f'"{column}" {operator} %s' for column, operator in comparisons)
    return f"WHERE {fits} " if fits else ""


def _range_of(index: Index, nulls: tuple[bool, ...], after: bool) -> tuple[str, str]:
    """The conditions of an index's range after the partition, and its order."""
    order = [*index.order, "id"]
    inside = "".join(
        f' AND "{column}" ' + ("IS NULL" if null else "= %s")
        for column, null in zip(index.key, nulls, strict=True)
    )
    if after:
        names = ", ".join(f'"{column}"' for column in order)
        sign = "<" if index.descending else ">"
        inside += f" AND ({names}) {sign} ({', '.join(['%s'] * len(order))})"
    direction = "DESC" if index.descending else "ASC"
    return inside, ", ".join(f'"{column}" {direction}' for column in order)


def _number_parameters(sql: str) -> str:
    """A statement with `$1`, `$2`, … in the places of its `%s`."""
    places = count(1)
    return sub("%s", lambda _: f"${next(places)}", sql)
