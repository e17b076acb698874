"""Your own bank adapter, which passes the suite of the port. The "bank" is a file of SQLite,
so that the example needs nothing else; yours makes requests, and its bank keeps these rows.

Run it to send a payout through it and see its life::

    .venv/bin/python examples/custom_bank.py

`docs/how-to/write-a-bank-adapter.md` says what each method promises.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs

from payments_core.banks import port
from payments_core.banks.payouts import BankPayout
from payments_core.banks.rails import SERVICES, choose_service
from payments_core.banks.reviews import BankReview
from payments_core.banks.routing_numbers import find_routing_number_fault
from payments_core.banks.settlement import plan_settlement
from payments_core.banks.texts import find_holder_fault, find_statement_fault
from payments_core.clock import Clock, SystemClock

SCHEMA = """
CREATE TABLE IF NOT EXISTS reviews (
    kind TEXT, key TEXT, digest TEXT, status TEXT DEFAULT 'pending', PRIMARY KEY (kind, key));
CREATE TABLE IF NOT EXISTS payouts (
    key TEXT PRIMARY KEY, digest TEXT, status TEXT DEFAULT 'submitted', rail TEXT,
    amount_cents INTEGER, submitted_at_ms INTEGER, settles_on TEXT, settled_at_ms INTEGER,
    returned_at_ms INTEGER, return_code TEXT);
CREATE TABLE IF NOT EXISTS notices (
    id INTEGER PRIMARY KEY AUTOINCREMENT, payout_key TEXT, status TEXT, occurred_at_ms INTEGER);
"""
PAYOUT = "SELECT * FROM payouts WHERE key = ?"
MAX_WAIT_S = 10.0


def open_url(url: str) -> FileBank:
    """The bank of a URL such as filebank:///var/lib/bank.db: what an entry point names."""
    path = unquote(urlsplit(url).path)
    if not path:
        raise ValueError("the URL of a filebank needs a path")
    return FileBank(Path(path))


class FileBank:
    """The adapter. Handles in many threads and processes share one file."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path, self._clock = path, clock or SystemClock()
        with self._begin() as rows:
            for statement in SCHEMA.split(";"):
                rows.execute(statement)

    def request_capability(self, request: port.CapabilityRequest) -> BankReview:
        return self._ask("capability", request.key, request)

    def find_capability(self, key: str) -> BankReview | None:
        return self._find("capability", key)

    def register_account(self, registration: port.AccountRegistration) -> BankReview:
        _require_account(registration.account)
        return self._ask("account", registration.key, registration)

    def find_account(self, key: str) -> BankReview | None:
        return self._find("account", key)

    def submit(self, order: port.PayoutOrder) -> BankPayout:
        _require_account(order.recipient)
        if order.amount_cents <= 0:
            raise port.BankRefused("amount_out_of_range", "a payout must be greater than zero")
        service = choose_service(order.rail, order.amount_cents, same_day=order.same_day)
        if order.amount_cents > SERVICES[service].max_cents:
            raise port.BankRefused("amount_out_of_range", f"too much for {order.rail}")
        if fault := find_holder_fault(order.rail, order.recipient.holder_name):
            raise port.BankRefused("holder_name_invalid", f"the holder's name {fault}")
        if fault := order.statement_text and find_statement_fault(order.rail, order.statement_text):
            raise port.BankRefused("statement_text_invalid", f"the statement text {fault}")
        now = self._clock.now()
        row = (order.key, _digest(order), order.rail, order.amount_cents, now,
               plan_settlement(service, now).on.isoformat())  # fmt: skip
        with self._begin() as rows:  # one transaction: create it unless it exists
            rows.execute("INSERT OR IGNORE INTO payouts (key, digest, rail, amount_cents,"
                         " submitted_at_ms, settles_on)"
                         " VALUES (?, ?, ?, ?, ?, ?)", row)  # fmt: skip
            return self._payout(rows, order.key, _digest(order))

    def find_payout(self, key: str) -> BankPayout | None:
        with self._begin() as rows:
            found = rows.execute(PAYOUT, [key]).fetchone()
            return self._payout(rows, key, found["digest"]) if found else None

    def list_notices(self, limit: int = port.MAX_NOTICES) -> Sequence[port.BankNotice]:
        with self._begin() as rows:
            found = rows.execute("SELECT * FROM notices ORDER BY id LIMIT ?", [limit]).fetchall()
        return [port.BankNotice(**{**dict(row), "id": str(row["id"])}) for row in found]

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        with self._begin() as rows:
            rows.executemany("DELETE FROM notices WHERE id = ?", [[id] for id in notice_ids])

    # The bank's own actions; your bank has them in its sandbox.

    def approve(self, kind: str, key: str) -> None:
        """Decide a review."""
        with self._begin() as rows:
            rows.execute("UPDATE reviews SET status = 'active' WHERE (kind, key) = (?, ?)",
                         [kind, key])  # fmt: skip

    def move(self, key: str, status: str, code: str | None = None) -> None:
        """Settle or return a payout; its notice is of the same transaction."""
        column = "settled_at_ms" if status == "settled" else "returned_at_ms"
        now = self._clock.now()
        with self._begin() as rows:
            rows.execute(f"UPDATE payouts SET status = ?, return_code = ?, {column} = ?"
                         " WHERE key = ?", [status, code, now, key])  # fmt: skip
            rows.execute("INSERT INTO notices (payout_key, status, occurred_at_ms)"
                         " VALUES (?, ?, ?)", [key, status, now])  # fmt: skip

    def _ask(self, kind: str, key: str, request: Any) -> BankReview:
        with self._begin() as rows:
            rows.execute("INSERT OR IGNORE INTO reviews (kind, key, digest) VALUES (?, ?, ?)",
                         [kind, key, _digest(request)])  # fmt: skip
            row = rows.execute("SELECT * FROM reviews WHERE (kind, key) = (?, ?)",
                               [kind, key]).fetchone()  # fmt: skip
        if row["digest"] != _digest(request):
            raise port.KeyReused(key)
        return BankReview(key=key, reference=f"{kind}:{key}", status=row["status"])

    def _find(self, kind: str, key: str) -> BankReview | None:
        with self._begin() as rows:
            row = rows.execute("SELECT * FROM reviews WHERE (kind, key) = (?, ?)",
                               [kind, key]).fetchone()  # fmt: skip
        return row and BankReview(key=key, reference=f"{kind}:{key}", status=row["status"])

    def _payout(self, rows: sqlite3.Connection, key: str, digest: str) -> BankPayout:
        row = dict(rows.execute(PAYOUT, [key]).fetchone())
        if row.pop("digest") != digest:
            raise port.KeyReused(key)
        row["settles_on"] = date.fromisoformat(row["settles_on"])
        return BankPayout(reference=f"payout:{key}", **row)

    @contextmanager
    def _begin(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, MAX_WAIT_S, isolation_level=None)) as rows:
                rows.row_factory = sqlite3.Row
                rows.execute("BEGIN IMMEDIATE")
                yield rows
                rows.execute("COMMIT")
        except sqlite3.Error as error:  # a commit that failed may have happened: check
            raise port.BankUnavailable("the file cannot be used") from error


def _require_account(account: port.BankAccountDetails) -> None:
    if fault := find_routing_number_fault(account.routing_number):
        raise port.BankRefused("routing_number_invalid", f"the routing number {fault}")
    if not re.fullmatch("[0-9]{4,17}", account.account_number):
        raise port.BankRefused("account_number_invalid", "an account number has 4 to 17 digits")


def _digest(request: Any) -> str:
    """What distinguishes requests; the file contains no account number."""
    return hashlib.sha256(json.dumps(attrs.asdict(request)).encode()).hexdigest()


def main() -> None:
    """A payout that settles and is returned."""
    with TemporaryDirectory() as folder:
        bank = open_url(f"filebank://{folder}/bank.db")
        recipient = port.BankAccountDetails(
            holder_name="Ada", holder_type="individual", account_number="000123456789",
            routing_number="021000021", account_type="checking",
        )  # fmt: skip
        order = port.PayoutOrder(key="1", rail="ach", amount_cents=2_500, recipient=recipient)
        assert bank.submit(order) == bank.submit(order)
        print(bank.submit(order).status)
        bank.move("1", "settled")
        bank.move("1", "returned", "R03")
        print([notice.status for notice in bank.list_notices()])
        print(bank.submit(order).status, bank.submit(order).return_code)


if __name__ == "__main__":
    main()
