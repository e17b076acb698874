"""`payments serve` and `payments worker` as processes, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from payments_core_http.cli.child_processes import ChildProcess, ReceiverChild
from payments_core_http.deployment.processes import EXIT_STUCK
from tests.deployment.deployed import Deployed, client_of, deployed_on, shop
from tests.deployment.installed import install

STORAGES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))
ALICE = {"externalUserId": "alice", "subjectType": "individual"}
DELIVERED_S = 20.0
SEEN_S = 20.0


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def deployed(storage: str, tmp_path: Path) -> Iterator[Deployed]:
    with deployed_on(storage, tmp_path) as deployed:
        yield deployed


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Deployed:
    return Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")


def managed(child: ChildProcess, path: str) -> tuple[int, str]:
    at = f"{child.read_messages()[0]['managementUrl']}{path}"
    try:
        with urllib.request.urlopen(at, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def wait_until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SEEN_S
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_one_process_commits_another_serves_and_a_worker_delivers(deployed: Deployed) -> None:
    deployed.run("admin", "migrate")
    app, credential = shop(deployed)
    environment = app["sandboxEnvironmentId"]
    receiver = ReceiverChild()
    try:
        with (
            deployed.started("serve") as one,
            deployed.started("serve") as other,
            deployed.started("worker"),
        ):
            made = client_of(one).call(
                "POST",
                f"/v2/console/apps/{app['appId']}/environments/{environment}/webhooks",
                {"url": f"{receiver.url}/hook", "subscribedEvents": ["account.created"]},
                authorization=credential,
            )
            assert made.status == 201, made.body
            receiver.expect("/hook", made.document["signingSecret"])
            account = client_of(one).call("POST", "/v2/accounts", ALICE, authorization=credential)
            assert account.status == 201, account.body
            path = f"/v2/accounts/{account.document['id']}"
            seen = client_of(other).call("GET", path, authorization=credential)
            assert seen.document["externalUserId"] == "alice"
            assert receiver.wait_for(lambda got: len(got) == 1, DELIVERED_S)
            assert receiver.read_deliveries()[0]["verified"] is True
    finally:
        receiver.end()


def test_serve_is_seen_by_operators_and_ends_cleanly(on_sqlite: Deployed) -> None:
    with on_sqlite.started("serve") as serve:
        assert managed(serve, "/healthz")[0] == managed(serve, "/readyz")[0] == 200
        client = client_of(serve)
        client.call("GET", "/v2/partners/config", authorization="Basic c2VjcmV0OnM=")
        assert client.call("GET", "/metrics", authorization="").status == 404
        assert 'route="/v2/partners/config"' in managed(serve, "/metrics")[1]
        assert serve.end(signal.SIGTERM) == 0
        lines = [json.loads(line) for line in serve.read_errors().splitlines()]
    assert any(line["message"] == "ready" for line in lines)
    assert any("check storage.url" in line["message"] for line in lines)
    assert all({"ts", "level", "logger", "message"} <= set(line) for line in lines)
    assert "c2VjcmV0" not in serve.read_errors()


def test_a_worker_is_seen_by_operators_and_ends_cleanly(
    on_sqlite: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(on_sqlite.folder / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address)
        systemd.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        with on_sqlite.started("worker") as worker:
            assert systemd.recv(64) == b"READY=1"
            assert managed(worker, "/healthz")[0] == managed(worker, "/readyz")[0] == 200
            assert "payments_queue" in managed(worker, "/metrics")[1]
            assert worker.end(signal.SIGINT) == 0, worker.read_errors()


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_a_closed_terminal_ends_a_process_as_gracefully(on_sqlite: Deployed, command: str) -> None:
    with on_sqlite.started(command) as child:
        os.kill(child.pid, signal.SIGHUP)
        assert child.end(signal.SIGTERM) == 0, child.read_errors()  # as with systemd's SendSIGHUP


def test_operators_see_that_a_process_is_stopping_while_it_finishes_a_request(
    on_sqlite: Deployed,
) -> None:
    with on_sqlite.started("serve") as serve:
        at = urlsplit(str(serve.read_messages()[0]["url"]))
        with socket.create_connection((str(at.hostname), int(at.port or 0)), timeout=10) as client:
            client.sendall(b"POST /v2/accounts HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{")
            wait_until(lambda: managed(serve, "/readyz")[0] == 200)
            os.kill(serve.pid, signal.SIGTERM)
            wait_until(lambda: managed(serve, "/readyz") == (503, "stopping\n"))
            client.sendall(b"}")
            assert client.recv(100).startswith(b"HTTP/1.1 401")
        assert serve.end(signal.SIGHUP) == 0, serve.read_errors()  # which hurries nobody


def test_several_processes_serve_one_port_and_end_cleanly(on_sqlite: Deployed) -> None:
    with on_sqlite.started("serve", "--processes", "2") as serve:
        members = Path(f"/proc/{serve.pid}/task/{serve.pid}/children").read_text().split()
        assert len(members) == 2
        assert client_of(serve).call("GET", "/healthz", authorization="").status == 200
        assert managed(serve, "/readyz")[0] == 200
        for pid in (serve.pid, *map(int, members)):  # as systemd does
            os.kill(pid, signal.SIGTERM)
        assert serve.end(signal.SIGHUP) == 0, serve.read_errors()
        lines = [json.loads(line) for line in serve.read_errors().splitlines()]
    reported = [(line["message"], line.get("process_number")) for line in lines]
    assert {("ready", None), ("ready", 1), ("ready", 2)} <= set(reported)
    assert not [message for message, _ in reported if "ended with" in message]


SILENT = """
from payments_core.chains.port import ChainUnavailable
from payments_core.chains.simulated.chain import SimulatedChain

class Silent(SimulatedChain):
    def __init__(self, chain_id):
        self.chain_id = chain_id

    def heads(self):
        raise ChainUnavailable("no node answers")

    def list_affordable(self):
        return {}

def opened(chain_id, urls, *, signer, settings, network):
    return Silent(chain_id)

class Unused:
    def address(self, path): ...

    def sign(self, path, digest): ...


def signer(url):
    return Unused()
"""


def test_a_worker_reports_a_chain_that_it_has_never_scanned(
    on_sqlite: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapters = {"chains:silent": "opened", "signers:silent": "signer"}
    install(on_sqlite.folder, monkeypatch, SILENT, adapters)
    on_sqlite.configure(simulated_chains=False, **{"providers.signer": {"url": "silent:"}})
    with on_sqlite.config.open("a") as config:
        config.write('[chains.8453]\nurls = ["silent+https://node.example"]\n')
    before = time.time()
    with on_sqlite.started("worker") as worker:
        errors = 'payments_chain_scan_errors_total{chain_id="8453"}'
        wait_until(lambda: errors in managed(worker, "/metrics")[1])
        reported = managed(worker, "/metrics")[1]
    scanned = r'^payments_chain_last_scan_timestamp_seconds\{chain_id="8453"\} (\S+)$'
    [at] = re.findall(scanned, reported, re.M)
    assert before <= float(at) <= time.time()


HANGING = """
import threading
from pathlib import Path

import attrs

from payments_core import background_jobs
from payments_core.chains.port import ChainUnavailable
from payments_core.chains.simulated.chain import SimulatedChain

# A minute is too long for a test.
background_jobs.QUEUES = tuple(
    attrs.evolve(queue, lease_ms=1_000, run_limit_ms=500) for queue in background_jobs.QUEUES
)

class Hanging(SimulatedChain):
    def __init__(self, chain_id):
        self.chain_id = chain_id

    def heads(self):
        if Path(__file__).with_name("node-answers").exists():
            raise ChainUnavailable("no node answers")
        threading.Event().wait()

    def list_affordable(self):
        return {}

def opened(chain_id, urls, *, signer, settings, network):
    return Hanging(chain_id)

class Unused:
    def address(self, path): ...

    def sign(self, path, digest): ...


def signer(url):
    return Unused()
"""


def test_a_worker_that_has_too_few_threads_left_ends_to_be_started_again(
    on_sqlite: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapters = {"chains:hanging": "opened", "signers:hanging": "signer"}
    install(on_sqlite.folder, monkeypatch, HANGING, adapters)
    on_sqlite.configure(
        simulated_chains=False,
        worker={"threads": 1, "drain_s": 600},
        **{"providers.signer": {"url": "hanging:"}},
    )
    with on_sqlite.config.open("a") as config:
        config.write('[chains.8453]\nurls = ["hanging+https://node.example"]\n')
    with on_sqlite.started("worker") as worker:
        worker.wait_for(lambda reported: False)  # until it ends
        assert worker.end() == EXIT_STUCK
        assert "ALARM: 1 of 1 threads of this worker hang in jobs" in worker.read_errors()
    (on_sqlite.folder / "node-answers").touch()
    with on_sqlite.started("worker") as worker:  # the job that hung is done by the next process
        errors = 'payments_chain_scan_errors_total{chain_id="8453"} 1.0'
        wait_until(lambda: errors in managed(worker, "/metrics")[1])
        assert worker.end() == 0


def test_one_tenants_damaged_row_does_not_keep_a_process_from_starting(
    on_sqlite: Deployed,
) -> None:
    on_sqlite.run("admin", "migrate")
    shop(on_sqlite)
    with closing(sqlite3.connect(on_sqlite.folder / "payments.db")) as connection:
        connection.execute("UPDATE apps SET body = '{}'")
        connection.commit()
    with on_sqlite.started("serve") as serve:
        assert managed(serve, "/readyz")[0] == 200


def test_a_weak_setting_is_refused_by_its_name(on_sqlite: Deployed) -> None:
    on_sqlite.configure(mode="production")
    for command in ("serve", "worker"):
        said = on_sqlite.run(command, fails=True)
        assert "public_url must be https:// in production" in said
        assert "simulated_chains must be false in production" in said
        assert "Traceback" not in said


def test_a_port_that_is_taken_is_reported(on_sqlite: Deployed) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        on_sqlite.configure(http={"port": taken.getsockname()[1]})
        assert "http.port cannot listen on" in on_sqlite.run("serve", fails=True)
        on_sqlite.configure(management={"port": taken.getsockname()[1]})
        assert "management.port cannot listen on" in on_sqlite.run("serve", fails=True)


def test_each_of_several_processes_needs_an_operators_port(on_sqlite: Deployed) -> None:
    on_sqlite.configure(management={"port": 65_535})
    said = on_sqlite.run("serve", "--processes", "2", fails=True)
    assert "management.port is too high" in said
