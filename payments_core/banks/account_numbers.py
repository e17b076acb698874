"""Account numbers as they are shown: never whole."""

from __future__ import annotations

SHOWN_DIGITS = 4
HIDDEN_DIGITS = 4
"""A US account number may have four digits only: its last four would be the whole of it."""


def mask_account_number(number: str) -> str:
    """The last four digits, with `*` for each of them that must stay hidden in a short number."""
    return number[HIDDEN_DIGITS:][-SHOWN_DIGITS:].rjust(SHOWN_DIGITS, "*")
