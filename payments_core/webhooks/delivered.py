"""The events that an endpoint got, once their deliveries are deleted.

A recovery sends what an endpoint did not get, so the service must still know what it got. A record
has the events of one endpoint and of about four minutes, with a mark of eight characters for each.
A mark is evidence that an event was delivered: an event without one counts as missed, so that a
lost record would repeat events and never lose any. While an event's delivery is stored, only the
delivery counts, and a mark says nothing.
"""

from __future__ import annotations

from collections.abc import Collection as Ids
from collections.abc import Iterable, Mapping
from typing import ClassVar

import attrs

from payments_core.clock import DAY, Instant
from payments_core.evolve import evolve
from payments_core.storage.bulk import get_many, lock_many
from payments_core.storage.port import Snapshot, Transaction
from payments_core.storage.records import Collection, Index, Record
from payments_core.webhooks.record import Delivery, delivery_id

KEPT_MS = DAY
"""How long every delivery is kept after its end, at least."""

MARK_CHARACTERS = 8
"""48 bits of the delivery's id. Another event of the same minutes has the same mark once in 10**11
times."""

_MOMENT = slice(len("delivery_"), len("delivery_") + 5)
"""Where a delivery's id has the event's time, in units of 2**18 milliseconds."""

_MARK = slice(-16, -16 + MARK_CHARACTERS)
"""Where it has the first characters of its digest."""

EventAndEndpoint = tuple[str, str]
"""The ids of an event and of an endpoint."""


@attrs.frozen(kw_only=True, slots=False)
class DeliveredEvents(Record):
    """What an endpoint got of the events of about four minutes: their marks, one after another.

    `updated_at` is when the last of their deliveries was deleted.
    """

    collection: ClassVar[Collection] = Collection(
        "webhook_delivered_events",
        columns={"updated_at": int},
        indexes=(Index("by_updated", order=("updated_at",)),),
    )

    marks: str = ""
    updated_at: Instant

    def split(self) -> set[str]:
        """The marks."""
        starts = range(0, len(self.marks), MARK_CHARACTERS)
        return {self.marks[at : at + MARK_CHARACTERS] for at in starts}


def record_id(endpoint_id: str, delivery_id: str) -> str:
    """The id of the record that may have the mark of a delivery."""
    return f"{endpoint_id}.{delivery_id[_MOMENT]}"


def find_delivered(snapshot: Snapshot, pairs: Ids[EventAndEndpoint]) -> frozenset[str]:
    """The ids of the deliveries that ended as delivered, of those that are deleted.

    Deliveries that are stored do not count here. An id may be that of a delivery that never was.
    """
    return _select(pairs, get_many(snapshot, DeliveredEvents, _record_ids(pairs)))


def lock_delivered(tx: Transaction, pairs: Ids[EventAndEndpoint]) -> frozenset[str]:
    """The same, certainly current; the deliveries are locked before."""
    return _select(pairs, lock_many(tx, DeliveredEvents, _record_ids(pairs)))


def note_deletions(
    known: Mapping[str, DeliveredEvents], deleted: Iterable[Delivery], *, now: Instant
) -> list[DeliveredEvents]:
    """The records that change when these deliveries are deleted; new ones have the version 0.

    The last state of a delivery counts: one that was delivered, resent and abandoned is missed.
    """
    marks: dict[str, set[str]] = {}
    for delivery in deleted:
        id = record_id(delivery.endpoint_id, delivery.id)
        if id not in marks:
            marks[id] = known[id].split() if id in known else set()
        if delivery.status == "delivered":
            marks[id].add(delivery.id[_MARK])
        else:
            marks[id].discard(delivery.id[_MARK])
    changed = []
    for id, of_record in marks.items():
        before = known.get(id) or DeliveredEvents(id=id, updated_at=now)
        after = evolve(before, marks="".join(sorted(of_record)))
        if after != before:
            changed.append(evolve(after, updated_at=now))
    return changed


def _record_ids(pairs: Ids[EventAndEndpoint]) -> set[str]:
    return {record_id(endpoint, delivery_id(event, endpoint)) for event, endpoint in pairs}


def _select(pairs: Ids[EventAndEndpoint], records: Mapping[str, DeliveredEvents]) -> frozenset[str]:
    marks = {id: record.split() for id, record in records.items()}
    ids = [(delivery_id(event, endpoint), endpoint) for event, endpoint in pairs]
    return frozenset(
        id for id, endpoint in ids if id[_MARK] in marks.get(record_id(endpoint, id), ())
    )
