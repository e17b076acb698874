"""Lists as CSV files: what a list shows under its filters, newest first, streamed.

A page of records is read while the file is sent, so that its memory does not depend on its length.
An export has at most MAX_ROWS rows, and the policy `operator_export` counts exports for each
environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

import attrs

from payments_core.clock import format_iso
from payments_core.csv_text import CONTENT_TYPE, Cell, iter_csv
from payments_core.engine.idempotency.record import Response
from payments_core.storage.port import Page, Position
from payments_core_http.calls import PageCall

R = TypeVar("R")

MAX_ROWS = 50_000
_PAGE_SIZE = 500
"""The number of records in memory at a time."""


@attrs.frozen
class Export(Generic[R]):
    """A list as a table: its name, its filters in a query, its pages, and its columns.

    `read` gives the page that begins after a position, of at most so many records. The columns have
    the names of the API's fields.
    """

    name: str
    read_filters: Callable[[PageCall], Mapping[str, str]]
    read: Callable[[PageCall, Mapping[str, str], Position | None, int], Page[R]]
    columns: Mapping[str, Callable[[R], Cell]]


def stream(call: PageCall, export: Export[R]) -> Response:
    """The file of a list. Its first page is read at once, so that an error is a page."""
    filters = export.read_filters(call)
    first = export.read(call, filters, None, _PAGE_SIZE)
    rows = (
        [column(record) for column in export.columns.values()]
        for record in _iterate(call, export, filters, first)
    )
    day = format_iso(call.service.parts.ports.clock.now())[:10]
    headers = {
        "Content-Type": CONTENT_TYPE,
        "Content-Disposition": f'attachment; filename="{export.name}-{day}.csv"',
    }
    pieces = iter_csv(tuple(export.columns), rows)
    return Response(200, b"", call.caller.api_version, headers, pieces=pieces)


def _iterate(
    call: PageCall, export: Export[R], filters: Mapping[str, str], page: Page[R]
) -> Iterator[R]:
    left = MAX_ROWS
    while True:
        yield from page.records[:left]
        left -= len(page.records)
        if page.next is None or left <= 0:
            return
        page = export.read(call, filters, page.next, min(_PAGE_SIZE, left))


def iso(instant: int | None) -> str | None:
    """An instant for a cell; nothing for none."""
    return None if instant is None else format_iso(instant)
