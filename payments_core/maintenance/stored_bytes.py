"""Counts the bytes that an environment stores: a part of the hourly purge.

The bodies of its rows are summed a page at a time, each in a statement of its own, and nothing is
locked meanwhile: a row that is written behind the count is in the next one. The database needs
more than that, for indexes and columns. The sum of an ended count is in the environment's record,
where every writing call reads it anyway.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from payments_core.clock import MINUTE
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.maintenance.record import COUNT_ID, StorageCount
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get
from payments_core.storage.records import Record
from payments_core.tenants.record import Environment

_log = logging.getLogger(__name__)

PAGE_ROWS = 5_000
"""How many rows a statement sums."""

MAX_FULL_PAGES = 20
"""After so many pages with another page behind them the job returns, and continues soon."""

COUNT_EVERY_MS = 30 * MINUTE
"""A count begins so long after the one before, at the earliest: the hourly purge returns sooner
while it has more to delete."""

NEARLY_FULL = 0.8
"""From this share of its limit on, the log has a warning of the environment after each count."""


class StoredBytesCounter:
    """Counts an environment's bytes; if stopped anywhere, it continues where it last committed."""

    def __init__(
        self, ports: Ports, kinds: Sequence[type[Record]], *, page_rows: int = PAGE_ROWS
    ) -> None:
        """`kinds` are all that an environment's partition may have."""
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._telemetry = ports.telemetry
        self._page_rows = page_rows
        self._kinds = {kind.collection.name: kind for kind in kinds}

    def run(self, partition: str) -> bool:
        """Count a number of pages; True if there are more. Raises StorageUnavailable."""
        environment, known = self._storage.fetch(
            partition, Get(Environment, partition), Get(StorageCount, COUNT_ID)
        )
        if environment is None:
            return False
        begun = self._begin_or_continue(known)
        if begun is None:
            return False
        count = self._measure(partition, begun)
        counted = self._commit(partition, count)
        if counted is not None:
            self._report(counted)
        return count.kind is not None

    def _begin_or_continue(self, known: StorageCount | None) -> StorageCount | None:
        """The count from which to continue; None if the last one ended a moment ago."""
        now, first = self._clock.now(), next(iter(self._kinds))
        if known is None:
            return StorageCount(id=COUNT_ID, began_at_ms=now, kind=first)
        if known.kind in self._kinds:
            return known
        # A count that began later than now is of a clock that was set back.
        if known.kind is None and known.began_at_ms <= now < known.began_at_ms + COUNT_EVERY_MS:
            return None
        return evolve(known, began_at_ms=now, kind=first, after=None, bytes=0)

    def _measure(self, partition: str, count: StorageCount) -> StorageCount:
        """The count after the next pages."""
        names = list(self._kinds)
        place, after, total = names.index(count.kind or names[0]), count.after, count.bytes
        full_pages = 0
        while place < len(names) and full_pages < MAX_FULL_PAGES:
            page = self._storage.measure(
                partition, self._kinds[names[place]], after, self._page_rows
            )
            total, after = total + page.bytes, page.next
            if after is None:
                place += 1
            else:
                full_pages += 1
        kind = names[place] if place < len(names) else None
        return evolve(count, kind=kind, after=after, bytes=total)

    def _commit(self, partition: str, count: StorageCount) -> Environment | None:
        """Store the count; the environment with its sum, if this commit has ended it."""
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Environment | None]:
            is_ended = count.kind is None
            environment = tx.get(Environment, partition, for_update=True) if is_ended else None
            stored = tx.get(StorageCount, COUNT_ID, for_update=True)
            if (stored.version if stored else 0) != count.version:
                return Decision(None)  # another worker has counted meanwhile
            counted = environment and evolve(
                environment, stored_bytes=count.bytes, counted_at_ms=now
            )
            return Decision(
                counted,
                inserts=(count,) if stored is None else (),
                replaces=(
                    *(() if stored is None else (count,)),
                    *(() if counted is None else (counted,)),
                ),
            )

        return self._committer.commit(WorkerAuthority(partition, "upkeep"), decide)

    def _report(self, environment: Environment) -> None:
        stored, limit = environment.stored_bytes or 0, environment.effective_storage_limit_bytes
        self._telemetry.record_stored_bytes(stored, limit)
        if stored >= NEARLY_FULL * limit:
            _log.warning(
                "%s stores %d bytes, and its limit is %d; at the limit, new accounts, wallets and"
                " metadata are refused",
                environment.id,
                stored,
                limit,
            )
