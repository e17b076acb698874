"""What a limiter must do in the child of a fork: its locks and connections are the parent's."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """A limiter with something that must not be used on both sides of a fork."""

    def renew(self) -> None:
        """Begin with locks and connections of its own. No other thread runs yet."""


_limiters: WeakSet[Renewable] = WeakSet()


def renew_after_fork(limiter: Renewable) -> None:
    """Have `limiter.renew` called in every child that is forked, for as long as it lives."""
    _limiters.add(limiter)


def _renew_all() -> None:
    for limiter in tuple(_limiters):
        limiter.renew()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork either
    os.register_at_fork(after_in_child=_renew_all)
