"""The events that an endpoint got, once their deliveries are deleted.

A recovery sends what an endpoint did not get, so the service must still know what it got. A record
has the events of one endpoint and of about four minutes, with a mark of eight characters for each;
when it is full, further records have about four seconds each.
A mark is evidence that an event was delivered: an event without one counts as missed, so that a
lost record would repeat events and never lose any. While an event's delivery is stored, only the
delivery counts, and a mark says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Collection as Ids
from datetime import datetime
from functools import partial
from typing import ClassVar

import attrs

from payments_core.clock import DAY, Instant
from payments_core.evolve import evolve
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.port import Snapshot, Transaction
from payments_core.storage.records import Collection, Index, Record
from payments_core.webhooks.record import Delivery, delivery_id

KEPT_MS = DAY
"""How long every delivery is kept after its end, at least."""

MARK_CHARACTERS = 8
"""48 bits of the delivery's id. Another event of the same minutes has the same mark once in 10**11
times."""

MAX_MARKS = 4_000
"""A record of four minutes is full with so many: each commit rewrites it, and a document is bounded
(`documents.py`). A record of four seconds has room for what a storage can commit meanwhile."""

_MOMENT = slice(len("delivery_"), len("delivery_") + 5)
"""Where a delivery's id has the event's time, in units of 2**18 milliseconds."""

_FINER_MOMENT = slice(_MOMENT.start, _MOMENT.stop + 1)
"""Where it has the event's time in units of 2**12 milliseconds."""

_MARK = slice(-16, -16 + MARK_CHARACTERS)
"""Where it has the first characters of its digest."""

EventAndEndpoint = tuple[str, str]
"""The ids of an event and of an endpoint."""

Load = Callable[[Ids[str]], Mapping[str, "DeliveredEvents"]]
"""Reads or locks the records of these ids that exist."""


@attrs.frozen(kw_only=True, slots=False)
class DeliveredEvents(Record):
    """What an endpoint got of the events of some time: their marks, one after another.

    `has_more` says that this record is full, and that others have about four seconds of its time
    each. `updated_at` is when the last of their deliveries was deleted.
    """

    collection: ClassVar[Collection] = Collection(
        "webhook_delivered_events",
        columns={"updated_at": int},
        indexes=(Index("by_updated", order=("updated_at",)),),
        schema=2,
    )

    marks: str = ""
    has_more: bool = False
    updated_at_ms: Instant

    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    def split(self) -> set[str]:
        """The marks."""
        starts = range(0, len(self.marks), MARK_CHARACTERS)
        return {self.marks[at : at + MARK_CHARACTERS] for at in starts}


def record_ids(endpoint_id: str, delivery_id: str) -> tuple[str, str]:
    """The ids of the records that may have the mark of a delivery: of minutes, and of seconds."""
    return (
        f"{endpoint_id}.{delivery_id[_MOMENT]}",
        f"{endpoint_id}.{delivery_id[_FINER_MOMENT]}",
    )


def find_delivered(snapshot: Snapshot, pairs: Ids[EventAndEndpoint]) -> frozenset[str]:
    """The ids of the deliveries that ended as delivered, of those that are deleted.

    Deliveries that are stored do not count here. An id may be that of a delivery that never was.
    """
    return _select(partial(snapshot.get_many, DeliveredEvents), pairs)


def lock_delivered(tx: Transaction, pairs: Ids[EventAndEndpoint]) -> frozenset[str]:
    """Find what `find_delivered` finds, certainly current; the deliveries are locked before."""
    return _select(partial(tx.get_many, DeliveredEvents, for_update=True), pairs)


def lock_records(
    tx: Transaction, endpoint_id: str, delivery_ids: Ids[str]
) -> Mapping[str, DeliveredEvents]:
    """The records that may have the marks of an endpoint's deliveries."""
    pairs = [(endpoint_id, id) for id in delivery_ids]
    return _load(partial(tx.get_many, DeliveredEvents, for_update=True), pairs)


def note_deletions(
    known: Mapping[str, DeliveredEvents], deleted: Iterable[Delivery], *, now: Instant
) -> list[DeliveredEvents]:
    """The records that change when these deliveries are deleted; new ones have the version 0.

    The last state of a delivery counts: one that was delivered, resent and abandoned is missed.
    """
    marks = {id: record.split() for id, record in known.items()}
    full = {id for id, record in known.items() if record.has_more}
    for delivery in deleted:
        mark = delivery.id[_MARK]
        id, finer_id = record_ids(delivery.endpoint_id, delivery.id)
        first, further = marks.setdefault(id, set()), marks.setdefault(finer_id, set())
        if delivery.status != "delivered":
            first.discard(mark)
            further.discard(mark)
        elif len(first) < MAX_MARKS or mark in first:
            first.add(mark)
        else:
            further.add(mark)
            full.add(id)
    changed = []
    for id, of_record in marks.items():
        before = known.get(id) or DeliveredEvents(id=id, updated_at_ms=now)
        after = evolve(before, marks="".join(sorted(of_record)), has_more=id in full)
        if after != before:
            changed.append(evolve(after, updated_at_ms=now))
    return changed


def _load(load: Load, pairs: Ids[tuple[str, str]]) -> Mapping[str, DeliveredEvents]:
    """The records of (endpoint id, delivery id)."""
    ids = [record_ids(*pair) for pair in pairs]
    first = load({id for id, _ in ids})
    further = {finer_id for id, finer_id in ids if id in first and first[id].has_more}
    return {**first, **load(further)} if further else first


def _select(load: Load, pairs: Ids[EventAndEndpoint]) -> frozenset[str]:
    ids = [(endpoint, delivery_id(event, endpoint)) for event, endpoint in pairs]
    marks = {id: record.split() for id, record in _load(load, ids).items()}
    return frozenset(
        id
        for endpoint, id in ids
        if any(id[_MARK] in marks.get(place, ()) for place in record_ids(endpoint, id))
    )
