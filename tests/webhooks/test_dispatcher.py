"""The dispatcher's threads: what goes wrong for one stays there, and a pause is a pause."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import StorageUnavailable
from payments_core.webhooks.dispatch.job_handlers import FAN_OUT_QUEUE
from payments_core.webhooks.record import Delivery, Endpoint
from payments_core.webhooks.transports.port import Deadline, TransportResult, WebhookRequest
from tests.webhooks.webhook_bench import OK, Bench

PATIENCE_S = 10


class Gated:
    """A transport that answers when it is let, and counts what reached it."""

    def __init__(self, *, open: bool = True) -> None:
        self.go = threading.Event()
        if open:
            self.go.set()
        self.changed = threading.Condition()
        self.began: Counter[str] = Counter()

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        with self.changed:
            self.began[request.headers["x-service-delivery"]] += 1
            self.changed.notify_all()
        assert self.go.wait(PATIENCE_S)
        return OK

    def close(self) -> None:
        pass

    def until(self, count: int) -> None:
        """Wait until so many attempts have begun."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.began.total() >= count, PATIENCE_S)


class Faulty(MemoryStorage):
    """A storage whose calls go through what a test puts before them."""

    before: Callable[[str, Any], None] = staticmethod(lambda call, about: None)  # type: ignore[assignment]

    def next_due(self, queue: str, after: int | None = None) -> int | None:
        self.before("next_due", queue)
        return super().next_due(queue, after)

    def claim(self, queue: str, now: int, **options: Any) -> Any:
        self.before("claim", queue)
        return super().claim(queue, now, **options)

    def read(self, partition: str, work: Any) -> Any:
        self.before("read", partition)
        return super().read(partition, work)

    def transact(self, partition: str, work: Any) -> Any:
        self.before("transact", partition)
        return super().transact(partition, work)


@contextmanager
def running(bench: Bench) -> Iterator[None]:
    bench.worker.start(1)
    try:
        yield
    finally:
        bench.storage.before = lambda call, about: None  # type: ignore[attr-defined]
        bench.wire.go.set()
        assert bench.worker.stop(PATIENCE_S)


def delivered(bench: Bench, endpoint: Endpoint, count: int, lease_s: int = 0) -> None:
    """Wait until so many deliveries of the endpoint are committed.

    With `lease_s` the clock goes on by that, now and then: what could not be given back waits for
    its lease to end.
    """
    for turn in range(PATIENCE_S * 100):
        if lease_s and turn % 20 == 19:
            bench.clock.advance(lease_s)
            bench.worker.wake()
        statuses = [item.status for item in bench.stored(endpoint)]
        if statuses == ["delivered"] * count:
            return
        threading.Event().wait(0.01)
    raise AssertionError(statuses)


@pytest.mark.parametrize("call", ["next_due", "claim", "read", "transact"])
def test_a_storage_that_is_away_for_a_while_stops_nothing(call: str) -> None:
    bench = Bench(Faulty(), wire=Gated())
    endpoint = bench.endpoint()
    away = [True] * 5

    def fault(called: str, about: Any) -> None:
        if called == call and away and threading.current_thread().name == "payments-webhooks":
            away.pop()
            raise StorageUnavailable("away")

    with running(bench):
        bench.storage.before = fault  # type: ignore[attr-defined]
        for _ in range(8):
            bench.happen()
            bench.worker.wake()
        delivered(bench, endpoint, 8, lease_s=61)
        assert bench.worker.pause(PATIENCE_S)
        bench.worker.resume()


def test_an_error_that_nobody_foresaw_while_giving_back_loses_no_delivery() -> None:
    """Out of file descriptors, for instance: what was claimed waits for its lease to end."""
    bench = Bench(Faulty(), wire=Gated())
    endpoint = bench.endpoint()
    faults: list[tuple[str, Exception]] = [
        ("transact", OSError(24, "Too many open files")), ("read", StorageUnavailable("away")),
    ]  # fmt: skip

    def fault(call: str, about: Any) -> None:
        ours = threading.current_thread().name == "payments-webhooks"
        if ours and faults and call == faults[-1][0]:
            raise faults.pop()[1]

    with running(bench):
        for _ in range(8):  # it becomes known for quick, and may have several at once
            bench.happen()
            bench.worker.wake()
        delivered(bench, endpoint, 8)
        assert bench.worker.pause(PATIENCE_S)
        for _ in range(5):
            bench.happen()
        bench.delivery.fan_out(_fan_outs(bench))
        bench.storage.before = fault  # type: ignore[attr-defined]
        bench.worker.resume()
        delivered(bench, endpoint, 13, lease_s=61)
    assert not faults


def _fan_outs(bench: Bench) -> Sequence[Any]:
    queue, now = FAN_OUT_QUEUE.full_name("sandbox"), bench.clock.now()
    return bench.storage.claim(queue, now, lease_ms=60_000, limit=5, lane_concurrency=5)


def test_a_lease_that_ends_in_flight_and_is_claimed_again_here_sends_once() -> None:
    wire = Gated(open=False)
    bench = Bench(Faulty(), wire=wire)
    endpoint = bench.endpoint()
    claims = threading.Semaphore(0)

    def count(call: str, about: Any) -> None:
        if call == "claim":
            claims.release()

    with running(bench):
        bench.happen()
        bench.worker.wake()
        wire.until(1)
        bench.storage.before = count  # type: ignore[attr-defined]
        bench.clock.advance(61)
        bench.worker.wake()
        for _ in range(4):
            assert claims.acquire(timeout=PATIENCE_S)
        wire.go.set()
        delivered(bench, endpoint, 1)
        assert wire.began.total() == 1
        assert bench.worker.pause(PATIENCE_S)
        bench.worker.resume()


def test_an_environment_that_cannot_be_read_holds_up_no_other() -> None:
    bench = Bench(Faulty(), wire=Gated())
    bad = bench.authority.partition
    bench.endpoint("https://bad.example/")
    bench.happen()
    bench.authority = bench.environment("env_b")
    good = bench.endpoint("https://good.example/")
    bench.happen()

    def fault(call: str, about: Any) -> None:
        if (
            call == "read"
            and about == bad
            and threading.current_thread().name == "payments-webhooks"
        ):
            raise UnreadableDocument("damage")

    bench.storage.before = fault  # type: ignore[attr-defined]
    with running(bench):
        delivered(bench, good, 1)


def test_an_event_that_cannot_be_fanned_out_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(Faulty(), wire=Gated())
    endpoint = bench.endpoint()
    ids = [bench.happen() for _ in range(4)]
    fan_out = bench.delivery.fan_out

    def choking(claimed: Sequence[Any]) -> int:
        if any(item.job.subject == ids[1] for item in claimed):
            raise ValueError("too large to store")
        return fan_out(claimed)

    monkeypatch.setattr(bench.delivery, "fan_out", choking)
    with running(bench):
        delivered(bench, endpoint, 3)
    assert ids[1] not in {item.event_id for item in bench.stored(endpoint)}


def test_a_pause_is_quiet_from_the_first_moment() -> None:
    bench = Bench(Faulty(), wire=Gated())
    endpoint = bench.endpoint()
    claiming, go_on = threading.Event(), threading.Event()

    def slow(call: str, about: Any) -> None:
        if call == "claim" and about == FAN_OUT_QUEUE.full_name("sandbox"):
            claiming.set()
            assert go_on.wait(PATIENCE_S)

    with running(bench):
        assert bench.worker.pause(PATIENCE_S)
        bench.happen()
        bench.storage.before = slow  # type: ignore[attr-defined]
        bench.worker.resume()
        assert claiming.wait(PATIENCE_S)
        assert not bench.worker.pause(0.05)  # it is at work
        go_on.set()
        bench.worker.resume()
        delivered(bench, endpoint, 1)


def test_what_has_not_begun_is_given_back_at_a_pause() -> None:
    wire = Gated(open=False)
    bench = Bench(Faulty(), wire=wire)
    endpoints = [bench.endpoint(f"https://h{n}.example/") for n in range(40)]
    with running(bench):
        bench.happen()
        bench.worker.wake()
        wire.until(16)  # a quarter of the senders serves those that are not known
        assert not bench.worker.pause(0.2)
        wire.go.set()
        assert bench.worker.pause(PATIENCE_S)
        assert wire.began.total() == 16
        bench.worker.resume()
        bench.worker.resume()
        for endpoint in endpoints:
            delivered(bench, endpoint, 1)
        assert set(wire.began.values()) == {1}


def test_a_worker_can_be_started_again() -> None:
    bench = Bench(Faulty(), wire=Gated())
    endpoint = bench.endpoint()
    for count in (1, 2, 3):
        with running(bench):
            bench.happen()
            bench.worker.wake()
            delivered(bench, endpoint, count)


def test_a_dispatcher_is_not_started_twice() -> None:
    bench = Bench(Faulty(), wire=Gated())
    with running(bench), pytest.raises(RuntimeError):
        bench.worker._companions[0].start()


def test_a_fault_of_ours_spends_no_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(Faulty(), wire=Gated())
    endpoint = bench.endpoint()
    send, failed = bench.attempts.send, threading.Event()

    def broken(sending: Any, lease_until: int) -> Any:
        if not failed.is_set():
            failed.set()
            raise KeyError("a fault of ours")
        return send(sending, lease_until)

    monkeypatch.setattr(bench.attempts, "send", broken)
    with running(bench):
        bench.happen()
        bench.worker.wake()
        assert failed.wait(PATIENCE_S)
        found: tuple[Delivery, ...] = ()
        for _ in range(PATIENCE_S * 100):
            found = tuple(bench.stored(endpoint))
            bench.clock.advance(2)
            bench.worker.wake()
            if found and found[0].status == "delivered":
                break
            threading.Event().wait(0.01)
        assert [(item.status, item.attempts) for item in found] == [("delivered", 1)]
