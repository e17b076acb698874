"""Texts that differ for certain from a given one, which may have any fixed character itself."""

from __future__ import annotations


def change_end(text: str) -> str:
    """The text with another last character."""
    return text[:-1] + ("A" if text[-1] != "A" else "B")
