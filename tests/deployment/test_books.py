"""`payments export` and `payments reconcile`, as an operator runs them."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from payments_core import NewAccount, NewPayment, PaymentsService, ToAccount
from payments_core.books.period import closed_until
from payments_core.clock import DAY, SystemClock
from payments_core.credentials.keyring import KeyRing
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.payments.journal.record import JournalEntry
from payments_core.storage.port import Transaction
from payments_core.storage_loader import open_storage
from payments_core_http.cli import payments
from tests.deployment.deployed import Deployed


class Books:
    """A deployment with a paid Payment, two days ago by its clock."""

    def __init__(self, folder: Path) -> None:
        self.deployed = Deployed.made(folder, f"sqlite:///{folder}/payments.db")
        self.deployed.run("admin", "migrate")
        self.deployed.admin("apps", "create", "Shop", "--partner-id", "shop", "--mode", "sandbox")
        with closing(open_storage(self.deployed.storage_url)) as storage:
            ring = KeyRing.parse((folder / "key-ring").read_text())
            service = PaymentsService(storage, ring)
            app = service.tenants.find_app_by_partner("shop")
            assert app is not None
            self.environment_id = app.environments["sandbox"]
            shop = service.environment(self.environment_id)
            new = NewAccount(external_user_id="merchant", subject_type="business")
            to = ToAccount(account_id=shop.accounts.create(new).account.id)
            made = shop.payments.receive(NewPayment(amount="25.00", destination=to, reference="=1"))
            self.payment_id = made.payment.id
            escrow = str(made.payment.escrow_address)
            shop.sandbox.transfer(made.payment.chain_id, "USDC", "25.00", to=escrow)
            shop.sandbox.advance_clock(2 * DAY // 1_000)
        self.first = closed_until(SystemClock().now())
        self.period = [
            "--from", (self.first - timedelta(days=1)).isoformat(),
            "--to", (self.first + timedelta(days=2)).isoformat(),
        ]  # fmt: skip

    def run(self, *arguments: str) -> Result:
        config = ["--config", str(self.deployed.config)]
        return CliRunner().invoke(payments, [*arguments, *config], catch_exceptions=False)

    def take_an_atom(self) -> None:
        def work(tx: Transaction) -> None:
            entry = tx.get(JournalEntry, f"{self.payment_id}/000001", for_update=True)
            assert entry is not None
            less = {name: Atomic(n + (1 if n < 0 else -1)) for name, n in entry.postings.items()}
            tx.replace(evolve(entry, postings=less))

        with closing(open_storage(self.deployed.storage_url)) as storage:
            storage.transact(self.environment_id, work)


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Books:
    return Books(tmp_path_factory.mktemp("books"))


def test_a_csv_goes_to_standard_output(books: Books) -> None:
    done = books.run("export", "shop", "--format", "csv", *books.period)
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(io.StringIO(done.stdout, newline="")))
    assert [(row["cause"], row["account"], row["amount"]) for row in rows] == [
        ("receipt", "payer", "-25.00"),
        ("receipt", "escrow", "25.00"),
        ("release", "escrow", "-25.00"),
        ("release", "recipient", "25.00"),
    ]
    assert {row["reference"] for row in rows} == {"'=1"}


@pytest.mark.parametrize(("form", "begin"), [("beancount", b"option"), ("sqlite", b"SQLite fo")])
def test_a_file_is_written_once(books: Books, tmp_path: Path, form: str, begin: bytes) -> None:
    path = tmp_path / "books"
    arguments = ["export", "shop", "--format", form, *books.period, "--output", str(path)]
    done = books.run(*arguments, "--json")
    content = path.read_bytes()
    assert json.loads(done.stdout) == {
        "file": str(path),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    assert content.startswith(begin)
    refused = books.run(*arguments)
    assert (refused.exit_code, "replaces no file" in refused.stderr) == (1, True)
    assert path.read_bytes() == content
    if form == "sqlite":
        with closing(sqlite3.connect(path)) as found:
            assert found.execute("SELECT count(*) FROM entries").fetchone() == (2,)


def test_an_sqlite_file_needs_a_name(books: Books) -> None:
    done = books.run("export", "shop", "--format", "sqlite", *books.period)
    assert (done.exit_code, "needs --output" in done.stderr) == (2, True)


@pytest.mark.parametrize("form", ["csv", "sqlite"])
def test_an_export_needs_a_folder_that_it_can_write_to(
    books: Books, tmp_path: Path, form: str
) -> None:
    output = str(tmp_path / "none" / "books")
    done = books.run("export", "shop", "--format", form, *books.period, "--output", output)
    said = f"Error: {tmp_path / 'none'} is no folder that this user can write to.\n"
    assert (done.exit_code, done.stderr) == (1, said)


@pytest.mark.parametrize("command", [["export", "shop", "--format", "csv"], ["reconcile", "shop"]])
@pytest.mark.parametrize(
    ("days", "said"),
    [((0, 0), "--to must be a later day"), ((0, 9), "--to must not be later than")],
)
def test_a_period_is_of_closed_days(
    books: Books, command: list[str], days: tuple[int, int], said: str
) -> None:
    first, end = (books.first + timedelta(days=number) for number in days)
    done = books.run(*command, "--from", first.isoformat(), "--to", end.isoformat())
    assert (done.exit_code, said in done.stderr) == (1, True), done.stderr


def test_books_that_agree_are_compared_quietly(books: Books) -> None:
    done = books.run("reconcile", "shop", *books.period, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {
        "payments": 1,
        "entries": 2,
        "bankTransfers": 0,
        "transfers": 2,
        "payouts": 0,
        "inProgress": 0,
        "differences": {},
        "unchecked": {},
    }


def test_an_atom_that_is_missing_is_named(tmp_path: Path) -> None:
    books = Books(tmp_path)
    books.take_an_atom()
    done = books.run("reconcile", "shop", *books.period)
    assert done.exit_code == 1
    [line, *_] = done.stdout.splitlines()
    assert line.startswith(f"journal_short  {books.payment_id}: the journal has less")
    assert line.endswith("expected 25.00, found 24.999999 USDC")
    lines: list[Any] = [
        json.loads(line)
        for line in books.run("reconcile", "shop", *books.period, "--json").stdout.splitlines()
    ]
    assert (lines[0]["expectedAtomic"], lines[0]["foundAtomic"]) == ("25000000", "24999999")
    assert lines[1]["differences"] == {"journal_short": 1}
