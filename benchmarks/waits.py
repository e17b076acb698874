"""Requests that wait for something else than PostgreSQL's answers, and what others notice of it.

    python -m benchmarks.waits [--before CHECKOUT] [--rounds 5] [--seconds 2]

- identical: three clients send each create together, with one Idempotency-Key; on SQLite, and on
  PostgreSQL.
- node: four clients wait 20 ms each for another server, as for a chain's node.
- pool: 16 clients create Payments on PostgreSQL with four connections for eight threads.

Beside each of them a neighbour asks for something quick, again and again. With a checkout of
another release, its server is measured in turn with this one, on a database of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import attrs

from benchmarks.serve_postgres import Deployment
from tests.chains.loopback import serving
from tests.servers.cluster import Cluster

ROOT = Path(__file__).resolve().parent.parent
TOGETHER = 3
"""Two wait for the first: a quarter of the threads may."""
WAITING, CREATING = 4, 16
NODE_S = 0.02
PAUSE_S = 0.003
PROGRAM = (ROOT / "benchmarks" / "waits_for_node.py").read_text()
"""It is run as a text, since another release does not have it."""

Clients = Callable[["Target", "Round"], None]


@attrs.define
class Target:
    """A release's server, and what was measured there."""

    port: int
    quick: str
    """What the neighbour asks for."""
    headers: Mapping[str, str] = attrs.field(factory=dict)
    payment: str = ""
    answers: list[float] = attrs.field(factory=list)
    """A second, by round."""
    neighbour: list[float] = attrs.field(factory=list)
    """The seconds of each of its requests."""
    round: int = 0


@attrs.define
class Round:
    """What the clients of a round have done; it ends at an instant of the monotonic clock."""

    name: str
    until: float
    answers: int = 0

    @property
    def is_over(self) -> bool:
        """Whether no other request is to be sent."""
        return time.monotonic() >= self.until

    def count(self, status: int) -> None:
        """Count an answer."""
        assert 200 <= status < 300, status
        self.answers += 1


def ask(http: HTTPConnection, target: Target, path: str, key: str | None = None) -> int:
    """Read that, or with a key create a Payment; the status."""
    headers = dict(target.headers)
    if key is not None:
        headers |= {"Content-Type": "application/json", "Idempotency-Key": key}
    http.request("GET" if key is None else "POST", path, target.payment if key else None, headers)
    answer = http.getresponse()
    answer.read()
    return answer.status


def create_identical(target: Target, round: Round) -> None:
    """Each create from several clients at once."""
    together = threading.Barrier(TOGETHER)

    def create(http: HTTPConnection) -> None:
        number = 0
        try:
            while not round.is_over:
                together.wait(5.0)
                number += 1
                round.count(ask(http, target, "/v2/payments", f"{round.name}-{number}"))
        except threading.BrokenBarrierError:
            pass
        finally:
            together.abort()

    _run([create] * TOGETHER, target)


def wait_for_node(target: Target, round: Round) -> None:
    """Requests that wait for another server."""

    def wait(http: HTTPConnection) -> None:
        while not round.is_over:
            round.count(ask(http, target, "/waits"))

    _run([wait] * WAITING, target)


def create(target: Target, round: Round) -> None:
    """Each create from one client."""
    numbers = iter(range(10**9))

    def create_some(http: HTTPConnection) -> None:
        while not round.is_over:
            round.count(ask(http, target, "/v2/payments", f"{round.name}-{next(numbers)}"))

    _run([create_some] * CREATING, target)


def _run(clients: Sequence[Callable[[HTTPConnection], None]], target: Target) -> None:
    with ThreadPoolExecutor(len(clients)) as threads:
        running = [threads.submit(one, HTTPConnection("127.0.0.1", target.port)) for one in clients]
        for one in running:
            one.result()


def measure(target: Target, clients: Clients, seconds: float) -> None:
    """One round."""
    target.round += 1
    round = Round(f"round-{target.round}", time.monotonic() + seconds)

    def notice() -> None:
        http = HTTPConnection("127.0.0.1", target.port)
        while not round.is_over:
            began = time.perf_counter()
            assert ask(http, target, target.quick) == 200
            target.neighbour.append(time.perf_counter() - began)
            time.sleep(PAUSE_S)

    neighbour = threading.Thread(target=notice)
    neighbour.start()
    clients(target, round)
    neighbour.join()
    target.answers.append(round.answers / seconds)


@contextmanager
def started(checkout: Path, *arguments: str) -> Iterator[str]:
    """A server with the packages of a checkout; its first line."""
    child = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=checkout, env={"PYTHONPATH": str(checkout)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert child.stdout is not None
        yield child.stdout.readline()
    finally:
        child.terminate()
        child.wait()


@contextmanager
def payments(checkout: Path, storage_url: str | None) -> Iterator[Target]:
    """`payments serve` of a checkout, on a file unless a storage is given."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        deployment = Deployment(folder, storage_url or f"sqlite:///{folder}/payments.db")
        serve = ("-m", "payments_core_http.cli", "serve", "--config", str(deployment.config))
        ready: dict[str, Any] = json.loads(stack.enter_context(started(checkout, *serve, "--json")))
        port = int(str(ready["url"]).rpartition(":")[2])
        deployment.prepare(port)
        read = f"/v2/payments/{deployment.make(port, 'first')}"
        headers = {"Authorization": deployment.credential}
        yield Target(port, read, headers, json.dumps(deployment.payment))


@contextmanager
def on_postgres(checkout: Path, options: str = "") -> Iterator[Target]:
    """The same on a cluster of its own."""
    with Cluster() as cluster, payments(checkout, cluster.url() + options) as target:
        yield target


@contextmanager
def beside_node(checkout: Path) -> Iterator[Target]:
    """The server of `waits_for_node.py`, and a node that answers slowly."""

    def answer(*_: object) -> tuple[int, bytes]:
        time.sleep(NODE_S)
        return 200, b"{}"

    with serving(answer) as url, started(checkout, "-c", PROGRAM, url) as port:
        yield Target(int(port), "/computes")


CASES: Mapping[str, tuple[Clients, Callable[[Path], Any]]] = {
    "identical creates, SQLite": (create_identical, lambda checkout: payments(checkout, None)),
    "identical creates, PostgreSQL": (create_identical, on_postgres),
    "requests that wait for a node": (wait_for_node, beside_node),
    "creates with ?pool=4": (create, lambda checkout: on_postgres(checkout, "&pool=4")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="a checkout of the release to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    releases = {"now": ROOT}
    if options.before is not None:
        releases["before"] = options.before.resolve()
    print("| | | answers a second | neighbour, median | p99 |\n| - | - | - | - | - |")
    for case, (clients, start) in CASES.items():
        with ExitStack() as stack:
            targets = {
                name: stack.enter_context(start(checkout)) for name, checkout in releases.items()
            }
            for _ in range(options.rounds):
                for target in targets.values():
                    measure(target, clients, options.seconds)
        for name, target in targets.items():
            times = sorted(one * 1000 for one in target.neighbour)
            print(
                f"| {case} | {name} | {statistics.median(target.answers):.0f} "
                f"| {statistics.median(times):.1f} ms | {times[len(times) * 99 // 100]:.1f} ms |",
                flush=True,
            )


if __name__ == "__main__":
    main()
