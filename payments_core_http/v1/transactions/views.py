"""Transactions as v1 returns them (interface "Transaction")."""

from __future__ import annotations

import msgspec

from payments_core.clock import format_iso, format_iso_or_none
from payments_core.legacy.transactions.operations import TransactionPage
from payments_core.legacy.transactions.translation import (
    LegacyTransaction,
    Party,
    TransactionStatus,
    TransactionType,
)
from payments_core.money import format_amount
from payments_core_http.v1.envelope import Success
from payments_core_http.wire.classes import frozen_view


@frozen_view
class PartyView:
    """One side of a transaction, as far as it is known."""

    userId: str | None
    paymentAddress: str | None
    walletAddress: str | None
    """The wallet's address; null if it is not known."""


class TransactionView(msgspec.Struct, kw_only=True, frozen=True, rename={"from_": "from"}):
    """A movement of funds. `fee` is what the recipient pays of `amount`."""

    id: str
    type: TransactionType
    status: TransactionStatus
    amount: str
    token: str
    from_: PartyView
    """Who pays."""
    to: PartyView
    """Who is paid."""
    fee: str
    chainId: int
    txHash: str | None
    createdAt: str
    completedAt: str | None


class ListedTransactionView(msgspec.Struct, kw_only=True, frozen=True, rename={"from_": "from"}):
    """A transaction in a list: each side is a payment address, or otherwise a wallet address."""

    id: str
    type: TransactionType
    status: TransactionStatus
    amount: str
    token: str
    from_: str | None
    """The payer's payment address, otherwise its wallet; null if it is not known."""
    to: str | None
    """The recipient's payment address, otherwise its wallet; null if it is not known."""
    fee: str
    chainId: int
    txHash: str | None
    createdAt: str
    completedAt: str | None


@frozen_view
class PaginationView:
    """The position of the page. `totalCount` counts 1,000 transactions at most."""

    page: int
    """The number of the page, from 1."""
    limit: int
    """How many transactions a page has."""
    totalPages: int
    """How many pages there are."""
    totalCount: int
    """The number of transactions; at most 1,000 are counted."""


@frozen_view
class TransactionsView:
    """A page of transactions, newest first."""

    transactions: tuple[ListedTransactionView, ...]
    """The transactions, newest first."""
    pagination: PaginationView
    """The position of the page."""


@frozen_view
class TransactionResponse(Success):
    """A transaction."""

    data: TransactionView
    """The transaction."""


@frozen_view
class TransactionsResponse(Success):
    """A page of transactions."""

    data: TransactionsView
    """The page."""


def transaction(found: LegacyTransaction) -> TransactionView:
    """A transaction, with its sides in full."""
    return TransactionView(
        id=found.id,
        type=found.type,
        status=found.status,
        amount=format_amount(found.amount_atomic, found.asset.decimals),
        token=found.asset.symbol,
        from_=_party(found.payer),
        to=_party(found.payee),
        fee=format_amount(found.fee_atomic, found.asset.decimals),
        chainId=found.asset.chain_id,
        txHash=found.transaction_hash,
        createdAt=format_iso(found.created_at_ms),
        completedAt=format_iso_or_none(found.completed_at_ms),
    )


def transactions(found: TransactionPage, *, page: int, limit: int) -> TransactionsView:
    """A page of transactions."""
    return TransactionsView(
        transactions=tuple(_listed(item) for item in found.transactions),
        pagination=PaginationView(
            page=page,
            limit=limit,
            totalPages=-(-found.total // limit),
            totalCount=found.total,
        ),
    )


def _listed(found: LegacyTransaction) -> ListedTransactionView:
    whole = msgspec.structs.asdict(transaction(found))
    return ListedTransactionView(**{**whole, "from_": found.payer.name, "to": found.payee.name})


def _party(party: Party) -> PartyView:
    return PartyView(
        userId=party.account_id,
        paymentAddress=party.payment_address,
        walletAddress=party.wallet_address,
    )
