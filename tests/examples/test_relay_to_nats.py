"""The relay to NATS, against a real server: each event is stored once, also after an outage."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples import relay_to_nats
from examples.relay_to_nats import NatsRelay, relay
from payments_core_http.testing import PaymentsSandbox
from payments_core_http.testing.sandbox import open_sandbox

START_S = 20.0


class NatsServer:
    """A `nats-server` with JetStream, in a folder."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder = program, folder
        self.port = -1
        self.start()

    def start(self) -> None:
        """Start on the port of before, or on one of its choice, and wait until it listens."""
        ports, log = self._folder / "ports", self._folder / "log"
        shutil.rmtree(ports, ignore_errors=True)
        ports.mkdir()
        arguments = ["--jetstream", "--store_dir", str(self._folder), "--addr", "127.0.0.1"]
        arguments += ["--port", str(self.port), "--ports_file_dir", str(ports), "--log", str(log)]
        self._process = subprocess.Popen([self._program, *arguments])
        until = time.monotonic() + START_S
        while not (found := [one for one in ports.iterdir() if one.read_text()]):
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.02)
        self.url = json.loads(found[0].read_text())["nats"][0]
        self.port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def wait_for_count(to: NatsRelay) -> int:
    until = time.monotonic() + START_S
    while True:
        try:
            return to.count()
        except TimeoutError:
            assert time.monotonic() < until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    program = shutil.which("nats-server", path="/usr/sbin:/usr/local/bin:/usr/bin")
    if program is None:
        pytest.skip("nats-server is not installed: apt-get install nats-server")
    server = NatsServer(program, tmp_path)
    yield server
    server.kill()


@pytest.fixture
def sandbox() -> Iterator[PaymentsSandbox]:
    with open_sandbox() as sandbox:
        yield sandbox


def test_the_example_stores_each_event_once(
    server: NatsServer, capsys: pytest.CaptureFixture[str]
) -> None:
    relay_to_nats.main(server.url)
    assert (
        capsys.readouterr().out
        == """\
stored 8 events
payment.succeeded came again, and is stored once
stored 8 events
"""
    )


def test_events_of_an_outage_are_stored_when_it_is_over(
    server: NatsServer, sandbox: PaymentsSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_to_nats, "PUBLISH_S", 0.2)
    to = NatsRelay(server.url)
    try:
        service = sandbox.service
        relay(service.acting_as(service.tenants.system_authority(sandbox.environment_id)), to)
        before = to.count()
        server.kill()
        sandbox.make_account("user-1")
        sandbox.run()
        server.start()
        # The client has connected again. What it had kept of the failed attempt may be stored, and
        # then the next attempt is a duplicate.
        assert wait_for_count(to) - before in (0, 1)
        for _ in range(2):
            sandbox.clock.advance(3_600)
            assert to.count() == before + 1
    finally:
        to.close()
