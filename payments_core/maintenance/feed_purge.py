"""Deletes old places of the event feed. The last of them stays, without its events: it shows a
reader that it has missed them, and one that has read them that it has missed nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile

from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.evolve import evolve
from payments_core.storage.port import Page, Position, Snapshot, Storage, Transaction
from payments_core.webhooks.feed import FeedBatch

BATCH = 200

Commit = Callable[[str, Callable[[Transaction], Decision[None]]], None]
"""Commits a decision in a partition."""


def purge_places(
    storage: Storage, commit: Commit, partition: str, before: Instant, max_batches: int | None
) -> bool:
    """Delete the places of events that are older than `before`; True if it ended after so many
    batches, and there may be more. Do it before the events are deleted."""
    after: Position | None = None
    emptied: list[str] = []  # the last of the page before, which is not the last any more
    for _ in range(max_batches or sys.maxsize):
        page = storage.read(partition, partial(_read_page, after))
        old = list(takewhile(lambda batch: batch.oldest_ms < before, page.records))
        if len(old) > 1 or any(batch.event_ids for batch in old):
            commit(partition, partial(_decide, [*emptied, *(batch.id for batch in old)]))
        after, emptied = page.next, [batch.id for batch in old[-1:]]
        if after is None or len(old) < len(page.records):
            return False
    return True


def _read_page(after: Position | None, snapshot: Snapshot) -> Page[FeedBatch]:
    return snapshot.find(FeedBatch, "by_position", after=after, limit=BATCH)


def _decide(ids: Sequence[str], tx: Transaction) -> Decision[None]:
    stored = tx.get_many(FeedBatch, ids, for_update=True).values()
    if not stored:  # another purge has deleted all of them meanwhile
        return Decision(None)
    *over, last = sorted(stored, key=lambda batch: batch.position)
    return Decision(None, replaces=(evolve(last, event_ids=()),), deletes=tuple(over))
