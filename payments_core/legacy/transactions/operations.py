"""Transactions: read one, list those of an account (interface "Transaction")."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import attrs

from payments_core.accounts.record import Account
from payments_core.accounts.vaults.of_account import find_vaults
from payments_core.deposits.record import Deposit
from payments_core.engine.identifiers import LENGTH, is_identifier
from payments_core.engine.ports import Ports
from payments_core.errors import NotFound, ValidationFailed
from payments_core.legacy.transactions.sources import (
    Filters,
    Place,
    count_rows,
    find_sources,
    merge,
    place_of,
)
from payments_core.legacy.transactions.translation import (
    PREFIXES,
    LegacyTransaction,
    Origin,
    Related,
    find_account_ids,
    find_option_ids,
    translate,
)
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment
from payments_core.storage.port import Snapshot
from payments_core.tenants.authorization import Authority
from payments_core.validation.fields import PageLimit, PageNumber

MAX_REACH = 1_000
"""The number of transactions that page numbers reach, and that are counted; `before` continues
after them."""


@attrs.frozen
class TransactionPage:
    """One page of an account's transactions, newest first, and their total number.

    `total` counts those after `before`, at most MAX_REACH.
    """

    transactions: tuple[LegacyTransaction, ...]
    total: int


class LegacyTransactions:
    """Shows Payments, deposits and refunds as transactions."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage

    def get(self, authority: Authority, transaction_id: str) -> LegacyTransaction:
        """A transaction. Raises NotFound."""

        def load(snapshot: Snapshot) -> LegacyTransaction:
            record = _load_origin(snapshot, transaction_id)
            if record is None:
                raise NotFound("transaction")
            return _translate_all(snapshot, [record])[0]

        return self._storage.read(authority.partition, load)

    def list(
        self,
        authority: Authority,
        account_id: str,
        filters: Filters,
        *,
        before: str | None = None,
        page: PageNumber = 1,
        limit: PageLimit = 50,
    ) -> TransactionPage:
        """A page of an account's transactions, newest first; the first page has the number 1.

        `before` is the id of a transaction: the list begins after it. Raises NotFound for the
        account, and ValidationFailed for a page out of reach and for an unknown `before`.
        """
        start = (page - 1) * limit
        if start >= MAX_REACH:
            reach = f"reaches no further than {MAX_REACH} transactions; continue with before"
            raise ValidationFailed.at("page", reach)
        stop = min(start + limit, MAX_REACH)

        def load(snapshot: Snapshot) -> TransactionPage:
            if snapshot.get(Account, account_id) is None:
                raise NotFound("account")
            vaults = find_vaults(snapshot, account_id)
            sources = find_sources(account_id, vaults, filters)
            place = _load_place(snapshot, before)
            records = list(islice(merge(snapshot, sources, place), start, stop))
            total = count_rows(snapshot, sources, place, limit=MAX_REACH)
            return TransactionPage(_translate_all(snapshot, records), total)

        return self._storage.read(authority.partition, load)


def _load_place(snapshot: Snapshot, before: str | None) -> Place | None:
    if before is None:
        return None
    record = _load_origin(snapshot, before)
    if record is None:
        raise ValidationFailed.at("before", "is not a transaction")
    return place_of(record)


def _load_origin(snapshot: Snapshot, transaction_id: str) -> Origin | None:
    """The record behind the transaction with that id."""
    if not is_identifier(transaction_id, "tx"):
        return None
    for prefix, kind in PREFIXES.items():
        record = snapshot.get(kind, f"{prefix}_{transaction_id[-LENGTH:]}")
        if record is None:
            continue
        if isinstance(record, FundingOperation) and record.authorized_at_ms is None:
            return None
        return record
    return None


def _translate_all(snapshot: Snapshot, records: Sequence[Origin]) -> tuple[LegacyTransaction, ...]:
    """The transactions of records, in three reads for all that they refer to."""
    payments = {record.id: record for record in records if isinstance(record, Payment)}
    of_payments = {
        record.payment_id for record in records if not isinstance(record, (Payment, Deposit))
    }
    payments |= snapshot.get_many(Payment, of_payments)
    option_ids = find_option_ids(payments.values()) | {
        record.option_id for record in records if isinstance(record, FundingOperation)
    }
    options = snapshot.get_many(PaymentOption, option_ids)
    accounts = snapshot.get_many(
        Account, find_account_ids(records, payments.values(), options.values())
    )
    related = Related(payments=payments, options=options, accounts=accounts)
    return tuple(translate(record, related) for record in records)
