"""What the ended deliveries of an endpoint take is bounded (contract §4)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from payments_core.clock import DAY, HOUR, SECOND
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.errors import NotFound
from payments_core.evolve import evolve
from payments_core.maintenance import retention
from payments_core.maintenance.retention import EventPurge, Retention, RetentionPurge
from payments_core.record_types import RECORD_TYPES
from payments_core.storage import documents
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.webhooks import delivered, trimming
from payments_core.webhooks.delivered import MARK_CHARACTERS, DeliveredEvents, record_ids
from payments_core.webhooks.dispatch.job_handlers import FAN_OUT_QUEUE
from payments_core.webhooks.dispatch.newest_answers import KEPT_ANSWERS
from payments_core.webhooks.record import Delivery, Endpoint
from payments_core.webhooks.transports.port import TransportResult
from payments_core.webhooks.trimming import DeliveryTrim
from tests.service.corruption import corrupt
from tests.webhooks.replay_bench import ReplayBench
from tests.webhooks.webhook_bench import Bench, Wire

KEPT = 3
BATCH = 4
ANSWER = b"x" * 4_096


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trimming, "KEPT", {"active": KEPT, "disabled": 1, "archived": 0})
    monkeypatch.setattr(trimming, "BATCH", BATCH)


def storage_of(kind: str, folder: Path) -> Storage:
    if kind == "memory":
        return MemoryStorage()
    storage = SqliteStorage(folder / "data.db", RECORD_TYPES)
    storage.migrate()
    return storage


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


def pass_a_day(bench: Bench) -> None:
    bench.clock.advance(DAY // SECOND + 30)


def trim(bench: Bench) -> int:
    """Trim until nothing is left to trim; how often it had to go on."""
    runs, deletion = 1, DeliveryTrim(bench.ports)
    while deletion.run(bench.authority.partition):
        runs += 1
    return runs


def stored(bench: Bench, endpoint: Endpoint) -> Sequence[Delivery]:
    page = bench.storage.read(
        bench.authority.partition,
        lambda snapshot: snapshot.find(Delivery, "by_endpoint", (endpoint.id,), limit=1_000),
    )
    return page.records[::-1]


def marks(bench: Bench) -> Sequence[DeliveredEvents]:
    page = bench.storage.read(
        bench.authority.partition,
        lambda snapshot: snapshot.find(DeliveredEvents, "by_updated", limit=1_000),
    )
    return page.records


def sent_by_recovery(bench: ReplayBench, endpoint: Endpoint, since: int) -> list[str]:
    """The events that a recovery sends, all of which are accepted."""
    bench.answer(TransportResult(200))
    before = len(bench.sent)
    bench.recover(endpoint, since)
    events = [request.headers["x-service-event-id"] for request in bench.sent[before:]]
    return [id for id in events if id in bench.event_ids("account.created")]


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_old_deliveries_are_deleted_except_the_newest(
    kind: str, status: int, tmp_path: Path
) -> None:
    bench, endpoint = bench_of(status, 20, storage_of(kind, tmp_path))
    before = stored(bench, endpoint)
    assert len(before) == 20
    trim(bench)
    assert stored(bench, endpoint) == before  # each is kept for a day
    pass_a_day(bench)
    trim(bench)
    assert stored(bench, endpoint) == before[-KEPT:]
    assert sum(len(one.split()) for one in marks(bench)) == (17 if status == 200 else 0)
    versions = [one.version for one in marks(bench)]
    trim(bench)
    assert [one.version for one in marks(bench)] == versions  # nothing again
    shown = bench.deliveries(endpoint)
    assert [one.id for one in shown] == [one.id for one in before[: -KEPT - 1 : -1]]
    with pytest.raises(NotFound):
        bench.endpoints.get_delivery(bench.authority, endpoint.id, before[0].id)
    with pytest.raises(NotFound):
        bench.endpoints.retry(bench.authority, endpoint.id, before[0].id)


@pytest.mark.parametrize(("status", "left"), [("disabled", 1), ("archived", 0)])
def test_an_endpoint_that_is_not_active_keeps_fewer(status: Any, left: int) -> None:
    bench, endpoint = bench_of(200, 8)
    bench.update(endpoint, status=status)
    pass_a_day(bench)
    trim(bench)
    assert len(stored(bench, endpoint)) == left
    assert bool(marks(bench)) == (status != "archived")  # which is never recovered
    bench.clock.advance(7 * DAY // SECOND)
    trim(bench)
    assert not stored(bench, endpoint)


def test_endpoints_that_were_closed_long_ago_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their deliveries are gone by then; there may be any number of such endpoints."""
    bench, active = bench_of(200, 8)
    for number in range(BATCH + 1):
        closed = bench.endpoint(f"https://{number}.example/hook")
        bench.update(closed, status="archived")
    bench.clock.advance(9 * DAY // SECOND)
    looked_at: list[str] = []
    deletion = DeliveryTrim(bench.ports)
    assert deletion.run(bench.authority.partition) is False  # the first pass looks at all
    read_older = deletion._read_older

    def note(partition: str, endpoint_id: str, after: Any) -> Any:
        looked_at.append(endpoint_id)
        return read_older(partition, endpoint_id, after)

    monkeypatch.setattr(deletion, "_read_older", note)
    assert deletion.run(bench.authority.partition) is False
    assert set(looked_at) == {active.id}


def test_one_that_was_sent_again_lately_is_kept_and_hides_no_other() -> None:
    bench, endpoint = bench_of(200, 20)
    before = stored(bench, endpoint)
    pass_a_day(bench)
    for old in before[:6]:
        bench.resend(old.event_id, endpoint)
    bench.settle()
    trim(bench)
    left = {one.id for one in stored(bench, endpoint)}
    assert left == {one.id for one in (*before[:6], *before[-KEPT:])}


def test_the_newest_success_of_a_failing_endpoint_is_kept() -> None:
    """By it the endpoint is judged before it is disabled (`health.only_refuses`)."""
    bench, endpoint = bench_of(200, 20)
    first = stored(bench, endpoint)[0]
    bench.resend(first.event_id, endpoint)  # a success of an early delivery is the newest
    bench.settle()
    pass_a_day(bench)
    trim(bench)
    assert stored(bench, endpoint)[-1].id == first.id


@pytest.mark.parametrize(("status", "resent"), [(400, 20), (200, 0)])
def test_a_recovery_sends_what_it_would_have_sent(status: int, resent: int) -> None:
    """A deleted delivery counts as missed if it was abandoned, and not if it was delivered."""
    bench, endpoint = bench_of(status, 20)
    since = bench.clock.now() - HOUR
    pass_a_day(bench)
    trim(bench)
    assert len(sent_by_recovery(bench, endpoint, since)) == resent


def test_a_deleted_delivery_is_sent_again_on_request_and_its_last_end_counts() -> None:
    bench, endpoint = bench_of(200, 20)
    since = bench.clock.now() - HOUR
    first = stored(bench, endpoint)[0]
    pass_a_day(bench)
    trim(bench)
    bench.answer(TransportResult(400))
    [again] = bench.resend(first.event_id, endpoint)
    assert (again.id, again.request_body) == (first.id, first.request_body)
    assert again.job_id != first.job_id  # a worker may still hold the first
    bench.settle()
    assert bench.sent[-1].headers["x-service-delivery"] == first.id
    pass_a_day(bench)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trimming, "KEPT", {"active": 0})
        trim(bench)
    assert first.id not in {one.id for one in stored(bench, endpoint)}
    assert sent_by_recovery(bench, endpoint, since) == [first.event_id]


def test_an_event_says_who_got_it_when_its_deliveries_are_deleted() -> None:
    bench, endpoint = bench_of(200, 8)
    bench.answer(TransportResult(400))
    refusing = bench.endpoint("https://other.example/hook")
    first, last = stored(bench, endpoint)[0].event_id, stored(bench, endpoint)[-1].event_id
    bench.resend(first, refusing)
    bench.settle()
    bench.update(refusing, status="archived")
    pass_a_day(bench)
    trim(bench)
    shown = {}
    for id in (first, last):
        _, deliveries = bench.events.get_with_deliveries(bench.authority, id)
        shown[id] = [(one.id, delivery and delivery.status) for one, delivery in deliveries]
    assert shown == {first: [(endpoint.id, None)], last: [(endpoint.id, "delivered")]}


def test_a_full_record_of_marks_continues_in_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivered, "MAX_MARKS", 5)
    bench, endpoint = bench_of(200, 20)
    since = bench.clock.now() - HOUR
    first, last = stored(bench, endpoint)[0], stored(bench, endpoint)[-KEPT - 1]
    pass_a_day(bench)
    trim(bench)
    kept = {one.id: len(one.split()) for one in marks(bench)}
    assert max(kept.values()) == 5
    assert len(kept) > 1
    assert sum(kept.values()) == 20 - KEPT
    assert sent_by_recovery(bench, endpoint, since) == []
    bench.answer(TransportResult(400))
    for one in (first, last):
        bench.resend(one.event_id, endpoint)
    bench.settle()
    pass_a_day(bench)
    monkeypatch.setattr(trimming, "KEPT", {"active": 0})
    trim(bench)
    assert set(sent_by_recovery(bench, endpoint, since)) == {first.event_id, last.event_id}


def test_a_full_record_of_marks_fits_into_a_document() -> None:
    """As many events as an endpoint gets in four minutes are more than one document holds."""
    text = "m" * MARK_CHARACTERS * delivered.MAX_MARKS
    full = DeliveredEvents(id="e" * 64, marks=text, has_more=True, updated_at_ms=1)
    assert len(documents.encode(documents.stamp(full, 1))) < documents.MAX_BODY_BYTES // 2


def test_a_purge_by_command_deletes_marks_with_the_events() -> None:
    bench, _ = bench_of(200, 8)
    pass_a_day(bench)
    trim(bench)
    purge = RetentionPurge(bench.ports)
    assert purge.run(Retention(events_ms=31 * DAY)).records == {}
    bench.clock.advance(33 * DAY // SECOND)
    gone = purge.run(Retention(events_ms=31 * DAY)).records
    assert gone["webhook_delivered_events"] == 1
    assert not marks(bench)


def test_a_parked_fan_out_that_is_retried_sends_nothing_twice() -> None:
    """Its first part was made and delivered; a day later the operator retries it."""
    bench, endpoint = bench_of(200, 0)
    event_id = bench.happen()
    [job] = bench.jobs_in(FAN_OUT_QUEUE, f"events:{bench.authority.partition}")
    bench.run_for(1)
    pass_a_day(bench)
    for _ in range(KEPT):
        bench.happen()
    bench.run_for(1)
    pass_a_day(bench)
    trim(bench)
    assert event_id not in {one.event_id for one in stored(bench, endpoint)}
    sent = len(bench.sent)
    again = evolve(job, id="job_again", version=0, due_at=bench.clock.now())
    bench.committer.commit(
        WorkerAuthority(bench.authority.partition, "sandbox"),
        lambda tx, id_sequence: Decision(None, inserts=(again,)),
    )
    bench.run_for(1)
    assert not bench.jobs_in(FAN_OUT_QUEUE, f"events:{bench.authority.partition}")
    assert len(bench.sent) == sent


def test_a_recovery_checks_again_when_it_writes() -> None:
    """What it saw as missed may have been delivered, and deleted, before it writes: its worker
    may have been stopped for a day in between."""
    bench, endpoint = bench_of(200, KEPT + 1)
    first = stored(bench, endpoint)[0]
    event = bench.events.get(bench.authority, first.event_id)
    pass_a_day(bench)
    trim(bench)
    authority = WorkerAuthority(bench.authority.partition, "sandbox")
    for seen in (None, first):
        bench.committer.commit(
            authority,
            partial(bench.recovery._decide_resends, authority, endpoint.id, [(event, seen)]),
        )
    assert first.id not in {one.id for one in stored(bench, endpoint)}


def test_deliveries_with_attempts_to_come_are_left_alone() -> None:
    bench, endpoint = bench_of(503, 20)
    statuses = {one.status for one in stored(bench, endpoint)}
    assert statuses == {"failed"}
    before = stored(bench, endpoint)
    pass_a_day(bench)
    trim(bench)
    assert stored(bench, endpoint) == before


def test_a_delivery_that_is_sent_again_meanwhile_is_left_alone() -> None:
    bench, endpoint = bench_of(200, 20)
    pass_a_day(bench)
    before = bench.clock.now() - DAY
    old = stored(bench, endpoint)[:4]
    bench.resend(old[0].event_id, endpoint)
    DeliveryTrim(bench.ports)._delete(bench.authority.partition, endpoint, old, before)
    left = {one.id for one in stored(bench, endpoint)}
    assert (old[0].id in left, old[1].id in left) == (True, False)


def test_a_run_is_bounded_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trimming, "MAX_EFFORT", 1)
    bench, endpoint = bench_of(400, 20)
    pass_a_day(bench)
    assert trim(bench) > 3
    assert len(stored(bench, endpoint)) == KEPT


def test_a_long_pass_does_more_in_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trimming, "MAX_EFFORT", 1)
    monkeypatch.setattr(trimming, "READ_EFFORT", 1)
    monkeypatch.setattr(trimming, "BATCH", 1)
    bench, _ = bench_of(400, 12)
    pass_a_day(bench)
    slow = trim(bench)
    again, _ = bench_of(400, 12)
    pass_a_day(again)
    monkeypatch.setattr(trimming, "LONG_PASS_RUNS", 2)
    monkeypatch.setattr(trimming, "MAX_FACTOR", 4)
    fast = trim(again)
    assert (slow, fast) == (16, 10)


def test_marks_that_cannot_be_read_stop_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    bench, endpoint = bench_of(200, 20)
    other = bench.endpoint("https://other.example/hook")
    for _ in range(8):
        bench.happen()
    bench.run_for(1)
    pass_a_day(bench)
    id, _ = record_ids(endpoint.id, stored(bench, endpoint)[0].id)
    record = DeliveredEvents(id=id, updated_at_ms=1)
    partition = bench.authority.partition
    bench.committer.commit(
        WorkerAuthority(partition, "upkeep"),
        lambda tx, id_sequence: Decision(None, inserts=(record,)),
    )
    corrupt(bench.storage, partition, evolve(record, version=1))
    trim(bench)
    assert len(stored(bench, other)) == KEPT
    assert len(stored(bench, endpoint)) > KEPT
    assert f"ALARM: a record of the deliveries of {endpoint.id}" in caplog.text


def test_old_events_go_with_their_deliveries() -> None:
    bench, endpoint = bench_of(200, 20)
    partition = bench.authority.partition
    purge = EventPurge(bench.ports, 31 * DAY)
    bench.clock.advance(2 * DAY // SECOND)
    trim(bench)
    bench.clock.advance(28 * DAY // SECOND)
    assert purge.run(partition) is False
    assert len(bench.event_ids("account.created")) == 20
    bench.clock.advance(2 * DAY // SECOND)
    assert purge.run(partition) is False
    assert (bench.event_ids("account.created"), list(stored(bench, endpoint))) == ([], [])
    assert marks(bench)
    bench.clock.advance(2 * DAY // SECOND)
    assert purge.run(partition) is False
    assert not marks(bench)


def test_the_purge_of_marks_is_bounded_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "MAX_BATCHES_PER_JOB", 1)
    monkeypatch.setattr(retention, "BATCH", 2)
    bench, _ = bench_of(200, 0)
    for _ in range(8):
        bench.happen()
        bench.run_for(300)
    bench.clock.advance(2 * DAY // SECOND)
    trim(bench)
    before = len(marks(bench))
    assert before > 4
    bench.clock.advance(32 * DAY // SECOND)
    purge = EventPurge(bench.ports, 31 * DAY)
    assert purge.run(bench.authority.partition) is True
    assert len(marks(bench)) == before - 2
    while purge.run(bench.authority.partition):
        pass
    assert not marks(bench)


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
    assert {one.updated_at_ms for one in whole} == {deliveries[-1].updated_at_ms}
    assert {one.response_status for one in deliveries} == {status}


def test_short_answers_are_kept() -> None:
    bench, endpoint = bench_of(200, 0)
    bench.answer(TransportResult(200, b"thanks"))
    for _ in range(3 * KEPT_ANSWERS):
        bench.happen()
    bench.run_for(1)
    assert {one.response_body for one in stored(bench, endpoint)} == {"thanks"}
