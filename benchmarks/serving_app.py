"""The application under the servers that are compared, each in a process of its own.

    python -m benchmarks.serving_app ours 8080

Every server loads the same application by `application`; what it is made over stands in a file
that the environment names. What is set here for one of them is set for all: eight threads, and
the switch interval that suits threads which wait for a database.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from payments_core.clock import SystemClock
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.identifiers import Identifiers
from payments_core.entropy import system_entropy
from payments_core.public_url import LOCAL_URL
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage_loader import open_storage
from payments_core.waiting import NO_WAITS, Waits
from payments_core_http.app import create_app
from payments_core_http.server.hosting import MAX_HEADER_BYTES
from payments_core_http.server.server import SWITCH_INTERVAL_S as INTERVAL_S
from payments_core_http.serving import MAX_RECEIVED_BYTES, build_server, new_pool

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

ROOT = Path(__file__).resolve().parents[1]
FACTS = "PAYMENTS_BENCH_FACTS"
"""The path of a file: `storage` and `keyRing`, or `tell`, where the tests' API on memory storage
is to write its credential."""
THREADS = 8
START_S = 30.0
CONNECTIONS = 1_000
REQUEST_S = 30
IDLE_S = 60

Command = Callable[[int], list[str]]


def _gunicorn(port: int) -> list[str]:
    return [
        *("-m", "gunicorn", "benchmarks.serving_app:application()", "--bind", f"127.0.0.1:{port}"),
        *("--worker-class", "gthread", "--workers", "1", "--threads", str(THREADS)),
        *("--worker-connections", str(CONNECTIONS), "--keep-alive", str(IDLE_S)),
        *("--timeout", str(REQUEST_S), "--graceful-timeout", str(REQUEST_S)),
        *("--no-control-socket", "--log-level", "error"),
    ]


def _granian(port: int) -> list[str]:
    return [
        *("-m", "granian", "--interface", "wsgi", "--factory", "--http", "1", "--no-ws"),
        *("--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        *("--blocking-threads", str(THREADS), "--http1-header-read-timeout", "30000"),
        *("--http1-buffer-size", str(MAX_HEADER_BYTES), "--log-level", "error"),
        "benchmarks.serving_app:application",
    ]


def _by_name(name: str) -> Command:
    return lambda port: ["-m", "benchmarks.serving_app", name, str(port)]


CANDIDATES: dict[str, Command] = {
    "ours": _by_name("ours"),
    "gunicorn": _gunicorn,
    "granian": _granian,
    "cheroot": _by_name("cheroot"),
}


def application(waits: Waits = NO_WAITS) -> WSGIApplication:
    """What the servers serve."""
    sys.setswitchinterval(INTERVAL_S)
    facts = json.loads(Path(os.environ[FACTS]).read_text(encoding="utf-8"))
    if "tell" in facts:
        return _api(Path(facts["tell"]))
    storage = open_storage(facts["storage"], RECORD_TYPES, waits=waits)
    service = PaymentsService(
        storage,
        KeyRing.parse(facts["keyRing"]),
        waits=waits,
        settings=Settings(public_url=LOCAL_URL),
    )
    return create_app(service, mode="sandbox", threads=THREADS, waits=waits)


def _api(tell: Path) -> WSGIApplication:
    """The application with the made-up resource that the hostile clients' tests make."""
    from tests.http.api_harness import ApiHarness, real_time

    api = ApiHarness(real_time(), threads=THREADS)
    tell.write_text(api.basic(), encoding="utf-8")
    return api.app


def _serve_ours(port: int) -> None:
    identifiers = Identifiers(SystemClock(), system_entropy)
    pool = new_pool(THREADS)
    server = build_server(application(pool), identifiers, port=port, pool=pool)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    server.run()


def _serve_cheroot(port: int) -> None:
    from cheroot.wsgi import Server as Cheroot

    server = Cheroot(
        ("127.0.0.1", port),
        application(),
        numthreads=THREADS,
        request_queue_size=1_024,
        timeout=REQUEST_S,
        shutdown_timeout=REQUEST_S,
    )
    server.keep_alive_conn_limit = CONNECTIONS
    server.max_request_header_size = MAX_HEADER_BYTES
    server.max_request_body_size = MAX_RECEIVED_BYTES

    def stop(*_: Any) -> None:
        server.interrupt = SystemExit(0)  # its own way to react to a signal

    signal.signal(signal.SIGTERM, stop)
    server.start()


@attrs.frozen
class Running:
    """A server that answers."""

    name: str
    process: subprocess.Popen[bytes]
    port: int

    def processor_s(self) -> float:
        """What its processes have taken so far, as /proc has it."""
        taken = 0
        for place in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = place.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid:  # the session, which is its own
                    taken += int(fields[11]) + int(fields[12])
        return taken / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(name: str, facts: Path, port: int | None = None) -> Iterator[Running]:
    """A candidate as a process of its own, until the end; killed then with its children."""
    port = free_port() if port is None else port
    process = subprocess.Popen(
        [sys.executable, *CANDIDATES[name](port)],
        cwd=ROOT,
        env={**os.environ, FACTS: str(facts)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a group of its own, so that no child is left
    )
    try:
        wait_until(process, lambda: is_answering(port))
        yield Running(name, process, port)
    finally:
        kill_group(process)
        process.wait()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the process and all its children, whatever became of it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def free_port() -> int:
    """A port that nobody has: candidates that cannot report theirs are given one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def is_answering(port: int) -> bool:
    """Whether a request is answered within a second."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            return client.recv(12) == b"HTTP/1.1 200"
    except OSError:
        return False


def wait_until(process: subprocess.Popen[bytes], is_ready: Callable[[], bool]) -> None:
    """Wait for a process that was just started. Raises RuntimeError where it ends, or is late."""
    deadline = time.monotonic() + START_S
    while not is_ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{process.args!r} does not answer")
        time.sleep(0.05)


if __name__ == "__main__":
    {"ours": _serve_ours, "cheroot": _serve_cheroot}[sys.argv[1]](int(sys.argv[2]))
