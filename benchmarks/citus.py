"""What Citus costs and gives: a PostgreSQL alone, and a coordinator with one, two and three nodes.

    python -m benchmarks.citus [--runs 100] [--writers 6] [--seconds 4] [--nodes 1 2 3]

First what each operation costs in processor time of all servers, and of the first, which is the
coordinator; that hardly depends on what else the machine does. Then how many transactions a second
several writers get through: each writes the rows of a create, by psycopg alone, into an environment
of its own. All servers share the cores of this machine, so more nodes cannot give more of these
here: the ratio says what the way over a coordinator costs, and not what three machines would carry.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import psycopg

from benchmarks import costs, pipeline, serve_postgres
from benchmarks.processors import children_of, processor_s
from tests.servers.citus import CitusCluster, NoCitus, citus_programs
from tests.servers.cluster import Cluster

SAFE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
SHARDS = {"citus.shard_count": "6"}
"""Citus has 32 by default; a look asks each of them, and to make all of them takes minutes."""


@attrs.define
class Layout:
    """Servers, where clients connect, and what was measured of them."""

    name: str
    url: str
    servers: Sequence[Cluster]
    figures: dict[str, float] = attrs.field(factory=dict)

    def measure(self, name: str, runs: int, do: Callable[[], Any]) -> None:
        """Note the processor time in milliseconds of one of so many, which this does together."""
        before = [_processor_s(server) for server in self.servers]
        do()
        spent = [
            _processor_s(server) - began for server, began in zip(self.servers, before, strict=True)
        ]
        self.figures[f"{name}, ms"] = sum(spent) / runs * 1000
        self.figures[f"{name}, ms of the first server"] = spent[0] / runs * 1000


def _processor_s(server: Cluster) -> float:
    """Processor time of a server so far."""
    pid = server.pid
    assert pid is not None
    return processor_s([pid, *children_of(pid)])


@contextmanager
def started(nodes: int) -> Iterator[Layout]:
    """A PostgreSQL alone for no nodes, or else Citus."""
    if not nodes:
        with Cluster(settings=SAFE) as alone:
            yield Layout("PostgreSQL", alone.url(), [alone])
    else:
        with CitusCluster(nodes, settings={**SAFE, **SHARDS}) as citus:
            name = f"Citus, {nodes} node{'s' * (nodes > 1)}"
            yield Layout(name, citus.url(), [citus.coordinator, *citus.nodes])


def measure(layout: Layout, runs: int, writers: int, seconds: float) -> None:
    """All figures of a layout."""
    with tempfile.TemporaryDirectory() as folder:
        bench = pipeline.Bench(Path(folder), layout.url)
        try:
            template = written(layout.url, bench)
            for _ in range(10):  # by then what comes often is prepared
                bench.create()
            path = f"/v2/payments/{bench.create()['id']}"
            read = costs.repeat(runs, lambda: bench.call("GET", path))
            layout.measure("read a Payment", runs, read)
            layout.measure("create a Payment", runs, costs.repeat(runs, bench.create))
            bench.service.worker("sandbox").run_until_idle()
            layout.measure("a whole Payment", runs, lambda: settle(bench, runs))
        finally:
            bench.close()
    layout.figures["creates a second"] = written_a_second(layout.url, template, writers, seconds)


def settle(bench: pipeline.Bench, runs: int) -> None:
    """So many Payments from nothing to succeeded, as `benchmarks.costs` counts them."""
    for _ in range(runs):
        bench.authorize(bench.option())
    bench.call("POST", "/v2/sandbox/clock", {"advanceSeconds": 600})


def written(url: str, bench: pipeline.Bench) -> serve_postgres.Template:
    """The rows that one create inserts."""
    with psycopg.connect(url) as connection:
        before = serve_postgres.read_rows(connection)
        bench.create()
        connection.rollback()
        after = serve_postgres.read_rows(connection)
    return [
        (table, tuple(row), tuple(row.values()))
        for table, rows in after.items()
        for place, row in rows.items()
        if place not in before[table]
    ]


def written_a_second(
    url: str, template: serve_postgres.Template, writers: int, seconds: float
) -> float:
    """Transactions a second of writers that each have an environment."""
    running = []
    for number in range(writers):
        rows = [
            (table, names, [f"env_{number}" if n == "partition" else v
                            for n, v in zip(names, row, strict=True)])
            for table, names, row in template
        ]  # fmt: skip
        writer = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.bare_postgres"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert writer.stdin is not None
        asked = {"url": url, "template": rows, "seconds": seconds, "threads": 2}
        writer.stdin.write(json.dumps(asked).encode())
        writer.stdin.close()
        writer.stdin = None
        running.append(writer)
    reported = [json.loads(writer.communicate()[0]) for writer in running]
    return float(sum(one["transactions"] / one["seconds"] for one in reported))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--writers", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--nodes", type=int, nargs="*", default=[1, 2, 3])
    options = parser.parse_args()
    try:
        citus_programs()
    except NoCitus as reason:
        print(f"Citus is not measured: {reason}")
        return
    layouts = []
    for nodes in (0, *options.nodes):
        with started(nodes) as layout:
            measure(layout, options.runs, options.writers, options.seconds)
        layouts.append(layout)
        alone = layouts[0].figures
        for name, figure in layout.figures.items():
            ratio = figure / alone[name]
            print(f"{layout.name:16} {name:40} {figure:9.2f} {ratio:7.2f} times", flush=True)
    print(f"cores: {os.cpu_count()}, shared by all servers and clients")


if __name__ == "__main__":
    main()
