"""`payments sandbox` as a process: first start, restarts, permissions, signals, refusals."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from payments_core_http.cli import payments
from payments_core_http.cli.api_client import ApiClient, basic_authorization
from payments_core_http.cli.child_processes import ChildFailed, ChildProcess, SandboxChild
from tests.stopwatches import read_children_processor_s

READY_S = 2.5
FIRST_STARTS = 4
FIRST_WORK_S = 0.6
"""About how long a first start is busy in its folder."""

LINE = {
    "baseUrl", "sdkBaseUrl", "publicUrl", "dashboardUrl", "appId", "partnerId", "environmentId",
    "appSecret", "restrictedKeys", "apiKey", "operator",
}  # fmt: skip
KEYS = ("appId", "partnerId", "environmentId", "appSecret")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "below" / "sandbox-data"


@pytest.fixture
def first(data: Path) -> Iterator[SandboxChild]:
    """A sandbox at its first start."""
    child = SandboxChild(data)
    yield child
    child.end()


@pytest.fixture
def sandbox(data: Path, started_data: Path) -> Iterator[SandboxChild]:
    """A sandbox that was started before."""
    shutil.copytree(started_data, data)
    child = SandboxChild(data)
    yield child
    child.end()


def opens(sandbox: SandboxChild) -> bool:
    credential = basic_authorization(sandbox.facts["appId"], sandbox.facts["appSecret"])
    client = ApiClient(sandbox.base_url)
    return client.call("GET", "/v2/partners/config", authorization=credential).status == 200


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def refused(*arguments: str) -> str:
    """What a sandbox says that does not start."""
    done = subprocess.run(
        [sys.executable, "-m", "payments_core_http.cli", "sandbox", *arguments],
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def test_the_line_says_where_it_is_and_what_opens_it(first: SandboxChild) -> None:
    assert set(first.facts) == LINE
    assert first.facts["baseUrl"] == first.facts["publicUrl"] == first.facts["sdkBaseUrl"]
    assert first.facts["restrictedKeys"] == {}
    assert str(first.facts["apiKey"]).startswith("pk_sandbox_")
    assert first.facts["dashboardUrl"] == f"{first.facts['baseUrl']}/dashboard"
    assert first.facts["operator"].keys() == {"username", "password"}
    assert first.port != 0
    assert opens(first)


def test_it_starts_and_stops_with_under_two_seconds_of_work(tmp_path: Path) -> None:
    took = []
    for name in ("one", "two", "three"):
        before = read_children_processor_s()
        SandboxChild(tmp_path / name).end()
        took.append(read_children_processor_s() - before)
    assert min(took) < READY_S, took


def test_the_keys_stay(first: SandboxChild) -> None:
    assert first.end() == 0
    again = SandboxChild(first.data, first.port)
    try:
        assert again.facts == first.facts
        assert opens(again)
    finally:
        again.end()


def test_only_the_owner_reads_its_files(data: Path) -> None:
    before = os.umask(0)
    try:
        sandbox = SandboxChild(data)
    finally:
        os.umask(before)
    try:
        assert opens(sandbox)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data.iterdir()}
        assert {"sandbox.json", "key-ring", "payments.db", "payments.db-wal"} <= modes.keys()
        assert set(modes.values()) == {0o600}
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
    finally:
        sandbox.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(sandbox: SandboxChild, number: signal.Signals) -> None:
    assert opens(sandbox)
    assert sandbox.end(number) == 0
    assert sandbox.read_errors() == ""
    assert not (sandbox.data / "payments.db-wal").exists()  # what was in it is in the database


def test_a_second_signal_ends_it_there_and_then(sandbox: SandboxChild) -> None:
    facts = sandbox.facts
    client = ApiClient(sandbox.base_url)
    credential = basic_authorization(facts["appId"], facts["appSecret"])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(10)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        path = "/v2/console/apps/{appId}/environments/{environmentId}/webhooks"
        client.call("POST", path.format_map(dict(facts)), {"url": url}, authorization=credential)
        account = {"externalUserId": "alice", "subjectType": "individual"}
        client.call("POST", "/v2/accounts", account, authorization=credential)
        delivery, _ = silent.accept()  # it is never answered, so its attempt takes 10 s
        with delivery:
            began = time.monotonic()
            os.kill(sandbox.pid, signal.SIGINT)
            while listens(sandbox.port):
                assert time.monotonic() - began < 5
            assert sandbox.end(signal.SIGINT) == 1
            assert time.monotonic() - began < 8
    assert sandbox.read_errors() == ""
    again = SandboxChild(sandbox.data)
    assert opens(again)
    again.end()


def test_webhooks_to_this_machine_are_for_a_sandbox_on_loopback_alone(tmp_path: Path) -> None:
    for host, allowed in (("localhost", True), ("0.0.0.0", False)):
        child = ChildProcess(
            "sandbox",
            "payments_core_http.cli",
            ["sandbox", "--json", "--host", host, "--port", "0", "--data", str(tmp_path / host)],
        )
        try:
            facts = child.wait_until_ready()
            client = ApiClient(str(facts["baseUrl"]))
            credential = basic_authorization(facts["appId"], facts["appSecret"])
            path = "/v2/console/apps/{appId}/environments/{environmentId}/webhooks"
            made = client.call(
                "POST",
                path.format_map(dict(facts)),
                {"url": "http://127.0.0.1:9/hook"},
                authorization=credential,
            )
            assert made.status == (201 if allowed else 422)
            config = client.call("GET", "/v2/partners/config", authorization=credential).document
            policy = config["capabilities"]["webhooks"]["deliveryPolicy"]
            assert policy["localPrivateDestinationsAllowed"] is allowed
        finally:
            child.end()


def answered_to(sandbox: SandboxChild, host: str | None) -> tuple[int, dict[str, str], bytes]:
    """What a browser or another client reads, which believes the sandbox to be `host`."""
    client = http.client.HTTPConnection("127.0.0.1", sandbox.port, timeout=10)
    try:
        client.putrequest("GET", "/v2/partners/config", skip_host=True)
        if host is not None:
            client.putheader("Host", host)
        client.putheader(
            "Authorization",
            basic_authorization(sandbox.facts["appId"], sandbox.facts["appSecret"]),
        )
        client.endheaders()
        response = client.getresponse()
        return response.status, {n.lower(): v for n, v in response.getheaders()}, response.read()
    finally:
        client.close()


def test_on_loopback_it_answers_only_to_names_of_this_machine(sandbox: SandboxChild) -> None:
    """A page whose name is made to lead here would otherwise read and write as of its own."""
    for host in ("localhost", "LOCALHOST:8080", "shop.localhost:1", "127.0.0.1", "127.8.9.1:80",
                 "[::1]:8080", "localhost.", ""):  # fmt: skip
        assert answered_to(sandbox, host)[0] == 200, host
    assert answered_to(sandbox, None)[0] == 400  # the server refuses it (RFC 9112, 3.2)
    for host in ("evil.example", "evil.example:8080", "localhost.evil.example", "evillocalhost",
                 "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0", "[::]", "192.168.0.1:8080",
                 "user@localhost", "localhost:80:80", "localhost/", "[localhost]"):  # fmt: skip
        status, headers, body = answered_to(sandbox, host)
        error = json.loads(body)["error"]
        assert (status, error["code"]) == (400, "malformed_request"), host
        assert "localhost" in error["message"]
        assert error["details"]["requestId"] == headers["x-request-id"]
        assert headers["service-version"] and headers["cache-control"] == "no-store"


def test_beyond_loopback_it_answers_to_any_name(data: Path) -> None:
    sandbox = SandboxChild(data, 0, "--host", "0.0.0.0")
    try:
        assert answered_to(sandbox, "sandbox.example:8080")[0] == 200
    finally:
        sandbox.end()


def test_a_second_sandbox_on_the_same_data_is_refused(sandbox: SandboxChild) -> None:
    reported = refused("--port", "0", "--data", str(sandbox.data))
    assert "Another sandbox is running in" in reported
    assert "--data" in reported
    assert opens(sandbox)


def test_a_port_in_use_is_refused_by_name(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}" in refused("--port", str(port), "--data", str(data))


def test_an_invalid_host_is_refused(data: Path) -> None:
    assert "--host" in refused("--host", "no host", "--data", str(data))


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o1777, 0o722])
def test_a_folder_that_others_may_write_to_is_refused(data: Path, mode: int) -> None:
    data.mkdir(parents=True)
    data.chmod(mode)
    done = CliRunner().invoke(payments, ["sandbox", "--port", "0", "--data", str(data)])
    assert done.exit_code == 1
    assert f"chmod 700 {data}" in done.stderr
    assert list(data.iterdir()) == []


def test_a_folder_that_others_may_only_read_is_used(data: Path) -> None:
    data.mkdir(parents=True)
    data.chmod(0o755)
    sandbox = SandboxChild(data)
    assert opens(sandbox)
    sandbox.end()


def test_a_database_without_its_key_ring_is_refused(sandbox: SandboxChild) -> None:
    sandbox.end()
    (sandbox.data / "key-ring").unlink()
    assert "key-ring is missing" in refused("--port", "0", "--data", str(sandbox.data))


def test_a_file_that_is_not_a_database_is_refused(sandbox: SandboxChild) -> None:
    sandbox.end()
    (sandbox.data / "payments.db").write_bytes(b"not a database" * 100)
    assert "cannot be used" in refused("--port", "0", "--data", str(sandbox.data))


def test_without_its_keys_file_it_makes_a_new_key_and_ends_the_old_one(
    sandbox: SandboxChild,
) -> None:
    sandbox.end()
    (sandbox.data / "sandbox.json").unlink()
    again = SandboxChild(sandbox.data)
    try:
        assert opens(again)
        assert again.facts["appId"] == sandbox.facts["appId"]
        old = basic_authorization(sandbox.facts["appId"], sandbox.facts["appSecret"])
        answer = ApiClient(again.base_url).call("GET", "/v2/partners/config", authorization=old)
        assert answer.status == 401
    finally:
        again.end()


def test_a_first_start_that_is_killed_leaves_a_folder_that_works(tmp_path: Path) -> None:
    seed = int(os.environ.get("PAYMENTS_KILL_SEED") or random.randrange(2**32))
    print(f"PAYMENTS_KILL_SEED={seed}")
    chance = random.Random(seed)
    for number in range(FIRST_STARTS):
        data = tmp_path / str(number)
        arguments = ["sandbox", "--json", "--port", "0", "--data", str(data)]
        child = ChildProcess("sandbox", "payments_core_http.cli", arguments)
        while not data.exists():  # the interpreter starts; there is nothing to break yet
            assert not child.wait_for(bool, timeout_s=0.002)
        child.wait_for(bool, chance.uniform(0, FIRST_WORK_S))
        child.kill()
        print(f"killed with {sorted(path.name for path in data.iterdir())}")
        again = SandboxChild(data)
        assert opens(again), number
        again.end()


def test_a_child_that_cannot_start_says_why(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ChildFailed, match="is a file"):
        SandboxChild(file)


def test_the_banner_says_what_a_newcomer_needs(data: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "payments_core_http.cli", "sandbox", "--port", "0",
         "--data", str(data)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    lines: list[str] = []
    began = time.monotonic()
    while "Ctrl-C" not in "".join(lines[-1:]) and time.monotonic() - began < 20:
        lines.append(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    banner = "".join(lines)
    keys = json.loads((data / "sandbox.json").read_text())
    assert f"curl -u {keys['appId']}:{keys['appSecret']} http://127.0.0.1:" in banner
    assert "Rate policies are not enforced." in banner
    assert f"log in as operator with {keys['operator']['password']}" in banner
    links = banner.partition("  Open in a browser:\n")[2]
    assert re.findall(r"http://127\.0\.0\.1:[0-9]+(/\w+)", links) == ["/pay", "/dashboard", "/docs"]
    assert rest.strip() == ""


def test_a_person_gets_a_checkout_page_to_open_and_a_script_an_empty_sandbox(data: Path) -> None:
    first, second = _find_checkout_url(data), _find_checkout_url(data)
    assert first.rpartition("/")[2] == second.rpartition("/")[2], "it waits still"
    child = SandboxChild(data)
    credential = basic_authorization(child.facts["appId"], child.facts["appSecret"])
    client = ApiClient(child.base_url)
    listed = client.call("GET", "/v2/payments", authorization=credential)
    with urlopen(f"{child.base_url}/pay/{first.rpartition('/')[2]}", timeout=30) as answer:
        page = answer.read()
    child.end()
    assert [it["description"] for it in listed.document["data"]] == ["Two loaves of bread"]
    assert b"Sandbox: play the payer" in page


def _find_checkout_url(data: Path) -> str:
    process = subprocess.Popen(
        [sys.executable, "-m", "payments_core_http.cli", "sandbox", "--port", "0",
         "--data", str(data)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    banner = "".join(iter(process.stdout.readline, "  Press Ctrl-C to stop.\n"))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    found = re.search(r"play the payer: (http://127\.0\.0\.1:[0-9]+/pay/[\w-]{48})\n", banner)
    assert found is not None, banner
    return found[1]


def test_the_rate_policies_are_enforced_where_they_are_asked_for(data: Path) -> None:
    limited = SandboxChild(data, 0, "--rate-limits")
    client = ApiClient(limited.base_url)
    credential = basic_authorization(limited.facts["appId"], limited.facts["appSecret"])
    answers = [client.call("POST", "/v2/accounts", authorization=credential, body={})]
    # The limit of 70 regains one a second, so a slow machine needs more requests to reach it.
    while answers[-1].status == 400 and len(answers) < 500:
        answers.append(client.call("POST", "/v2/accounts", authorization=credential, body={}))
    limited.end()
    assert answers[-1].status == 429
    assert len(answers) > 70
    assert {name.lower(): text for name, text in answers[0].headers.items()}[
        "ratelimit-limit"
    ] == "70"
