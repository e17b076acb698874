"""The server under attack, in a process of its own, and what is seen of it from outside."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import attrs

from tests.http.seen import Seen

ROOT = Path(__file__).resolve().parents[3]
ANSWER_S = 10.0
"""How long a test waits for what should come at once; machines are busy at times."""
CALM_S = 15.0
GROWTH_MB = 96
"""What a storm may leave in the process: buffers that the allocator keeps, no more than these."""

_OWN_SHAPE = {"x-request-id", "service-version", "cache-control", "date", "content-length"}


@attrs.frozen
class Figures:
    """What the process holds."""

    memory_mb: float
    threads: int
    descriptors: int


class Target:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], log: IO[str]) -> None:
        self.pid = process.pid
        self._log = log
        assert process.stdout is not None
        facts = json.loads(process.stdout.readline())
        self.port: int = facts["port"]
        self.authorization: str = facts["authorization"]
        descriptors = self.figures().descriptors
        for path in ("/readyz", "/openapi.json", "/v2/partners/config", "/v2/things"):
            assert self.ask(path).status == 200, path  # what is first used takes memory for good
        # Its descriptors are those before the first connection: the last one may be open still.
        self.at_rest = attrs.evolve(self.figures(), descriptors=descriptors)

    def connect(self, receive_bytes: int | None = None) -> socket.socket:
        """A connection; `receive_bytes` is how little the client's side takes by itself."""
        client = socket.socket()
        client.settimeout(ANSWER_S)
        if receive_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.connect(("127.0.0.1", self.port))
        return client

    def request(self, method: str, path: str, body: bytes | None = None, *extra: str) -> bytes:
        """A request as bytes, with a credential."""
        lines = [f"{method} {path} HTTP/1.1", "Host: h", f"Authorization: {self.authorization}"]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, *extra, "", ""]).encode() + (body or b"")

    def making(self, name: str, *extra: str) -> bytes:
        """A request that makes a thing of that name, once."""
        body = json.dumps({"name": name}).encode()
        return self.request("POST", "/v2/things", body, f"Idempotency-Key: {name}", *extra)

    def made(self) -> list[str]:
        """The names of all things."""
        names: list[str] = []
        path = "/v2/things?limit=100"
        while True:
            page = self.ask(path).json
            names += [thing["name"] for thing in page["data"]]
            if not page["hasNextPage"]:
                return names
            path = f"/v2/things?limit=100&cursor={page['nextCursor']}"

    def ask(self, path: str = "/readyz") -> Seen:
        """What a client that means well gets."""
        with self.connect() as client:
            client.sendall(self.request("GET", path, None, "Connection: close"))
            [answer] = answers(client)
            return answer

    def tell(self, *pieces: bytes) -> list[Seen]:
        """Send, and receive until the server closes."""
        with self.connect() as client:
            for piece in pieces:
                send_anyway(client, piece)
            return list(answers(client))

    def figures(self) -> Figures:
        """From /proc."""
        place = Path(f"/proc/{self.pid}")
        status = (place / "status").read_text()
        found = {
            name: int(re.findall(rf"^{name}:\s+(\d+)", status, re.M)[0])
            for name in ("VmRSS", "Threads")
        }
        descriptors = len(list((place / "fd").iterdir()))
        return Figures(found["VmRSS"] / 1024, found["Threads"], descriptors)

    def require_calm(self) -> None:
        """A plain request is answered, and nothing of the storm is left in the process."""
        assert self.ask().status == 200
        until(lambda: self.figures().descriptors <= self.at_rest.descriptors, self.figures)
        # The thread that asked whether the storage answers ends a moment after its answer.
        until(lambda: self.figures().threads <= self.at_rest.threads, self.figures)
        now = self.figures()
        assert now.memory_mb <= self.at_rest.memory_mb + GROWTH_MB, (self.at_rest, now)

    def log(self) -> str:
        """What it wrote to its log so far."""
        self._log.flush()
        return Path(self._log.name).read_text()


@contextmanager
def serving(**bounds: float) -> Iterator[Target]:
    """A server with bounds other than the usual ones."""
    with tempfile.NamedTemporaryFile("w", prefix="hostile-", suffix=".log") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.http.hostile.serve_child", json.dumps(bounds)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Target(process, log)
        finally:
            process.stdin.close()
            try:
                process.wait(30)
            finally:
                process.kill()
                process.wait()
                process.stdout.close()


def answers(client: socket.socket) -> Iterator[Seen]:
    """Every response until the server closes; a reset there is an end too."""
    with client.makefile("rb") as stream:
        while True:
            try:
                first = stream.readline()
            except ConnectionResetError:
                return
            if not first:
                return
            yield _rest_of(first, stream)


def require_own_shape(answer: Seen) -> None:
    """As every answer of ours has it, and not one of the server's own making."""
    assert set(answer.headers) >= _OWN_SHAPE, answer.headers
    if answer.status >= 400:
        reported = answer.json["error"]
        assert reported["details"]["requestId"] == answer.headers["x-request-id"]
        assert reported["message"]


def next_answer(stream: IO[bytes]) -> Seen:
    """The next response."""
    return _rest_of(stream.readline(), stream)


def _rest_of(first: bytes, stream: IO[bytes]) -> Seen:
    headers: dict[str, str] = {}
    while (line := stream.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        assert name.lower() not in headers, line
        headers[name.lower()] = value.strip()
    status = int(first.split()[1])
    body = stream.read(int(headers.get("content-length", "0")))
    return Seen(status, headers, body)


def send_anyway(client: socket.socket, data: bytes) -> None:
    """Send for as long as the server takes it."""
    with suppress(BrokenPipeError, ConnectionResetError):
        client.sendall(data)


def until(true: Callable[[], bool], seen: Callable[[], object] = lambda: None) -> None:
    """Return once it is true; fail if it is not in time."""
    deadline = time.monotonic() + CALM_S
    pause = threading.Event()
    while not true():
        assert time.monotonic() < deadline, seen()
        pause.wait(0.05)
