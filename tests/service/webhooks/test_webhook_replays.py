"""Tests, resends and recoveries on every storage, asked for by many at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from payments_core.clock import DAY, SECOND, to_datetime
from payments_core.errors import PaymentsError, ResourceConflict
from payments_core.storage.port import Storage
from payments_core.webhooks import trimming
from payments_core.webhooks.transports.port import TransportResult
from payments_core.webhooks.trimming import DeliveryTrim
from tests.webhooks.replay_bench import ReplayBench


@pytest.fixture
def bench(storage: Storage) -> ReplayBench:
    return ReplayBench(storage)


def at_once(operation: Callable[[], object], times: int = 6) -> list[object]:
    """What each of several callers gets: a result, or its error's class."""
    results: list[object] = []

    def call() -> None:
        try:
            results.append(operation())
        except PaymentsError as error:
            results.append(type(error))

    threads = [threading.Thread(target=call) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_of_many_resends_at_once_one_wins(bench: ReplayBench) -> None:
    endpoint = bench.endpoint()
    event_id = bench.happen()
    bench.settle()
    [delivered] = bench.stored(endpoint)
    results = at_once(lambda: bench.resend(event_id, endpoint))
    assert results.count(ResourceConflict) == 5
    bench.settle()
    [again] = bench.stored(endpoint)
    assert (again.id, again.status, again.round) == (delivered.id, "delivered", 2)


def test_of_many_that_make_a_missing_delivery_one_wins(bench: ReplayBench) -> None:
    event_id = bench.happen()
    bench.settle()
    endpoint = bench.endpoint()
    results = at_once(lambda: bench.resend(event_id))
    assert results.count(ResourceConflict) == 5
    bench.settle()
    [made] = bench.stored(endpoint)
    assert (made.status, made.round) == ("delivered", 1)


def test_each_of_many_tests_is_an_event_of_its_own(bench: ReplayBench) -> None:
    endpoint = bench.endpoint()
    results = at_once(lambda: bench.test(endpoint))
    bench.settle()
    assert len({delivery.event_id for delivery in results}) == 6  # type: ignore[attr-defined]
    assert [item.status for item in bench.stored(endpoint)] == ["delivered"] * 6
    assert len(bench.event_ids()) == 6


def test_a_recovery_beside_resends_delivers_everything(bench: ReplayBench) -> None:
    since = bench.clock.now()
    ids = []
    for _ in range(8):
        ids.append(bench.happen())
        bench.clock.advance(1)
    bench.settle()
    endpoint = bench.endpoint()
    at_once(lambda: bench.events.recover(bench.authority, endpoint.id, to_datetime(since)), times=2)
    at_once(lambda: bench.resend(ids[0]), times=2)
    bench.settle()
    stored = bench.stored(endpoint)
    assert {item.event_id for item in stored} == set(ids)
    assert {item.status for item in stored} == {"delivered"}


def test_events_are_listed_by_pages_newest_first_of_all_or_one_account(
    bench: ReplayBench,
) -> None:
    ids = []
    for n in range(7):
        ids.append(bench.happen(account_id=f"acct_{n % 2}"))
        bench.clock.advance(1)
    for account_id, wanted in ((None, ids[::-1]), ("acct_1", ids[5::-2]), ("acct_9", [])):
        found: list[str] = []
        after = None
        while True:
            page = bench.events.list(bench.authority, account_id=account_id, after=after, limit=2)
            found += [event.id for event in page.records]
            after = page.next
            if after is None:
                break
        assert found == wanted


def test_purges_at_once_delete_and_mark_each_delivery_once(
    bench: ReplayBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trimming, "KEPT", {"active": 1})
    monkeypatch.setattr(trimming, "BATCH", 2)
    since = bench.clock.now()
    endpoint = bench.endpoint()
    events = [bench.happen() for _ in range(8)]
    bench.settle()
    bench.answer(TransportResult(400))
    refused = [bench.happen() for _ in range(2)]
    bench.settle()
    bench.clock.advance(DAY // SECOND + 60)
    purges = [DeliveryTrim(bench.ports) for _ in range(3)]
    assert at_once(lambda: purges.pop().run(bench.authority.partition), times=3) == [False] * 3
    left = {one.event_id for one in bench.stored(endpoint) if one.event_id in {*events, *refused}}
    assert len(left) == 2
    sent = len(bench.sent)
    bench.answer(TransportResult(200))
    bench.recover(endpoint, since)
    again = [request.headers["x-service-event-id"] for request in bench.sent[sent:]]
    assert sorted(id for id in again if id in {*events, *refused}) == sorted(refused)
    bench.resend(events[0], endpoint)
    bench.settle()
    assert events[0] in {one.event_id for one in bench.stored(endpoint)}
