"""Deposit addresses and deposits as v2 returns them (contract §5 "Deposit addresses")."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from payments_core.chains.judge import Reason
from payments_core.clock import format_iso, format_iso_or_none
from payments_core.deposits.operations import DepositCheck, IssuedAddress
from payments_core.deposits.record import Deposit, DepositAddress
from payments_core.money import format_amount
from payments_core.networks import ChainType
from payments_core_http.v2.options.views import SentBackView, sent_back
from payments_core_http.v2.statuses import DepositStatus
from payments_core_http.wire.classes import frozen_view


@frozen_view
class DepositAddressView:
    """An account's static address on a chain."""

    id: str
    accountId: str
    chainId: int
    chainType: ChainType
    address: str
    createdAt: str


class DepositView(msgspec.Struct, kw_only=True, frozen=True, rename={"from_": "from"}):
    """A transfer to a deposit address, and its state."""

    id: str
    depositId: str
    accountId: str
    depositAddressId: str
    """The id of the deposit address."""
    chainId: int
    assetSymbol: str
    tokenAddress: str
    amount: str
    """How much arrived, as a decimal string."""
    amountAtomic: str
    status: DepositStatus
    rejectionReason: Reason | None
    transactionHash: str
    from_: str
    createdAt: str
    updatedAt: str
    settledAt: str | None
    sentBack: SentBackView | UnsetType = UNSET


@frozen_view
class CheckView:
    """An account's newest deposits after a check of the chain."""

    accountId: str
    checkedAt: str
    """When the chain was read."""
    deposits: tuple[DepositView, ...]
    """The newest deposits."""


def address(record: DepositAddress) -> DepositAddressView:
    """A deposit address."""
    return DepositAddressView(
        id=record.id,
        accountId=record.account_id,
        chainId=record.chain_id,
        chainType=record.chain_type,
        address=record.address,
        createdAt=format_iso(record.created_at_ms),
    )


def issued_address(issued: IssuedAddress) -> DepositAddressView:
    """The response to a request for an address, whether it was new or not."""
    return address(issued.address)


def deposit(record: Deposit) -> DepositView:
    """A deposit."""
    return DepositView(
        id=record.id,
        depositId=record.id,
        accountId=record.account_id,
        depositAddressId=record.deposit_address_id,
        chainId=record.chain_id,
        assetSymbol=record.asset_symbol,
        tokenAddress=record.asset.address,
        amount=format_amount(record.amount_atomic, record.asset.decimals),
        amountAtomic=str(record.amount_atomic),
        status=record.status,
        rejectionReason=record.rejection_reason,
        transactionHash=record.transaction_hash,
        from_=record.sender,
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
        settledAt=format_iso_or_none(record.settled_at_ms),
        sentBack=UNSET if record.sent_back is None else sent_back(record.sent_back),
    )


def deposit_check(result: DepositCheck) -> CheckView:
    """The response of a check."""
    return CheckView(
        accountId=result.account_id,
        checkedAt=format_iso(result.checked_at_ms),
        deposits=tuple(deposit(record) for record in result.deposits),
    )
