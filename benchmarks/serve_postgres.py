"""Payments a second of one and of two `payments serve` on PostgreSQL, beside a bare script.

    python -m benchmarks.serve_postgres [--seconds 5] [--rounds 3]

The bare script writes, through nothing but psycopg and in one pipeline a transaction, the very
rows that a create writes, from as many connections as the servers have threads; it reads, checks
and serves nothing. The servers run in mode production with the rate policies counted in memory and
out of the way, on a chain whose nodes are never asked: a create derives its addresses by itself.
The cluster is private and waits for the disk. Everything takes turns in one run, and what counts
is the ratio: PostgreSQL, the servers and the clients share this machine's cores.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.serving_clients import KEY
from payments_core.chains.evm.signers import LocalSigner
from payments_core.credentials.keyring import KeyRing
from payments_core.limiters.policies import RULES
from payments_core_http.cli.api_client import ApiClient, basic_authorization
from payments_core_http.cli.child_processes import ChildProcess
from tests.servers.cluster import Cluster

THREADS = 8
CONNECTIONS = 16
ADMIN = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
NOBODY = "evm+http://127.0.0.1:9"
NODES = """
[chains.8453]
urls = ["{nobody}"]
settings = {{ admin = "{admin}" }}
[providers.signer]
url = "file://{folder}/operator.key"
key_file_allowed = true
"""

Template = Sequence[tuple[str, tuple[str, ...], tuple[Any, ...]]]


class Deployment:
    """Settings in a folder, an app with a key, and an account that is paid."""

    def __init__(
        self, folder: Path, storage_url: str, *, processes: int = 1, mode: str = "production"
    ) -> None:
        """A production's chain has a node that is never asked; a sandbox simulates its chains."""
        self.storage_url = storage_url
        self.config = folder / "payments.toml"
        (folder / "ring").write_text(KeyRing.generate())
        (folder / "ring").chmod(0o600)
        LocalSigner.open(folder / "operator.key")
        limits = "\n".join(f"{rule} = 1000000000" for rule in RULES)
        self.config.write_text(
            f"""
mode = "{mode}"
public_url = "https://pay.example.com"
simulated_chains = {str(mode == "sandbox").lower()}
[keys]
ring_file = "{folder}/ring"
[storage]
url = "{storage_url}"
[limiter]
url = "memory:"
[limits]
{limits}
[http]
port = 0
threads = {THREADS}
processes = {processes}
trusted_proxies = ["127.0.0.1"]
[log]
level = "error"
{NODES.format(admin=ADMIN, nobody=NOBODY, folder=folder) if mode == "production" else ""}
"""
        )
        self.config.chmod(0o600)
        self._payments("admin", "migrate")
        app = self._payments("admin", "apps", "create", "Bench", "--partner-id", "bench")
        key = self._payments("admin", "keys", "create", "bench", "--name", "bench")
        self.credential = basic_authorization(app["appId"], key["secret"])

    def _payments(self, *arguments: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "payments_core_http.cli", *arguments,
             "--config", self.config, "--json"],
            stdout=subprocess.PIPE, check=True, text=True,
        )  # fmt: skip
        return json.loads(done.stdout)

    @contextmanager
    def serving(self, processes: int) -> Iterator[list[int]]:
        """So many `payments serve`, by their ports."""
        arguments = ["serve", "--config", str(self.config), "--json"]
        with ExitStack() as stack:
            ports = []
            for _ in range(processes):
                child = ChildProcess("serve", "payments_core_http.cli", arguments)
                stack.callback(child.end)
                ports.append(int(str(child.wait_until_ready()["url"]).rpartition(":")[2]))
            yield ports

    def prepare(self, port: int) -> None:
        """Make the account that is paid."""
        client = ApiClient(f"http://127.0.0.1:{port}")
        made = client.call(
            "POST",
            "/v2/accounts",
            {"externalUserId": "shop", "subjectType": "business"},
            authorization=self.credential,
        )
        self.payment = {
            "intent": "receive",
            "amount": "12.50",
            "destination": {"type": "account", "accountId": made.document["id"]},
        }

    def request(self) -> str:
        """A create, with another key each time."""
        body = json.dumps(self.payment)
        return (
            "POST /v2/payments HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
            f"Authorization: {self.credential}\r\nIdempotency-Key: {KEY.decode()}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        )

    def make(self, port: int, key: str) -> str:
        """Make a Payment; its id."""
        client = ApiClient(f"http://127.0.0.1:{port}")
        made = client.call(
            "POST", "/v2/payments", self.payment, authorization=self.credential, key=key
        )
        assert made.status == 201, made.body
        id: str = made.document["id"]
        return id

    def read_request(self, id: str) -> str:
        """A read of that Payment."""
        return (
            f"GET /v2/payments/{id} HTTP/1.1\r\nHost: bench\r\n"
            f"Authorization: {self.credential}\r\n\r\n"
        )

    def written(self, do: Callable[[], Any]) -> Template:
        """The rows that `do` inserts into PostgreSQL or replaces there."""
        with psycopg.connect(self.storage_url) as connection:
            before = read_rows(connection)
            do()
            connection.rollback()
            after = read_rows(connection)
        return [
            (table, tuple(row), tuple(row.values()))
            for table, rows in after.items()
            for place, row in rows.items()
            if before[table].get(place) != row
        ]


def read_rows(
    connection: psycopg.Connection[Any],
) -> Mapping[str, Mapping[Any, dict[str, Any]]]:
    """All records of each table, by partition and id."""
    tables = connection.execute(
        "SELECT table_name FROM information_schema.columns "
        "WHERE column_name = 'version' AND table_schema = 'public'"
    ).fetchall()
    found = {}
    for (table,) in tables:
        cursor = connection.execute(f'SELECT * FROM "{table}"'.encode())
        names = [column.name for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
        found[table] = {(row["partition"], row["id"]): row for row in rows}
    return found


def served(ports: Sequence[int], request: str, seconds: float) -> tuple[float, float]:
    """Creates a second by clients of all ports together, and the clients' share of a core."""
    asked = [
        {"port": port, "connections": CONNECTIONS // len(ports), "seconds": seconds,
         "request": request, "status": "201"}
        for port in ports
    ]  # fmt: skip
    clients = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.serving_clients", json.dumps(one)],
            stdout=subprocess.PIPE,
        )
        for one in asked
    ]
    reported = [json.loads(client.communicate()[0]) for client in clients]
    rate = sum(one["answers"] / one["seconds"] for one in reported)
    return rate, sum(one["processor_s"] / one["seconds"] for one in reported)


def bare(url: str, template: Template, processes: int, seconds: float) -> float:
    """Transactions of the same rows a second, from as many connections as the servers have."""
    argument = json.dumps({"url": url, "template": template, "seconds": seconds})
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.bare_postgres"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for _ in range(processes)
    ]  # fmt: skip
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(argument.encode())
        writer.stdin.close()
        writer.stdin = None
    reported = [json.loads(writer.communicate()[0]) for writer in writers]
    return float(sum(one["transactions"] / one["seconds"] for one in reported))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    figures: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(settings={"shared_buffers": "256MB"}) as cluster,
    ):
        deployment = Deployment(Path(folder), cluster.url())
        with deployment.serving(2) as (first, second):
            deployment.prepare(first)
            request = deployment.request()
            served([first, second], request, 2.0)
            template = deployment.written(lambda: deployment.make(first, "template"))
            print(f"A create writes {len(template)} rows.")
            for _ in range(options.rounds):
                for name, ports in (("one serve", [first]), ("two serve", [first, second])):
                    rate, share = served(ports, request, options.seconds)
                    figures.setdefault(name, []).append(rate)
                    figures.setdefault(f"{name}, clients' share of a core", []).append(share)
                for processes in (1, 2):
                    rate = bare(cluster.url(), template, processes, options.seconds)
                    figures.setdefault(f"bare psycopg, {processes} process(es)", []).append(rate)
                time.sleep(1)
    for name, rates in figures.items():
        print(f"{name:45} {statistics.median(rates):10.2f}   {[round(rate, 2) for rate in rates]}")
    one, two = (statistics.median(figures[name]) for name in ("one serve", "two serve"))
    single, double = (statistics.median(figures[f"bare psycopg, {n} process(es)"]) for n in (1, 2))
    print(f"one serve / bare, one process    {one / single:.2f}")
    print(f"two serve / bare, two processes  {two / double:.2f}")
    print(f"two serve / one serve            {two / one:.2f}")
    print(f"cores: {os.cpu_count()}")


if __name__ == "__main__":
    main()
