"""Tests, resends and recoveries on every storage, asked for by many at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from payments_core.errors import PaymentsError, ResourceConflict
from payments_core.storage.port import Storage
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
    at_once(lambda: bench.events.recover(bench.authority, endpoint.id, since), times=2)
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
