"""`stripe-stateful-mock` from npm, installed by its name into a folder of its own, and running."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks.serving_app import free_port, kill_group, wait_until
from benchmarks.serving_clients import KEY

PACKAGE = "stripe-stateful-mock@0.0.16"
CREDENTIAL = "Bearer sk_test_benchmark"
BODY = "amount=100&currency=usd&source=tok_visa"
HEAD = (
    f"Host: localhost\r\nAuthorization: {CREDENTIAL}\r\n"
    "Content-Type: application/x-www-form-urlencoded\r\n"
)
CREATE = (
    f"POST /v1/charges HTTP/1.1\r\n{HEAD}Idempotency-Key: {KEY.decode()}\r\n"
    f"Content-Length: {len(BODY)}\r\n\r\n{BODY}"
)


class NoMock(Exception):
    """Node.js or npm is missing, or the package cannot be had."""


@contextmanager
def stripe_mock(folder: Path) -> Iterator[tuple[int, str]]:
    """Its port, and the request that reads one of its charges. Raises NoMock."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise NoMock("it needs Node.js and npm")
    install = [npm, "install", "--no-audit", "--no-fund", "--silent", PACKAGE]
    if subprocess.run(install, cwd=folder, stdout=subprocess.DEVNULL).returncode:
        raise NoMock(f"npm does not install {PACKAGE}")
    port = free_port()
    process = subprocess.Popen(
        [node, "-e", 'require("stripe-stateful-mock/autostart")'],
        cwd=folder,
        env={**os.environ, "PORT": str(port), "LOG_LEVEL": "error"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(process, lambda: _answers(port))
        yield port, f"GET /v1/charges/{_make_charge(port)} HTTP/1.1\r\n{HEAD}\r\n"
    finally:
        kill_group(process)
        process.wait()


def _answers(port: int) -> bool:
    try:
        _make_charge(port)
    except OSError:
        return False
    return True


def _make_charge(port: int) -> str:
    headers = {"Authorization": CREDENTIAL, "Content-Type": "application/x-www-form-urlencoded"}
    request = Request(f"http://127.0.0.1:{port}/v1/charges", BODY.encode(), headers)
    with urlopen(request, timeout=5) as answer:
        text: str = answer.read().decode()
    return text.partition('"id":"')[2].partition('"')[0]
