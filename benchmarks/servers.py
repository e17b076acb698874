"""The WSGI servers that could serve the application: answers a second, beside ours.

    python -m benchmarks.servers            (--seconds 1 --rounds 7)

Each is a process of its own with 8 threads over the same application; the clients are another
(`serving_clients`). A bare `/healthz`, a Payment that is read, and one that is made with a fresh
Idempotency-Key, over SQLite and over PostgreSQL; `--cases read` leaves out the others. Rounds are
interleaved, so that a busy machine is busy for all; the figures are medians, and the median of the
ratios to ours in the same round. How they stand hostile clients is `benchmarks.servers_hostile`.
"""

from __future__ import annotations

import argparse
import base64
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs

from benchmarks.pipeline import payment
from benchmarks.serving_app import CANDIDATES, ROOT, Running, serving
from benchmarks.serving_clients import KEY
from payments_core.accounts.operations import NewAccount
from payments_core.credentials.keyring import KeyRing
from payments_core.payments.destinations import ToAccount
from payments_core.payments.operations import NewPayment
from payments_core.public_url import LOCAL_URL
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage_loader import open_storage
from tests.servers import NoPostgres, drop_schema, fresh_schema, postgres_url

CONNECTIONS = (1, 16)
OURS = "ours"
HEALTH = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@attrs.frozen
class Case:
    """What is asked, over which storage."""

    name: str
    facts: Path
    request: str
    status: str


@attrs.frozen
class Load:
    """What the clients saw."""

    per_second: float
    processor_us: float
    """What the server's processes took of a processor for an answer: a busy machine changes that
    less than it changes the rate."""
    clients_share: float
    """Of one processor, taken by the clients themselves."""


def load(server: Running, case: Case, connections: int, seconds: float) -> Load:
    """Ask one server for a while."""
    asked = {
        "port": server.port,
        "connections": connections,
        "seconds": seconds,
        "request": case.request,
        "status": case.status,
    }
    before = server.processor_s()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.serving_clients", json.dumps(asked)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    seen = json.loads(done.stdout)
    used = server.processor_s() - before
    return Load(
        per_second=seen["answers"] / seen["seconds"],
        processor_us=used * 1_000_000 / (seen["answers"] + connections),
        clients_share=seen["processor_s"] / seen["seconds"],
    )


def prepared(url: str, folder: Path, name: str) -> tuple[Case, Case]:
    """A storage with an app, an account and a Payment to it: a request that reads the Payment, and
    one that makes another."""
    storage = open_storage(url, RECORD_TYPES)
    storage.migrate()
    key_ring = KeyRing.generate()
    service = PaymentsService(
        storage, KeyRing.parse(key_ring), settings=Settings(public_url=LOCAL_URL)
    )
    app = service.tenants.create_app("Bench", "bench", modes=("sandbox",))
    environment_id = app.environments["sandbox"]
    _, secret = service.tenants.create_key(environment_id, "standard", "bench")
    authority = service.tenants.system_authority(environment_id)
    made = service.acting_as(authority).accounts.create(
        NewAccount(external_user_id="recipient", subject_type="individual")
    )
    to = ToAccount(account_id=made.account.id)
    stored = service.acting_as(authority).payments.receive(
        NewPayment(amount="0.01", destination=to)
    )
    service.close()
    facts = folder / f"{name}.json"
    facts.write_text(json.dumps({"storage": url, "keyRing": key_ring}), encoding="utf-8")
    body = json.dumps(payment(made.account.id))
    pair = base64.b64encode(f"{app.id}:{secret}".encode()).decode()
    sender = f"HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {pair}\r\n"
    read = f"GET /v2/payments/{stored.payment.id} {sender}\r\n"
    create = (
        f"POST /v2/payments {sender}Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nIdempotency-Key: {KEY.decode()}\r\n\r\n"
    )
    return (
        Case(f"read, {name}", facts, read, "200"),
        Case(f"create, {name}", facts, create + body, "201"),
    )


@contextmanager
def over_sqlite() -> Iterator[tuple[Case, ...]]:
    """The bare request, a read and a create, over SQLite."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        read, create = prepared(f"sqlite:///{folder / 'payments.db'}", folder, "SQLite")
        yield attrs.evolve(read, name="healthz", request=HEALTH), read, create


@contextmanager
def over_postgres() -> Iterator[tuple[Case, ...]]:
    """A read and a create over PostgreSQL, where its programs are."""
    try:
        url = fresh_schema(postgres_url())
    except NoPostgres as reason:
        print(f"Without PostgreSQL: {reason}")
        yield ()
        return
    with tempfile.TemporaryDirectory() as place:
        try:
            yield prepared(url, Path(place), "PostgreSQL")
        finally:
            drop_schema(url)


def measure(case: Case, names: list[str], rounds: int, seconds: float) -> None:
    """Print one case: medians, and the median ratio to ours."""
    with ExitStack() as open_:
        servers = [open_.enter_context(serving(name, case.facts)) for name in names]
        for connections in CONNECTIONS:
            seen: dict[str, list[Load]] = {name: [] for name in names}
            for turn in range(rounds):
                for server in servers[turn % len(servers) :] + servers[: turn % len(servers)]:
                    seen[server.name].append(load(server, case, connections, seconds))
            print(f"{case.name}, {connections} connections, median of {rounds} rounds")
            for name, loads in seen.items():
                _print_row(name, loads, seen[names[0]])


def _print_row(name: str, loads: list[Load], ours: list[Load]) -> None:
    rates = sorted(one.per_second for one in loads)
    ratios = [one.per_second / own.per_second for one, own in zip(loads, ours, strict=True)]
    share = statistics.median(one.clients_share for one in loads)
    used = statistics.median(one.processor_us for one in loads)
    times = [one.processor_us / own.processor_us for one, own in zip(loads, ours, strict=True)]
    print(
        f"  {name:<10} {statistics.median(rates):8.0f}/s  ({rates[0]:.0f} to {rates[-1]:.0f})"
        f"  {statistics.median(ratios):5.2f} of ours  processor {used:6.0f} µs,"
        f" {statistics.median(times):.2f} of ours  clients {share:4.0%}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", choices=CANDIDATES, default=list(CANDIDATES))
    parser.add_argument("--cases", nargs="*", metavar="BEGINNING", default=[""])
    options = parser.parse_args()
    names = [OURS, *(name for name in options.only if name != OURS)]
    for some in (over_sqlite, over_postgres):
        with some() as cases:
            for case in cases:
                if not case.name.startswith(tuple(options.cases)):
                    continue
                measure(case, names, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
