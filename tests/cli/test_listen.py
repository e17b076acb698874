"""`payments listen`, `trigger`, `events` and `resend`, against a real sandbox."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from payments_core.webhooks import verify
from payments_core_http.cli.api_client import ApiClient, basic_authorization
from payments_core_http.cli.child_processes import ChildProcess, SandboxChild
from tests.changed_text import change_end


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxChild]:
    child = SandboxChild(tmp_path_factory.mktemp("listen") / "sandbox-data")
    yield child
    child.end()


class Target(ThreadingHTTPServer):
    """A developer's handler, which keeps what it gets and answers as it was set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://localhost:{self.server_port}/webhook?from=listen"
        self.status = 200
        self.got: list[tuple[str, list[tuple[str, str]], bytes]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def end(self) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: Target

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, self.headers.items(), body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def target() -> Iterator[Target]:
    made = Target()
    yield made
    made.end()


def options(sandbox: SandboxChild) -> list[str]:
    return ["--url", sandbox.base_url, "--data", str(sandbox.data)]


def payments(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "payments_core_http.cli", *arguments],
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip


def listen(sandbox: SandboxChild, *arguments: str) -> ChildProcess:
    return ChildProcess(
        "listener",
        "payments_core_http.cli",
        ["listen", "--json", *options(sandbox), *arguments],
    )


def ask(sandbox: SandboxChild, method: str, path: str, body: Any = None) -> Any:
    facts = sandbox.facts
    credential = basic_authorization(facts["appId"], facts["appSecret"])
    answer = ApiClient(sandbox.base_url).call(method, path, body, authorization=credential)
    assert answer.status < 300, answer.document
    return answer.document


def statuses(sandbox: SandboxChild, description: str) -> list[str]:
    listed = ask(sandbox, "GET", "/v2/console/webhooks?limit=100")["webhookEndpoints"]
    return [item["status"] for item in listed if item["description"] == description]


def line_of(child: ChildProcess, event_id: str) -> dict[str, Any]:
    def found(reported: list[dict[str, Any]]) -> bool:
        return any(line.get("eventId") == event_id for line in reported)

    assert child.wait_for(found), child.read_errors()
    return next(line for line in child.read_messages() if line.get("eventId") == event_id)


def trigger(sandbox: SandboxChild, name: str, *facts: str) -> str:
    done = payments("trigger", name, *facts, "--json", *options(sandbox))
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["name"] == name
    return str(made["eventId"])


def until(true: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < 20
        threading.Event().wait(0.02)


def test_it_forwards_what_it_verified_unchanged_and_archives_itself(
    sandbox: SandboxChild, target: Target
) -> None:
    child = listen(sandbox, "--forward-to", target.url, "--events", "payment.succeeded,",
                   "--filter", "payload.chainId exists")  # fmt: skip
    try:
        first = child.wait_until_ready()
        assert first["forwardTo"] == target.url
        assert first["subscribedEvents"] == ["payment.succeeded"]
        assert [rule["op"] for rule in first["filters"]] == ["exists"]
        assert statuses(sandbox, "payments listen: default") == ["active"]
        unwanted = trigger(sandbox, "account.updated")
        wanted = trigger(sandbox, "payment.succeeded")
        line = line_of(child, wanted)
        assert (line["name"], line["forwardStatus"], line["refused"]) == (
            "payment.succeeded", 200, None,
        )  # fmt: skip
        [(path, headers, body)] = target.got
        assert path == "/webhook?from=listen"
        event = verify(body, dict(headers), first["signingSecret"])
        assert (event.id, event.name) == (wanted, "payment.succeeded")
        names = [name.lower() for name, _ in headers]
        assert {
            "x-service-event", "x-service-event-id", "x-service-delivery", "content-type",
            "x-service-timestamp", "x-service-signature",
            "webhook-id", "webhook-timestamp", "webhook-signature",
        } <= set(names)  # fmt: skip
        assert len(set(names)) == len(names)
        assert unwanted not in {line.get("eventId") for line in child.read_messages()}
    finally:
        code = child.end(signal.SIGINT)
    assert code == 0
    assert statuses(sandbox, "payments listen: default") == ["archived"]


def test_the_sandbox_is_answered_as_the_target_answers(
    sandbox: SandboxChild, target: Target
) -> None:
    child = listen(sandbox, "--forward-to", target.url, "--name", "answers")
    try:
        webhook = child.wait_until_ready()["webhookId"]
        for status, delivered in ((503, "failed"), (400, "abandoned"), (204, "delivered")):
            target.status = status
            event_id = trigger(sandbox, "account.updated")
            assert line_of(child, event_id)["forwardStatus"] == status

            def settled(event_id: str = event_id, delivered: str = delivered) -> bool:
                path = f"/v2/console/webhooks/{webhook}/deliveries"
                found = ask(sandbox, "GET", path)["deliveries"]
                return any(
                    (item["outboxEventId"], item["status"]) == (event_id, delivered)
                    for item in found
                )

            until(settled)
    finally:
        assert child.end(signal.SIGTERM) == 0


def test_a_target_that_does_not_answer_is_reported_and_tried_again(sandbox: SandboxChild) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        child = listen(sandbox, "--forward-to", url, "--name", "deaf")
        try:
            child.wait_until_ready()
            line = line_of(child, trigger(sandbox, "account.updated"))
            assert line["forwardStatus"] is None
            assert "refused" in line["forwardFailure"].lower()
        finally:
            child.end()


def test_what_a_killed_listener_left_is_archived_by_the_next(sandbox: SandboxChild) -> None:
    description = "payments listen: mine"
    child = listen(sandbox, "--name", "mine")
    child.wait_until_ready()
    child.kill()
    assert statuses(sandbox, description) == ["active"]
    again = listen(sandbox, "--name", "mine")
    try:
        again.wait_until_ready()
        assert sorted(statuses(sandbox, description)) == ["active", "archived"]
        rival = payments("listen", "--name", "mine", *options(sandbox))
        assert rival.returncode == 1
        assert "--name" in rival.stderr
        assert "active" in statuses(sandbox, description)
    finally:
        assert again.end() == 0
    assert statuses(sandbox, description) == ["archived", "archived"]


def test_a_listener_takes_nothing_that_is_not_signed(sandbox: SandboxChild, target: Target) -> None:
    child = listen(sandbox, "--forward-to", target.url, "--name", "strict")
    try:
        url = str(child.wait_until_ready()["url"])
        base, _, path = url.rpartition("/")
        for where, status in ((f"/{path}", 400), ("/", 404), (f"/{path}/x", 404)):
            answer = ApiClient(base).call("POST", where, {"id": "evt_1"}, authorization="none")
            assert answer.status == status
        assert child.wait_for(lambda reported: any(line.get("refused") for line in reported))
        assert target.got == []
    finally:
        child.end()


def test_an_event_is_listed_and_resent(sandbox: SandboxChild, target: Target) -> None:
    child = listen(sandbox, "--forward-to", target.url, "--name", "again")
    try:
        webhook = str(child.wait_until_ready()["webhookId"])
        event_id = trigger(sandbox, "payment.refunded")
        line_of(child, event_id)
        done = payments("events", "--name", "payment.refunded", "--limit", "1", *options(sandbox))
        assert done.returncode == 0
        head, row = done.stdout.splitlines()
        assert head.split() == ["createdAt", "name", "id"]
        assert row.split()[1:] == ["payment.refunded", event_id]
        done = payments("events", "--json", "--limit", "1", *options(sandbox))
        assert set(json.loads(done.stdout)) == {"id", "name", "apiVersion", "createdAt", "payload"}

        def resent() -> bool:  # refused until the first delivery's end is stored
            done = payments("resend", event_id, "--webhook", webhook, *options(sandbox))
            assert done.returncode == 0 or "conflict" in done.stderr, done.stderr
            return done.returncode == 0 and done.stdout.startswith(webhook)

        until(resent)
        until(lambda: len(target.got) == 2)
        (_, _, first), (_, _, second) = target.got
        assert first == second
    finally:
        child.end()


def test_events_are_followed_from_the_newest_on(sandbox: SandboxChild) -> None:
    old = trigger(sandbox, "payment.succeeded")
    arguments = ["events", "--follow", "--json", "--limit", "1", *options(sandbox)]
    command = [sys.executable, "-m", "payments_core_http.cli", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["id"] == old
        new = [trigger(sandbox, name) for name in ("deposit.settled", "payment.refunded")]
        reported = [json.loads(following.stdout.readline()) for _ in new]
        assert [event["id"] for event in reported] == new
        assert reported[0]["name"] == "deposit.settled"
        following.send_signal(signal.SIGINT)
        assert (following.wait(10), following.stdout.read()) == (0, "")


def test_requests_are_listed_and_followed_as_they_come(sandbox: SandboxChild) -> None:
    def list_refused() -> list[dict[str, Any]]:
        done = payments("logs", "--status", "404", "--json", "--limit", "1", *options(sandbox))
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    assert payments("resend", "evt_first", *options(sandbox)).returncode == 1
    until(lambda: bool(list_refused()) and "evt_first" in list_refused()[0]["path"])
    [old] = list_refused()
    done = payments("logs", "--status", "4xx", "--limit", "1", *options(sandbox))
    assert done.stdout.splitlines()[1].split() == [
        old["createdAt"], "404", str(old["durationMs"]), "POST", old["path"], "not_found",
        old["id"],
    ]  # fmt: skip
    arguments = ["logs", "--follow", "--status", "404", "--json", "--limit", "1", *options(sandbox)]
    command = [sys.executable, "-m", "payments_core_http.cli", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline()) == old
        for name in ("evt_second", "evt_third"):
            payments("resend", name, *options(sandbox))
        reported = [json.loads(following.stdout.readline())["path"] for _ in range(2)]
        assert reported == [
            f"/v2/console/events/{name}/resend" for name in ("evt_second", "evt_third")
        ]
        following.send_signal(signal.SIGINT)
        assert (following.wait(10), following.stdout.read()) == (0, "")


def test_a_listener_survives_the_end_of_its_sandbox(tmp_path: Path) -> None:
    own = SandboxChild(tmp_path / "sandbox-data")
    child = listen(own)
    try:
        child.wait_until_ready()
        own.end()
    finally:
        assert child.end(signal.SIGTERM) == 0


def test_without_a_sandbox_each_says_what_to_do(sandbox: SandboxChild, tmp_path: Path) -> None:
    calls = (
        ("listen",), ("trigger", "payment.succeeded"), ("events",), ("logs",),
        ("resend", "evt_x"),
    )  # fmt: skip
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        for call in calls:
            done = payments(*call, "--data", str(tmp_path))
            assert done.returncode == 1
            assert "payments sandbox" in done.stderr
            done = payments(*call, "--data", str(sandbox.data), "--url", url)
            assert done.returncode == 1
            assert "No sandbox answers" in done.stderr
            assert "Traceback" not in done.stderr
            assert str(sandbox.facts["appSecret"]) not in done.stderr


def test_the_key_of_another_sandbox_is_reported_as_such(
    sandbox: SandboxChild, tmp_path: Path
) -> None:
    keys = dict(sandbox.facts, appSecret=change_end(sandbox.facts["appSecret"]))
    (tmp_path / "sandbox.json").write_text(json.dumps(keys))
    done = payments("events", "--data", str(tmp_path), "--url", sandbox.base_url)
    assert done.returncode == 1
    assert "another folder" in done.stderr
    (tmp_path / "sandbox.json").write_text("{}")
    done = payments("events", "--data", str(tmp_path), "--url", sandbox.base_url)
    assert (done.returncode, "cannot be read" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "reported"),
    [
        (("listen", "--forward-to", "localhost:4242"), 2, "http://"),
        (("listen", "--forward-to", "http://a:b@localhost/"), 2, "credential"),
        (("listen", "--name", "a/b"), 2, "--name"),
        (("listen", "--events", ","), 2, "--events"),
        (("listen", "--events", "no.such"), 1, "subscribedEvents[0]"),
        (("listen", "--filter", "payload.amountAtomic >= x"), 1, "filters[0].value"),
        (("trigger",), 2, "EVENT"),
        (("trigger", "no.such"), 1, "catalog"),
        (("trigger", "payment.created", "paymentId"), 2, "KEY=VALUE"),
        (("trigger", "payment.created", "a=1", "a=2"), 2, "twice"),
        (("trigger", "payment.created", "color=red"), 1, "color"),
        (("events", "--limit", "101"), 2, "101"),
        (("events", "--name", "no.such"), 1, "name"),
        (("logs", "--status", "none"), 1, "status"),
        (("resend", "evt_x"), 1, "not_found"),
        (("resend", "evt_/../../x"), 1, "not_found"),
    ],
)
def test_a_wrong_call_is_refused_and_says_why(
    sandbox: SandboxChild, arguments: tuple[str, ...], code: int, reported: str
) -> None:
    done = payments(*arguments, *options(sandbox))
    assert (done.returncode, reported in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_person_reads_a_banner_and_a_line_for_each_event(sandbox: SandboxChild) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "payments_core_http.cli", "listen", "--name", "person",
         *options(sandbox)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4)]
    event_id = trigger(sandbox, "deposit.settled")
    line = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert sandbox.base_url in lines[0]
    assert "every event" in lines[1]
    assert "whsec_" in lines[2]
    assert line.split()[1:] == ["deposit.settled", event_id]
    lock = sandbox.data / "listen-person.lock"
    assert os.stat(lock).st_mode & 0o077 == 0


FOLLOWING = {
    "listen": ["listen", "--name"],
    "events": ["events", "--follow", "--limit"],
    "logs": ["logs", "--follow", "--limit"],
}
"""The commands that print until they are stopped; each lacks its last argument."""


def start_following(
    sandbox: SandboxChild, command: str, last: str, *more: str
) -> subprocess.Popen[bytes]:
    """A command that ignores SIGHUP, as under nohup, after its first line was read."""
    trigger(sandbox, "payment.succeeded")  # so that there is a first line
    line = [sys.executable, "-m", "payments_core_http.cli", *FOLLOWING[command], last, *more]
    child = subprocess.Popen(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *line, *options(sandbox)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None and child.stdout.readline()
    return child


@pytest.mark.parametrize("is_silent", [True, False])
@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("command", FOLLOWING)
def test_it_ends_when_its_reader_ends(
    sandbox: SandboxChild, command: str, as_json: bool, is_silent: bool
) -> None:
    last = "1" + str(as_json + 0) + str(is_silent + 0) if command == "listen" else "1"
    with start_following(sandbox, command, last, *(["--json"] if as_json else [])) as child:
        assert child.stdout is not None and child.stderr is not None
        if command == "listen":
            until(lambda: statuses(sandbox, f"payments listen: {last}") == ["active"])
        child.stdout.close()
        if not is_silent:
            trigger(sandbox, "payment.succeeded")
        assert child.wait(20) == 0 and child.stderr.read() == b""
    if command == "listen":
        assert statuses(sandbox, f"payments listen: {last}") == ["archived"]


@pytest.mark.parametrize("command", FOLLOWING)
def test_it_goes_on_under_nohup(sandbox: SandboxChild, command: str) -> None:
    with start_following(sandbox, command, "1", "--json") as child:
        assert child.stdout is not None
        child.send_signal(signal.SIGHUP)
        trigger(sandbox, "payment.succeeded")
        assert json.loads(child.stdout.readline())
        child.send_signal(signal.SIGINT)
        assert child.wait(20) == 0
