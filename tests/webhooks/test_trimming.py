"""What the ended deliveries of an endpoint take is bounded (contract §4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from payments_core.clock import DAY, HOUR, SECOND
from payments_core.maintenance.retention import EventPurge
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.webhooks import trimming
from payments_core.webhooks.dispatch.newest_answers import KEPT_ANSWERS
from payments_core.webhooks.record import Delivery, Endpoint
from payments_core.webhooks.transports.port import TransportResult
from payments_core.webhooks.trimming import DeliveryTrim
from tests.webhooks.replay_bench import ReplayBench
from tests.webhooks.webhook_bench import Bench, Wire

KEPT = 3
ANSWER = b"x" * 4_096


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trimming, "KEPT_WHOLE", KEPT)


def bench_of(
    status: int, events: int, storage: Storage | None = None
) -> tuple[ReplayBench, Endpoint]:
    wire = Wire([TransportResult(status, ANSWER)])
    bench = ReplayBench(storage or MemoryStorage(), wire=wire)
    endpoint = bench.endpoint()
    for _ in range(events):
        bench.happen()
        bench.run_for(1)
    return bench, endpoint


def trim(bench: Bench) -> int:
    """Trim until nothing is left to trim; how often it had to go on."""
    runs = 1
    while DeliveryTrim(bench.ports).run(bench.authority.partition):
        runs += 1
    return runs


def stored(bench: Bench, endpoint: Endpoint) -> Sequence[Delivery]:
    page = bench.storage.read(
        bench.authority.partition,
        lambda snapshot: snapshot.find(Delivery, "by_endpoint", (endpoint.id,), limit=1_000),
    )
    return page.records[::-1]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_old_abandoned_deliveries_are_deleted_except_the_newest(kind: str, tmp_path: Path) -> None:
    memory = kind == "memory"
    storage = MemoryStorage() if memory else SqliteStorage(tmp_path / "data.db", RECORD_TYPES)
    if isinstance(storage, SqliteStorage):
        storage.migrate()
    bench, endpoint = bench_of(400, 20, storage)
    before = stored(bench, endpoint)
    assert len(before) == 20
    trim(bench)
    assert stored(bench, endpoint) == before  # each is kept for a day
    bench.clock.advance(DAY // SECOND + 30)
    trim(bench)
    left = stored(bench, endpoint)
    assert KEPT <= len(left) <= 2 * KEPT
    assert left == before[-len(left) :]


def test_delivered_ones_lose_their_answers_except_the_newest() -> None:
    bench, endpoint = bench_of(200, 20)
    before = stored(bench, endpoint)
    bench.clock.advance(DAY // SECOND + 30)
    trim(bench)
    after = stored(bench, endpoint)
    assert [one.id for one in after] == [one.id for one in before]
    whole = [one for one in after if one.response_body is not None]
    assert KEPT <= len(whole) <= 2 * KEPT
    assert whole == list(before[-len(whole) :])
    assert {one.request_body for one in after} == {one.request_body for one in before}
    version = bench.endpoints.get(bench.authority, endpoint.id).version
    trim(bench)
    assert bench.endpoints.get(bench.authority, endpoint.id).version == version  # nothing again


@pytest.mark.parametrize(("status", "resent"), [(400, 20), (200, 0)])
def test_a_recovery_sends_what_it_would_have_sent(status: int, resent: int) -> None:
    """A deleted delivery counts as missed, as an abandoned one does; a delivered one stays."""
    bench, endpoint = bench_of(status, 20)
    since = bench.clock.now() - HOUR
    bench.clock.advance(DAY // SECOND + 30)
    trim(bench)
    wire = bench.wire
    assert isinstance(wire, Wire)
    wire.sent.clear()
    wire.answers[:] = [TransportResult(200)]
    bench.events.recover(bench.authority, endpoint.id, since=since)
    bench.run_for(60)
    names = [dict(request.headers)["x-service-event"] for request, _ in wire.sent]
    assert names.count("account.created") == resent


def test_deliveries_with_attempts_to_come_are_left_alone() -> None:
    bench, endpoint = bench_of(503, 20)
    statuses = {one.status for one in stored(bench, endpoint)}
    assert statuses == {"failed"}
    before = stored(bench, endpoint)
    bench.clock.advance(DAY // SECOND + 30)
    trim(bench)
    assert stored(bench, endpoint) == before


def test_a_run_is_bounded_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trimming, "MAX_BATCHES", 1)
    bench, endpoint = bench_of(400, 20)
    bench.clock.advance(DAY // SECOND + 30)
    assert trim(bench) > 3
    assert len(stored(bench, endpoint)) <= 2 * KEPT


def test_old_events_go_with_their_deliveries() -> None:
    bench, endpoint = bench_of(200, 20)
    partition = bench.authority.partition
    purge = EventPurge(bench.ports, 31 * DAY)
    bench.clock.advance(30 * DAY // SECOND)
    assert purge.run(partition) is False
    assert len(bench.event_ids("account.created")) == 20
    bench.clock.advance(2 * DAY // SECOND)
    assert purge.run(partition) is False
    assert (bench.event_ids("account.created"), list(stored(bench, endpoint))) == ([], [])


@pytest.mark.parametrize("status", [200, 400])
def test_only_the_newest_attempts_keep_long_answers(status: int) -> None:
    """At once, whatever comes in one batch, and before any purge."""
    bench, endpoint = bench_of(status, 0)
    for _ in range(4):
        for _ in range(3 * KEPT_ANSWERS // 2):
            bench.happen()
        bench.run_for(1)
    deliveries = stored(bench, endpoint)
    assert len(deliveries) == 6 * KEPT_ANSWERS
    whole = [one for one in deliveries if one.response_body is not None]
    assert len(whole) == KEPT_ANSWERS
    assert {one.updated_at for one in whole} == {deliveries[-1].updated_at}
    assert {one.response_status for one in deliveries} == {status}


def test_short_answers_are_kept() -> None:
    bench, endpoint = bench_of(200, 0)
    bench.answer(TransportResult(200, b"thanks"))
    for _ in range(3 * KEPT_ANSWERS):
        bench.happen()
    bench.run_for(1)
    assert {one.response_body for one in stored(bench, endpoint)} == {"thanks"}
