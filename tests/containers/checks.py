"""What is checked of the running topology; each returns what it saw."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from typing import Any

import attrs

from payments_core_http.cli.api_client import basic_authorization
from tests.containers.topology import NAME, Topology

PAUSE_S = 0.15
READS_PER_WRITE = 5
"""Within the policies of one app: 70 writes and 500 reads a minute."""

SERVES, WORKERS = ("serve-1", "serve-2"), ("worker-1", "worker-2")
RESTART_S = 60.0


class _Connection(http.client.HTTPConnection):
    """To the port of nginx, under the name that its certificate should have."""

    def connect(self) -> None:
        super().connect()
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # of the tests' own authority, on the loopback
        self.sock = context.wrap_socket(self.sock, server_hostname=NAME)


@attrs.define(eq=False, slots=False)
class Load(threading.Thread):
    """A partner that reads, and creates accounts, each with a key of its own."""

    port: int
    credential: str
    prefix: str
    answers: int = 0
    accounts: list[str] = attrs.field(factory=list)
    failures: list[str] = attrs.field(factory=list)
    worst_s: float = 0.0
    _ended: threading.Event = attrs.field(factory=threading.Event)

    def __attrs_pre_init__(self) -> None:
        super().__init__(daemon=True)

    def run(self) -> None:
        number = 0
        while not self._ended.wait(PAUSE_S):
            number += 1
            began = time.monotonic()
            try:
                if number % (READS_PER_WRITE + 1):
                    self._note(*self.ask("GET", "/v2/partners/config"), expected=200)
                else:
                    name = f"{self.prefix}{number}"
                    self._note(*self.ask("POST", "/v2/accounts", name), expected=201)
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
            self.worst_s = max(self.worst_s, time.monotonic() - began)

    def _note(self, status: int, document: Any, *, expected: int) -> None:
        if status != expected:
            self.failures.append(f"{status} {document}")
            return
        self.answers += 1
        if status == 201:
            self.accounts.append(document["id"])

    def ask(self, method: str, path: str, name: str | None = None) -> tuple[int, Any]:
        """One request on a connection of its own, through nginx."""
        connection = _Connection("127.0.0.1", self.port, timeout=30)
        headers = {"Host": NAME, "Authorization": self.credential}
        body = None
        if name is not None:
            headers |= {"Content-Type": "application/json", "Idempotency-Key": name}
            body = json.dumps({"externalUserId": name, "subjectType": "individual"})
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def end(self) -> None:
        self._ended.set()
        self.join()


def _begin_load(topology: Topology, prefix: str) -> Load:
    """Requests of an app of their own."""
    app = topology.admin("apps", "create", "Shop", "--partner-id", prefix)
    key = topology.admin("keys", "create", prefix, "--name", "server")
    load = Load(topology.https_port, basic_authorization(app["appId"], key["secret"]), prefix)
    load.start()
    return load


def _require_all(load: Load) -> None:
    """Each account that was answered is there, once."""
    for id in load.accounts:
        status, document = load.ask("GET", f"/v2/accounts/{id}")
        assert (status, document.get("id")) == (200, id), (status, document)
    assert len(set(load.accounts)) == len(load.accounts) > 0


def check_isolation(topology: Topology) -> str:
    """No container of ours is root, can write outside of /tmp, or has a capability."""
    for service in (*SERVES, *WORKERS):
        found = topology.inspect(service)
        assert found["Config"]["User"] == "10001:10001"
        assert found["HostConfig"]["ReadonlyRootfs"]
        assert found["HostConfig"]["CapDrop"] == ["ALL"]
        assert found["State"]["Health"]["Status"] == "healthy", found["State"]["Health"]
        first = topology.compose("exec", "-T", service, "cat", "/proc/1/cmdline", "/proc/1/status")
        assert "/opt/payments/bin/payments" in first and "CapEff:\t0000000000000000" in first
        topology.compose("exec", "-T", service, "python3", "-c", "open('/x', 'w')", fails=True)
    return "4 containers are healthy, not root, without capabilities, on a read-only root"


def check_upgrade(topology: Topology) -> str:
    """Each container is replaced by one of the next tag, and no request stays without an answer."""
    before = {service: topology.find_id(service) for service in (*SERVES, *WORKERS)}
    image = topology.environ["PAYMENTS_IMAGE"]
    topology.environ["PAYMENTS_IMAGE"] = f"{image.rpartition(':')[0]}:next"
    topology.run("docker", "tag", image, topology.environ["PAYMENTS_IMAGE"])
    load = _begin_load(topology, "upgrade")
    began = time.monotonic()
    topology.run("./upgrade-one-by-one", *SERVES)
    for worker in WORKERS:
        topology.compose("up", "--detach", "--no-deps", "--wait", worker)
    took = time.monotonic() - began
    load.end()
    assert not load.failures, load.failures[:5]
    assert all(topology.find_id(service) != id for service, id in before.items())
    _require_all(load)
    return (
        f"4 containers replaced in {took:.0f} s; {load.answers} requests, all answered, the "
        f"slowest in {load.worst_s:.2f} s"
    )


def check_kills(topology: Topology) -> str:
    """A `serve` and a `worker` die; each is there again, and nothing that was answered is lost."""
    load = _begin_load(topology, "kills")
    told = []
    for service in (SERVES[0], WORKERS[0]):
        # As a crash: `docker kill` would count as a wish of the operator, and restart nothing.
        pid = topology.inspect(service)["State"]["Pid"]
        began = time.monotonic()
        topology.run("kill", "-9", str(pid))
        while True:
            state = topology.inspect(service)["State"]
            if state["Pid"] not in (0, pid) and state["Health"]["Status"] == "healthy":
                break
            assert time.monotonic() - began < RESTART_S, state
            time.sleep(0.5)
        told.append(f"{service} healthy again after {time.monotonic() - began:.0f} s")
    load.end()
    _require_all(load)
    return (
        f"{', '.join(told)}; {load.answers} requests answered, {len(load.failures)} to be "
        "sent again, none lost"
    )


def check_stops(topology: Topology) -> str:
    """Each container ends by itself when it is asked to."""
    took = {}
    for service in (*SERVES, *WORKERS):
        began = time.monotonic()
        topology.compose("stop", service)
        took[service] = time.monotonic() - began
        state = topology.inspect(service)["State"]
        assert (state["ExitCode"], state["OOMKilled"]) == (0, False), state
    return f"each ended with 0 on SIGTERM, the slowest in {max(took.values()):.1f} s"
