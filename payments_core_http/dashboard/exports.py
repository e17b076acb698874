"""Lists as CSV files: what a list shows under its filters, newest first, streamed.

A page of records is read while the file is sent, so that its memory does not depend on its length.
An export has at most MAX_ROWS rows. The policy `operator_export` counts those of an environment, of
which a process makes one at a time, so that they leave threads for everything else.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import attrs

from payments_core.clock import format_iso
from payments_core.csv_text import CONTENT_TYPE, Cell, iter_csv
from payments_core.engine.idempotency.record import Response
from payments_core.errors import ResourceConflict
from payments_core.storage.port import Page
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.lists import Filter, Read, read_filters

R = TypeVar("R")

MAX_ROWS = 50_000
_PAGE_SIZE = 500
"""The number of records in memory at a time."""


@attrs.frozen
class Export(Generic[R]):
    """A list as a table: its name, its filters, its pages, and its columns.

    The columns have the names of the API's fields.
    """

    name: str
    filters: Sequence[Filter]
    read: Read[R]
    columns: Mapping[str, Callable[[R], Cell]]


def stream(call: PageCall, export: Export[R]) -> Response:
    """The file of a list. Its first page is read at once, so that an error is a page.

    Raises ResourceConflict while another file of the environment is being made, and the errors of
    the list.
    """
    give_back = call.service.parts.exports.take(call.authority.partition)
    if give_back is None:
        raise ResourceConflict("Another export is being made; try again when it is complete.")
    try:
        filters = read_filters(call, export.filters)
        first = export.read(call, filters, None, _PAGE_SIZE)
    except BaseException:
        give_back()
        raise

    def iter_rows() -> Iterator[list[Cell]]:
        for record in _iterate(call, export, filters, first):
            yield [column(record) for column in export.columns.values()]
        end()  # before the last piece is sent: who has it may ask for another file at once

    pieces = iter_csv(tuple(export.columns), iter_rows())
    end = weakref.finalize(pieces, give_back)  # it may never be sent, or not to its end
    day = format_iso(call.service.parts.ports.clock.now())[:10]
    headers = {
        "Content-Type": CONTENT_TYPE,
        "Content-Disposition": f'attachment; filename="{export.name}-{day}.csv"',
    }
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
