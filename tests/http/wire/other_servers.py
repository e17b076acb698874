"""Servers other than ours, each a process with the sandbox of `served_sandbox.py`."""

from __future__ import annotations

import base64
import http.client
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.servers.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
MODULE = "tests.http.wire.served_sandbox"
START_S = 60.0

Command = Callable[[str], list[str]]
"""From the address, `127.0.0.1:port` or `unix:path`, to the arguments of Python."""


def _gunicorn(address: str) -> list[str]:
    return ["-m", "gunicorn", "--bind", address, "--threads", "2", f"{MODULE}:application"]


def _granian(interface: str, target: str) -> Command:
    def write(address: str) -> list[str]:
        if address.startswith("unix:"):
            where = ["--uds", address.removeprefix("unix:")]
        else:
            where = ["--host", "127.0.0.1", "--port", address.rpartition(":")[2]]
        name = f"{MODULE}:{target}"
        return ["-m", "granian", "--interface", interface, "--http", "auto", *where, name]

    return write


def _uwsgi(kind: str) -> Command:
    def write(address: str) -> list[str]:
        run = "import sys, pyuwsgi; pyuwsgi.run(sys.argv[1:])"
        options = (
            "--master --lazy-apps --enable-threads --threads 2 --die-on-term --need-app"
            f" --socket-timeout 2 --module {MODULE}:application"
        )
        where = ["--pythonpath", str(ROOT), "--virtualenv", sys.prefix]
        return ["-c", run, kind, address.removeprefix("unix:"), *options.split(), *where]

    return write


def _cheroot(address: str) -> list[str]:
    where = repr(address.removeprefix("unix:"))
    if not address.startswith("unix:"):
        where = repr(("127.0.0.1", int(address.rpartition(":")[2])))
    run = "from cheroot.wsgi import Server; from {} import application; Server({}, application)"
    return ["-c", run.format(MODULE, where) + ".start()"]


def _werkzeug(address: str) -> list[str]:
    host, port = address.partition(":")[0], address.rpartition(":")[2]
    if address.startswith("unix:"):
        host, port = address.replace("unix:", "unix://"), "0"
    run = "from werkzeug.serving import run_simple; from {} import application;"
    run += " run_simple({!r}, {}, application, threaded=True)"
    return ["-c", run.format(MODULE, host, port)]


SERVERS: Mapping[str, Command] = {
    "gunicorn": _gunicorn,
    "granian": _granian("wsgi", "application"),
    "asgiref": _granian("asgi", "bridged"),
    "uwsgi": _uwsgi("--http-socket"),
    "uwsgi-router": _uwsgi("--http"),
    "cheroot": _cheroot,
    "werkzeug": _werkzeug,
}
"""The commands of servers."""


@attrs.frozen
class Running:
    """A server, ready for requests."""

    address: str
    facts: Mapping[str, Any]
    _log: Path

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def authorization(self) -> str:
        return "Basic " + base64.b64encode(self.facts["credentials"].encode()).decode()

    def connect(self) -> socket.socket:
        return _connect(self.address)

    def ask(self, method: str, path: str, **headers: str) -> tuple[int, Any]:
        """The status and the document that answer a request without a body."""
        connection = http.client.HTTPConnection("localhost")
        connection.sock = self.connect()
        connection.putrequest(method, path)  # `request` would state the length 0
        for name, value in {"Authorization": self.authorization, **headers}.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text else None

    def list_refunds(self, payment_id: str) -> list[str]:
        """The amounts that were refunded."""
        status, body = self.ask("GET", f"/v2/payments/{payment_id}/refunds")
        assert status == 200, body
        return [one["amount"] for one in body["data"]]

    def read_log(self) -> str:
        return self._log.read_text()


@contextmanager
def run_server(
    name: str, folder: Path, address: str | None = None, **environ: str
) -> Iterator[Running]:
    """A server of the table, until the end; skips the test if its package is not installed."""
    if name.startswith("uwsgi") and importlib.util.find_spec("pyuwsgi") is None:
        pytest.skip("there is no wheel of pyuwsgi for this Python")
    address = address or f"127.0.0.1:{free_port()}"
    facts, log = folder / "facts.json", folder / "log"
    given = {**os.environ, "FACTS": str(facts), "PYTHONPATH": str(ROOT), **environ}
    if name == "asgiref":
        given["SANDBOX_BRIDGED"] = "1"
    with log.open("w") as sink:
        server = subprocess.Popen(
            [sys.executable, *SERVERS[name](address)],
            cwd=ROOT,
            env=given,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
        )
    try:
        _wait_until_ready(server, address, facts, log)
        yield Running(address, json.loads(facts.read_text()), log)
    finally:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _connect(address: str) -> socket.socket:
    if not address.startswith("unix:"):
        return socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), 30)
    found = socket.socket(socket.AF_UNIX)
    found.settimeout(30)
    try:
        found.connect(address.removeprefix("unix:"))
    except OSError:
        found.close()
        raise
    return found


def _wait_until_ready(
    server: subprocess.Popen[bytes], address: str, facts: Path, log: Path
) -> None:
    deadline = time.monotonic() + START_S
    while not facts.exists():
        assert server.poll() is None and time.monotonic() < deadline, log.read_text()[-2_000:]
        with suppress(OSError), _connect(address) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            client.recv(999)
        time.sleep(0.1)
