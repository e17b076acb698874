"""What a check of `payments doctor` finds."""

from __future__ import annotations

from typing import Literal

import attrs

Level = Literal["ok", "warning", "fault"]


@attrs.frozen
class Finding:
    """The result of one check. `remedy` is empty if nothing is wrong."""

    check: str
    level: Level
    says: str
    remedy: str = ""
