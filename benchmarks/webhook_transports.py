"""How many signed deliveries each transport makes over TLS, with connections kept alive.

    python -m benchmarks.webhook_transports

The receiver is a process of its own on the same machine, and does as little as a server can.
Every figure is of one run and reported as a ratio too; the absolute ones belong to the machine.
"""

from __future__ import annotations

import argparse
import cProfile
import multiprocessing
import pstats
import resource
import socket
import statistics
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from payments_core.conformance.transport.certificates import NAME, certificates, server_context
from payments_core.webhooks.destinations import Destination
from payments_core.webhooks.transports.curl import CurlTransport
from payments_core.webhooks.transports.port import (
    Deadline,
    Transport,
    TransportResult,
    WebhookRequest,
)
from payments_core.webhooks.transports.sockets import SocketTransport

BODY = b'{"id":"evt_1","payload":{' + b'"k":"v",' * 70 + b'"z":0}}'
HEADERS = {
    "Content-Type": "application/json",
    "User-Agent": "payments-core-webhooks/1",
    "x-service-event": "account.created",
    "x-service-event-id": "evt_01J8ZC7W3QG5",
    "x-service-delivery": "dlv_01J8ZC7W3QG5",
    "x-service-timestamp": "1790000000",
    "x-service-signature": "t=1790000000,v1=" + "0" * 64,
}
ANSWER = (
    b"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 22:00:00 GMT\r\nServer: bench\r\n"
    b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
)


def main() -> None:
    """Print deliveries a second for each transport and number of threads, in turn and again."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 8, 16])
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    authority, certificate = certificates().ca_file, certificates().good
    here, there = multiprocessing.Pipe()
    receiver = multiprocessing.get_context("spawn").Process(
        target=receive, args=(there, certificate), daemon=True
    )
    receiver.start()
    target = Destination("https", NAME, here.recv(), "/hook")
    makers: dict[str, Callable[[], Transport]] = {
        "threads, a new connection each": lambda: Anew(authority),
        "threads": lambda: SocketTransport(trusting(authority)),
        "curl": lambda: CurlTransport(authority),
    }
    if options.profile:
        profile(makers["threads"](), target)
    print(f"deliveries a second, {len(BODY)} bytes of body; CPU of this process for each, in µs")
    first: dict[int, float] = {}
    for name, make in makers.items():
        for threads in options.threads:
            rounds = [measure(make(), target, threads, options.seconds)
                      for _ in range(options.rounds)]  # fmt: skip
            rate = statistics.median(rate for rate, _ in rounds)
            cpu = statistics.median(cpu for _, cpu in rounds)
            times = rate / first.setdefault(threads, rate)
            print(f"  {name:<32}{threads:>3} threads {rate:>8,.0f} {cpu:>6.0f} µs {times:>6.1f} x")
    receiver.terminate()


class Anew:
    """The default transport, without keeping anything."""

    def __init__(self, authority: Path) -> None:
        self._tls = trusting(authority)

    def send(self, request: WebhookRequest, addresses: Any, deadline: Deadline) -> TransportResult:
        transport = SocketTransport(self._tls)
        transport.close()
        return transport.send(request, addresses, deadline)

    def close(self) -> None:
        pass


def trusting(authority: Path) -> Any:
    import ssl

    return ssl.create_default_context(cafile=str(authority))


def measure(
    transport: Transport, target: Destination, threads: int, seconds: float
) -> tuple[float, float]:
    """Deliveries a second, and the CPU of this process for one, in µs."""
    counts = [0] * threads
    request = WebhookRequest(target, HEADERS, BODY)
    go, end = threading.Event(), threading.Event()

    def work(place: int) -> None:
        go.wait()
        while not end.is_set():
            outcome = transport.send(request, ("127.0.0.1",), Deadline.after(10))
            assert outcome.status == 200, outcome
            counts[place] += 1

    workers = [threading.Thread(target=work, args=(place,)) for place in range(threads)]
    for worker in workers:
        worker.start()
    began, used = time.perf_counter(), cpu_s()
    go.set()
    time.sleep(seconds)
    end.set()
    for worker in workers:
        worker.join()
    took, used = time.perf_counter() - began, cpu_s() - used
    transport.close()
    return sum(counts) / took, used / sum(counts) * 1e6


def cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def profile(transport: Transport, target: Destination) -> None:
    request = WebhookRequest(target, HEADERS, BODY)
    profiler = cProfile.Profile()
    with profiler:
        for _ in range(5_000):
            transport.send(request, ("127.0.0.1",), Deadline.after(10))
    pstats.Stats(profiler).sort_stats("tottime").print_stats(18)
    transport.close()


def receive(parent: Connection, certificate: Path) -> None:
    """Answer every request of every connection, in a thread for each."""
    context = server_context(certificate)
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    parent.send(listener.getsockname()[1])

    def serve(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with context.wrap_socket(connection, server_side=True) as tls:
                waiting = b""
                while data := tls.recv(65536):
                    waiting += data
                    _, found, body = waiting.partition(b"\r\n\r\n")
                    if found and len(body) >= len(BODY):
                        waiting = body[len(BODY) :]
                        tls.sendall(ANSWER)
        except OSError:
            pass

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
