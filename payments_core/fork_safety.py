"""Resets objects in the child of a fork: their locks and connections are the parent's."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class ForkSafe(Protocol):
    """An object with something that must not be used on both sides of a fork."""

    def reset_after_fork(self) -> None:
        """Start with new locks and connections. No other thread runs yet."""


_objects: WeakSet[ForkSafe] = WeakSet()


def register_fork_reset(changed: ForkSafe) -> None:
    """Have `changed.reset_after_fork` called in every forked child while it lives."""
    _objects.add(changed)


def _reset_all() -> None:
    for changed in tuple(_objects):
        changed.reset_after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork either
    os.register_at_fork(after_in_child=_reset_all)
