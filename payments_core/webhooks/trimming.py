"""Bounds what the ended deliveries of an endpoint take: a part of the hourly purge.

Every event makes a delivery to each endpoint: with a hundred endpoints, one write of a tenant
stores a hundred rows. A day after they ended, deliveries are deleted except the newest of each
endpoint. A recovery sends an event without a delivery as it sends an abandoned one, so the
delivered ones leave a mark (`delivered.py`), in the commit that deletes them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from payments_core.clock import DAY, Instant
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.port import Page, Position, Transaction
from payments_core.webhooks.delivered import KEPT_MS, lock_records, note_deletions
from payments_core.webhooks.record import Delivery, DeliveryStatus, Endpoint, EndpointStatus

_log = logging.getLogger(__name__)

KEPT: Mapping[EndpointStatus, int] = {"active": 400, "disabled": 5, "archived": 0}
"""How many older deliveries of an endpoint are kept, of each end; the active ones are the first to
be gone through. An environment may have any number of the others, and so they keep few."""

ENDED: tuple[DeliveryStatus, ...] = ("abandoned", "delivered")

BATCH = 100
"""The deliveries of one commit: few, since other tenants wait for it where a storage has one
writer."""

MAX_EFFORT = 2_000
"""After so many deliveries read the job returns, and continues after a second: others have the
writer meanwhile, and the job does not outlast its lease."""

LONG_PASS_RUNS, MAX_FACTOR = 600, 8
"""A pass of more runs than this, which is over a million deliveries, does twice as much in each
run, then three times as much, up to so many times: a busy environment would get ahead of it."""

READ_EFFORT = 10
"""What a read costs that finds none, counted in deliveries."""

CLOSED_MS = 7 * DAY
"""An endpoint that is not active gets no delivery, and keeps none after this time. A day later it
is looked at no more, unless by the first pass of a process: there may be any number of them."""


class DeliveryTrim:
    """Deletes old deliveries of an environment; if stopped anywhere, run it again."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._begun: dict[str, tuple[Iterator[int], int]] = {}
        self._complete: set[str] = set()

    def run(self, partition: str) -> bool:
        """Delete a number of batches; True if there may be more. Raises StorageUnavailable.

        A pass that is not complete is continued by the next run of this process; any other
        process begins with the first endpoint.
        """
        # Taken out, so that no other thread continues it too, and none does after an error.
        efforts, runs = self._begun.pop(partition, (self._go_through(partition), 0))
        left = MAX_EFFORT * min(1 + runs // LONG_PASS_RUNS, MAX_FACTOR)
        for effort in efforts:
            left -= effort
            if left <= 0:
                self._begun[partition] = efforts, runs + 1
                return True
        return False

    def _go_through(self, partition: str) -> Iterator[int]:
        """One pass over all endpoints, the active ones first; it yields the effort of each step."""
        now = self._clock.now()
        emptied = now - CLOSED_MS - DAY if partition in self._complete else 0
        for status in KEPT:
            for endpoints in self._iterate_endpoints(partition, status):
                yield READ_EFFORT + len(endpoints)
                for endpoint in endpoints:
                    if status == "active" or endpoint.updated_at_ms >= emptied:
                        yield from self._go_through_endpoint(partition, endpoint, now)
        self._complete.add(partition)

    def _go_through_endpoint(
        self, partition: str, endpoint: Endpoint, now: Instant
    ) -> Iterator[int]:
        before, is_active = now - KEPT_MS, endpoint.status == "active"
        keeps = is_active or endpoint.updated_at_ms >= now - CLOSED_MS
        kept = dict.fromkeys(ENDED, KEPT[endpoint.status] if keeps else 0)
        after: Position | None = (before, "")  # the empty id comes before all others
        while after is not None:
            page = self._read_older(partition, endpoint.id, after)
            if old := _list_surplus(page, kept):
                self._delete(partition, endpoint, old, before)
            after = page.next
            yield READ_EFFORT + len(page.records)

    def _iterate_endpoints(
        self, partition: str, status: EndpointStatus
    ) -> Iterator[tuple[Endpoint, ...]]:
        after: Position | None = None
        while True:
            page = self._storage.read(
                partition,
                lambda snapshot, after=after: snapshot.find(  # type: ignore[misc]
                    Endpoint, "by_status", (status,), after=after, limit=BATCH, skip_damaged=True
                ),
            )
            yield page.records
            after = page.next
            if after is None:
                return

    def _read_older(self, partition: str, endpoint_id: str, after: Position) -> Page[Delivery]:
        """The deliveries before a position, the latest changed first.

        Of all states: a filter would walk through any number of others to find a few.
        """
        return self._storage.read(
            partition,
            lambda snapshot: snapshot.find(
                Delivery,
                "by_endpoint",
                (endpoint_id,),
                after=after,
                limit=BATCH,
                skip_damaged=True,
            ),
        )

    def _delete(
        self, partition: str, endpoint: Endpoint, old: Sequence[Delivery], before: Instant
    ) -> None:
        try:
            self._committer.commit(
                WorkerAuthority(partition, "upkeep"),
                partial(self._decide_deletion, endpoint, old, before),
            )
        except UnreadableDocument:  # its text may quote the record's content
            _log.critical(
                "ALARM: a record of the deliveries of %s in %s cannot be read;"
                " some of its deliveries are not deleted",
                endpoint.id,
                partition,
            )

    def _decide_deletion(
        self,
        endpoint: Endpoint,
        old: Sequence[Delivery],
        before: Instant,
        tx: Transaction,
        id_sequence: IdSequence,
    ) -> Decision[None]:
        found = tx.get_many(Delivery, [one.id for one in old], for_update=True).values()
        # One of them may have been sent again since.
        gone = tuple(one for one in found if one.status in ENDED and one.updated_at_ms < before)
        if endpoint.status == "archived":  # for ever, and so nothing is recovered
            return Decision(None, deletes=gone)
        known = lock_records(tx, endpoint.id, [one.id for one in gone])
        changed = note_deletions(known, gone, now=self._clock.now())
        return Decision(
            None,
            inserts=tuple(one for one in changed if one.id not in known),
            replaces=tuple(one for one in changed if one.id in known),
            deletes=gone,
        )


def _list_surplus(page: Page[Delivery], kept: dict[DeliveryStatus, int]) -> list[Delivery]:
    """The ended deliveries of a page beyond those to keep, of which it counts down the rest."""
    surplus = []
    for one in page.records:
        if not kept.get(one.status, 1):
            surplus.append(one)
        elif one.status in kept:
            kept[one.status] -= 1
    return surplus
