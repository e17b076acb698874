"""The sandbox's clock: real time plus an offset that only grows and is in the same storage."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from payments_core.chains.simulated.blocks import block_time
from payments_core.chains.simulated.records import SimulatedChainState, SimulatedTime
from payments_core.clock import MINUTE, SECOND, Clock, Instant, SystemClock
from payments_core.evolve import evolve
from payments_core.storage.port import (
    SIMULATED,
    CommitUnknown,
    Conflict,
    Storage,
    Transaction,
)
from payments_core.storage.reads import Get

MAX_STEP_BACK_MS = 1 * MINUTE
"""How far the time may step back with the machine's clock: the simulated chains stand still so
long."""

_ID = "time"
_log = logging.getLogger(__name__)


class SandboxClock:
    """A clock that every process on the same storage shares.

    `refresh` reads the offset; a sandbox process does so first in every request and claim.
    """

    def __init__(self, storage: Storage, system: Clock | None = None) -> None:
        self._storage = storage
        self._system = system or SystemClock()
        self._ahead_ms = 0

    def now(self) -> Instant:
        return self._system.now() + self._ahead_ms

    def real_now(self) -> Instant:
        return self._system.real_now()

    def refresh(self) -> None:
        """Read an offset that another process may have moved."""
        self._ahead_ms = max(self._ahead_ms, read_advance_ms(self._storage))

    def catch_up(self, chain_ids: Iterable[int]) -> None:
        """Continue at the newest block of these chains, if that is far ahead of this clock.

        The machine's clock was ahead when the block came. Until its time is reached again, no block
        would come, no transfer become final and no job fall due.
        """
        chains = [Get(SimulatedChainState, str(chain_id)) for chain_id in chain_ids]
        states = self._storage.fetch(SIMULATED, *chains)
        newest = max((block_time(state, state.highest) for state in states if state), default=0)
        behind_ms = newest - self.now()
        if behind_ms > MAX_STEP_BACK_MS:
            _log.warning(
                "the sandbox's clock is advanced by %d s: this machine's clock was ahead, and the "
                "sandbox's time does not go back",
                behind_ms // SECOND,
            )
            self.advance_to(newest)

    def advance_to(self, instant: Instant) -> None:
        """Move the clock forward to `instant`; it never moves back."""
        ahead_ms = instant - self._system.now()

        def work(tx: Transaction) -> int:
            row = tx.get(SimulatedTime, _ID, for_update=True)
            if row is None:
                tx.insert(SimulatedTime(id=_ID, ahead_ms=max(0, ahead_ms)))
            elif ahead_ms > row.ahead_ms:
                tx.replace(evolve(row, ahead_ms=ahead_ms))
            return max(0, ahead_ms, row.ahead_ms if row else 0)

        while True:
            try:
                self._ahead_ms = self._storage.transact(SIMULATED, work)
                return
            except (Conflict, CommitUnknown):
                continue  # setting the same offset again changes nothing


def read_advance_ms(storage: Storage) -> int:
    """How far the time of a storage's sandbox was moved beyond the machine's."""
    [row] = storage.fetch(SIMULATED, Get(SimulatedTime, _ID))
    return 0 if row is None else row.ahead_ms
