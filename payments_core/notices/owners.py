"""Who follows the cases of one kind of provider: a row of the table of notices."""

from __future__ import annotations

from typing import Literal, Protocol

Routed = Literal["done", "busy", "unknown", "unreadable"]
"""What became of a notice: its case is looked at, is being looked at by a run that may have been
too early, is not known, or has a row that cannot be read."""


class NoticeOwner(Protocol):
    """Finds a provider's case in all environments of a mode, and has it looked at."""

    def bring_forward(self, mode: str, reference: str) -> Routed:
        """Have the case looked at now. Repeating it changes nothing more. Raises Unavailable."""
