"""Pieces of Markdown for pages that are printed from tables in the code."""

from __future__ import annotations

from collections.abc import Iterable


def code(name: str) -> str:
    """A name as code."""
    return f"`{name}`"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; a cell may hold any text."""
    head = tuple(head)
    lines = [head, ("-",) * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |"
        for line in lines
    )
