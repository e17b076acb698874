"""A period as an SQLite file that any tool opens: tables with foreign keys, a full-text index of
references and descriptions, and views by account and day. Made with sqlite-utils.

Amounts are texts, because SQLite's integers have 64 bits: `..._atomic` exactly in the smallest
unit, and beside it as a decimal. Their sums by day are made here, so that no query needs to add
texts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from payments_core.books.balances import Balances
from payments_core.books.exports.whole_file import write_whole
from payments_core.books.movements import Movement
from payments_core.books.period import Period
from payments_core.clock import format_iso
from payments_core.money import format_signed_amount
from payments_core.networks import Asset

if TYPE_CHECKING:
    import sqlite_utils

BATCH = 500
"""How many movements are written at a time."""

_TABLES: Sequence[tuple[str, Mapping[str, type], Any, Sequence[tuple[str, str, str]]]] = (
    ("period", {"first_day": str, "end_day": str, "environment_id": str}, "first_day", ()),
    (
        "assets",
        {"id": str, "chain_id": int, "symbol": str, "token_address": str, "decimals": int},
        "id",
        (),
    ),
    (
        "payments",
        {
            "id": str, "intent": str, "account_id": str, "external_user_id": str,
            "reference": str, "description": str, "asset_id": str, "created_at": str,
        },
        "id",
        (("asset_id", "assets", "id"),),
    ),
    (
        "bank_transfers",
        {
            "id": str, "incoming_id": str, "account_id": str, "external_user_id": str,
            "asset_id": str, "created_at": str,
        },
        "id",
        (("asset_id", "assets", "id"),),
    ),
    (
        "entries",
        {
            "id": str, "day": str, "at": str, "cause": str, "subject": str, "payment_id": str,
            "bank_transfer_id": str, "transaction_hash": str, "note": str,
        },
        "id",
        (("payment_id", "payments", "id"), ("bank_transfer_id", "bank_transfers", "id")),
    ),
    (
        "postings",
        {
            "entry_id": str, "ledger_account": str, "account_id": str, "day": str, "asset_id": str,
            "amount_atomic": str, "amount": str,
        },
        ("entry_id", "ledger_account"),
        (("entry_id", "entries", "id"), ("asset_id", "assets", "id")),
    ),
    (
        "daily_balances",
        {
            "day": str, "asset_id": str, "ledger_account": str,
            "opening_atomic": str, "gained_atomic": str, "lost_atomic": str, "closing_atomic": str,
            "opening": str, "gained": str, "lost": str, "closing": str,
        },
        ("day", "asset_id", "ledger_account"),
        (("asset_id", "assets", "id"),),
    ),
    (
        "daily_account_movements",
        {
            "account_id": str, "day": str, "asset_id": str, "ledger_account": str,
            "postings": int, "amount_atomic": str, "amount": str,
        },
        ("account_id", "day", "asset_id", "ledger_account"),
        (("asset_id", "assets", "id"),),
    ),
)  # fmt: skip
"""Name, columns, primary key and foreign keys of each table."""

_VIEWS: Mapping[str, str] = {
    "balances_by_day": """
        SELECT day, symbol, chain_id, ledger_account, opening, gained, lost, closing
        FROM daily_balances JOIN assets ON assets.id = asset_id
        ORDER BY day, chain_id, symbol, daily_balances.rowid""",
    "movements_by_account_and_day": """
        SELECT account_id, day, symbol, chain_id, ledger_account, postings, amount
        FROM daily_account_movements JOIN assets ON assets.id = asset_id
        ORDER BY account_id, day, chain_id, symbol, daily_account_movements.rowid""",
    "entries_with_postings": """
        SELECT entries.at, entries.cause, entries.payment_id, payments.reference,
               postings.account_id, postings.ledger_account, postings.amount, assets.symbol,
               assets.chain_id, entries.transaction_hash, entries.id AS entry_id
        FROM postings JOIN entries ON entries.id = entry_id
        JOIN assets ON assets.id = postings.asset_id
        LEFT JOIN payments ON payments.id = payment_id""",
}


def write_database(
    path: Path,
    environment_id: str,
    period: Period,
    opening: Balances,
    movements: Iterable[Movement],
) -> None:
    """Write the file. Until it is complete it has another name, and what was there stays."""
    import sqlite_utils  # a third of a second, spent only when a file is made

    with write_whole(path) as unfinished, closing(sqlite3.connect(unfinished)) as connection:
        # An unfinished file is thrown away, so it needs neither a journal nor a sync.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        database = sqlite_utils.Database(connection, execute_plugins=False)
        for name, columns, key, foreign_keys in _TABLES:
            database.table(name).create(dict(columns), pk=key, foreign_keys=foreign_keys)
        _fill(database, environment_id, period, opening, movements)
        _add_up_accounts(database)
        for name, sql in _VIEWS.items():
            database.create_view(name, sql)
        database.table("payments").enable_fts(["reference", "description"])
        for column in ("payment_id", "bank_transfer_id", "day"):
            database.table("entries").create_index([column])


def _fill(
    database: sqlite_utils.Database,
    environment_id: str,
    period: Period,
    opening: Balances,
    movements: Iterable[Movement],
) -> None:
    days = _Days(period, opening)
    database.table("period").insert(
        {
            "first_day": period.first.isoformat(),
            "end_day": period.end.isoformat(),
            "environment_id": environment_id,
        }
    )
    _insert(database, "assets", [_asset_row(asset) for asset, _, _ in opening], ignore=True)
    remaining = iter(movements)
    while batch := list(islice(remaining, BATCH)):
        with database.atomic():
            _insert(database, "assets", _unique(_asset_row(one.asset) for one in batch), True)
            payments = [one for one in batch if one.payment_id is not None]
            _insert(database, "payments", _unique(map(_payment_row, payments)), ignore=True)
            transfers = [one for one in batch if one.payment_id is None]
            _insert(database, "bank_transfers", _unique(map(_transfer_row, transfers)), True)
            _insert(database, "entries", [_entry_row(one) for one in batch])
            _insert(database, "postings", [row for one in batch for row in _posting_rows(one)])
            for one in batch:
                _insert(database, "daily_balances", days.post(one))
    _insert(database, "daily_balances", days.end())


def _insert(
    database: sqlite_utils.Database,
    table: str,
    rows: Sequence[Mapping[str, Any]],
    ignore: bool = False,
) -> None:
    if rows:
        database.table(table).insert_all(map(dict, rows), ignore=ignore)


def _unique(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list({row["id"]: row for row in rows}.values())


class _Days:
    """The balances at the end of each day of a period, also of those without a movement."""

    def __init__(self, period: Period, opening: Balances) -> None:
        self._days = iter(period.days)
        self._day = next(self._days)
        self._balances = opening.carry()

    def post(self, movement: Movement) -> list[Mapping[str, Any]]:
        """Add a movement; the rows of the days that end before it."""
        rows: list[Mapping[str, Any]] = []
        while self._day < movement.day:
            rows += self._rows()
            self._day = next(self._days)
        self._balances.post(movement.asset, movement.postings)
        return rows

    def end(self) -> list[Mapping[str, Any]]:
        """The rows of all days that are left."""
        rows = list(self._rows())
        for day in self._days:
            self._day = day
            rows += self._rows()
        return rows

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        for asset, account, turnover in self._balances:
            amounts = {
                "opening": turnover.opening,
                "gained": turnover.gained,
                "lost": turnover.lost,
                "closing": turnover.closing,
            }
            yield {
                "day": self._day.isoformat(),
                "asset_id": _asset_id(asset),
                "ledger_account": account,
                **{f"{name}_atomic": str(amount) for name, amount in amounts.items()},
                **{
                    name: format_signed_amount(amount, asset.decimals)
                    for name, amount in amounts.items()
                },
            }
        self._balances = self._balances.carry()


class _ExactSum:
    """An aggregate of SQLite that adds integers in texts, of any length."""

    def __init__(self) -> None:
        self._sum = 0

    def step(self, text: Any) -> None:
        self._sum += int(text)

    def finalize(self) -> Any:
        return str(self._sum)


def _add_up_accounts(database: sqlite_utils.Database) -> None:
    """Fill `daily_account_movements` from the postings. SQLite sorts them on disk."""
    connection = database.conn
    connection.create_aggregate("exact_sum", 1, _ExactSum)
    connection.create_function("decimal", 2, format_text, deterministic=True)
    with database.atomic():
        connection.execute(
            """
            INSERT INTO daily_account_movements
            SELECT account_id, day, asset_id, ledger_account, count(*), exact_sum(amount_atomic),
                   decimal(exact_sum(amount_atomic), decimals)
            FROM postings JOIN assets ON assets.id = asset_id
            WHERE account_id IS NOT NULL
            GROUP BY account_id, day, asset_id, ledger_account
            ORDER BY account_id, day, asset_id, ledger_account
            """
        )


def format_text(amount_atomic: str, decimals: int) -> str:
    """The decimal text of an amount in atomic digits."""
    return format_signed_amount(int(amount_atomic), decimals)


def _asset_id(asset: Asset) -> str:
    """The name of an asset in the file: two tokens of one symbol are two."""
    return f"{asset.chain_id}/{asset.symbol}/{asset.address}"


def _asset_row(asset: Asset) -> Mapping[str, Any]:
    return {
        "id": _asset_id(asset),
        "chain_id": asset.chain_id,
        "symbol": asset.symbol,
        "token_address": asset.address,
        "decimals": asset.decimals,
    }


def _payment_row(one: Movement) -> Mapping[str, Any]:
    return {
        "id": one.payment_id,
        "intent": one.intent,
        "account_id": one.account_id,
        "external_user_id": one.external_user_id,
        "reference": one.reference,
        "description": one.description,
        "asset_id": _asset_id(one.asset),
        "created_at": format_iso(one.begun_at_ms),
    }


def _transfer_row(one: Movement) -> Mapping[str, Any]:
    return {
        "id": one.bank_transaction_id,
        "incoming_id": one.subject,
        "account_id": one.account_id,
        "external_user_id": one.external_user_id,
        "asset_id": _asset_id(one.asset),
        "created_at": format_iso(one.begun_at_ms),
    }


def _entry_row(one: Movement) -> Mapping[str, Any]:
    return {
        "id": one.id,
        "day": one.day.isoformat(),
        "at": format_iso(one.at_ms),
        "cause": one.cause,
        "subject": one.subject,
        "payment_id": one.payment_id,
        "bank_transfer_id": one.bank_transaction_id,
        "transaction_hash": one.transaction_hash,
        "note": one.note,
    }


def _posting_rows(one: Movement) -> Iterator[Mapping[str, Any]]:
    for account, amount in one.postings.items():
        yield {
            "entry_id": one.id,
            "ledger_account": account,
            "account_id": one.account_id,
            "day": one.day.isoformat(),
            "asset_id": _asset_id(one.asset),
            "amount_atomic": str(int(amount)),
            "amount": format_signed_amount(amount, one.asset.decimals),
        }
