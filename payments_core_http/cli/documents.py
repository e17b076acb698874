"""Documents as people read them: a line for each field, and tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from payments_core_http.cli.colors import has_color

Rows = Sequence[Mapping[str, Any]]
Colors = Mapping[str, Callable[[str], str]]
"""The color of a cell, by the name of its column."""

NO_COLORS: Colors = {}

MAX_INNER_ROWS = 60
"""The maximum number of items of a list within a document."""


def print_document(document: Mapping[str, Any] | Rows) -> None:
    """Print an object or a list of them: with styles on a terminal, else plain and aligned."""
    if not document:
        click.echo("No results.")
    elif not isinstance(document, Mapping):
        TablePrinter().print(document)
    else:
        width = max(len(name) for name in document)
        for name, value in document.items():
            if _is_rows(value):
                click.echo(f"{name:<{width}}  {len(value)}")
                TablePrinter(indent=2).print(value[:MAX_INNER_ROWS])
                if len(value) > MAX_INNER_ROWS:
                    click.echo("  … and more; --json shows all")
            else:
                click.echo(f"{name:<{width}}  {_format_cell(value)}")


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


class TablePrinter:
    """Prints the rows of one table, at once or in several calls, in the same columns."""

    def __init__(self, colors: Colors = NO_COLORS, *, indent: int = 0) -> None:
        self._colors, self._indent = colors, indent
        self._widths: list[int] | None = None

    def print(self, items: Rows) -> None:
        """Print at least one row, below the header if they are the first."""
        names = list(items[0])
        rows = [[_format_cell(value) for value in item.values()] for item in items]
        is_first = self._widths is None
        before = [len(name) for name in names] if self._widths is None else self._widths
        self._widths = [
            max(width, *map(len, column))
            for width, column in zip(before, zip(*rows, strict=True), strict=True)
        ]
        if has_color():
            self._print_styled(names, rows, self._widths, has_head=is_first)
            return
        for row in [names, *rows] if is_first else rows:
            cells = (f"{cell:<{width}}" for cell, width in zip(row, self._widths, strict=True))
            click.echo((" " * self._indent + "  ".join(cells)).rstrip())

    def _print_styled(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[str]],
        widths: Sequence[int],
        *,
        has_head: bool,
    ) -> None:
        from rich import box  # takes an eighth of a second: only if it is used
        from rich.console import Console
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=has_head)
        for name, width in zip(names, widths, strict=True):
            table.add_column(name, no_wrap=True, overflow="ignore", min_width=width)
        colors = [self._colors.get(name, _no_color) for name in names]
        for row in rows:
            table.add_row(*(Text(cell, of(cell)) for of, cell in zip(colors, row, strict=True)))
        # An id that is cut off or folded cannot be copied: the terminal wraps whole lines.
        padded = Padding(table, (0, 0, 0, self._indent), expand=False)
        width = Console(width=10_000).measure(padded).maximum
        Console(width=width, force_terminal=True, no_color=False).print(padded, soft_wrap=True)


def _no_color(cell: str) -> str:
    return ""


def _format_cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):  # a name may contain control characters
        return "".join(sign if sign.isprintable() else "\ufffd" for sign in value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value) or "–"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_format_cell(item)}" for name, item in value.items()) or "–"
    return json.dumps(value, ensure_ascii=False)
