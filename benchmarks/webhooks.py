"""Webhooks from a due delivery to its committed outcome, over TLS, on SQLite.

    python -m benchmarks.webhooks [--profile]

The receiver is a process of its own on the same machine. First the throughput: deliveries that
are due are claimed, signed, sent and their outcomes committed. Then the company of an endpoint
that hangs: a sixth of a steady flow of events goes there, and the others must not notice.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import ssl
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from benchmarks import webhook_receiver
from benchmarks.webhook_receiver import Receiver
from payments_core.conformance.transport.certificates import NAME, certificates
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.events import BY_NAME, Event, NewEvent
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage_loader import open_storage
from payments_core.tenants.authorization import Authority
from payments_core.webhooks.dispatch.job_handlers import DELIVERY_QUEUE, FAN_OUT_QUEUE
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.curl import CurlTransport
from payments_core.webhooks.transports.port import Transport
from payments_core.webhooks.transports.sockets import SocketTransport

ENDPOINTS = 8
DELIVERIES = 12_000
FLOW_A_SECOND = 240
FLOW_S = 20.0
NAMES = tuple(sorted(BY_NAME))[:ENDPOINTS]


class Here:
    """A resolver that knows one name."""

    def resolve(
        self, host: str, port: int, timeout_s: float, *, environment_id: str
    ) -> Sequence[str]:
        assert host == NAME
        return ("127.0.0.1",)


@attrs.define
class Bench:
    """A service on a fresh file, and its receiver."""

    service: PaymentsService
    me: Authority
    receiver: Receiver

    @classmethod
    def start(cls, folder: Path, transport: Transport) -> Bench:
        storage = open_storage(f"sqlite:///{folder / 'webhooks.db'}", RECORD_TYPES)
        storage.migrate()
        service = PaymentsService(
            storage,
            KeyRing.parse(KeyRing.generate()),
            settings=Settings(webhooks=WebhookSettings(local_allowed=True)),
            transport=transport,
            resolver=Here(),
        )
        app = service.tenants.create_app("Bench", "bench", modes=("sandbox",))
        me = service.tenants.system_authority(app.environments["sandbox"])
        return cls(service, me, webhook_receiver.start())

    def endpoint(self, path: str, *events: str) -> None:
        url = f"https://{NAME}:{self.receiver.port}/{path}"
        self.service.acting_as(self.me).webhooks.create(url=url, subscribed_events=events)

    def happen(self, names: Sequence[str]) -> None:
        """Events with the fields that most have."""
        new_events = tuple(
            NewEvent(
                name,
                dict.fromkeys(BY_NAME[name].fields, "payment_-P23J5k-OK6kCHgtnG05_GYV"),
                self.me.api_version,
                "acct_-P23J5k-OK6kCHgtnG05_GYV",
                "user-1",
            )
            for name in names
        )
        authority = WorkerAuthority(self.me.partition, "sandbox")
        self.service.parts.ports.committer.commit(
            authority, lambda tx, id_sequence: Decision(None, events=new_events)
        )

    def count(self, status: str) -> int:
        def look(snapshot: object) -> int:
            connection = snapshot._connection  # type: ignore[attr-defined]
            row = connection.execute(
                "SELECT count(*) FROM webhook_deliveries WHERE status = ?", (status,)
            ).fetchone()
            return int(row[0])

        return self.service.parts.ports.storage.read(self.me.partition, look)

    def close(self) -> None:
        self.service.close()
        self.receiver.close()


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificates().ca_file))


TRANSPORTS: dict[str, Callable[[], Transport]] = {
    "threads": lambda: SocketTransport(trusting()),
    "curl": lambda: CurlTransport(certificates().ca_file),
}


def throughput(make: Callable[[], Transport], *, profile: bool = False) -> float:
    """Deliveries a second, from due to committed."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench.start(Path(folder), make())
        for n, name in enumerate(NAMES):
            bench.endpoint(f"hook/{n}", name)
        for _ in range(DELIVERIES // len(NAMES) // 25):
            bench.happen(NAMES * 25)
        worker = bench.service.worker("sandbox")
        delivery = bench.service.parts.background_jobs.webhook_delivery("sandbox")
        while claimed := bench.service.parts.ports.storage.claim(
            FAN_OUT_QUEUE.full_name("sandbox"), bench.service.parts.ports.clock.now(),
            lease_ms=60_000, limit=64, lane_concurrency=64,
        ):  # fmt: skip
            delivery.fan_out(claimed)
        waiting = bench.count("pending")
        dispatcher = worker._companions[0]
        began = time.perf_counter()
        if profile:
            _profile_coordinator(dispatcher)
        dispatcher.start()
        while (
            bench.service.parts.ports.storage.next_due(DELIVERY_QUEUE.full_name("sandbox"))
            is not None
        ):
            time.sleep(0.02)
        took = time.perf_counter() - began
        assert bench.count("delivered") == waiting
        assert len(bench.receiver.received()) == waiting
        assert dispatcher.stop(10)
        bench.close()
        return waiting / took


def _profile_coordinator(dispatcher: object) -> None:
    run = dispatcher._run  # type: ignore[attr-defined]

    def profiled() -> None:
        profiler = cProfile.Profile()
        profiler.runcall(run)
        pstats.Stats(profiler).sort_stats("tottime").print_stats(30)

    dispatcher._run = profiled  # type: ignore[attr-defined]


def beside_a_hanging_one(make: Callable[[], Transport]) -> tuple[list[float], int]:
    """Milliseconds from an event's commit to its arrival at the others, and how many missed."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench.start(Path(folder), make())
        names = NAMES[:6]
        bench.endpoint("hangs", names[0])
        for n, name in enumerate(names[1:]):
            bench.endpoint(f"hook/{n}", name)
        worker = bench.service.worker("sandbox")
        worker.start()
        began = time.monotonic()
        for n in range(int(FLOW_A_SECOND * FLOW_S)):
            ahead = began + n / FLOW_A_SECOND - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
            bench.happen((names[n % 6],))
        time.sleep(2)
        came = bench.receiver.received()
        events = bench.service.parts.ports.storage.read(
            bench.me.partition,
            lambda snapshot: snapshot.find(Event, "by_created", limit=100_000).records,
        )
        offset_ms = time.time() * 1_000 - time.monotonic() * 1_000
        others = [event for event in events if event.name in names[1:]]
        waits = [came[e.id] * 1_000 + offset_ms - e.created_at_ms for e in others if e.id in came]
        threading.Thread(target=worker.stop, daemon=True).start()
        bench.receiver.close()
        worker.stop()
        bench.service.close()
        return sorted(waits), len(others) - len(waits)


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--transports", nargs="+", default=list(TRANSPORTS))
    options = parser.parse_args()
    sys.setswitchinterval(0.0005)
    if options.profile:
        throughput(TRANSPORTS[options.transports[0]], profile=True)
        return
    print(f"{DELIVERIES:,} due deliveries to {ENDPOINTS} endpoints, claimed to committed, over TLS")
    for name in options.transports:
        rates = [throughput(TRANSPORTS[name]) for _ in range(options.rounds)]
        print(f"  {name:<10}{statistics.median(rates):>8,.0f} a second")
    print(f"{FLOW_A_SECOND} events a second, a sixth of them to an endpoint that hangs")
    for name in options.transports:
        waits, missed = beside_a_hanging_one(TRANSPORTS[name])
        p50, p99 = (waits[int(len(waits) * part)] for part in (0.5, 0.99))
        print(f"  {name:<10}p50 {p50:.1f} ms, p99 {p99:.1f} ms, {missed} of {len(waits)} missed")


if __name__ == "__main__":
    main()
