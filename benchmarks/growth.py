"""What a request costs when 1,000,000 Payments are stored, as a multiple of its cost at 10,000.

    python -m benchmarks.growth [--payments 1000000] [--storages sqlite postgres] [--rounds 40]
    python -m benchmarks.growth --requests 200000

Two storages of a kind stand side by side: one with 10,000 Payments of one environment, one with
`--payments`, each Payment with its receipt, its last event and that event's delivery. They are
copies of one that the service has made, loaded wholesale under ids, hashes and times of their own;
one in a thousand has failed. Every operation is then asked of both in turn, over WSGI, and its
median is compared.

With `--requests` it sends so many requests, reads and creates, to one process, and prints how much
memory the process has.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs

from benchmarks.pipeline import Bench
from payments_core.clock import DAY, MINUTE, SystemClock, format_iso
from payments_core.engine.events import Event
from payments_core.payments.links import Links
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.settings import Settings
from payments_core.storage.maintenance import RecordRow, require_maintenance_access
from payments_core.webhooks.record import Delivery
from payments_core.webhooks.settings import WebhookSettings
from tests.maintenance.shop import HOOK, Answering
from tests.servers import Cluster

SMALL = 10_000
KINDS = (Payment, Receipt, Event, Delivery)
BATCH = 20_000
FAILED = 1_000
"""One in so many Payments has failed."""
GOAL = 1.3
PAGES = Path("/proc/self/statm")

_ID = re.compile(r"\b(payment|receipt|evt|delivery|option|out|session)_[A-Za-z0-9_-]{24}")
_LINK = re.compile(r'"link_code":"[^"]+"')
_HASH = re.compile(r"0x[0-9a-f]{64}")


def main() -> None:
    """Print a table for each storage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payments", type=int, default=1_000_000)
    parser.add_argument("--storages", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--requests", type=int, help="measure memory over so many requests instead")
    given = parser.parse_args()
    if given.requests:
        _watch_memory(given.requests)
        return
    for name in given.storages:
        with ExitStack() as stack:
            small, large = (
                stack.enter_context(_open_shop(name, count)) for count in (SMALL, given.payments)
            )
            print(f"{name}, ms at {SMALL:,} and {given.payments:,} Payments, medians", flush=True)
            for title, ask in _list_operations().items():
                took: tuple[list[float], list[float]] = ([], [])
                for _ in range(given.rounds):
                    for shop, times in zip((small, large), took, strict=True):
                        times.append(ask(shop) * 1_000)
                before, after = map(statistics.median, took)
                mark = "" if after <= GOAL * before else "  above 1.3"
                print(f"  {title:28} {before:7.2f} {after:7.2f} {after / before:6.2f}{mark}")


@attrs.define
class Shop:
    """A service with many Payments in one environment."""

    bench: Bench
    ids: Sequence[str]
    chance: random.Random = attrs.field(factory=lambda: random.Random(7))


@contextmanager
def _open_shop(storage: str, count: int) -> Iterator[Shop]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(Cluster()).url() if storage == "postgres" else None
        settings = Settings(webhooks=WebhookSettings(local_allowed=True))
        bench = Bench(folder, url, settings=settings, transport=Answering())
        stack.callback(bench.close)
        began = time.perf_counter()
        shop = Shop(bench, _fill(bench, count))
        print(
            f"{storage}: {count:,} Payments stored in {time.perf_counter() - began:.0f} s",
            flush=True,
        )
        yield shop


def _fill(bench: Bench, count: int) -> Sequence[str]:
    """Make one Payment by the service, and load copies of it; their ids."""
    environment_id = bench.app.environments["sandbox"]
    hooks = f"/v2/console/apps/{bench.app.id}/environments/{environment_id}/webhooks"
    bench.call("POST", hooks, {"url": HOOK}, {**bench.basic, "Idempotency-Key": "hook"})
    bench.authorize(bench.option(reference="order"))
    bench.call("POST", "/v2/sandbox/clock", {"advanceSeconds": 60})
    storage = require_maintenance_access(bench.service.parts.ports.storage)
    templates = {kind: _find_template(storage.read_rows(kind), environment_id) for kind in KINDS}
    new_id = bench.service.parts.ports.identifiers.new
    ids: list[str] = []
    for start in range(0, count, BATCH):
        rows: Mapping[Any, list[RecordRow]] = {kind: [] for kind in KINDS}
        for number in range(start, min(start + BATCH, count)):
            copy = _Copy(number, (number - count) * MINUTE, new_id, bench.service.parts.links)
            for kind, template in templates.items():
                rows[kind].append(copy.make_row(template))
            ids.append(rows[Payment][-1].id)
        with storage.lock_exclusively() as alone:
            for kind, made in rows.items():
                alone.load(kind, made)
    return ids


def _find_template(rows: Sequence[RecordRow], environment_id: str) -> RecordRow:
    own = [row for row in rows if row.partition == environment_id]
    return own[-1]


@attrs.define
class _Copy:
    """A Payment and what belongs to it, under ids, hashes, a reference and times of its own."""

    number: int
    shift_ms: int
    new_id: Callable[[str], str]
    links: Links
    fresh: dict[str, str] = attrs.field(factory=dict)

    def make_row(self, row: RecordRow) -> RecordRow:
        created_at = int(re.findall(r'"(?:created|observed)_at":(\d+)', row.body)[0])
        moved = str(created_at + self.shift_ms)
        body = self._replace(row.body.replace(str(created_at), moved))
        status = "failed" if self.number % FAILED == 0 else "succeeded"
        columns = tuple(
            self._replace(value, status)
            if isinstance(value, str)
            else created_at + self.shift_ms
            if value == created_at
            else value
            for value in row.columns
        )
        body = _LINK.sub(lambda _: self._make_link(row.partition), body)
        body = body.replace('"reference":"order"', f'"reference":"order-{self.number}"')
        body = body.replace('"status":"succeeded"', f'"status":"{status}"')
        return RecordRow(row.partition, self._replace(row.id), row.version, columns, body)

    def _make_link(self, environment_id: str) -> str:
        [payment_id] = [new for known, new in self.fresh.items() if known.startswith("payment_")]
        return f'"link_code":"{self.links.mint(environment_id, payment_id, "sandbox").sealed_code}"'

    def _replace(self, text: str, status: str = "") -> str:
        if text == "order":
            return f"order-{self.number}"
        if text == "succeeded" and status:
            return status
        return _HASH.sub(self._renew_hash, _ID.sub(self._renew_id, text))

    def _renew_id(self, match: re.Match[str]) -> str:
        return self._renew(match[0], lambda: self.new_id(match[1]))

    def _renew_hash(self, match: re.Match[str]) -> str:
        return self._renew(match[0], lambda: f"0x{random.getrandbits(256):064x}")

    def _renew(self, known: str, make: Callable[[], str]) -> str:
        if known not in self.fresh:
            self.fresh[known] = make()
        return self.fresh[known]


def _list_operations() -> Mapping[str, Callable[[Shop], float]]:
    def get(path: Callable[[Shop], str]) -> Callable[[Shop], float]:
        def ask(shop: Shop) -> float:
            target, _, query = path(shop).partition("?")
            return _time(lambda: shop.bench.call("GET", target, query=query))

        return ask

    def pick(shop: Shop) -> str:
        return shop.chance.choice(shop.ids)

    def authorize(shop: Shop) -> float:
        prepared = shop.bench.option()
        return _time(lambda: shop.bench.authorize(prepared))

    def work(shop: Shop) -> float:
        shop.bench.create()
        worker = shop.bench.service.worker("sandbox")
        return _time(worker.run_due)

    yesterday = format_iso(SystemClock().now() - DAY)
    return {
        "create": lambda shop: _time(shop.bench.create),
        "authorize": authorize,
        "read": get(lambda shop: f"/v2/payments/{pick(shop)}"),
        "receipts of one": get(lambda shop: f"/v2/payments/{pick(shop)}/receipts"),
        "list": get(lambda shop: "/v2/payments"),
        "list, status of 0.1 %": get(lambda shop: "/v2/payments?status=failed"),
        "list, status of 99.9 %": get(lambda shop: "/v2/payments?status=succeeded"),
        "list, intent": get(lambda shop: "/v2/payments?intent=receive"),
        "list, intent of none": get(lambda shop: "/v2/payments?intent=collect"),
        "list, account": get(lambda shop: f"/v2/payments?accountId={shop.bench.recipient}"),
        "list, reference": get(lambda shop: f"/v2/payments?reference=order-{len(shop.ids) // 2}"),
        "list, before a time": get(lambda shop: f"/v2/payments?createdBefore={yesterday}"),
        "work of a create": work,
    }


def _time(do: Callable[[], Any]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def _watch_memory(requests: int) -> None:
    with _open_shop("sqlite", SMALL) as shop:
        for number in range(requests + 1):
            if number % (requests // 10) == 0:
                print(f"{number:>9,} requests: {_read_memory() / 2**20:.1f} MB", flush=True)
            if number % 10:
                shop.bench.call("GET", f"/v2/payments/{shop.chance.choice(shop.ids)}")
            else:
                shop.bench.create()


def _read_memory() -> int:
    return int(PAGES.read_text().split()[1]) * 4096


if __name__ == "__main__":
    main()
