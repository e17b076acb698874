"""The message for unknown event names: similar names, or else all names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import click

from payments_core.engine.events import BY_NAME

MIN_SIMILARITY = 0.8


def suggest_event_names(names: Iterable[str]) -> str:
    """A sentence about the unknown event names; empty if there are none."""
    wrong = [name for name in names if name not in BY_NAME]
    if not wrong:
        return ""
    close = [near for name in wrong for near in get_close_matches(name, BY_NAME, 1, MIN_SIMILARITY)]
    if close:
        return f"Did you mean {' and '.join(close)}?"
    return click.wrap_text(f"The events are {', '.join(BY_NAME)}.", width=96)
