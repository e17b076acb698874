"""Bounds what the ended deliveries of an endpoint take: a part of the hourly purge.

Every event makes a delivery to each endpoint, and every delivery keeps an answer: one write of a
tenant stores half a megabyte that way. Of the deliveries that ended over a day ago, the newest
of each endpoint are kept as they are. Of the others, abandoned ones are deleted: a recovery sends
an event without a delivery as it sends an abandoned one. Delivered ones lose the answer and stay,
since without them a recovery would send their events again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from payments_core.clock import DAY, Instant
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.storage.bulk import lock_many
from payments_core.storage.port import Page, Position, Snapshot, Transaction
from payments_core.webhooks.record import Delivery, DeliveryStatus, Endpoint

WHOLE_MS = DAY
"""How long every ended delivery is kept whole."""

KEPT_WHOLE = 200
"""The older deliveries of an endpoint, of each end, that are kept whole: at least so many, and at
most twice as many, which is a batch more."""

MAX_BATCHES = 20
"""After this many the job returns, and continues soon, so that it does not outlast its lease."""


class DeliveryTrim:
    """Trims the deliveries of an environment; if stopped anywhere, run it again."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock

    def run(self, partition: str) -> bool:
        """Trim a number of batches; True if there may be more. Raises StorageUnavailable."""
        before, batches = self._clock.now() - WHOLE_MS, 0
        for endpoint in self._iterate_endpoints(partition):
            for trim_batch in (self._delete_abandoned, self._clear_answers):
                while trim_batch(partition, endpoint.id, before):
                    batches += 1
                    if batches == MAX_BATCHES:
                        return True
        return False

    def _iterate_endpoints(self, partition: str) -> Iterator[Endpoint]:
        after: Position | None = None
        while True:
            page = self._storage.read(
                partition,
                lambda snapshot, after=after: snapshot.find(  # type: ignore[misc]
                    Endpoint, "by_created", after=after, limit=100, skip_damaged=True
                ),
            )
            yield from page.records
            after = page.next
            if after is None:
                return

    def _delete_abandoned(self, partition: str, endpoint_id: str, before: Instant) -> bool:
        page = self._storage.read(partition, partial(_read_oldest, endpoint_id, "abandoned", None))
        old = _list_trimmable(page, before)
        if old:
            self._commit(partition, partial(_decide_deletion, old, before))
        return bool(old)

    def _clear_answers(self, partition: str, endpoint_id: str, before: Instant) -> bool:
        def look(snapshot: Snapshot) -> Page[Delivery]:
            endpoint = snapshot.get(Endpoint, endpoint_id)
            after = None if endpoint is None else endpoint.trimmed_through
            return _read_oldest(endpoint_id, "delivered", after, snapshot)

        old = _list_trimmable(self._storage.read(partition, look), before)
        if old:
            self._commit(partition, partial(_decide_clearing, endpoint_id, old, before))
        return bool(old)

    def _commit(
        self, partition: str, decide: Callable[[Transaction, IdSequence], Decision[None]]
    ) -> None:
        self._committer.commit(WorkerAuthority(partition, "upkeep"), decide)


def _read_oldest(
    endpoint_id: str, status: DeliveryStatus, after: Position | None, snapshot: Snapshot
) -> Page[Delivery]:
    return snapshot.find(
        Delivery,
        "by_status",
        (endpoint_id, status),
        after=after,
        limit=2 * KEPT_WHOLE,
        skip_damaged=True,
    )


def _list_trimmable(page: Page[Delivery], before: Instant) -> list[Delivery]:
    """The older half of a full page, as far as it ended before that moment."""
    if page.next is None:
        return []
    return [one for one in page.records[:KEPT_WHOLE] if one.updated_at < before]


def _decide_deletion(
    old: list[Delivery], before: Instant, tx: Transaction, id_sequence: IdSequence
) -> Decision[None]:
    found = lock_many(tx, Delivery, [one.id for one in old]).values()
    gone = [one for one in found if one.status == "abandoned" and one.updated_at < before]
    return Decision(None, deletes=tuple(gone))


def _decide_clearing(
    endpoint_id: str,
    old: list[Delivery],
    before: Instant,
    tx: Transaction,
    id_sequence: IdSequence,
) -> Decision[None]:
    endpoint = tx.get(Endpoint, endpoint_id, for_update=True)
    if endpoint is None:
        return Decision(None)
    cleared = tuple(
        evolve(one, response_body=None)
        for one in lock_many(tx, Delivery, [one.id for one in old]).values()
        if one.status == "delivered" and one.updated_at < before and one.response_body is not None
    )
    through = evolve(endpoint, trimmed_through=(old[-1].created_at, old[-1].id))
    return Decision(None, replaces=(*cleared, through))
