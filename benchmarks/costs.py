"""What an operation costs on PostgreSQL: round trips, statements, processor time, rows and bytes.

    python -m benchmarks.costs [--runs 200] [--seconds 5]

Counts do not depend on how busy the machine is, and processor time hardly does; so these, and not
rates, are what docs/scale.md reckons with. The cluster is private and waits for the disk.

First everything in this process, over WSGI, in a sandbox: each operation after a few of its kind,
on one connection. What the simulated chains and the sandbox's clock ask the storage is counted
apart, since real chains ask their nodes instead. Then creates through a `payments serve` of mode
production, whose processor time is read from the system, and so is PostgreSQL's. Last, a whole
Payment with one webhook endpoint (`payment_costs.py`).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import payment_costs, pipeline, serve_postgres, webhook_receiver, webhooks
from benchmarks.processors import children_of, processor_s
from payments_core.credentials.keyring import KeyRing
from payments_core.public_url import LOCAL_URL
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.postgres.pipeline import EncodedParams, PipelinedConnection, ResultRow
from payments_core.storage_loader import open_storage
from payments_core.webhooks.settings import WebhookSettings
from tests.servers.cluster import Cluster

TITLES = ("runs", "trips", "statements", "apart", "commits", "ms", "PG ms", "WAL")
"""`apart` are round trips for what a sandbox simulates. `WAL` is in bytes, without the whole pages
that PostgreSQL adds where a page is changed for the first time after a checkpoint."""
WITHOUT_PAGES = {"full_page_writes": "off"}
THREADS = 8
APART = ("simulated", "sandbox_clock")


_RUN = PipelinedConnection.run


class Meter:
    """Counts what this process asks PostgreSQL, while it is on."""

    def __init__(self, cluster: Cluster) -> None:
        self.counts: Counter[str] = Counter()
        self._cluster = cluster
        self._connection = psycopg.connect(cluster.url(), autocommit=True)
        self._apart: dict[int, bool] = {}
        inner = _RUN

        def run(
            wire: PipelinedConnection, statements: Sequence[tuple[str, EncodedParams]]
        ) -> list[list[ResultRow]]:
            kind = "apart" if self._is_apart(wire, statements) else "ours"
            self.counts["trips" if kind == "ours" else "apart"] += 1
            self.counts["statements"] += len(statements) if kind == "ours" else 0
            self.counts["commits"] += sum(sql.startswith("COMMIT") for sql, _ in statements)
            return inner(wire, statements)

        PipelinedConnection.run = run  # type: ignore[method-assign, assignment]

    def _is_apart(
        self, wire: PipelinedConnection, statements: Sequence[tuple[str, EncodedParams]]
    ) -> bool:
        """Whether it belongs to a transaction of the simulated chains or the sandbox's clock."""
        if wire.is_free:  # otherwise it goes on with a transaction
            self._apart[id(wire)] = any(
                value is not None and any(name.encode() in value for name in APART)
                for _, values in statements
                for value in values
            ) or any(name in sql for sql, _ in statements for name in APART)
        return self._apart.get(id(wire), False)

    def postgres_s(self) -> float:
        """Processor time of PostgreSQL so far, the backends that live and those that ended."""
        pid = self._cluster.pid
        assert pid is not None
        return processor_s([pid, *children_of(pid)])

    def wal_bytes(self) -> int:
        row = self._connection.execute(
            "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
        ).fetchone()
        assert row is not None
        return int(row[0])

    def vacuum(self) -> None:
        """As autovacuum does: what was deleted or replaced leaves room for what comes."""
        self._connection.execute("VACUUM")

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Rows and bytes of each table, its indexes among them."""
        tables = self._connection.execute(
            "SELECT relname, pg_total_relation_size(oid) FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        found = {}
        for table, size in tables:
            row = self._connection.execute(f'SELECT count(*) FROM "{table}"'.encode()).fetchone()
            assert row is not None
            found[table] = (int(row[0]), int(size))
        return found

    def measure(self, name: str, do: Callable[[], Any], runs: int) -> None:
        """Do it so often, and print what one costs. What is prepared for it is done before."""
        self.counts.clear()
        wal, theirs = self.wal_bytes(), self.postgres_s()
        began = time.process_time()
        done = do()
        spent = time.process_time() - began
        theirs = self.postgres_s() - theirs
        runs = done if isinstance(done, int) else runs
        wal = self.wal_bytes() - wal
        each = {name: count / runs for name, count in sorted(self.counts.items())}
        row = (
            *(f"{each.get(title, 0):.2f}" for title in TITLES[1:5]),
            f"{spent / runs * 1000:.2f}",
            f"{theirs / runs * 1000:.2f}",
            f"{wal / runs:.0f}",
        )
        print(f"{name:32}", f"{runs:9}", *(f"{figure:>9}" for figure in row), flush=True)


def repeat(runs: int, do: Callable[[], Any]) -> Callable[[], None]:
    def repeated() -> None:
        for _ in range(runs):
            do()

    return repeated


@contextmanager
def sandbox(cluster: Cluster) -> Iterator[pipeline.Bench]:
    with tempfile.TemporaryDirectory() as folder:
        bench = pipeline.Bench(Path(folder), cluster.url())
        try:
            yield bench
        finally:
            bench.close()


def operations(meter: Meter, bench: pipeline.Bench, runs: int) -> None:
    made = [bench.create() for _ in range(10)]
    path = f"/v2/payments/{made[0]['id']}"
    read = repeat(runs, lambda: bench.call("GET", path))
    meter.measure("read a Payment", read, runs)
    meter.measure("create a Payment", repeat(runs, bench.create), runs)
    again = {**bench.basic, "Idempotency-Key": "bench-1"}
    body = pipeline.payment(bench.recipient)
    meter.measure(
        "the same create again",
        repeat(runs, lambda: bench.call("POST", "/v2/payments", body, again)),
        runs,
    )
    worker = bench.service.worker("sandbox")
    meter.measure("a job, what creates left", lambda: worker.run_until_idle(), runs)
    prepared = [bench.option() for _ in range(runs)]
    worker.run_until_idle()
    waiting = iter(prepared)
    meter.measure("authorize", repeat(runs, lambda: bench.authorize(next(waiting))), runs)
    meter.measure("a job, what authorizes left", lambda: worker.run_until_idle(), runs)

    def settle() -> None:
        bench.call("POST", "/v2/sandbox/clock", {"advanceSeconds": 600})

    meter.measure("until settled, for each Payment", settle, runs)


def growth(meter: Meter, bench: pipeline.Bench, runs: int) -> None:
    """From nothing to settled, without webhooks: what it all costs, and what stays of it."""

    def whole() -> None:
        for _ in range(runs):
            bench.authorize(bench.option())
        bench.call("POST", "/v2/sandbox/clock", {"advanceSeconds": 600})

    claims: Counter[str] = Counter()
    storage: Any = bench.service.parts.ports.storage
    inner = storage.claim

    def claim(queue: str, *rest: Any, **more: Any) -> Any:
        claimed = inner(queue, *rest, **more)
        claims[queue] += bool(claimed)
        return claimed

    storage.claim = claim
    meter.vacuum()
    before = meter.sizes()
    meter.measure("a whole Payment, three calls", whole, runs)
    print("    claims with work:", {queue: count / runs for queue, count in claims.items()})
    meter.vacuum()
    made = bench.call("GET", "/v2/payments")
    print("their statuses:", Counter(one["status"] for one in made["data"]))
    after = meter.sizes()
    total: Counter[str] = Counter()
    for table, (rows, size) in sorted(after.items()):
        more, bytes_more = rows - before[table][0], size - before[table][1]
        if more or bytes_more:
            print(f"    {table:32} {more / runs:7.2f} rows {bytes_more / runs:9.0f} bytes")
            apart = "apart" if table.startswith(APART) else "ours"
            total[f"rows, {apart}"] += more
            total[f"bytes, {apart}"] += bytes_more
    print("    together", {name: round(count / runs, 1) for name, count in total.items()})


def on_sqlite(runs: int) -> None:
    """The same whole Payments on an SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        bench = pipeline.Bench(Path(folder))
        try:
            before = bench.path.stat().st_size
            began, spent = time.perf_counter(), time.process_time()
            for _ in range(runs):
                bench.authorize(bench.option())
            bench.call("POST", "/v2/sandbox/clock", {"advanceSeconds": 600})
            took_ms = (time.perf_counter() - began) / runs * 1000
            spent_ms = (time.process_time() - spent) / runs * 1000
        finally:
            bench.close()
        kept = (bench.path.stat().st_size - before) / runs
    print(
        f"a whole Payment on SQLite: {spent_ms:.1f} ms of processor, {took_ms:.1f} ms in all,"
        f" {kept:.0f} bytes"
    )


def hot_vault(bench: pipeline.Bench, runs: int) -> None:
    """Authorizations a second by eight threads of this process: of one vault, and of eight."""
    payers = [bench.bearer, *(payer(bench, f"payer-{n}") for n in range(1, THREADS))]
    for name, vaults in (("eight vaults", payers), ("one vault", payers[:1] * THREADS)):
        work = []
        for bearer in vaults:
            bench.bearer = bearer
            work.append([bench.option() for _ in range(runs // THREADS)])
        began, spent = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(THREADS) as pool:
            # `list`, so that an authorization that fails raises.
            list(pool.map(lambda mine: [bench.authorize(one) for one in mine], work))
        count, took = sum(map(len, work)), time.perf_counter() - began
        each_ms = (time.process_time() - spent) / count * 1000
        print(f"authorize, {name}: {count / took:.0f} a second, {each_ms:.2f} ms of processor each")


def payer(bench: pipeline.Bench, name: str) -> dict[str, str]:
    """The headers of another account with funds."""
    account = bench.call("POST", "/v2/accounts", pipeline.account(name))["id"]
    bench.call(
        "POST",
        f"/v2/sandbox/accounts/{account}/fund",
        {"chainId": 8453, "assetSymbol": "USDC", "amount": "100000000"},
    )
    session = bench.call(
        "POST",
        "/v2/client-sessions",
        {
            "accountId": account,
            "permissions": ["payments:read", "vault_payments:write"],
            "expiresInSeconds": 86_400,
        },
    )
    bearer = {"Authorization": f"Bearer {session['clientSessionToken']}"}
    access = bench.call("POST", "/v2/client/auth/exchange", None, bearer)
    return {**bearer, "Authorization": f"Bearer {access['accessToken']}",
            "Content-Type": "application/json"}  # fmt: skip


def deliveries(meter: Meter, cluster: Cluster, runs: int) -> None:
    storage = open_storage(cluster.url(), RECORD_TYPES)
    storage.migrate()
    service = PaymentsService(
        storage,
        KeyRing.parse(KeyRing.generate()),
        settings=Settings(public_url=LOCAL_URL, webhooks=WebhookSettings(local_allowed=True)),
        transport=webhooks.TRANSPORTS["threads"](),
        resolver=webhooks.Here(),
    )
    app = service.tenants.create_app("Hooks", "hooks", modes=("sandbox",))
    me = service.tenants.system_authority(app.environments["sandbox"])
    bench = webhooks.Bench(service, me, webhook_receiver.start())
    try:
        name = webhooks.NAMES[0]
        bench.endpoint("hook/0", name)
        for _ in range(runs):
            bench.happen([name])
        worker = service.worker("sandbox")
        jobs = [0]

        def deliver() -> None:
            jobs[0] = worker.run_until_idle()

        meter.measure("from an event to its delivery", deliver, runs)
        print(f"    {jobs[0] / runs:.1f} jobs for each event")
    finally:
        bench.close()


def served(meter: Meter, cluster: Cluster, seconds: float) -> None:
    """Creates through `payments serve` in mode production: processor time, WAL, and rate."""
    with tempfile.TemporaryDirectory() as folder:
        deployment = serve_postgres.Deployment(Path(folder), cluster.url())
        with deployment.serving(1) as ports:
            deployment.prepare(ports[0])
        for processes in (1, 2):
            with deployment.serving(processes) as ports:
                request = deployment.request()
                serve_postgres.served(ports, request, 2.0)
                serves = [pid for pid in children_of(os.getpid()) if "serve" in command(pid)]
                assert len(serves) == processes
                wal = meter.wal_bytes()
                ours, theirs = processor_s(serves), meter.postgres_s()
                began = payments(meter)
                rate, _ = serve_postgres.served(ports, request, seconds)
                count = payments(meter) - began
                ours, theirs = processor_s(serves) - ours, meter.postgres_s() - theirs
                wal = meter.wal_bytes() - wal
            print(
                f"{processes} serve: {rate:.0f} creates a second; each {ours / count * 1000:.2f} ms"
                f" of processor, PostgreSQL {theirs / count * 1000:.2f} ms, WAL {wal / count:.0f}"
            )


def payments(meter: Meter) -> int:
    return meter.sizes()["payments"][0]


def command(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    print(f"{'':32}", *(f"{title:>9}" for title in TITLES))
    with Cluster(settings=WITHOUT_PAGES) as cluster:
        meter = Meter(cluster)
        with sandbox(cluster) as bench:
            operations(meter, bench, options.runs)
            growth(meter, bench, options.runs)
            hot_vault(bench, options.runs)
    with Cluster(settings=WITHOUT_PAGES) as cluster:
        deliveries(Meter(cluster), cluster, options.runs)
    with Cluster(settings={"shared_buffers": "256MB"}) as cluster:
        served(Meter(cluster), cluster, options.seconds)
    on_sqlite(options.runs)
    payment_costs.report(options.runs)
    print(f"cores: {os.cpu_count()}")


if __name__ == "__main__":
    main()
