"""A server that ends answers those who are there; and two processes that share a port."""

from __future__ import annotations

import contextlib
import http.client
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from payments_core.clock import SystemClock
from payments_core.engine.identifiers import Identifiers
from payments_core.entropy import system_entropy
from payments_core_http.server.limits import ServerLimits
from payments_core_http.server.server import Server
from payments_core_http.server.thread_pool import ThreadPool
from payments_core_http.serving import build_server

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

ROOT = Path(__file__).resolve().parents[3]
GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
GET_ONCE = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
MEGABYTE = bytes(1024 * 1024)
MEGABYTES = 18
"""More than a connection holds of an answer before its thread has to wait for the client."""
LOST = 1
"""A request may come between the last `accept` and the end of the listening socket, when the
kernel refuses it; `net.ipv4.tcp_migrate_req` would hand it to the other process."""


def says_yes(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", "3")])
    return [b"yes"]


def says_much(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", str(MEGABYTES * len(MEGABYTE)))])
    return iter([MEGABYTE] * MEGABYTES)


def server_of(app: WSGIApplication, **limits: float) -> Server:
    identifiers = Identifiers(SystemClock(), system_entropy)
    return build_server(app, identifiers, threads=2, limits=ServerLimits(**limits))  # type: ignore[arg-type]


def connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=10)


def all_of(client: socket.socket) -> bytes:
    received = b""
    while piece := client.recv(65_536):
        received += piece
    return received


def test_who_waits_to_be_let_in_when_it_ends_is_answered() -> None:
    server = server_of(says_yes)
    with ExitStack() as open_:
        clients = [open_.enter_context(connected(server)) for _ in range(300)]
        for client in clients:
            client.sendall(GET)
        server.stop()
        server.run()
        for client in clients:
            answer = all_of(client)
            assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"yes")
            assert b"\r\nConnection: close\r\n" in answer
    with pytest.raises(ConnectionRefusedError):
        connected(server)


def test_a_kept_connection_gets_one_last_answer_that_says_so() -> None:
    with server_of(says_yes, shutdown_grace_s=30) as server:
        kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        for last in (False, True):
            if last:
                server.stop()
            kept.request("GET", "/")
            answer = kept.getresponse()
            assert (answer.read(), answer.headers["Connection"]) == (
                b"yes",
                "close" if last else None,
            )
        kept.close()


def test_what_came_together_with_a_last_request_is_not_begun() -> None:
    server = server_of(says_yes)
    with connected(server) as client:
        client.sendall(GET * 20)
        server.stop()
        server.run()
        assert all_of(client).count(b"HTTP/1.1 200") == 1


def test_who_says_nothing_does_not_hold_the_end_up() -> None:
    with ExitStack() as open_:
        with server_of(says_yes, shutdown_grace_s=0.2) as server:
            clients = [open_.enter_context(connected(server)) for _ in range(50)]
            clients[0].sendall(GET[:9])  # nor who has said half of it
            began = time.monotonic()
        assert 0.15 < time.monotonic() - began < 5


def test_a_server_that_has_ended_can_run_and_stop_again() -> None:
    server = server_of(says_yes)
    for _ in range(2):
        server.stop()
        server.run()
    with pytest.raises(ConnectionRefusedError):
        connected(server)


class Work:
    """A task of the pool: it waits to be let go, or is cancelled."""

    caller = ""
    may_write = False

    def __init__(self) -> None:
        self.begun, self.go, self.cancelled = (threading.Event() for _ in range(3))

    def service(self) -> None:
        self.begun.set()
        assert self.go.wait(10)

    def cancel(self) -> None:
        self.cancelled.set()


def test_a_thread_that_comes_late_finds_its_end_and_nothing_to_do() -> None:
    before = set(threading.enumerate())
    pool = ThreadPool(2)
    pool.start()
    late, waiting = [Work(), Work()], Work()
    for work in (*late, waiting):
        pool.add_task(work)
    assert all(work.begun.wait(10) for work in late)
    pool.shutdown(0)
    assert waiting.cancelled.is_set() and not waiting.begun.is_set()
    for work in late:
        work.go.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()


def test_threads_that_take_from_the_queue_meanwhile_do_not_keep_the_pool_from_ending() -> None:
    """They take what it has just seen there; here they do so at any moment of its end."""

    class Quick(Work):
        def service(self) -> None:
            """Done."""

    for delay_s in (n / 50_000 for n in range(60)):
        pool = ThreadPool(8)
        pool.start()
        for _ in range(40):
            pool.add_task(Quick())
        ending = threading.Thread(target=pool.shutdown, args=(delay_s,), daemon=True)
        ending.start()
        ending.join(10)
        assert not ending.is_alive()


def test_an_answer_that_is_more_than_the_server_holds_arrives() -> None:
    with server_of(says_much) as server, connected(server) as client:
        client.sendall(GET)
        client.sendall(GET_ONCE)
        with client.makefile("rb") as stream:
            size = 0
            while piece := stream.read(1024 * 1024):
                size += len(piece)
    heads = size - 2 * MEGABYTES * len(MEGABYTE)
    assert 100 < heads < 500


def says_much_or_yes(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    says = says_much if environ["PATH_INFO"] == "/much" else says_yes
    return says(environ, start_response)


@pytest.mark.parametrize(("goes", "answer_s"), [(False, 0.3), (True, 60)])
def test_threads_do_not_wait_for_clients_that_read_nothing_of_a_long_answer(
    *, goes: bool, answer_s: float
) -> None:
    """More of them than there are threads; those that have gone are not waited for at all."""
    much = GET.replace(b"/ ", b"/much ")
    with server_of(says_much_or_yes, answer_s=answer_s) as server, ExitStack() as open_:
        clients = [open_.enter_context(connected(server)) for _ in range(3)]
        for client in clients:
            client.sendall(much)
        if goes:
            for client in clients:
                client.recv(1)
                client.close()  # which resets: it has not read all
        with connected(server) as other:
            other.sendall(GET_ONCE)
            assert all_of(other).endswith(b"yes")


@contextmanager
def child(port: int) -> Iterator[tuple[subprocess.Popen[str], int]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.http.shared_child", str(port)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class Asking:
    """Clients that connect again for every request, and count who answered."""

    def __init__(self, port: int) -> None:
        self.answers: Counter[int] = Counter()
        self.lost = 0
        self._port = port
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run) for _ in range(4)]

    def __enter__(self) -> Asking:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            answer = b""
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self._port), timeout=10) as client,
            ):
                client.sendall(GET_ONCE)
                answer = all_of(client)
            with self._lock:
                if answer.startswith(b"HTTP/1.1 200"):
                    self.answers[int(answer.rpartition(b"\r\n\r\n")[2])] += 1
                else:
                    self.lost += 1

    def until_answered_by(self, process: subprocess.Popen[str], times: int) -> None:
        deadline = time.monotonic() + 30
        wanted = self.answers[process.pid] + times
        pause = threading.Event()
        while self.answers[process.pid] < wanted:
            assert time.monotonic() < deadline, self.answers
            pause.wait(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel does not share out")
def test_two_processes_share_a_port_and_one_of_them_ends_under_load() -> None:
    with child(0) as (first, port), child(port) as (second, same), Asking(port) as asking:
        assert same == port
        asking.until_answered_by(first, 50)
        asking.until_answered_by(second, 50)
        first.send_signal(signal.SIGTERM)
        assert first.wait(20) == 0
        asking.until_answered_by(second, 100)
        assert asking.lost <= LOST


def test_a_port_is_not_shared_unless_all_that_listen_agree() -> None:
    with child(0) as (_, port), pytest.raises(OSError):
        build_server(says_yes, Identifiers(SystemClock(), system_entropy), port=port)
