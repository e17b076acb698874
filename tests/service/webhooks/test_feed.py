"""The event feed on every storage: each event once, whatever is read, purged or restored."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from payments_core.clock import DAY
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.events import BY_NAME, Event, NewEvent
from payments_core.errors import ValidationFailed
from payments_core.maintenance import feed_purge
from payments_core.maintenance.retention import EVENTS_RETENTION_MS, EventPurge
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Position, Storage
from payments_core.validation.arguments import guard
from payments_core.webhooks import feed
from payments_core.webhooks.feed import EventFeed, FeedBatch, FeedPage
from tests.webhooks.replay_bench import ReplayBench


class Reader:
    """A reader that polls, and keeps its place."""

    def __init__(self, bench: ReplayBench, *, limit: int = 50) -> None:
        self.feed = guard(EventFeed(bench.ports))
        self.bench, self.limit = bench, limit
        self.after: Position | None = None

    def poll(self, **filters: str) -> FeedPage:
        page = self.feed.poll(self.bench.authority, after=self.after, limit=self.limit, **filters)
        self.after = page.next
        return page

    def poll_all(self, **filters: str) -> list[str]:
        """The ids of the events up to the end."""
        return [event.id for page in self._pages(**filters) for event in page.events]

    def _pages(self, **filters: str) -> Iterator[FeedPage]:
        while True:
            page = self.poll(**filters)
            yield page
            if not page.has_more:
                return


@pytest.fixture
def bench(storage: Storage) -> ReplayBench:
    return ReplayBench(storage)


@pytest.fixture
def memory_bench() -> ReplayBench:
    return ReplayBench(MemoryStorage())


def commit_together(bench: ReplayBench, count: int, name: str = "account.created") -> None:
    """Some events in one commit."""
    fields = dict.fromkeys(BY_NAME[name].fields, "x")
    events = tuple(NewEvent(name, fields, "2026-09-09", "acct_1") for _ in range(count))
    bench.committer.commit(
        WorkerAuthority(bench.authority.partition, "sandbox"),
        lambda tx, id_sequence: Decision(None, events=events),
    )


def purge(bench: ReplayBench) -> None:
    while EventPurge(bench.ports, EVENTS_RETENTION_MS).run(bench.authority.partition):
        pass


def refuses(reader: Reader) -> bool:
    with suppress(ValidationFailed):
        reader.poll()
        return False
    return True


@pytest.mark.parametrize("limit", [1, 7, 50])
def test_a_reader_gets_each_event_once(bench: ReplayBench, limit: int) -> None:
    reader = Reader(bench, limit=limit)
    assert reader.poll_all() == []
    read: list[str] = []
    for count in (1, 9, 3):
        commit_together(bench, count)
        assert reader.poll_all() == [], "a worker has not taken them up"
        bench.settle()
        read += reader.poll_all()
        assert sorted(read) == sorted(bench.event_ids())
    assert Reader(bench, limit=limit).poll_all() == read


def test_workers_at_once_give_each_event_one_place(bench: ReplayBench) -> None:
    for _ in range(12):
        commit_together(bench, 3)
    reader, read = Reader(bench, limit=5), list[str]()
    over = threading.Event()

    def poll() -> None:
        while not over.is_set():
            read.extend(reader.poll_all())

    workers = [threading.Thread(target=bench.settle) for _ in range(3)]
    polling = threading.Thread(target=poll)
    for thread in (polling, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    over.set()
    polling.join()
    bench.settle()
    read += reader.poll_all()
    assert len(read) == len(set(read)) == 36
    assert set(read) == set(bench.event_ids())


def test_a_commit_of_many_events_makes_batches(memory_bench: ReplayBench) -> None:
    commit_together(memory_bench, feed.MAX_EVENTS_PER_BATCH + 20)
    memory_bench.settle()
    reader = Reader(memory_bench, limit=90)
    assert len(reader.poll().events) == 90
    assert len(reader.poll().events) == 30
    assert not reader.poll().events


def test_a_test_event_is_in_the_feed(bench: ReplayBench) -> None:
    endpoint = bench.endpoint()
    sent = bench.test(endpoint)
    assert Reader(bench).poll_all() == [sent.event_id]
    bench.settle()
    assert Reader(bench).poll_all() == [sent.event_id]


def test_the_end_leaves_out_what_was_before(bench: ReplayBench) -> None:
    reader = Reader(bench)
    reader.after = reader.feed.find_end(bench.authority)
    commit_together(bench, 2)
    bench.settle()
    assert len(reader.poll_all()) == 2
    reader.after = reader.feed.find_end(bench.authority)
    assert reader.poll_all() == []
    bench.happen("account.updated")
    bench.settle()
    assert reader.poll_all() == bench.event_ids("account.updated")


def test_filters_choose_and_lose_no_place(memory_bench: ReplayBench) -> None:
    for number in range(6):
        memory_bench.happen("account.updated" if number % 3 == 0 else "account.created")
    memory_bench.settle()
    reader = Reader(memory_bench, limit=1)
    assert sorted(reader.poll_all(name="account.updated")) == sorted(
        memory_bench.event_ids("account.updated")
    )
    assert reader.poll_all() == []
    assert len(Reader(memory_bench).poll_all(account_id="acct_1")) == 6
    assert Reader(memory_bench).poll_all(account_id="acct_2") == []


def test_a_page_with_filters_searches_a_bounded_number(
    memory_bench: ReplayBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "MAX_SEARCHED", 4)
    commit_together(memory_bench, 10)
    memory_bench.settle()
    page = Reader(memory_bench, limit=1).poll(name="account.updated")
    assert (page.events, page.has_more) == ((), True)


def test_a_reader_that_kept_up_survives_the_purge(bench: ReplayBench) -> None:
    late, reader = Reader(bench, limit=1), Reader(bench)
    for count in (2, 3):
        commit_together(bench, count)
        bench.settle()
    assert len(reader.poll_all()) == 5
    late.poll()
    bench.clock.advance((EVENTS_RETENTION_MS + DAY) / 1000)
    purge(bench)
    assert reader.poll_all() == [], "nothing has happened since"
    commit_together(bench, 2)
    bench.settle()
    purge(bench)
    assert sorted(reader.poll_all()) == sorted(bench.event_ids())
    assert refuses(late), "it has missed four events"
    assert sorted(Reader(bench).poll_all()) == sorted(bench.event_ids())
    beginner = Reader(bench)
    beginner.after = (0, 0, "")
    assert refuses(beginner), "it has missed all of them"


def test_a_purge_of_many_batches_of_places_leaves_one_without_events(
    memory_bench: ReplayBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_purge, "BATCH", 2)
    for _ in range(9):
        commit_together(memory_bench, 1)
        memory_bench.settle()
    memory_bench.clock.advance((EVENTS_RETENTION_MS + DAY) / 1000)
    commit_together(memory_bench, 2)
    memory_bench.settle()
    purge(memory_bench)
    partition = memory_bench.authority.partition
    [gone, kept] = memory_bench.storage.read(
        partition, lambda tx: tx.find(FeedBatch, "by_position")
    ).records
    assert (gone.position, gone.event_ids, len(kept.event_ids)) == (9, (), 2)
    assert sorted(Reader(memory_bench, limit=1).poll_all()) == sorted(memory_bench.event_ids())


def test_a_place_of_a_lost_future_is_refused(memory_bench: ReplayBench) -> None:
    """A restore loses the newest commits, and others take their places."""
    commit_together(memory_bench, 2)
    memory_bench.settle()
    reader = Reader(memory_bench)
    assert len(reader.poll_all()) == 2
    restored = ReplayBench(MemoryStorage())
    reader.feed = guard(EventFeed(restored.ports))
    assert refuses(reader), "the place is behind the end"
    commit_together(restored, 3)
    restored.settle()
    assert refuses(reader), "the place is another's"


@pytest.mark.parametrize("after", [(1, "x"), (1, 1, 1), ("1", 1, "x"), (1, -1, "x"), (1, 99, "x")])
def test_what_is_no_place_is_refused(memory_bench: ReplayBench, after: Position) -> None:
    commit_together(memory_bench, 2)
    memory_bench.settle()
    [batch] = memory_bench.storage.read(
        memory_bench.authority.partition, lambda tx: tx.find(FeedBatch, "by_position")
    ).records
    reader = Reader(memory_bench)
    reader.after = tuple(batch.id if part == "x" else part for part in after)
    assert refuses(reader)


def test_an_event_that_an_operator_deleted_stops_nobody(memory_bench: ReplayBench) -> None:
    commit_together(memory_bench, 3)
    memory_bench.settle()
    gone, *left = Reader(memory_bench).poll_all()
    storage, partition = memory_bench.storage, memory_bench.authority.partition
    event = storage.read(partition, lambda tx: tx.get(Event, gone))
    assert event is not None
    storage.transact(partition, lambda tx: tx.delete(event))
    assert Reader(memory_bench).poll_all() == left
