"""The progress of long work, on standard error: one line that changes on a terminal, and
occasional lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

LINE_EVERY = 100_000
"""Records between two lines without a terminal."""


@contextmanager
def show_progress(doing: str) -> Iterator[Callable[[str, int], None]]:
    """Show the progress; the yielded function takes a collection and its count so far."""
    if sys.stderr.isatty():
        from rich.console import Console  # takes an eighth of a second: only if it is used

        with Console(stderr=True).status(doing) as status:
            yield lambda name, count: status.update(f"{doing}: {name}, {count:,} records")
        return
    shown: dict[str, int] = {}

    def print_now_and_then(name: str, count: int) -> None:
        if count // LINE_EVERY > shown.get(name, 0):
            shown[name] = count // LINE_EVERY
            click.echo(f"{doing}: {name}, {count:,} records", err=True)

    yield print_now_and_then
