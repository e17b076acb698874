"""The API versions that a deployment serves (interface "Versioning")."""

from __future__ import annotations

import re

import attrs

FIRST_VERSION = "2026-09-09"

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@attrs.frozen
class Versions:
    """The dated API versions, oldest first. New environments are pinned to the newest version.

    Raises ValueError for an empty tuple, for a text that is not a date, and for any other order.
    """

    supported: tuple[str, ...] = (FIRST_VERSION,)

    def __attrs_post_init__(self) -> None:
        dates = self.supported
        if not dates or list(dates) != sorted(set(dates)) or not all(map(_DATE.fullmatch, dates)):
            raise ValueError("versions must be one or more dates, each once, oldest first")

    @property
    def current(self) -> str:
        """The newest version."""
        return self.supported[-1]
