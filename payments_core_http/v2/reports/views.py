"""Rows of reports, as JSON and as CSV (contract §17)."""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.banks.rails import Rail
from payments_core.books.balances import LEDGER_ACCOUNTS
from payments_core.books.movements import Movement
from payments_core.books.reports import DayBalance
from payments_core.clock import format_iso
from payments_core.csv_text import Cell
from payments_core.money import format_signed_amount
from payments_core.payments.record import Payment
from payments_core_http.v2.payments.payout_views import payout
from payments_core_http.v2.statuses import PayoutStatus
from payments_core_http.wire.classes import frozen_view


@frozen_view
class BalanceRowView:
    """What an account of the journal had on a day, of one asset. The opening balance with what was
    gained, and without what was lost, is the closing balance, and that opens the next day."""

    date: str
    """The day in UTC."""
    account: str
    """The account of the journal: `payer` and `sender` are the world outside, `escrow` and `excess`
    what is held, `recipient` what was passed on, `fees` your fees, `offramp` and `bank` the way of
    payouts and of bank transfers."""
    chainId: int
    assetSymbol: str
    tokenAddress: str
    decimals: int
    openingAtomic: str
    """The balance at the beginning of the day, in the smallest unit."""
    gainedAtomic: str
    """The sum of what the account gained, in the smallest unit."""
    lostAtomic: str
    """The sum of what the account lost, in the smallest unit."""
    closingAtomic: str
    """The balance at the end of the day, in the smallest unit."""
    opening: str
    """The balance at the beginning of the day, as a decimal string."""
    closing: str
    """The balance at the end of the day, as a decimal string."""


@frozen_view
class TransactionRowView:
    """One movement of money in the journal: of a Payment, or of a bank transfer to an on-ramp."""

    id: str
    date: str
    """The day in UTC on which it was booked: when what moved the money was final."""
    createdAt: str
    cause: str
    """What moved the money."""
    subject: str
    """The id of the receipt, transfer, refund, payout or bank transfer that moved the money."""
    paymentId: str | None
    bankTransactionId: str | None
    """The bank transfer that it belongs to; null unless it is of an on-ramp."""
    accountId: str | None
    externalUserId: str | None
    reference: str | None
    chainId: int
    assetSymbol: str
    tokenAddress: str
    decimals: int
    amountAtomic: str
    amount: str
    """How much moved, as a decimal string."""
    postings: Mapping[str, str]
    """The change of each account, in the smallest unit; negative for a debit. They add up to
    zero."""
    transactionHash: str | None


@frozen_view
class PayoutRowView:
    """A payout to a bank account, as it is now: it may settle and come back later."""

    paymentId: str
    date: str
    """The day in UTC on which its Payment was created."""
    accountId: str | None
    externalUserId: str | None
    reference: str | None
    chainId: int
    assetSymbol: str
    amountAtomic: str
    amount: str
    """How much the bank pays, as a decimal string."""
    currency: str
    """The currency that the bank pays."""
    rail: Rail
    status: PayoutStatus
    attempt: int
    """The number of this payout of the Payment; each retry is a new payout."""
    bankAccountId: str
    """The bank account that is paid."""
    bankReference: str | None
    """The bank's own id of the payment; null until it has one."""
    returnCode: str | None
    """The bank's code for the return, for example R01; null unless it was returned."""
    createdAt: str
    submittedAt: str | None
    """When the bank was asked to pay; null until then."""
    settlesOn: str | None
    """The settlement date; an expected date until the payout has settled."""
    settledAt: str | None
    returnedAt: str | None
    """When the bank returned the payout; null unless it was returned."""


ReportRow = BalanceRowView | TransactionRowView | PayoutRowView


def balance_row(one: DayBalance) -> BalanceRowView:
    """A balance of a day."""
    asset, turnover = one.asset, one.turnover
    return BalanceRowView(
        date=one.day.isoformat(),
        account=one.account,
        chainId=asset.chain_id,
        assetSymbol=asset.symbol,
        tokenAddress=asset.address,
        decimals=asset.decimals,
        openingAtomic=str(turnover.opening),
        gainedAtomic=str(turnover.gained),
        lostAtomic=str(turnover.lost),
        closingAtomic=str(turnover.closing),
        opening=format_signed_amount(turnover.opening, asset.decimals),
        closing=format_signed_amount(turnover.closing, asset.decimals),
    )


def transaction_row(one: Movement) -> TransactionRowView:
    """A movement."""
    moved = sum(amount for amount in one.postings.values() if amount > 0)
    return TransactionRowView(
        id=one.id,
        date=one.day.isoformat(),
        createdAt=format_iso(one.at_ms),
        cause=one.cause,
        subject=one.subject,
        paymentId=one.payment_id,
        bankTransactionId=one.bank_transaction_id,
        accountId=one.account_id,
        externalUserId=one.external_user_id,
        reference=one.reference,
        chainId=one.asset.chain_id,
        assetSymbol=one.asset.symbol,
        tokenAddress=one.asset.address,
        decimals=one.asset.decimals,
        amountAtomic=str(moved),
        amount=format_signed_amount(moved, one.asset.decimals),
        postings={name: str(int(amount)) for name, amount in one.postings.items()},
        transactionHash=one.transaction_hash,
    )


def payout_row(one: Payment) -> PayoutRowView:
    """A Payment to a bank account."""
    assert one.payout is not None
    shown, source = payout(one.payout), one.source
    created_at = format_iso(one.created_at_ms)
    return PayoutRowView(
        paymentId=one.id,
        date=created_at[:10],
        accountId=None if source is None else source.account_id,
        externalUserId=None if source is None else source.external_user_id,
        reference=one.reference,
        chainId=one.chain_id,
        assetSymbol=one.asset_symbol,
        amountAtomic=str(one.amount_atomic),
        amount=shown.amount,
        currency=shown.currency,
        rail=shown.rail,
        status=shown.status,
        attempt=shown.attempt,
        bankAccountId=shown.bankAccountId,
        bankReference=shown.reference,
        returnCode=shown.returnCode,
        createdAt=created_at,
        submittedAt=shown.submittedAt,
        settlesOn=shown.settlesOn,
        settledAt=shown.settledAt,
        returnedAt=shown.returnedAt,
    )


def list_columns(kind: type[ReportRow]) -> tuple[str, ...]:
    """The columns of a report as CSV: its fields, with a column for each account's change."""
    names: list[str] = []
    for name in kind.__annotations__:
        names += LEDGER_ACCOUNTS if name == "postings" else [name]
    return tuple(names)


def list_cells(row: ReportRow) -> list[Cell]:
    """A row as CSV."""
    cells: list[Cell] = []
    for name, value in vars(row).items():
        cells += [value.get(one) for one in LEDGER_ACCOUNTS] if name == "postings" else [value]
    return cells
