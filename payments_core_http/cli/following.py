"""Lists of a sandbox that are read once, or followed: each new entry, older entries first."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import attrs
import click

from payments_core_http.cli.documents import NO_COLORS, Colors, TablePrinter
from payments_core_http.cli.reader import forget_gone_reader, is_reader_gone

MAX_LIMIT = 100
"""The maximum size of a page."""

POLL_S = 1.0
"""How often new entries are requested: 60 of the 500 reads a minute."""

MAX_KNOWN = 20_000

ListPage = Callable[[str | None, int], Any]
"""A page of the list, newest first: from a cursor on, and at most so many entries."""

F = TypeVar("F", bound=Callable[..., Any])


def with_list_options(noun: str) -> Callable[[F], F]:
    """The options of a command that lists entries: how many, and whether to follow them."""

    def add(command: F) -> F:
        command = click.option(
            "--follow",
            "is_followed",
            is_flag=True,
            help=f"Print the oldest first, then each new {noun}, until Ctrl-C.",
        )(command)
        return click.option(
            "--limit",
            type=click.IntRange(1, MAX_LIMIT),
            default=20,
            show_default=True,
            help=f"How many {noun}s to list.",
        )(command)

    return add


@attrs.frozen
class EntryPrinter:
    """Prints entries as rows of some of their fields, or in full as one JSON object per line."""

    fields: Sequence[str]
    as_json: bool
    colors: Colors = NO_COLORS
    _table: TablePrinter = attrs.field(init=False)

    @_table.default
    def _make_table(self) -> TablePrinter:
        return TablePrinter(self.colors)

    def print(self, entries: Sequence[Any]) -> None:
        """Print at least one entry."""
        if not self.as_json:
            self._table.print([{name: entry[name] for name in self.fields} for entry in entries])
            return
        for entry in entries:
            click.echo(json.dumps(entry, ensure_ascii=False))


def print_list(
    list_page: ListPage, printer: EntryPrinter, *, limit: int, is_followed: bool, empty: str
) -> None:
    """Print the newest entries, or the message `empty`; then follow the list, if requested."""
    page = list_page(None, MAX_LIMIT if is_followed else limit)
    newest = page["data"][:limit]
    if not newest:
        click.echo(empty, err=True)
    if not is_followed:
        if newest:
            printer.print(newest)
        return
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        if newest:
            printer.print(newest[::-1])
        for entry in follow(list_page, [entry["id"] for entry in page["data"]]):
            printer.print([entry])
    forget_gone_reader()


def follow(list_page: ListPage, known: Iterable[str]) -> Iterator[Any]:
    """Each entry whose id is not known yet, older entries first, until the reader ends.

    Each poll reads pages until one has a known entry. An entry that is stored late, after others
    that are known, is found as long as it is among the newest.
    """
    seen = dict.fromkeys(known)
    while not is_reader_gone(POLL_S):
        new: list[Any] = []
        cursor = None
        while True:
            page = list_page(cursor, MAX_LIMIT)
            found = [entry for entry in page["data"] if entry["id"] not in seen]
            new += found
            cursor = page["nextCursor"]
            if cursor is None or len(found) < len(page["data"]):
                break
        seen.update(dict.fromkeys(entry["id"] for entry in reversed(new)))
        for id in list(seen)[:-MAX_KNOWN]:
            del seen[id]
        yield from reversed(new)
