"""How long the books of 1,000,000 Payments take to export and to compare, and how much memory.

    python -m benchmarks.books [--payments 1000000] [--commands csv beancount sqlite reconcile]

An SQLite file holds the Payments of one environment, of a month, each paid and released: copies of
one that the service has made, loaded wholesale under ids, addresses, hashes and times of their
own, with what the simulated chain has of them. Each command then runs as an operator runs it, in a
process of its own, and its time, its processor time and its peak memory are printed. At the end
an atom is taken from the journal of one Payment, and `payments reconcile` must name it.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import attrs

from payments_core import NewAccount, NewPayment, PaymentsService, ToAccount
from payments_core.books.period import begin_of, day_of
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.chains.simulated.records import SimulatedBalance, SimulatedTransaction
from payments_core.clock import DAY, SystemClock
from payments_core.credentials.keyring import KeyRing
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.storage.maintenance import RecordRow, require_maintenance_access
from payments_core.storage.port import Storage, Transaction
from payments_core.storage.records import Record, Value
from payments_core.storage_loader import open_storage
from tests.deployment.deployed import Deployed

BATCH = 20_000
MONTH_DAYS = 30
KINDS: tuple[type[Record], ...] = (
    Payment, Receipt, JournalEntry, OutboundTransfer, SimulatedTransaction, SimulatedBalance
)  # fmt: skip
COMMANDS = ("csv", "beancount", "sqlite", "reconcile")
MEBI = 2**20

_ID = r"\b(?:payment|receipt|out|pay_option|ses)_[A-Za-z0-9_-]{24}"
_HASH = r"0x[0-9a-f]{64}"
_INSTANT = r"\b1[0-9]{12}\b"
_REFERENCE = "order"
_TIMES = ("created_at", "observed_at")


def main() -> None:
    """Print a line for each command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payments", type=int, default=1_000_000)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--folder", type=Path, help="where the files are; else a temporary folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        deployed = Deployed.made(folder, f"sqlite:///{folder}/payments.db")
        deployed.run("admin", "migrate")
        began = time.perf_counter()
        first = day_of(SystemClock().now() - (MONTH_DAYS + 5) * DAY)
        payment_id = _fill(deployed, given.payments, begin_of(first))
        took, size = time.perf_counter() - began, (folder / "payments.db").stat().st_size
        print(f"{given.payments:,} Payments: {size / MEBI:,.0f} MiB in {took:.0f} s", flush=True)
        end = first + timedelta(days=MONTH_DAYS)
        period = ["--from", first.isoformat(), "--to", end.isoformat()]
        for command in given.commands:
            output = folder / f"books.{command}"
            arguments: list[object] = ["reconcile", "shop", *period]
            if command != "reconcile":
                arguments = ["export", "shop", *period, "--format", command, "--output", output]
            done = _run(deployed, arguments)
            size = output.stat().st_size if output.exists() else 0
            print(f"{command:10} {done.describe()}, {size / MEBI:,.0f} MiB written", flush=True)
            output.unlink(missing_ok=True)
            assert done.code == 0, done.text
        if "reconcile" in given.commands:
            _take_an_atom(deployed, payment_id)
            done = _run(deployed, ["reconcile", "shop", *period])
            print(f"an atom is missing: exit {done.code}\n{done.text}", flush=True)
            assert done.code == 1
            assert done.text.count("journal_short") == 2  # its line, and the count
            assert payment_id in done.text


# Filling.


def _fill(deployed: Deployed, count: int, first: int) -> str:
    """Load copies of one Payment, evenly over a month; the id of one in the middle."""
    deployed.admin("apps", "create", "Shop", "--partner-id", "shop", "--mode", "sandbox")
    with closing(open_storage(deployed.storage_url)) as storage:
        ring = KeyRing.parse((deployed.folder / "key-ring").read_text())
        service = PaymentsService(storage, ring)
        payment = _make_payment(service)
        access = require_maintenance_access(storage)
        templates = {kind: _find_templates(storage, kind, payment) for kind in KINDS}
        new_id, middle = service.parts.ports.identifiers.new, ""
        for start in range(0, count, BATCH):
            rows: dict[type[Record], list[RecordRow]] = {kind: [] for kind in KINDS}
            for number in range(start, min(start + BATCH, count)):
                at = first + number * MONTH_DAYS * DAY // count
                copy = _Copy(new_id, at - payment.created_at_ms, number)
                for kind, some in templates.items():
                    rows[kind] += [copy.make_row(one) for one in some]
                if number == count // 2:
                    middle = rows[Payment][-1].id
            with access.lock_exclusively() as alone:
                for kind, made in rows.items():
                    alone.load(kind, made)
        return middle


def _make_payment(service: PaymentsService) -> Payment:
    app = service.tenants.find_app_by_partner("shop")
    assert app is not None
    shop = service.environment(app.environments["sandbox"])
    merchant = shop.accounts.create(
        NewAccount(external_user_id="merchant", subject_type="business")
    ).account
    made = shop.payments.receive(
        NewPayment(
            amount="25.00", destination=ToAccount(account_id=merchant.id), reference=_REFERENCE
        )
    ).payment
    shop.sandbox.transfer(made.chain_id, "USDC", "25.00", to=str(made.escrow_address))
    shop.sandbox.advance_clock(60)
    paid = shop.payments.read(made.id).payment
    assert paid.status == "succeeded"
    return paid


def _find_templates(storage: Storage, kind: type[Record], payment: Payment) -> Sequence[_Template]:
    """The rows of a kind that belong to the Payment, or to its escrow on the chain."""
    names = (payment.id, str(payment.escrow_address), str(payment.release_hash))
    rows = require_maintenance_access(storage).read_rows(kind)
    found = [row for row in rows if any(name in f"{row.id} {row.body}" for name in names)]
    assert found, kind
    return [_Template.cut(kind, row, str(payment.escrow_address)) for row in found]


@attrs.frozen
class _Template:
    """A row whose texts are cut at what each copy has of its own.

    Each text alternates what all copies share and a token of the original.
    """

    row: RecordRow
    id: Sequence[str]
    columns: Sequence[tuple[str, Value | Sequence[str]]]
    body: Sequence[str]

    @classmethod
    def cut(cls, kind: type[Record], row: RecordRow, escrow: str) -> _Template:
        """The template of a row."""
        tokens = re.compile(f"({_ID}|{_HASH}|{escrow}|{_INSTANT}|(?<![a-z_]){_REFERENCE})")
        columns = [
            (name, tokens.split(value) if isinstance(value, str) else value)
            for name, value in zip(kind.collection.columns, row.columns, strict=True)
        ]
        return cls(row, tokens.split(row.id), columns, tokens.split(row.body))


@attrs.define
class _Copy:
    """A Payment and what belongs to it, under ids, an address, hashes and times of its own."""

    new_id: Callable[[str], str]
    shift_ms: int
    number: int
    fresh: dict[str, str] = attrs.field(factory=dict)

    def make_row(self, template: _Template) -> RecordRow:
        columns = tuple(
            value + self.shift_ms
            if isinstance(value, int) and name in _TIMES
            else value
            if value is None or isinstance(value, int)
            else self._join(value)
            for name, value in template.columns
        )
        row = template.row
        return RecordRow(
            row.partition, self._join(template.id), row.version, columns, self._join(template.body)
        )

    def _join(self, text: Sequence[str]) -> str:
        parts = list(text)
        for place in range(1, len(parts), 2):
            token = parts[place]
            fresh = self.fresh.get(token)
            parts[place] = fresh if fresh is not None else self._renew(token)
        return "".join(parts)

    def _renew(self, token: str) -> str:
        if token == _REFERENCE:
            made = f"{_REFERENCE} {self.number}"
        elif token.isdigit():
            made = str(int(token) + self.shift_ms)
        elif token.startswith("0x"):
            # In order, so that a million of them are loaded within minutes.
            digits = len(token) - 2
            made = f"0x{self.number:010x}{random.getrandbits(4 * digits - 40):0{digits - 10}x}"
        else:
            made = self.new_id(token[:-25])
        self.fresh[token] = made
        return made


def _take_an_atom(deployed: Deployed, payment_id: str) -> None:
    """One entry says an atom less than the receipt."""
    with closing(open_storage(deployed.storage_url)) as storage:
        access = require_maintenance_access(storage)
        [environment] = {row.partition for row in access.read_rows(Payment, limit=1)}

        def work(tx: Transaction) -> None:
            entry = tx.get(JournalEntry, f"{payment_id}/000001", for_update=True)
            assert entry is not None
            less = {
                name: Atomic(amount + (1 if amount < 0 else -1))
                for name, amount in entry.postings.items()
            }
            tx.replace(evolve(entry, postings=less))

        storage.transact(environment, work)


# Measuring.


@attrs.frozen
class Done:
    """A command that has ended."""

    code: int
    text: str
    seconds: float
    cpu_s: float
    peak_bytes: int

    def describe(self) -> str:
        """Its time and memory."""
        return (
            f"{self.seconds:7.1f} s, {self.cpu_s:7.1f} s of CPU,"
            f" {self.peak_bytes / MEBI:6.1f} MiB at most"
        )


def _run(deployed: Deployed, arguments: Sequence[object]) -> Done:
    """Run `payments` with these arguments."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "payments_core_http", *map(str, arguments)]
    environment: Mapping[str, str] = {**os.environ, "PAYMENTS_CONFIG": str(deployed.config)}
    with tempfile.TemporaryFile("w+") as printed:
        child = subprocess.Popen(command, stdout=printed, env=environment)
        peak = 0
        while (ended := os.wait4(child.pid, os.WNOHANG))[0] == 0:
            peak = max(peak, _read_peak(child.pid))
            time.sleep(0.1)
        _, status, usage = ended
        printed.seek(0)
        return Done(
            os.waitstatus_to_exitcode(status),
            printed.read(),
            time.perf_counter() - began,
            usage.ru_utime + usage.ru_stime,
            peak,
        )


def _read_peak(pid: int) -> int:
    """The most memory that a process had since it began its program; `ru_maxrss` also counts what
    the process had that made it."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


if __name__ == "__main__":
    main()
