"""How far the service is from what it is to reach, in one table.

    python -m benchmarks.reach [--seconds 2] [--rounds 5]

Beside it stand `stripe-stateful-mock` (Node.js, in memory, nothing durable, nothing checked), which
npm installs into a temporary folder; a bare script that writes the rows of a create behind the same
server; and bare psycopg. `payments serve` runs in mode production, with credential, limits (out of
the way), idempotency, validation, durable commits and events. Rounds are interleaved; the figures
are medians, and medians of the ratios in a round. Everything shares this machine's cores.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs

from benchmarks import pipeline, serve_postgres, stripe_mock
from benchmarks.authorizations import Authorizations
from payments_core_http.cli.child_processes import ChildProcess
from tests.servers.cluster import Cluster

CONNECTIONS = 32
AUTHORIZATIONS = 400
"""In a round, each of an option that was made before."""
STARTS = 5


@attrs.frozen
class Target:
    """What is asked, again and again."""

    port: int
    request: str
    status: str


@attrs.frozen
class Line:
    """One line of the table."""

    what: str
    at_least: str
    aim: str
    measured: str

    def __str__(self) -> str:
        return f"| {self.what} | {self.at_least} | {self.aim} | {self.measured} |"


def rate(target: Target, seconds: float) -> float:
    """Answers a second over all connections."""
    reported = _ask("benchmarks.serving_clients", target, seconds=seconds)
    per_second: float = reported["answers"] / reported["seconds"]
    return per_second


def p99_ms(target: Target, per_second: float, seconds: float) -> float:
    """Of the answers' times, at that pace."""
    reported = _ask("benchmarks.paced_clients", target, rate=per_second, seconds=seconds)
    longest: float = reported["p99_ms"]
    return longest


def _ask(module: str, target: Target, **more: Any) -> Mapping[str, Any]:
    asked = {**attrs.asdict(target), "connections": CONNECTIONS, **more}
    done = subprocess.run(
        [sys.executable, "-m", module, json.dumps(asked)], stdout=subprocess.PIPE, check=True
    )
    reported: Mapping[str, Any] = json.loads(done.stdout)
    return reported


def interleave(targets: Mapping[str, Target], rounds: int, seconds: float) -> Mapping[str, Any]:
    """The rates of each target, round by round."""
    rates: dict[str, list[float]] = {name: [] for name in targets}
    for _ in range(rounds):
        for name, target in targets.items():
            rates[name].append(rate(target, seconds))
    for name, found in rates.items():
        spread = f"{min(found):.0f} to {max(found):.0f}"
        print(f"{name:28} {statistics.median(found):8.0f}/s   {spread}", flush=True)
    return rates


def ratio(rates: Mapping[str, list[float]], ours: str, theirs: str) -> str:
    """The median of the rounds' ratios."""
    pairs = zip(rates[ours], rates[theirs], strict=True)
    return f"{statistics.median(one / other for one, other in pairs):.2f} ×"


def bare_script(
    stack: ExitStack, folder: Path, schema_of: Path, template: pipeline.Template, request: str
) -> Target:
    """What writes those rows for each request, behind the same server."""
    facts = folder / "bare.json"
    answer = "x" * 1_800  # as long as a Payment
    facts.write_text(
        json.dumps({"schema_of": str(schema_of), "template": template, "answer": answer})
    )
    bare = ChildProcess("bare script", "benchmarks.bare_sqlite", [str(facts)])
    stack.callback(bare.end)
    return Target(int(bare.wait_until_ready()["port"]), request, "201")


@contextmanager
def sqlite_targets(stack: ExitStack) -> Iterator[dict[str, Target]]:
    """`payments serve` on an SQLite file, as one process and as two, and the bare script behind the
    same server."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    path = folder / "payments.db"
    deployment = serve_postgres.Deployment(folder, f"sqlite:///{path}")
    [port] = stack.enter_context(deployment.serving(1))
    deployment.prepare(port)
    made: list[str] = []
    rows = pipeline.Rows(path)
    deployment.make(port, "first")  # what only the first one writes is not counted
    template = rows.changed(lambda: made.append(deployment.make(port, "template")))
    bare = bare_script(stack, folder, path, template, deployment.request())
    print(f"A create on SQLite writes {len(template)} rows.")
    again = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    two = serve_postgres.Deployment(again, f"sqlite:///{again}/payments.db", processes=2)
    [port_of_two] = stack.enter_context(two.serving(1))
    two.prepare(port_of_two)
    read_of_two = two.read_request(two.make(port_of_two, "first"))
    yield {
        "read": Target(port, deployment.read_request(made[0]), "200"),
        "read, two processes": Target(port_of_two, read_of_two, "200"),
        "create": Target(port, deployment.request(), "201"),
        "create, two processes": Target(port_of_two, two.request(), "201"),
        "bare create": bare,
    }


def over_sqlite(rounds: int, seconds: float) -> list[Line]:
    """Reads and creates, beside the mock and the bare script, and p99 at half the peak."""
    with ExitStack() as stack, sqlite_targets(stack) as targets:
        mock = False
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            port, read = stack.enter_context(stripe_mock.stripe_mock(folder))
            targets["mock, read"] = Target(port, read, "200")
            targets["mock, create"] = Target(port, stripe_mock.CREATE, "200")
            mock = True
        except stripe_mock.NoMock as reason:
            print(f"Without the mock: {reason}")
        rates = interleave(targets, rounds, seconds)
        paced = {
            name: p99_ms(targets[name], statistics.median(rates[name]) / 2, rounds * seconds)
            for name in ("read", "create")
        }
    beside_mock = [
        Line("read vs the mock", "1.0 ×", "1.5 ×", ratio(rates, "read", "mock, read")),
        Line("read from two processes vs the mock", "1.0 ×", "1.5 ×",
             ratio(rates, "read, two processes", "mock, read")),
        Line("create on SQLite vs the mock in memory", "0.4 ×", "1.0 ×",
             ratio(rates, "create", "mock, create")),
    ]  # fmt: skip
    return [
        *(beside_mock if mock else ()),
        Line("create on SQLite vs the bare script behind the same server", "0.5 ×", "0.8 ×",
             ratio(rates, "create", "bare create")),
        Line("create from two processes vs the bare script", "0.5 ×", "0.8 ×",
             ratio(rates, "create, two processes", "bare create")),
        *(
            Line(f"p99 at half the peak, {name} on SQLite", "25 ms", "10 ms", f"{found:.0f} ms")
            for name, found in paced.items()
        ),
    ]  # fmt: skip


def authorize_in_one_thread(rounds: int, runs: int = 200) -> Line:
    """Authorizations through WSGI beside the bare script, in one thread."""
    with tempfile.TemporaryDirectory() as folder:
        bench = pipeline.Bench(Path(folder))
        prepared = bench.option()
        template = pipeline.Rows(bench.path).changed(lambda: bench.authorize(prepared))
        ratios = []
        for _ in range(rounds):
            ready = iter([bench.option() for _ in range(runs)])
            ours = pipeline.timed(lambda: bench.authorize(next(ready)), runs)  # noqa: B023
            ratios.append(ours / (runs / pipeline.bare(bench.path, template, runs)))
        bench.close()
    return Line("authorize on SQLite (WSGI) vs its bare script", "0.35 ×", "0.6 ×",
                f"{statistics.median(ratios):.2f} ×")  # fmt: skip


def authorize(rounds: int, seconds: float) -> list[Line]:
    """Authorizations over sockets, beside the bare script behind the same server."""
    rates: dict[str, list[float]] = {"one": [], "two": [], "bare": []}
    with ExitStack() as stack:
        ready = {}
        for name, processes in (("one", 1), ("two", 2)):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            path = folder / "payments.db"
            deployment = serve_postgres.Deployment(
                folder, f"sqlite:///{path}", processes=processes, mode="sandbox"
            )
            [port] = stack.enter_context(deployment.serving(1))
            ready[name] = Authorizations(deployment, port)
            ready[name].prepare(rounds * (AUTHORIZATIONS + CONNECTIONS) + 2)
        ready["two"].authorize_one()  # what only the first one writes is not counted
        template = pipeline.Rows(path).changed(ready["two"].authorize_one)
        bare = bare_script(stack, folder, path, template, deployment.request())
        for _ in range(rounds):
            for name, one in ready.items():
                rates[name].append(one.rate(AUTHORIZATIONS, CONNECTIONS))
            rates["bare"].append(rate(bare, seconds))
    return [
        Line(f"authorize on SQLite {what}", "0.35 ×", "0.6 ×", ratio(rates, name, "bare"))
        for name, what in (
            ("one", "vs the bare script behind the same server"),
            ("two", "from two processes vs the bare script"),
        )
    ]


def over_postgres(rounds: int, seconds: float) -> list[Line]:
    """Creates and authorizations of one `payments serve`, and of one that has two processes, beside
    bare psycopg in one process of eight threads."""
    lines = []
    for processes, more in ((1, ""), (2, " from two processes")):
        for what, ratios in (
            ("create", creates_over_postgres(processes, rounds, seconds)),
            ("authorize", authorizations_over_postgres(processes, rounds, seconds)),
        ):
            measured = f"{statistics.median(ratios):.2f} ×"
            lines.append(
                Line(f"{what} on PostgreSQL{more} vs bare psycopg", "0.5 ×", "0.7 ×", measured)
            )
    return lines


@contextmanager
def on_postgres(processes: int, mode: str) -> Iterator[tuple[serve_postgres.Deployment, int]]:
    """A deployment on a server of its own, and its port."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(settings={"shared_buffers": "256MB"}) as cluster,
    ):
        deployment = serve_postgres.Deployment(
            Path(folder), cluster.url(), processes=processes, mode=mode
        )
        with deployment.serving(1) as [port]:
            yield deployment, port


def creates_over_postgres(processes: int, rounds: int, seconds: float) -> list[float]:
    """The ratios to the rate of the bare script."""
    ratios = []
    with on_postgres(processes, "production") as (deployment, port):
        deployment.prepare(port)
        request = deployment.request()
        serve_postgres.served([port], request, seconds)
        template = deployment.written(lambda: deployment.make(port, "template"))
        for _ in range(rounds):
            ours, _ = serve_postgres.served([port], request, seconds)
            ratios.append(ours / serve_postgres.bare(deployment.storage_url, template, 1, seconds))
    return ratios


def authorizations_over_postgres(processes: int, rounds: int, seconds: float) -> list[float]:
    """The ratios to the rate of the bare script."""
    ratios = []
    connections = serve_postgres.CONNECTIONS
    with on_postgres(processes, "sandbox") as (deployment, port):
        ready = Authorizations(deployment, port)
        ready.prepare((rounds + 1) * (AUTHORIZATIONS + connections) + 2)
        ready.rate(AUTHORIZATIONS, connections)
        ready.authorize_one()
        template = deployment.written(ready.authorize_one)
        for _ in range(rounds):
            ours = ready.rate(AUTHORIZATIONS, connections)
            ratios.append(ours / serve_postgres.bare(deployment.storage_url, template, 1, seconds))
    return ratios


def at_rest() -> list[Line]:
    """The sandbox: until it is ready, and its memory then; `--help`, and the import."""
    ready_s, resident = [], []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["sandbox", "--port", "0", "--data", folder, "--json"]
            began = time.perf_counter()
            sandbox = ChildProcess("sandbox", "payments_core_http.cli", arguments)
            try:
                sandbox.wait_until_ready()
                ready_s.append(time.perf_counter() - began)
                status = Path(f"/proc/{sandbox.pid}/status").read_text()
                resident.append(int(status.partition("VmRSS:")[2].split()[0]) / 1024)
            finally:
                sandbox.end()
    helped = _time_of("-m", "payments_core_http.cli", "--help")
    imported = _time_of("-c", "import payments_core") - _time_of("-c", "pass")
    return [
        Line("resident memory of `payments sandbox` at rest", "120 MB", "80 MB",
             f"{statistics.median(resident):.0f} MB"),
        Line("`payments sandbox` is ready", "1.3 s", "", f"{statistics.median(ready_s):.2f} s"),
        Line("`payments --help`", "150 ms", "", f"{helped * 1000:.0f} ms"),
        Line("`import payments_core`", "", "", f"{imported * 1000:.0f} ms"),
    ]  # fmt: skip


def _time_of(*arguments: str) -> float:
    """The median seconds of a Python with these arguments."""

    def once() -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began

    return statistics.median(once() for _ in range(STARTS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    parts: list[Callable[[], list[Line]]] = [
        lambda: over_sqlite(options.rounds, options.seconds),
        lambda: authorize(options.rounds, options.seconds),
        lambda: [authorize_in_one_thread(options.rounds)],
        lambda: over_postgres(options.rounds, options.seconds),
        at_rest,
    ]
    lines = [line for part in parts for line in part()]
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    python = f"Python {sys.version.split()[0]} of {sys.base_prefix}"
    print(f"\n{python}, {os.cpu_count()} cores, load averages at the end {load}\n")
    print("| What | At least | Aim | Measured |\n| - | - | - | - |")
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
