"""The dashboard with 10,000 Payments: the inbox, the search, and the list with its filters.

    python -m benchmarks.dashboard [--payments 10000] [--rounds 20]

Pages are asked for over WSGI, log-in and template included, on SQLite and on a private PostgreSQL.
The Payments are copies of one that was created, with times, states and references of their own.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import attrs

from payments_core.clock import MINUTE
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.port import Storage, Transaction
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.http.checkout import Checkout
from tests.http.dashboard.operator_browser import OperatorBrowser, open_browser
from tests.servers.cluster import Cluster

LIST = "/dashboard/payments"
BATCH = 1_000


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payments", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    for name, opened in (("SQLite", _open_sqlite), ("PostgreSQL", _open_postgres)):
        with opened() as storage:
            checkout = Checkout(storage)
            _fill(checkout, given.payments)
            browser = open_browser(checkout)
            deep = _find_deep_page(browser, given.payments)
            print(f"{name}, {given.payments:,} Payments: ms, median and worst of {given.rounds}")
            for title, path in (
                ("inbox, with what waits", "/dashboard/inbox"),
                ("navigation alone", "/dashboard/search"),
                ("search of a reference", "/dashboard/search?q=nobody"),
                ("search of a transaction", "/dashboard/search?q=0x" + "ab" * 32),
                ("first page", LIST),
                ("deep page", deep),
                ("rare state", f"{LIST}?status=failed"),
                ("reference of the oldest", f"{LIST}?search=order-0"),
                ("the chart of the newest 500", "/dashboard/activity"),
                ("a state and days that nothing has", f"{LIST}?status=refunded&to=2020-01-01"),
            ):
                took = [_time(browser, path) for _ in range(given.rounds)]
                print(f"  {title:34} {statistics.median(took):6.1f} {max(took):6.1f}")


@contextmanager
def _open_sqlite() -> Iterator[Storage]:
    with tempfile.TemporaryDirectory() as folder:
        storage = SqliteStorage(Path(folder) / "list.db", RECORD_TYPES)
        storage.migrate()
        yield storage
        storage.close()


@contextmanager
def _open_postgres() -> Iterator[Storage]:
    with Cluster() as cluster:
        storage = PostgresStorage(cluster.url(), RECORD_TYPES)
        storage.migrate()
        yield storage
        storage.close()


def _fill(checkout: Checkout, count: int) -> None:
    """Payments, a minute apart, a thousandth of them failed; with a reference each."""
    api = checkout.api
    seen = checkout.create()
    assert seen.status == 201, seen.body
    [one] = (
        api.service.acting_as(api.service.tenants.system_authority(api.partition))
        .payments.list_briefly()
        .records
    )
    for start in range(0, count, BATCH):

        def insert(tx: Transaction, start: int = start) -> None:
            for number in range(start, min(start + BATCH, count)):
                tx.insert(
                    attrs.evolve(
                        one,
                        id=api.service.parts.ports.identifiers.new("payment"),
                        version=1,
                        reference=f"order-{number}",
                        status="failed" if number % 1_000 == 0 else "succeeded",
                        escrow_address=f"0x{number:040x}",
                        created_at_ms=one.created_at_ms - (count - number) * MINUTE,
                    )
                )

        api.service.parts.ports.storage.transact(api.partition, insert)


def _find_deep_page(browser: OperatorBrowser, count: int) -> str:
    """The last page but a few: followed from link to link, as a person would."""
    path = LIST
    for _ in range(count // 25 - 3):
        body = browser.get(path).body.decode()
        found = re.search(r'rel="next" href="([^"]+)"', body)
        assert found is not None
        path = LIST + unescape(found[1])
    return path


def _time(browser: OperatorBrowser, path: str) -> float:
    began = time.perf_counter()
    seen = browser.get(path)
    took_ms = (time.perf_counter() - began) * 1_000
    assert seen.status == 200, seen.body
    return took_ms


if __name__ == "__main__":
    main()
