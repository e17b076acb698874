"""A private Redis for tests, started once and ended with them.

`PAYMENTS_TEST_REDIS` names a server to use instead; each test has a prefix of its own there.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from functools import cache
from pathlib import Path
from urllib.parse import quote

import attrs
import pytest

from payments_core.limiters.redis import RedisLimiter
from tests.servers.programs import NoRedis, redis_program

OVERRIDE = "PAYMENTS_TEST_REDIS"
START_S = 20


@attrs.frozen
class RedisServer:
    """A `redis-server` of our own on a socket in a temporary folder."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "s"

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self.path))}"

    def stop(self) -> None:
        """Let it answer nothing, with its connections open."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def redis_or_skip() -> str:
    """The URL of a server for tests; skips the test where there can be none."""
    try:
        return os.environ.get(OVERRIDE) or shared_server().url
    except NoRedis as reason:
        pytest.skip(str(reason))


def open_patiently(url: str) -> RedisLimiter:
    """For tests that are not about silence: a busy machine must not look like one."""
    return RedisLimiter(url, timeout_s=10)


def own_server_or_skip(*settings: str) -> RedisServer:
    """A server that this test alone has, and ends; skips the test where there can be none."""
    try:
        return started_server(*settings)
    except NoRedis as reason:
        pytest.skip(str(reason))


def with_fresh_prefix(url: str) -> str:
    """The same server, with counters of nobody else's."""
    return f"{url}{'&' if '?' in url else '?'}prefix=test-{uuid.uuid4().hex}:"


@cache
def shared_server() -> RedisServer:
    """The server that tests share; what they leave there expires."""
    server = started_server()
    atexit.register(server.end)
    return server


def started_server(*settings: str) -> RedisServer:
    """A new server, which keeps nothing on disk."""
    program = redis_program()
    folder = Path(tempfile.mkdtemp(prefix="redis"))  # short: a socket's path holds 107 bytes
    process = subprocess.Popen(
        [program, "--port", "0", "--unixsocket", str(folder / "s"), "--dir", str(folder),
         "--save", "", "--appendonly", "no", "--logfile", str(folder / "log"), *settings],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT,
    )  # fmt: skip
    server = RedisServer(process, folder)
    deadline = time.monotonic() + START_S
    while not _accepts(server.path):
        if process.poll() is not None or time.monotonic() > deadline:
            log = folder / "log"
            reason = log.read_text() if log.exists() else "it wrote no log"
            code = process.poll()
            server.end()
            raise NoRedis(f"redis-server did not start (exit code {code}): {reason}")
        time.sleep(0.01)
    return server


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
