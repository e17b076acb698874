"""Documents as people read them: a line for each field, and tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from payments_core_http.cli.colors import has_color

Rows = Sequence[Mapping[str, Any]]

MAX_INNER_ROWS = 60
"""Of a list within a document."""


def print_document(document: Mapping[str, Any] | Rows) -> None:
    """Print an object or a list of them: with styles on a terminal, else plain and aligned."""
    if not document:
        click.echo("No results.")
    elif not isinstance(document, Mapping):
        _print_table(document)
    else:
        width = max(len(name) for name in document)
        for name, value in document.items():
            if _is_rows(value):
                click.echo(f"{name:<{width}}  {len(value)}")
                _print_table(value[:MAX_INNER_ROWS], indent=2)
                if len(value) > MAX_INNER_ROWS:
                    click.echo("  … and more; --json shows all")
            else:
                click.echo(f"{name:<{width}}  {_format_cell(value)}")


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _print_table(items: Rows, *, indent: int = 0) -> None:
    names = list(items[0])
    rows = [[_format_cell(value) for value in item.values()] for item in items]
    if has_color():
        _print_styled(names, rows, indent)
        return
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for row in [names, *rows]:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        click.echo((" " * indent + "  ".join(cells)).rstrip())


def _print_styled(names: Sequence[str], rows: Sequence[Sequence[str]], indent: int) -> None:
    from rich import box  # an eighth of a second, spent only where it is seen
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in names:
        table.add_column(name, no_wrap=True, overflow="ignore")
    for row in rows:
        table.add_row(*map(Text, row))
    # An id that is cut off or folded cannot be copied: the terminal wraps whole lines.
    padded = Padding(table, (0, 0, 0, indent), expand=False)
    width = Console(width=10_000).measure(padded).maximum
    Console(width=width, force_terminal=True, no_color=False).print(padded, soft_wrap=True)


def _format_cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):  # a name may hold what a terminal obeys
        return "".join(sign if sign.isprintable() else "\ufffd" for sign in value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value) or "–"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_format_cell(item)}" for name, item in value.items()) or "–"
    return json.dumps(value, ensure_ascii=False)
