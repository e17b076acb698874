"""deploy/restart-one-by-one: real processes behind a real nginx, restarted under load."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.deploy import systemctl
from tests.deploy.proxies import DEPLOY, Proxy, nginx, servers
from tests.deployment.deployed import Deployed, shop
from tests.servers.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = DEPLOY / "restart-one-by-one"
CLIENTS = 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a `systemctl` on its path that knows the processes of the test."""
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ncd "{ROOT}" && exec "{sys.executable}" -m tests.deploy.systemctl'
        f' "{tmp_path}" "$@"\n'
    )
    program.chmod(0o755)
    return tmp_path


def restart(folder: Path, *instances: str, ports: str = "80") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *instances],
        env={
            **os.environ,
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "PAYMENTS_SERVERS": str(folder / "payments-servers.conf"),
            "PAYMENTS_PORTS": ports,
        },
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip


@contextmanager
def instances(folder: Path, deployed: Deployed, ports: list[int]) -> Iterator[None]:
    """A `payments serve` on each port, started as their restarts will start them."""
    try:
        for port in ports:
            deployed.configure(
                http={"port": port, "trusted_proxies": ["127.0.0.1/32"]},
                limits={"ip_minute": 100_000, "sensitive_minute": 100_000,
                        "partner_app_minute": 100_000},
            )  # fmt: skip
            config = folder / f"{port}.toml"
            shutil.copy(deployed.config, config)
            command = [
                *(sys.executable, "-m", "payments_core_http.cli"),
                *("serve", "--json", "--config", str(config)),
            ]
            name = f"{port % 100:02}"
            (folder / f"{name}.json").write_text(json.dumps({"command": command, "pid": None}))
            subprocess.run(
                [folder / "bin/systemctl", "restart", f"payments-serve@{name}"], check=True
            )
        yield
    finally:
        for path in folder.glob("??.json"):
            systemctl.end(json.loads(path.read_text())["pid"])  # None where it never began


def two_ports() -> list[int]:
    """Two free ports that differ in the last two digits alone."""
    for _ in range(1_000):
        one = free_port()
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", other := one ^ 1))
            if one // 100 == other // 100:
                return [one, other]
    raise AssertionError("no two ports are free")


def asking(proxy: Proxy, credential: str, name: str, ended: threading.Event) -> Counter[str]:
    """POST after POST, each of them new, until it is enough: `created`, or why not."""
    answers: Counter[str] = Counter()
    while not ended.is_set():
        key = f"{name}-{answers.total()}"
        body = json.dumps({"externalUserId": key, "subjectType": "individual"}).encode()
        answer = proxy.ask(
            "POST", "/v2/accounts", body,
            Authorization=credential, Content_Type="application/json", Idempotency_Key=key,
        )  # fmt: skip
        answers["created" if answer.status == 201 else f"{answer.status} {answer.body!r}"] += 1
    return answers


def test_no_request_is_lost_while_all_are_restarted(folder: Path) -> None:
    for program in ("ss", "curl"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    deployed = Deployed.made(folder, f"sqlite:///{folder}/payments.db")
    deployed.run("admin", "migrate")
    credential = shop(deployed)[1]
    ports = two_ports()
    names = [f"{port % 100:02}" for port in ports]
    unlimited = {"rate=50r/s": "rate=100000r/s", "burst=200": "burst=10000"}
    with (
        instances(folder, deployed, ports),
        nginx(folder, ports, unlimited) as proxy,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        before = {name: json.loads((folder / f"{name}.json").read_text())["pid"] for name in names}
        ended = threading.Event()
        asked = [
            pool.submit(asking, proxy, credential, f"client-{n}", ended) for n in range(CLIENTS)
        ]
        try:
            done = restart(folder, *names, ports=str(ports[0] // 100))
        finally:
            ended.set()
        answers = sum((one.result() for one in asked), Counter[str]())
        after = {name: json.loads((folder / f"{name}.json").read_text())["pid"] for name in names}
    assert done.returncode == 0, done.stderr + (folder / "errors").read_text()
    assert not set(before.values()) & set(after.values())
    assert set(answers) == {"created"} and answers.total() > 2 * CLIENTS, answers
    assert (folder / "payments-servers.conf").read_text() == servers(ports)


@pytest.mark.parametrize(
    "dead", ["nobody listens", "it is not ready", "it is down", "it is down, and more"]
)
def test_nothing_is_taken_out_while_the_other_is_dead(folder: Path, dead: str) -> None:
    one, other = two_ports()
    listed = servers([one, other])
    if dead.startswith("it is down"):
        more = " max_fails=1" if dead.endswith("more") else ""
        listed = listed.rstrip(";\n") + f" down{more};\n"
    path = folder / "payments-servers.conf"
    path.write_text(listed)
    status = {"it is not ready": 503}.get(dead, 200)
    with nullcontext() if dead == "nobody listens" else answering(other, status):
        done = restart(folder, f"{one % 100:02}", ports=str(one // 100))
    assert (
        done.returncode,
        f"no other instance is ready; {one} was not restarted" in done.stderr,
    ) == (1, True)
    assert path.read_text() == listed


@contextmanager
def answering(port: int, status: int) -> Iterator[None]:
    """A server that says this of itself, whatever it is asked."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    with HTTPServer(("127.0.0.1", port), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("listed", "asked", "said"),
    [
        ([8001], "01", "no other instance is ready; 8001 was not restarted"),
        ([8001, 8002], "03", "has no server with port 8003"),
    ],
)
def test_what_would_leave_nobody_to_answer_is_refused(
    listed: list[int], asked: str, said: str, folder: Path
) -> None:
    (folder / "payments-servers.conf").write_text(servers(listed))
    done = restart(folder, asked)
    assert (done.returncode, said in done.stderr) == (1, True)
    assert (folder / "payments-servers.conf").read_text() == servers(listed)
