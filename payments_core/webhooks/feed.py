"""The event feed: every event of an environment, once, in an order that only grows at its end.

Events are committed in another order than that of their times and ids, so no reader can continue
behind one of them (decision 0028). The commit that ends an event's fan-out also gives it its place:
it locks the end of the feed until it is committed, so that a place is never committed before an
earlier one. A batch has the events of one such commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import ClassVar

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.events import Event, EventName
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import ValidationFailed
from payments_core.evolve import evolve
from payments_core.storage.port import Position, Snapshot, Transaction
from payments_core.storage.query_semantics import validate_position
from payments_core.storage.records import Collection, Index, Record
from payments_core.tenants.authorization import Authority
from payments_core.validation.fields import PageLimit

MAX_EVENTS_PER_BATCH = 100
"""A fan-out commits up to 512 events; a page of a few batches must stay small."""

MAX_SEARCHED = 500
"""The events that a page with filters looks at; it then ends short."""

_END_ID = "feed"
_BEFORE_ALL: Position = (0, 0, "")


@attrs.frozen(kw_only=True, slots=False)
class FeedBatch(Record):
    """Events that got their places in one commit; `position` counts the environment's batches.

    `oldest_ms` is the time of the oldest. Without events it is the last of those that were purged
    (`maintenance/feed_purge.py`).
    """

    collection: ClassVar[Collection] = Collection(
        "event_feed",
        columns={"position": int},
        indexes=(Index("by_position", order=("position",)),),
    )

    position: int
    event_ids: tuple[str, ...]
    size: int
    oldest_ms: Instant


@attrs.frozen(kw_only=True, slots=False)
class FeedEnd(Record):
    """The last batch of an environment's feed: one row, locked by whoever adds a batch."""

    collection: ClassVar[Collection] = Collection("event_feed_ends")

    position: int = 0
    batch_id: str = ""
    size: int = 0


@attrs.frozen
class FeedPage:
    """Events in the order of the feed. `next` is where to continue, also from the end of the feed;
    `has_more` says whether there is more already.

    >>> page = shop.events.poll(limit=2)
    >>> page
    FeedPage(events=<2 Event>, next=(...), has_more=True)
    >>> shop.events.poll(after=page.next).events[0] in page.events
    False
    """

    __repr__ = brief_repr

    events: tuple[Event, ...]
    next: Position
    has_more: bool


def decide_append(
    tx: Transaction, id_sequence: IdSequence, events: Iterable[Event]
) -> Decision[None]:
    """Places at the end of the feed. It locks the end: take all other locks before."""
    ordered = sort_events(events)
    if not ordered:
        return Decision(None)
    stored = tx.get(FeedEnd, _END_ID, for_update=True)
    end = stored or FeedEnd(id=_END_ID)
    batches: list[FeedBatch] = []
    for at in range(0, len(ordered), MAX_EVENTS_PER_BATCH):
        part = ordered[at : at + MAX_EVENTS_PER_BATCH]
        batch = FeedBatch(
            id=id_sequence.issue("feed"),
            position=end.position + 1,
            event_ids=tuple(event.id for event in part),
            size=len(part),
            oldest_ms=min(event.created_at_ms for event in part),
        )
        end = evolve(end, position=batch.position, batch_id=batch.id, size=batch.size)
        batches.append(batch)
    if stored is None:  # of two that both begin a feed, the id lets only one commit
        return Decision(None, inserts=(*batches, end))
    return Decision(None, inserts=tuple(batches), replaces=(end,))


def sort_events(events: Iterable[Event]) -> tuple[Event, ...]:
    """The oldest first. Ids of one millisecond have any order, versions of a status do not."""

    def order(event: Event) -> tuple[Instant, int, str]:
        return event.created_at_ms, event.payload.get("statusVersion", 0), event.id

    return tuple(sorted(events, key=order))


class EventFeed:
    """Reads the feed of the caller's environment."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage

    def poll(
        self,
        authority: Authority,
        *,
        after: Position | None = None,
        account_id: str | None = None,
        name: EventName | None = None,
        limit: PageLimit = 50,
    ) -> FeedPage:
        """The events after a place, oldest first; without one, from the oldest that is kept.

        Continuing behind each page's `next` reads every event once, also one that is committed
        later than others of a later time. An event is in the feed when a worker has taken it up.
        With filters a page may be short, even empty, and have more.

        Raises ValidationFailed for a place that is too old, so that events were missed, and for one
        that a restored storage no longer has.
        """
        has_filters = account_id is not None or name is not None
        searched = max(limit, MAX_SEARCHED) if has_filters else limit

        def load(snapshot: Snapshot) -> FeedPage:
            last, places, is_end = _find_places(snapshot, after, searched)
            stored = snapshot.get_many(Event, [event_id for event_id, _ in places])
            events: list[Event] = []
            for event_id, place in places:
                if len(events) == limit:
                    return FeedPage(tuple(events), last, has_more=True)
                last = place
                event = stored.get(event_id)  # None if an operator deleted its damaged row
                if event is None or (name is not None and event.name != name):
                    continue
                if account_id is None or event.account_id == account_id:
                    events.append(event)
            return FeedPage(tuple(events), last, has_more=not is_end)

        return self._storage.read(authority.partition, load)

    def find_end(self, authority: Authority) -> Position:
        """The place after the newest event: to read only those that come from now on."""

        def load(snapshot: Snapshot) -> Position:
            end = snapshot.get(FeedEnd, _END_ID)
            return _BEFORE_ALL if end is None else (end.position, end.size, end.batch_id)

        return self._storage.read(authority.partition, load)


def _find_places(
    snapshot: Snapshot, after: Position | None, limit: int
) -> tuple[Position, Sequence[tuple[str, Position]], bool]:
    """Where the page begins, the ids of its events with the places behind them, and whether the
    feed ends there.

    A place is the position of a batch, how many of its events were read, and its id: after a
    restore another batch may have the position.
    """
    if after is not None:
        validate_position(after, int, int, str)
    begin = _BEFORE_ALL if after is None else after
    position, skipped, batch_id = begin
    # The batch of the place comes again, to be recognised.
    page = snapshot.find(FeedBatch, "by_position", after=(position, ""), limit=limit + 1)
    batches = page.records
    if after is None:
        while batches and not batches[0].event_ids:
            begin, batches = (batches[0].position, batches[0].size, batches[0].id), batches[1:]
    elif position == 0:
        if batches and batches[0].position != 1:
            raise _missed()
    elif not batches or batches[0].id != batch_id or not 0 <= int(skipped or 0) <= batches[0].size:
        raise _missed()
    places = islice(_iterate_places(batches, int(skipped or 0)), limit + 1)
    found = list(places)
    return begin, found[:limit], page.next is None and len(found) <= limit


def _iterate_places(batches: Sequence[FeedBatch], skipped: int) -> Iterator[tuple[str, Position]]:
    for batch in batches:
        if not batch.event_ids and skipped < batch.size:
            raise _missed()
        for read, event_id in enumerate(batch.event_ids[skipped:], skipped + 1):
            yield event_id, (batch.position, read, batch.id)
        skipped = 0


def _missed() -> ValidationFailed:
    return ValidationFailed.at(
        "after",
        "leads to events that are deleted, or to a storage that was restored since:"
        " begin again without it, and compare by the events' ids",
    )
