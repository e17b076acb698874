"""What a request costs: create and authorize through the whole pipeline, beside a bare script.

The bare script writes the very rows that the pipeline wrote, in one transaction each, with the
same durability, through nothing but `sqlite3`. Everything is measured in one run and reported as a
ratio; the absolute figures belong to the machine. Run it with `make bench`.
"""

from __future__ import annotations

import argparse
import base64
import cProfile
import json
import multiprocessing
import pstats
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path
from typing import Any

from payments_core.credentials.keyring import KeyRing
from payments_core.payments.destinations import ToAccount
from payments_core.payments.operations import NewPayment
from payments_core.public_url import LOCAL_URL
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.port import Storage
from payments_core.storage_loader import open_storage
from payments_core_http.app import create_app
from payments_core_http.serving import build_server

ROUNDS = 3
SERVER_THREADS = (1, 4, 8)

Template = list[tuple[str, tuple[Any, ...]]]


class Bench:
    """A service on a fresh SQLite file, or on another fresh storage, with one app, a payer with
    funds, and a recipient."""

    def __init__(
        self, folder: Path, url: str | None = None, *, storage: Storage | None = None, **parts: Any
    ) -> None:
        """`parts` go to the service as they are."""
        self.path = folder / "payments.db"
        storage = storage or open_storage(url or f"sqlite:///{self.path}", RECORD_TYPES)
        storage.migrate()
        self.service = PaymentsService(
            storage,
            KeyRing.parse(KeyRing.generate()),
            settings=Settings(public_url=LOCAL_URL),
            **parts,
        )
        self.app = self.service.tenants.create_app("Bench", "bench", modes=("sandbox",))
        environment_id = self.app.environments["sandbox"]
        _, self.secret = self.service.tenants.create_key(environment_id, "standard", "bench")
        pair = base64.b64encode(f"{self.app.id}:{self.secret}".encode()).decode()
        self.basic = {"Authorization": f"Basic {pair}", "Content-Type": "application/json"}
        self.wsgi = create_app(self.service, mode="sandbox")
        self.payer = self.call("POST", "/v2/accounts", account("payer"))["id"]
        self.recipient = self.call("POST", "/v2/accounts", account("recipient"))["id"]
        self.call(
            "POST",
            f"/v2/sandbox/accounts/{self.payer}/fund",
            {"chainId": 8453, "assetSymbol": "USDC", "amount": "100000000"},
        )
        session = self.call(
            "POST",
            "/v2/client-sessions",
            {
                "accountId": self.payer,
                "permissions": ["payments:read", "vault_payments:write"],
                "expiresInSeconds": 86_400,
            },
        )
        bearer = {"Authorization": f"Bearer {session['clientSessionToken']}"}
        access = self.call("POST", "/v2/client/auth/exchange", None, bearer)
        self.bearer = {
            "Authorization": f"Bearer {access['accessToken']}",
            "Content-Type": "application/json",
        }
        self.counter = 0

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        query: str = "",
    ) -> Any:
        """One request straight into the WSGI application."""
        raw = b"" if body is None else json.dumps(body).encode()
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "SCRIPT_NAME": "",
            "QUERY_STRING": query,
            "SERVER_NAME": "bench",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.input": BytesIO(raw),
            "wsgi.errors": BytesIO(),
            "wsgi.url_scheme": "http",
            "CONTENT_LENGTH": str(len(raw)),
        }
        for name, value in (self.basic if headers is None else headers).items():
            key = (
                "CONTENT_TYPE"
                if name == "Content-Type"
                else "HTTP_" + name.upper().replace("-", "_")
            )
            environ[key] = value
        status: list[str] = []

        def start_response(line: str, *_: Any) -> Callable[[bytes], object]:
            status.append(line)
            return lambda _: None

        answer = b"".join(self.wsgi(environ, start_response))
        if not status[0].startswith("2"):
            raise RuntimeError(f"{method} {path}: {status[0]} {answer!r:.300}")
        return json.loads(answer)

    def next(self) -> str:
        """A fresh Idempotency-Key."""
        self.counter += 1
        return f"bench-{self.counter}"

    def create(self, **more: Any) -> Any:
        """One Payment, over WSGI."""
        return self.call(
            "POST",
            "/v2/payments",
            {**payment(self.recipient), **more},
            {**self.basic, "Idempotency-Key": self.next()},
        )

    def option(self, **more: Any) -> tuple[str, dict[str, str], str]:
        """A Payment with an option; the path and headers of its authorization, and its action."""
        made = self.create(**more)
        headers = {**self.bearer, "X-Service-Payment-Secret": made["clientSecret"]}
        path = f"/v2/client/me/payments/{made['id']}/options"
        option = self.call("POST", path, {}, headers)["option"]
        return f"{path}/{option['id']}/authorize", headers, option["execution"]["actionId"]

    def authorize(self, prepared: tuple[str, dict[str, str], str]) -> Any:
        """The authorization of a prepared option, over WSGI."""
        path, headers, action_id = prepared
        body = {
            "actionId": action_id,
            "proof": {"type": "managed_authorization", "authorization": "approved"},
        }
        return self.call("POST", path, body, {**headers, "Idempotency-Key": self.next()})

    def close(self) -> None:
        self.service.close()


def account(name: str) -> dict[str, Any]:
    return {"externalUserId": name, "subjectType": "individual"}


def payment(recipient: str) -> dict[str, Any]:
    return {
        "intent": "receive",
        "amount": "0.01",
        "destination": {"type": "account", "accountId": recipient},
    }


# The bare script: the same rows, the same durability, nothing else.


class Rows:
    """The rows that some requests wrote, to be written again into a fresh file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tables = [
            name
            for (name,) in sqlite3.connect(path).execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
        ]

    def snapshot(self) -> dict[str, dict[tuple[Any, ...], tuple[Any, ...]]]:
        """Every row of every table by its key."""
        with sqlite3.connect(self.path) as connection:
            return {
                table: {row[:2]: row for row in connection.execute(f"SELECT * FROM {table}")}
                for table in self.tables
            }

    def changed(self, do: Callable[[], Any]) -> Template:
        """The rows that `do` inserted or replaced."""
        before = self.snapshot()
        do()
        after = self.snapshot()
        return [
            (table, row)
            for table, rows in after.items()
            for key, row in rows.items()
            if before[table].get(key) != row
        ]


class BareWriter:
    """Writes a template's rows into a fresh file, in one durable transaction each time."""

    def __init__(self, path: Path, schema_of: Path, template: Template) -> None:
        self._template = template
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        for (statement,) in sqlite3.connect(schema_of).execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
        ):
            self._connection.execute(statement)
        self._statements = {
            table: f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})"
            for table, row in template
        }

    def write(self, n: int) -> None:
        """Write them with the ids of number `n`; by one thread at a time."""
        mark = f"{n:08d}"
        self._connection.execute("BEGIN IMMEDIATE")
        for table, row in self._template:
            # Unique columns get fresh values, as in the pipeline; bodies stay as they are.
            fresh = tuple(
                mark + value if isinstance(value, str) and 8 < len(value) < 300 else value
                for value in row[1:]
            )
            self._connection.execute(self._statements[table], (row[0], *fresh))
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


def bare(schema_of: Path, template: Template, runs: int) -> float:
    """Seconds for `runs` transactions of the template's rows, with fresh ids, durably."""
    with tempfile.TemporaryDirectory() as folder:
        writer = BareWriter(Path(folder) / "bare.db", schema_of, template)
        started = time.perf_counter()
        for n in range(runs):
            writer.write(n)
        seconds = time.perf_counter() - started
        writer.close()
    return seconds


# Over sockets.


def _client(port: int, headers: dict[str, str], body: bytes, runs: int, name: str) -> float:
    connection = HTTPConnection("127.0.0.1", port)
    started = time.perf_counter()
    for n in range(runs):
        connection.request(
            "POST", "/v2/payments", body, {**headers, "Idempotency-Key": f"{name}-{n}"}
        )
        answer = connection.getresponse()
        answer.read()
        if answer.status != 201:
            raise RuntimeError(answer.status)
    return time.perf_counter() - started


def _clients(
    port: int, headers: dict[str, str], body: bytes, runs: int, count: int, name: str
) -> None:
    threads = [
        threading.Thread(target=_client, args=(port, headers, body, runs, f"{name}-{n}"))
        for n in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def over_sockets(bench: Bench, threads: int, runs: int) -> float:
    """Requests a second through our server with so many threads, from as many clients."""
    server = build_server(bench.wsgi, bench.service.parts.ports.identifiers, threads=threads)
    body = json.dumps(payment(bench.recipient)).encode()
    name = f"socket-{threads}-{time.perf_counter_ns()}"
    with server:
        clients = multiprocessing.get_context("spawn").Process(
            target=_clients,
            args=(server.port, bench.basic, body, runs // threads, threads, name),
        )
        _client(server.port, bench.basic, body, 20, name + "-warm")
        started = time.perf_counter()
        clients.start()
        clients.join()
        seconds = time.perf_counter() - started
    return runs / seconds


# The report.


def timed(do: Callable[[], Any], runs: int) -> float:
    """Calls a second, one after the other in one thread."""
    started = time.perf_counter()
    for _ in range(runs):
        do()
    return runs / (time.perf_counter() - started)


def report(rows: Sequence[tuple[str, float, float | None]]) -> None:
    for name, per_second, ratio in rows:
        shown = "" if ratio is None else f"   {ratio:5.2f} of the bare script"
        print(f"{name:<46}{per_second:>9.0f}/s{shown}")


def profile(do: Callable[[], Any], runs: int) -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(runs):
        do()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def library_create(bench: Bench) -> Callable[[], Any]:
    """One Payment through the library alone, without HTTP."""
    authority = bench.service.tenants.system_authority(bench.app.environments["sandbox"])
    new = NewPayment(amount="0.01", destination=ToAccount(account_id=bench.recipient))
    return lambda: bench.service.acting_as(authority).payments.receive(new)


def one_round(bench: Bench, created: Template, authorized: Template, runs: int) -> dict[str, float]:
    """Every figure once, in turns, so that a noisy moment falls on all of them alike."""
    ready = iter([bench.option() for _ in range(runs)])
    return {
        "bare create": runs / bare(bench.path, created, runs),
        "library": timed(library_create(bench), runs),
        "create": timed(bench.create, runs),
        "bare authorize": runs / bare(bench.path, authorized, runs),
        "authorize": timed(lambda: bench.authorize(next(ready)), runs),
        **{f"sockets {n}": over_sockets(bench, n, runs) for n in SERVER_THREADS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--profile", action="store_true", help="where a create's time goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        rows = Rows(bench.path)
        for _ in range(50):
            bench.create()
        if options.profile:
            profile(bench.create, options.runs)
            return
        created = rows.changed(bench.create)
        prepared = bench.option()
        authorized = rows.changed(lambda: bench.authorize(prepared))
        rounds = [one_round(bench, created, authorized, options.runs) for _ in range(ROUNDS)]
        median = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}

        def row(label: str, name: str, beside: str) -> tuple[str, float, float]:
            return label, median[name], median[name] / median[beside]

        report(
            [
                (f"bare script, {len(created)} rows of a create", median["bare create"], None),
                row("create, library", "library", "bare create"),
                row("create, WSGI", "create", "bare create"),
                *(
                    row(f"create, sockets, {n} threads", f"sockets {n}", "bare create")
                    for n in SERVER_THREADS
                ),
                (
                    f"bare script, {len(authorized)} rows of an authorize",
                    median["bare authorize"],
                    None,
                ),
                row("authorize, WSGI", "authorize", "bare authorize"),
            ]
        )
        bench.close()


if __name__ == "__main__":
    main()
