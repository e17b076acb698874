"""Runs a sandbox's work and advances its time at once, without waiting."""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.clock import SECOND, Clock, Instant
from payments_core.engine.jobs.worker import Worker
from payments_core.errors import CapabilityNotActive, ValidationFailed
from payments_core.sandbox.chains import SandboxChain
from payments_core.sandbox.clock import SandboxClock

MAX_ADVANCE_S = 366 * 86_400


class SandboxRunner:
    """Runs due jobs, and moves the clock, for all apps of the deployment.

    It checks no authority: `Sandbox` does, and a program's own tests have the whole deployment.
    """

    def __init__(
        self,
        clock: Clock,
        chains: Mapping[int, SandboxChain],
        worker: Worker,
        is_time_real: bool,
    ) -> None:
        """`is_time_real` if there are chains whose blocks do not follow the clock."""
        self._clock, self._chains, self._worker = clock, chains, worker
        self._is_time_real = is_time_real

    def controls(self, chain_id: int) -> bool:
        """Whether the chain is the sandbox's own."""
        return chain_id in self._chains

    @property
    def can_advance(self) -> bool:
        """Whether the clock can be moved."""
        return isinstance(self._clock, SandboxClock) and not self._is_time_real

    def run(self) -> int:
        """Do all work that is due now; returns how many jobs ran. Raises Unavailable."""
        with self._worker.pause_exclusively():
            return self._worker.run_until_idle()

    def advance(self, seconds: int) -> tuple[Instant, int]:
        """Move the clock, and run the jobs that fall due on the way, in order.

        Returns the new instant and how many jobs ran. Raises ValidationFailed, Unavailable,
        ChainUnavailable, and CapabilityNotActive if the clock is not the sandbox's, or if there
        are chains whose blocks do not follow it.
        """
        clock = self._clock
        if self._is_time_real:
            raise CapabilityNotActive("moving the clock beside a testnet")
        if not isinstance(clock, SandboxClock):
            raise CapabilityNotActive("the sandbox clock")
        if not 1 <= seconds <= MAX_ADVANCE_S:
            raise ValidationFailed.at("seconds", f"must be 1 to {MAX_ADVANCE_S}")

        def move(instant: Instant) -> None:  # and tell the chains how much time has passed
            before = clock.now()
            clock.advance_to(instant)
            for chain in self._chains.values():
                chain.advance_time(before, clock.now())

        with self._worker.pause_exclusively():
            ran = self._worker.run_through(clock.now() + seconds * SECOND, move)
            return clock.now(), ran
