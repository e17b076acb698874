"""What one tenant notices of another who uses all that the default limits allow.

    python -m benchmarks.fairness [--processes 1 2] [--seconds 30]

`payments serve` and `payments worker`, one or two of each, on one SQLite file, with the default
limits. A neighbour reads eight times a second and creates an account each second, whose event goes
to an endpoint that answers at once. First alone; then beside each attack, on a new deployment:

- names: 75 endpoints at names whose server never answers, and 20 writes;
- creations: 70 requests to create endpoints at such names;
- endpoints: as many active endpoints as there may be, at a receiver that hangs, and 20 writes;
- node: 240 readings of balances a minute from a node that hangs;
- logins: 50 addresses log in to the dashboard with wrong passwords, ten times a minute each;
- forged: ten addresses send notices of 64 KiB with a wrong signature, 500 times a minute each;
- notices: a provider sends 1,200 notices a minute of cases that nobody knows, each twice.
"""

from __future__ import annotations

import argparse
import hmac
import json
import os
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import attrs

from benchmarks.hanging_world import KYC_SECRET
from payments_core.credentials.keyring import KeyRing
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage_loader import open_storage
from payments_core.webhooks.settings import WebhookSettings
from payments_core_http.cli.api_client import basic_authorization
from payments_core_http.cli.child_processes import ChildProcess
from payments_core_http.wire.limits import MAX_BODY_BYTES
from tests.deployment.deployed import Deployed

READ_S = 0.125
WRITE_S = 1.0
HANG_S = 15.0
ADDRESSES, LOGINS_A_MINUTE = 50, 10
FORGERS = 10
_HIDDEN_FIELD = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')


class Receiver(ThreadingHTTPServer):
    """Answers at once, and keeps when the event of each account came; `/hangs` hangs."""

    daemon_threads = True

    def __init__(self) -> None:
        self.came: dict[str, float] = {}
        super().__init__(("127.0.0.1", 0), _Answer)


class _Answer(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.startswith("/hangs"):
            time.sleep(HANG_S)
        else:
            self.server.came.setdefault(body["payload"]["accountId"], time.monotonic())
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@attrs.frozen
class Tenant:
    """A client of one tenant's, at an address of its own."""

    ports: tuple[int, ...]
    credential: str
    address: str

    def send(self, number: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request, on a connection of its own, to one of the processes."""
        headers = {"Authorization": self.credential, "X-Forwarded-For": self.address}
        if body is not None:
            headers |= {"Content-Type": "application/json", "Idempotency-Key": os.urandom(8).hex()}
        with closing(HTTPConnection("127.0.0.1", self.ports[number % len(self.ports)])) as http:
            http.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = http.getresponse()
            return answer.status, json.loads(answer.read() or b"null")

    def create_account(self, number: int) -> tuple[int, Any]:
        """A write, which makes one event."""
        body = {"externalUserId": os.urandom(8).hex(), "subjectType": "individual"}
        return self.send(number, "POST", "/v2/accounts", body)


@attrs.frozen
class Setup:
    """A deployment with two tenants and a receiver."""

    attacker: Tenant
    neighbour: Tenant
    seconds: float
    app_id: str
    environment_id: str
    account_id: str
    statuses: Counter[int] = attrs.field(factory=Counter)


Attack = Callable[[Setup], None]


def create_endpoints(setup: Setup) -> None:
    """As many as a minute allows, as fast as threads can ask."""
    path = f"/v2/console/apps/{setup.app_id}/environments/{setup.environment_id}/webhooks"
    with ThreadPoolExecutor(35) as pool:
        for n in range(70):
            pool.submit(
                setup.attacker.send, n, "POST", path, {"url": f"https://c{n}.hang.invalid/"}
            )


def write(setup: Setup) -> None:
    """20 writes, each an event for every endpoint."""
    for n in range(20):
        setup.attacker.create_account(n)


def read_balances(setup: Setup) -> None:
    """240 a minute."""
    path = f"/v2/accounts/{setup.account_id}/balances"
    with ThreadPoolExecutor(64) as pool:
        for n in range(int(4 * setup.seconds)):
            pool.submit(setup.attacker.send, n, "GET", path)
            time.sleep(0.25)


def log_in(setup: Setup) -> None:
    """As often as 50 addresses may: each hash of a password takes a tenth of a processor second."""

    def attempt(number: int) -> None:
        port = setup.attacker.ports[number % len(setup.attacker.ports)]
        headers = {"X-Forwarded-For": f"203.0.113.{number % ADDRESSES + 1}"}
        with closing(HTTPConnection("127.0.0.1", port)) as http:
            http.request("GET", "/dashboard/login", headers=headers)
            shown = http.getresponse()
            cookie = str(shown.headers["Set-Cookie"]).partition(";")[0]
            fields = dict(_HIDDEN_FIELD.findall(shown.read().decode()))
            fields |= {"username": f"nobody-{number}", "password": "a wrong password"}
            headers |= {
                "Cookie": cookie,
                "Origin": "http://127.0.0.1:8080",
                "Content-Type": "application/x-www-form-urlencoded",
            }
            http.request("POST", "/dashboard/login", urlencode(fields), headers)
            setup.statuses[http.getresponse().status] += 1

    with ThreadPoolExecutor(64) as pool:
        for number in range(int(setup.seconds * ADDRESSES * LOGINS_A_MINUTE / 60)):
            pool.submit(attempt, number)
            time.sleep(60 / ADDRESSES / LOGINS_A_MINUTE)
    print(f"  log-ins answered {dict(setup.statuses)}", flush=True)


def forge_notices(setup: Setup) -> None:
    """As often as ten addresses may, each body as long as may be."""
    body = b" " * MAX_BODY_BYTES
    _send_notices(setup, FORGERS * 500, lambda _: ({"Example-Time": "1"}, body))


def report_notices(setup: Setup) -> None:
    """Signed, twice as many as a provider may send, and each twice."""

    def sign(number: int) -> tuple[dict[str, str], bytes]:
        body = b'{"id": "n%d", "case": "case-%d"}' % (number // 2, number // 2)
        stamp = str(int(time.time()))
        signed = hmac.digest(KYC_SECRET, stamp.encode() + b"." + body, "sha256").hex()
        return {"Example-Time": stamp, "Example-Signature": signed}, body

    _send_notices(setup, 2_400, sign)


def _send_notices(
    setup: Setup, a_minute: int, make: Callable[[int], tuple[dict[str, str], bytes]]
) -> None:
    def send(number: int) -> None:
        headers, body = make(number)
        headers["X-Forwarded-For"] = f"203.0.113.{number % FORGERS + 1}"
        port = setup.attacker.ports[number % len(setup.attacker.ports)]
        with closing(HTTPConnection("127.0.0.1", port)) as http:
            http.request("POST", "/providers/kyc/flooded", body, headers)
            setup.statuses[http.getresponse().status] += 1

    with ThreadPoolExecutor(64) as pool:
        for number in range(int(setup.seconds * a_minute / 60)):
            pool.submit(send, number)
            time.sleep(60 / a_minute)
    print(f"  notices answered {dict(setup.statuses)}", flush=True)


def wait(setup: Setup) -> None:
    """No attack."""


ATTACKS: dict[str, tuple[Attack, Callable[[int, int], str] | None, int]] = {
    "alone": (wait, None, 0),
    "names": (write, lambda port, n: f"https://n{n}.hang.invalid/", 75),
    "creations": (create_endpoints, None, 0),
    "endpoints": (write, lambda port, n: f"http://127.0.0.1:{port}/hangs/{n}", 100),
    "node": (read_balances, None, 0),
    "logins": (log_in, None, 0),
    "forged": (forge_notices, None, 0),
    "notices": (report_notices, None, 0),
}
"""Each attack, and the endpoints that the attacker has before it."""


@contextmanager
def set_up(name: str, processes: int, seconds: float) -> Iterator[tuple[Setup, Receiver]]:
    """The deployment, running."""
    _, url_of, count = ATTACKS[name]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        receiver = Receiver()
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        stack.callback(receiver.shutdown)
        deployed = Deployed.made(
            folder,
            f"sqlite:///{folder}/payments.db",
            http={"port": 0, "trusted_proxies": ["127.0.0.1"]},
        )
        deployed.run("admin", "migrate")
        apps, credentials = [], []
        for partner in ("attacker", "neighbour"):
            apps.append(deployed.admin("apps", "create", partner, "--partner-id", partner))
            key = deployed.admin("keys", "create", partner, "--name", "server")
            credentials.append(basic_authorization(apps[-1]["appId"], key["secret"]))
        port = receiver.server_address[1]
        environments = _prepare(deployed, port, url_of, count)
        if name == "node":
            os.environ["HANG_BALANCES"] = "1"
            stack.callback(os.environ.pop, "HANG_BALANCES")
        children = [
            stack.enter_context(_started(deployed, command))
            for command in ("serve", "worker")
            for _ in range(processes)
        ]
        ports = tuple(
            int(str(child.read_messages()[0]["url"]).rsplit(":", 1)[1])
            for child in children[:processes]
        )
        attacker, neighbour = (
            Tenant(ports, credential, f"198.51.100.{number}")
            for number, credential in enumerate(credentials, 1)
        )
        _, made = attacker.create_account(0)
        account_id = made["accountId"]
        yield (
            Setup(
                attacker, neighbour, seconds, apps[0]["appId"], environments["attacker"], account_id
            ),
            receiver,
        )


@contextmanager
def _started(deployed: Deployed, command: str) -> Iterator[ChildProcess]:
    arguments = [command, "--config", str(deployed.config), "--json"]
    child = ChildProcess(command, "benchmarks.hanging_world", arguments)
    try:
        child.wait_until_ready()
        yield child
    finally:
        child.end()


class _NoNames:
    """Nothing resolves, so that endpoints are made without any look-up."""

    def resolve(self, host: str, port: int, timeout_s: float, *, environment_id: str) -> list[str]:
        return ["93.184.216.34"]


def _prepare(
    deployed: Deployed, port: int, url_of: Callable[[int, int], str] | None, count: int
) -> dict[str, str]:
    """Make the endpoints before anything runs; the ids of the environments by their partners."""
    ring = KeyRing.parse((deployed.folder / "key-ring").read_text().strip())
    storage = open_storage(deployed.storage_url, RECORD_TYPES)
    settings = Settings(webhooks=WebhookSettings(local_allowed=True))
    found = {}
    with closing(storage):
        service = PaymentsService(storage, ring, settings=settings, resolver=_NoNames())
        for partner in ("attacker", "neighbour"):
            app = service.tenants.find_app_by_partner(partner)
            assert app is not None
            found[partner] = app.environments["sandbox"]
        for partner, environment_id in found.items():
            authority = service.tenants.system_authority(environment_id)
            urls = [f"http://127.0.0.1:{port}/quick"]
            if partner == "attacker":
                urls = [url_of(port, n) for n in range(count)] if url_of else []
            for url in urls:
                service.acting_as(authority).webhooks.create(url=url)
    return found


def measure(name: str, processes: int, seconds: float) -> tuple[list[float], list[float], int]:
    """The neighbour's times to an answer and to a delivery, in seconds; and what was not 2xx, or
    not delivered."""
    attack = ATTACKS[name][0]
    with set_up(name, processes, seconds) as (setup, receiver):
        answers: list[float] = []
        made: dict[str, float] = {}
        missed = 0
        until = time.monotonic() + seconds
        attacking = threading.Thread(target=attack, args=(setup,), daemon=True)
        attacking.start()

        def read(number: int) -> int:
            began = time.monotonic()
            status, _ = setup.neighbour.send(number, "GET", "/v2/partners/config")
            answers.append(time.monotonic() - began)
            return status != 200

        def create(number: int) -> int:
            status, body = setup.neighbour.create_account(number)
            if status == 201:
                made[body["accountId"]] = time.monotonic()
            return status != 201

        with ThreadPoolExecutor(64) as pool:
            pending = []
            number = 0
            while time.monotonic() < until:
                pending.append(pool.submit(read, number))
                if number % int(WRITE_S / READ_S) == 0:
                    pending.append(pool.submit(create, number))
                number += 1
                time.sleep(READ_S)
            missed += sum(one.result() for one in pending)
        deadline = time.monotonic() + 60
        while set(made) - set(receiver.came) and time.monotonic() < deadline:
            time.sleep(0.05)
        missed += len(set(made) - set(receiver.came))
        delays = [
            max(0.0, receiver.came[id] - at) for id, at in made.items() if id in receiver.came
        ]
        attacking.join(30)
    return sorted(answers), sorted(delays), missed


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--attacks", nargs="+", default=list(ATTACKS))
    options = parser.parse_args()
    for processes in options.processes:
        print(f"{processes} serve, {processes} worker", flush=True)
        for name in options.attacks:
            answers, delays, missed = measure(name, processes, options.seconds)
            print(
                f"  {name:<10} requests p50 {_at(answers, 0.5):6.1f} ms, p99 "
                f"{_at(answers, 0.99):7.1f} ms; deliveries p50 {_at(delays, 0.5):6.1f} ms, p99 "
                f"{_at(delays, 0.99):7.1f} ms; {missed} of {len(answers) + len(delays)} missed",
                flush=True,
            )


def _at(times: list[float], part: float) -> float:
    return 1_000 * times[min(len(times) - 1, int(len(times) * part))] if times else float("nan")


if __name__ == "__main__":
    main()
