"""Exports of a period: exact, the same bytes each time, and readable by the tools they are for."""

from __future__ import annotations

import csv
import io
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from payments_core.books.balances import Balances
from payments_core.books.exporting import add_up_opening, read_movements
from payments_core.books.exports.beancount import iter_beancount
from payments_core.books.exports.database import write_database
from payments_core.books.exports.postings import iter_postings_csv
from payments_core.books.movements import Movement
from payments_core.books.period import Period, day_of
from payments_core.networks import Asset
from payments_core.payments.record import Payment
from payments_core.payments.refunding.operations import NewRefund
from tests.service.books.month import HOUR_S, Month
from tests.service.world import World


def ignore(what: str, count: int) -> None:
    """Nobody looks at the progress here."""


class Exported:
    """What a month exports, of its second part, which opens with the balances of the first."""

    def __init__(self, month: Month) -> None:
        self.month, world = month, month.world
        month.change(Payment, month.payment_id, reference="=HYPERLINK(1)", description='a "b" \\ ü')
        world.advance(2 * 24 * HOUR_S)
        world.resources.payments.refund(month.payment_id, NewRefund(amount="1.000001"))
        world.finish()
        self.storage, self.partition = world.storage, world.environment_id
        today = day_of(world.clock.now())
        self.whole = Period(today - timedelta(days=9), today + timedelta(days=1))
        self.last = Period(today, today + timedelta(days=1))

    def opening(self, period: Period) -> Balances:
        return add_up_opening(self.storage, self.partition, period, ignore)

    def movements(self, period: Period) -> Iterator[Movement]:
        return read_movements(self.storage, self.partition, period, ignore)

    def csv(self, period: Period) -> list[dict[str, str]]:
        content = b"".join(iter_postings_csv(self.movements(period)))
        return list(csv.DictReader(io.StringIO(content.decode(), newline="")))

    def beancount(self, period: Period) -> str:
        pieces = iter_beancount("Books", period, self.opening(period), self.movements(period))
        return b"".join(pieces).decode()

    def database(self, period: Period, path: Path) -> Path:
        write_database(path, self.partition, period, self.opening(period), self.movements(period))
        return path


@pytest.fixture
def exported(memory_world: World) -> Exported:
    return Exported(Month(memory_world))


def add_up(rows: list[dict[str, str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for row in rows:
        total[row["account"]] += int(row["amount_atomic"])
    return total


def test_the_movements_of_a_csv_are_the_difference_of_the_balances(exported: Exported) -> None:
    whole, last = exported.csv(exported.whole), exported.csv(exported.last)
    by_entry: Counter[str] = Counter()
    for row in whole:
        by_entry[row["entry_id"]] += int(row["amount_atomic"])
    assert set(by_entry.values()) == {0}
    assert [row["entry_id"] for row in whole] == [
        row["entry_id"] for row in sorted(whole, key=lambda row: (row["at"], row["entry_id"]))
    ]
    before = {account: one.closing for _, account, one in exported.opening(exported.last)}
    after = add_up(whole)
    assert {name: after[name] - before.get(name, 0) for name in after} == {
        name: add_up(last).get(name, 0) for name in after
    }
    assert after["recipient"] == 13_999_999 + 5_000_000 + 40_000_000 + 12_340_000
    [refund, _] = last
    assert (refund["cause"], refund["amount"]) == ("refund", "1.000001")
    assert refund["reference"] == "'=HYPERLINK(1)"


def test_bean_check_accepts_the_beancount_file(exported: Exported, tmp_path: Path) -> None:
    loader = pytest.importorskip("beancount.loader", reason="beancount is not installed")
    for period in (exported.whole, exported.last):
        text = exported.beancount(period)
        _, errors, _ = loader.load_string(text)
        assert errors == []
        # An atom more in any account is an error, so the assertions say something.
        lines = text.splitlines()
        place = max(n for n, line in enumerate(lines) if " balance Expenses:Recipients" in line)
        wrong = lines[place].replace(".339999", ".340000").replace(".34 ", ".340001 ")
        assert wrong != lines[place]
        _, errors, _ = loader.load_string("\n".join([*lines[:place], wrong, *lines[place + 1 :]]))
        assert len(errors) == 1


def test_a_text_of_a_stranger_stays_a_text_in_beancount(exported: Exported) -> None:
    assert '* "receipt" "=HYPERLINK(1)" ^payment_' in exported.beancount(exported.whole)


def test_any_tool_reads_the_database(exported: Exported, tmp_path: Path) -> None:
    with closing(sqlite3.connect(exported.database(exported.whole, tmp_path / "b.db"))) as found:
        assert found.execute("PRAGMA foreign_key_check").fetchall() == []
        assert found.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        counts = {
            table: found.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("payments", "bank_transfers", "entries", "assets")
        }
        assert counts == {"payments": 3, "bank_transfers": 1, "entries": 12, "assets": 1}
        by_text = "SELECT rowid FROM payments_fts WHERE payments_fts MATCH 'hyperlink'"
        [(row,)] = found.execute(by_text).fetchall()
        of_it = found.execute("SELECT id FROM payments WHERE rowid = ?", (row,)).fetchone()
        assert of_it == (exported.month.payment_id,)
        days = found.execute("SELECT DISTINCT day FROM balances_by_day ORDER BY day").fetchall()
        assert len(days) == 3  # from the first movement on, with the day between
        closing_rows = found.execute(
            "SELECT ledger_account, closing FROM balances_by_day WHERE day = ?", days[-1]
        ).fetchall()
        assert dict(closing_rows)["recipient"] == "71.339999"
        paid = found.execute(
            "SELECT day, amount FROM movements_by_account_and_day"
            " WHERE account_id = ? AND ledger_account = 'recipient'",
            (exported.month.world.merchant.id,),
        ).fetchall()
        assert [amount for _, amount in paid] == ["20.00", "-1.000001"]


def test_the_same_period_gives_the_same_bytes(exported: Exported, tmp_path: Path) -> None:
    first = exported.database(exported.whole, tmp_path / "a.db").read_bytes()
    text = exported.beancount(exported.whole)
    rows = exported.csv(exported.whole)
    world = exported.month.world
    world.advance(24 * HOUR_S)
    world.resources.payments.refund(exported.month.payment_id, NewRefund(amount="2.00"))
    world.finish()
    assert exported.database(exported.whole, tmp_path / "b.db").read_bytes() == first
    assert exported.beancount(exported.whole) == text
    assert exported.csv(exported.whole) == rows
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "b.db"]


def test_sums_are_exact_beyond_64_bits(tmp_path: Path, exported: Exported) -> None:
    most = 10**77
    movements = [_movement(number, most + number) for number in range(3)]
    path, period = tmp_path / "b.db", exported.last
    write_database(path, "env_1", period, Balances(), movements)
    with closing(sqlite3.connect(path)) as found:
        row = found.execute(
            "SELECT closing_atomic FROM daily_balances WHERE ledger_account = 'escrow'"
        ).fetchone()
        assert row == (str(3 * most + 3),)
        row = found.execute(
            "SELECT amount_atomic, amount FROM daily_account_movements"
            " WHERE ledger_account = 'escrow'"
        ).fetchone()
        assert row == (str(3 * most + 3), f"{3 * most + 3}"[:-18] + ".000000000000000003")


def test_an_export_that_fails_leaves_no_file(tmp_path: Path, exported: Exported) -> None:
    def fail() -> Iterator[Movement]:
        yield _movement(1, 1)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_database(tmp_path / "b.db", "env_1", exported.last, Balances(), fail())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("symbol", "name"),
    [("USDC", "USDC.1"), ("USD₮0", "USD0.1"), ("1INCH", "INCH.1"), ("USDC.e", "USDCE.1")],
)
def test_each_asset_has_a_name_that_beancount_takes(symbol: str, name: str) -> None:
    one = _movement(1, 1, Asset(1, symbol, "0xAAAABBBBCCCCDDDD", 6))
    other = _movement(2, 1, Asset(1, symbol, "0x1111222233334444", 6))
    period = Period(one.day, one.day + timedelta(days=1))
    text = b"".join(iter_beancount("t", period, Balances(), [one, other])).decode()
    names = [line.split()[-1] for line in text.splitlines() if " commodity " in line]
    assert names[0] == name
    assert len(set(names)) == 2
    if loader := _find_loader():
        assert loader.load_string(text)[1] == []


def _find_loader() -> Any:
    try:
        from beancount import loader
    except ImportError:
        return None
    return loader


ETHER_LIKE = Asset(1, "BIG", "0x1", 18)


def _movement(number: int, amount: int, asset: Asset = ETHER_LIKE) -> Movement:
    return Movement(
        id=f"payment_{number}/000001",
        at_ms=1_790_000_000_000,
        cause="receipt",
        subject="receipt_1",
        payment_id=f"payment_{number}",
        intent="receive",
        account_id="acct_1",
        external_user_id="ada",
        asset=asset,
        postings={"payer": -amount, "escrow": amount},
        begun_at_ms=1_790_000_000_000,
    )
