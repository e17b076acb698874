"""Endpoints that begin to hang together: nobody else waits for them, and what waited behind them
is sent as things are by then.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.webhooks import signing, verify
from payments_core.webhooks.dispatch.sender_pool import STALE_AFTER_S, FinishedAttempt, SenderPool
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.record import Endpoint
from payments_core.webhooks.transports.port import Deadline, TransportResult, WebhookRequest
from tests.webhooks.webhook_bench import OK, Bench

PATIENCE_S = 20


class Hanging:
    """A transport whose calls for some hosts hang until they are let go."""

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        self.go = threading.Event()
        self.changed = threading.Condition()
        self.began: Counter[str] = Counter()
        self.sent: list[WebhookRequest] = []

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        host = request.destination.host
        with self.changed:
            self.began[host] += 1
            self.sent.append(request)
            self.changed.notify_all()
        if host in self.hosts:
            assert self.go.wait(PATIENCE_S)
        return OK

    def close(self) -> None:
        pass

    def until(self, what: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(what, PATIENCE_S), self.began


@contextmanager
def running(wire: Hanging, bench: Bench) -> Iterator[None]:
    bench.worker.start(1)
    try:
        yield
    finally:
        wire.go.set()
        assert bench.worker.stop(PATIENCE_S)


def settled(bench: Bench, endpoint: Endpoint, count: int) -> None:
    """Wait until so many deliveries are committed."""
    end = time.monotonic() + PATIENCE_S
    while [item.status for item in bench.stored(endpoint)] != ["delivered"] * count:
        assert time.monotonic() < end
        threading.Event().wait(0.01)


def abandoned(bench: Bench, endpoint: Endpoint) -> None:
    """Wait until its only delivery is given up."""
    end = time.monotonic() + PATIENCE_S
    while [item.status for item in bench.stored(endpoint)] != ["abandoned"]:
        assert time.monotonic() < end
        threading.Event().wait(0.01)


def test_many_quick_ones_that_begin_to_hang_at_once_delay_no_other() -> None:
    wire = Hanging()
    bench = Bench(MemoryStorage(), wire=wire)
    hosts = [f"h{number}.example" for number in range(12)]
    endpoints = [bench.endpoint(f"https://{host}/", "payment.created") for host in hosts]
    other = bench.endpoint("https://other.example/", "account.created")
    with running(wire, bench):
        for _ in range(10):  # they become known for quick, and may have many under way
            bench.happen("payment.created")
            bench.happen("account.created")
            bench.worker.wake()
        for endpoint in endpoints:
            settled(bench, endpoint, 10)
        settled(bench, other, 10)
        wire.hosts = set(hosts)
        for _ in range(30):
            bench.happen("payment.created")
        bench.worker.wake()
        wire.until(lambda: sum(wire.began[host] for host in hosts) >= 12 * 10 + 48)
        for count in range(11, 21):  # and so it goes on while they hang, which is until the end
            bench.happen("account.created")
            bench.worker.wake()
            wire.until(lambda count=count: wire.began["other.example"] == count)  # type: ignore[misc]


def test_what_waited_too_long_is_not_sent_as_it_was_read() -> None:
    reported: list[FinishedAttempt] = []
    heard = threading.Event()

    def tell(ended: FinishedAttempt) -> None:
        reported.append(ended)
        heard.set()

    senders = SenderPool(None, 1, tell, name="test")  # type: ignore[arg-type]  # nothing is sent
    senders._backlog.append((None, time.monotonic() - 2 * STALE_AFTER_S))  # type: ignore[arg-type]
    senders.start()
    assert senders.wake_enough()
    assert heard.wait(PATIENCE_S)
    assert reported == [FinishedAttempt(None, None, None, stale=True)]  # type: ignore[arg-type]
    senders.shut_down()
    for thread in senders.threads:
        thread.join(PATIENCE_S)


@pytest.mark.parametrize("change", ["rotate", "archive"])
def test_what_waited_is_sent_as_the_endpoint_is_by_then(change: str) -> None:
    """New endpoints share a quarter of the senders: a claimed delivery waits behind them."""
    wire = Hanging()
    bench = Bench(MemoryStorage(), wire=wire)
    hosts = [f"h{number}.example" for number in range(20)]
    for host in hosts:
        bench.endpoint(f"https://{host}/", "payment.created")
    wire.hosts = set(hosts)
    with running(wire, bench):
        bench.happen("payment.created")
        bench.worker.wake()
        wire.until(lambda: sum(wire.began.values()) >= 16)
        victim = bench.endpoint("https://victim.example/", "account.created")
        bench.happen("account.created")
        bench.worker.wake()
        threading.Event().wait(0.3)
        assert wire.began["victim.example"] == 0
        if change == "archive":
            bench.endpoints.update(bench.authority, victim.id, EndpointChanges(status="archived"))
            abandoned(bench, victim)
            assert wire.began["victim.example"] == 0
        else:
            _, secret = bench.endpoints.rotate_secret(bench.authority, victim.id)
            settled(bench, victim, 1)
            (request,) = [it for it in wire.sent if it.destination.host == "victim.example"]
            verify(
                request.body,
                request.headers[signing.SIGNATURE_HEADER],
                secret,
                now=bench.clock.real_now() / 1000,
            )


def test_the_threads_that_stood_in_end_too() -> None:
    wire = Hanging()
    bench = Bench(MemoryStorage(), wire=wire)
    before = set(threading.enumerate())
    with running(wire, bench):
        bench.endpoint()
        bench.happen()
        bench.worker.wake()
        wire.until(lambda: wire.began.total() == 1)
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), thread
