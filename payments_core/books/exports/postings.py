"""A period as CSV: a line for each posting, so that any sum can be made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from payments_core.books.movements import Movement
from payments_core.clock import format_iso
from payments_core.csv_text import Cell, iter_csv
from payments_core.money import format_signed_amount

HEADER = (
    "date",
    "at",
    "entry_id",
    "cause",
    "payment_id",
    "bank_transaction_id",
    "intent",
    "account_id",
    "external_user_id",
    "reference",
    "description",
    "account",
    "chain_id",
    "asset_symbol",
    "token_address",
    "decimals",
    "amount_atomic",
    "amount",
    "transaction_hash",
    "note",
)


def iter_postings_csv(movements: Iterable[Movement]) -> Iterator[bytes]:
    """The whole table in pieces. The amounts of an entry add up to zero."""
    return iter_csv(HEADER, _iter_rows(movements))


def _iter_rows(movements: Iterable[Movement]) -> Iterator[tuple[Cell, ...]]:
    for one in movements:
        asset = one.asset
        for account, amount in one.postings.items():
            yield (
                one.day.isoformat(),
                format_iso(one.at_ms),
                one.id,
                one.cause,
                one.payment_id,
                one.bank_transaction_id,
                one.intent,
                one.account_id,
                one.external_user_id,
                one.reference,
                one.description,
                account,
                asset.chain_id,
                asset.symbol,
                asset.address,
                asset.decimals,
                int(amount),
                format_signed_amount(amount, asset.decimals),
                one.transaction_hash,
                one.note,
            )
