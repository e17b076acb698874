"""A stop under load: which requests a server leaves without an answer, having taken them."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import threading
import time

import attrs

from benchmarks.servers import Case
from benchmarks.serving_app import serving
from benchmarks.serving_clients import KEY

CLIENTS = 16
BEFORE_S = 0.7
PATIENCE_S = 15.0


@attrs.define
class Stop:
    """What sixteen clients saw, half of which keep their connections."""

    answered: int = 0
    answered_after: int = 0
    """After the signal."""
    lost_kept: int = 0
    """Sent on a kept connection, which closed without an answer."""
    lost_new: int = 0
    """Sent on a new connection, which the server's system had taken and then reset."""
    wrong: int = 0
    ended_s: float = 0.0

    def __str__(self) -> str:
        return (
            f"ended after {self.ended_s:4.1f} s, lost {self.lost_kept} on kept and {self.lost_new} "
            f"on new connections, {self.answered_after} answered after the signal, "
            f"{self.wrong} wrong answers, {self.answered} in all"
        )


class Clients:
    """They ask until nobody lets them in."""

    def __init__(self, case: Case, port: int) -> None:
        self.seen = Stop()
        self.signalled = threading.Event()
        self._case = case
        self._port = port
        self._numbers = itertools.count(time.time_ns() // 1_000)
        self._lock = threading.Lock()

    def run(self, keeps: bool) -> None:
        """One client."""
        client: socket.socket | None = None
        while True:
            is_kept = client is not None
            try:
                client = client or socket.create_connection(("127.0.0.1", self._port), PATIENCE_S)
            except OSError:
                return  # it listens no more: nobody is misled by that
            answer = self._answer(client)
            with self._lock:
                self._count(answer, is_kept)
            if not keeps or answer == b"" or b"\r\nconnection: close" in answer.lower():
                client.close()
                client = None

    def _answer(self, client: socket.socket) -> bytes:
        raw = self._case.request.encode().replace(KEY, b"%016d" % next(self._numbers))
        received = b""
        with contextlib.suppress(OSError):
            client.sendall(raw)
            while not _is_whole(received) and (piece := client.recv(65_536)):
                received += piece
        return received if _is_whole(received) else b""

    def _count(self, answer: bytes, is_kept: bool) -> None:
        seen = self.seen
        if not answer:
            seen.lost_kept += is_kept
            seen.lost_new += not is_kept
        elif not answer.startswith(f"HTTP/1.1 {self._case.status}".encode()):
            seen.wrong += 1
        else:
            seen.answered += 1
            seen.answered_after += self.signalled.is_set()


def _is_whole(received: bytes) -> bool:
    head, found, body = received.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if found and line.startswith(b"content-length:"):
            return len(body) >= int(line.partition(b":")[2])
    return False


def stopped_under_load(name: str, case: Case, number: int) -> Stop:
    """Send a server the signal while all clients ask."""
    with serving(name, case.facts) as running:
        clients = Clients(case, running.port)
        threads = [threading.Thread(target=clients.run, args=(n % 2 == 0,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        time.sleep(BEFORE_S)
        os.kill(running.process.pid, number)
        clients.signalled.set()
        began = time.monotonic()
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.process.wait(PATIENCE_S * 2)
        clients.seen.ended_s = time.monotonic() - began
    for thread in threads:
        thread.join()
    return clients.seen
