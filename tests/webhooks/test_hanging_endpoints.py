"""Endpoints that hang, and those beside them that do not."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

import pytest

from payments_core.webhooks.transports.port import Deadline, TransportResult, WebhookRequest
from tests.webhooks.webhook_bench import OK, Bench

EVENTS = 12
PROMPTLY_S = 5  # far less than an attempt may take


class Hanging:
    """A transport in which some hosts never answer until they are let go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.go, self.all_there = threading.Event(), threading.Event()
        self.answered: Counter[str] = Counter()
        self.waiting: Counter[str] = Counter()

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        host = request.destination.host
        if host.startswith("hangs"):
            with self._lock:
                self.waiting[host] += 1
            assert self.go.wait(30)
            return TransportResult(failure="no timely answer")
        with self._lock:
            self.answered[host] += 1
            if self.answered[host] == EVENTS:
                self.all_there.set()
        return OK

    def close(self) -> None:
        pass


@pytest.mark.parametrize("hanging", [1, 2])
def test_an_endpoint_that_hangs_does_not_delay_another(hanging: int) -> None:
    wire = Hanging()
    bench = Bench(wire=wire)
    stuck = [bench.endpoint(f"https://hangs{n}.example/") for n in range(hanging)]
    healthy = bench.endpoint("https://healthy.example/")
    for _ in range(EVENTS // 2):
        bench.happen()
    bench.worker.start(4)
    try:
        for _ in range(EVENTS // 2):  # and some while it hangs already
            bench.happen()
            bench.worker.wake()
        assert wire.all_there.wait(PROMPTLY_S)
        assert wire.waiting == {f"hangs{n}.example": 1 for n in range(hanging)}  # one thread each
    finally:
        wire.go.set()
        assert bench.worker.stop()
    bench.run()
    assert {item.status for item in bench.deliveries(healthy)} == {"delivered"}
    for endpoint in stuck:
        assert {item.status for item in bench.deliveries(endpoint)} == {"failed"}
