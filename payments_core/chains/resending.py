"""What a reorg dropped of our own transactions is sent again, whatever became of their owners.

Nothing of a sender is included while a slot before is empty; and what was paid out stays paid out
only if the transaction comes back. The bytes are fixed, so that it moves nothing twice.
"""

from __future__ import annotations

import logging

from payments_core.chains.outbox import Outbox, Sender
from payments_core.chains.port import ChainUnavailable
from payments_core.chains.waiting import wait_for_chain
from payments_core.clock import Clock
from payments_core.decision import Decision, Follow, Ledger, Scope
from payments_core.storage.port import Claimed, Storage
from payments_core.tenants.modes import is_of_mode

RESEND = "chains.resend"

_log = logging.getLogger(__name__)


class Resending:
    """Hears of blocks undone, and has every sender of the chain checked."""

    def __init__(
        self, storage: Storage, ledger: Ledger, clock: Clock, outbox: Outbox, mode: str
    ) -> None:
        self._storage = storage
        self._ledger = ledger
        self._clock = clock
        self._outbox = outbox
        self._mode = mode

    def undone(self, chain_id: int, first: int, last: int) -> None:
        """Have each environment's sender on the chain checked."""
        after: tuple[str, str] | None = None
        while page := self._storage.locate(Sender, "by_chain", [(chain_id,)], after=after):
            for located in page:
                if not is_of_mode(self._storage, located.partition, self._mode):
                    continue
                now = self._clock.now()
                lane = f"sender:{located.partition}:{chain_id}"
                check = Follow("chain", RESEND, lane, now, str(chain_id))
                outcome = Decision(None, jobs=(check,))
                self._ledger.commit(
                    Scope(located.partition, self._mode),
                    lambda tx, draw, it=outcome: it,  # type: ignore[misc]
                )
            after = (page[-1].partition, page[-1].record.id)

    def resend(self, claimed: Claimed) -> None:
        """The job: send again what the chain does not know any more."""
        chain_id = int(claimed.job.subject)
        try:
            dropped = self._outbox.send_dropped(Scope.of(claimed), chain_id)
        except ChainUnavailable:
            self._ledger.finish(claimed, wait_for_chain(claimed.job, self._clock.now()))
            return
        if dropped:
            _log.warning(
                "a reorg of chain %d dropped %d transactions of %s; they were sent again",
                chain_id, dropped, claimed.partition,
            )  # fmt: skip
        self._ledger.finish(claimed)
