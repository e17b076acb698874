"""What our senders have for the fees of their transactions, and the refusal of what one cannot pay.

An adapter reads it in the batch in which it reads the heads, so that it costs no request of its
own, and keeps the newest reading of each sender. A request decides from that: what is not known
refuses nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Generic, Literal, Protocol, TypeVar, runtime_checkable

import attrs

from payments_core.chains.port import AddressSpec, Chain, ChainError
from payments_core.clock import MINUTE, SECOND
from payments_core.errors import DependencyFailed
from payments_core.fork_safety import register_fork_reset

T = TypeVar("T")

TransferAction = Literal["fund", "pay", "pay_out", "sweep"]
"""How money moves: from a vault to an escrow, from an escrow, from a vault to anybody else, and
from a deposit address to its vault. Each has a price of its own."""

READ_AGAIN_MS = 10 * SECOND
"""How old a reading is when the next heads are read with it again."""

MAX_AGE_MS = 30 * SECOND
"""How old a reading may be that refuses a request: somebody may have sent coins meanwhile."""

MAX_LISTED_AGE_MS = 10 * MINUTE
"""How old a reading may be that operators are shown."""

MAX_FOLLOWED = 256
"""How many senders of a chain are followed: of more, those that were asked for last."""

MAX_READ_AT_ONCE = 20
"""How many senders are read with the heads, so that a node takes all in one batch."""


FEW_TRANSFERS = 50
"""A sender with coins for fewer is reported: somebody must send more before they are used up."""


@runtime_checkable
class ReportsGas(Protocol):
    """A chain whose senders pay for their transactions in its own coin.

    No method asks a node: `heads` reads what the followed senders have, some at a time.
    """

    def follow_senders(self, senders: Collection[str]) -> None:
        """Have the next heads read what these have, as soon as it is their turn."""

    def count_affordable(self, sender: str, action: TransferAction) -> int | None:
        """How many such transfers a sender can certainly pay for at the price of now.

        None if that is not known, or was last known too long ago.
        """

    def list_affordable(self) -> Mapping[str, int]:
        """For about how many transfers the coins of each followed sender are enough, if known."""


def follow_operator(chain: Chain, environment_id: str) -> str | None:
    """Have the next heads read what an environment's operator has; its address.

    None if the chain does not report gas, or there is no operator.
    """
    if not isinstance(chain, ReportsGas):
        return None
    try:
        sender = chain.derive(AddressSpec(environment_id, "operator", "operator"))
    except ChainError:  # no key is configured for it
        return None
    chain.follow_senders([sender])
    return sender


def require_gas(chain: Chain, sender: str | None, action: TransferAction) -> None:
    """Raise DependencyFailed if a followed operator cannot pay for such a transfer now.

    It asks no node, and refuses nothing if the answer is not known.
    """
    if sender is None or not isinstance(chain, ReportsGas):
        return
    if chain.count_affordable(sender, action) == 0:
        raise DependencyFailed("chain", reason="operator_out_of_gas")


@attrs.frozen
class _Kept(Generic[T]):
    reading: T
    at: int


class GasReadings(Generic[T]):
    """The newest reading of each followed sender. Threads share it."""

    def __init__(self, now: Callable[[], int]) -> None:
        """`now` gives milliseconds, from any start."""
        self._now = now
        self._lock = threading.Lock()
        self._asked_at: dict[str, int | None] = {}
        """The followed senders, those asked for last at the end, and when each was last read."""
        self._kept: dict[str, _Kept[T]] = {}
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Start with a free lock: no thread of the child has it."""
        self._lock = threading.Lock()

    def follow(self, senders: Collection[str]) -> None:
        """Follow these too; those that nobody has asked for longest may be forgotten."""
        with self._lock:
            for sender in senders:
                self._asked_at[sender] = self._asked_at.pop(sender, None)
            for sender in list(self._asked_at)[:-MAX_FOLLOWED]:
                del self._asked_at[sender]
                self._kept.pop(sender, None)

    def choose_due(self) -> tuple[str, ...]:
        """The senders to read now, the longest unread first. They are not chosen again soon, even
        if they cannot be read."""
        if not self._asked_at:
            return ()
        with self._lock:
            now = self._now()
            due = sorted(
                (-1 if at is None else at, sender)
                for sender, at in self._asked_at.items()
                if at is None or not at <= now < at + READ_AGAIN_MS
            )
            chosen = tuple(sender for _, sender in due[:MAX_READ_AT_ONCE])
            self._asked_at.update(dict.fromkeys(chosen, now))
        return chosen

    def keep(self, readings: Mapping[str, T]) -> None:
        """Keep what was read of chosen senders; it is as old as their choice."""
        with self._lock:
            for sender, reading in readings.items():
                at = self._asked_at.get(sender)
                if at is not None:
                    self._kept[sender] = _Kept(reading, at)

    def find(self, sender: str) -> T | None:
        """The reading of a sender, if it may still refuse a request."""
        kept = self._kept.get(sender)
        return None if kept is None or self._is_older(kept, MAX_AGE_MS) else kept.reading

    def list_recent(self) -> Mapping[str, T]:
        """The readings that operators are shown, by sender."""
        with self._lock:
            kept = dict(self._kept)
        return {
            sender: one.reading
            for sender, one in sorted(kept.items())
            if not self._is_older(one, MAX_LISTED_AGE_MS)
        }

    def _is_older(self, kept: _Kept[T], age_ms: int) -> bool:
        """Whether it was read before that; a clock that steps back makes it old, too."""
        return not kept.at <= self._now() <= kept.at + age_ms
