"""The sandbox's clock, chains and failures as v2 returns them (contract §11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from payments_core.banks.incoming import IncomingRail, IncomingStatus, IncomingTransfer
from payments_core.chains.port import Heads, NetworkKind
from payments_core.chains.simulated.failure_records import ArmedFailure
from payments_core.clock import format_iso_or_none
from payments_core.onramps.lifecycle import format_cents
from payments_core.payments.options.offer import Offer, OfferStatus
from payments_core.payments.payouts.lifecycle import require_payout
from payments_core.payments.record import Payment
from payments_core.sandbox.results import FaucetCredit, OutsideTransfer
from payments_core_http.v2.payments import payout_views
from payments_core_http.v2.payments.payout_views import PayoutView
from payments_core_http.v2.statuses import PaymentStatus
from payments_core_http.wire.classes import frozen_view


@frozen_view
class BlockView:
    """A block of a simulated chain."""

    number: int
    """The block's number."""
    hash: str
    """The block's hash."""


@frozen_view
class ChainView:
    """The newest block of a sandbox's chain, and its newest final block.

    `networkKind` is `simulated` for a chain in the sandbox's books, `local` on its own node, and
    `real` for a public testnet, which the sandbox's controls cannot change.
    """

    chainId: int
    """The number of the sandbox's chain."""
    name: str
    """The network's name."""
    networkKind: Literal["real", "local", "simulated"]
    """Where the chain is. Real funds that are sent to its addresses are lost."""
    isTestnet: bool
    """Whether it is a public testnet."""
    explorerUrl: str | None
    """The explorer that shows it to everybody; null if none does."""
    latest: BlockView
    """The newest block."""
    final: BlockView
    """The newest final block."""


@frozen_view
class BankDepositView:
    """A bank transfer that was made; `bankTransferId` is the bank's own id of it."""

    bankTransferId: str
    """The bank's own id of the transfer."""
    onrampBankAccountId: str
    amount: str
    rail: IncomingRail
    status: IncomingStatus
    expectedAt: str | None


@frozen_view
class ArmedFailureView:
    """Which calls fail next, and how many more times; without a chain, on all chains."""

    dependency: str
    operation: str
    chainId: int | None
    """The chain that fails; null means any chain."""
    times: int


@frozen_view
class SandboxView:
    """The sandbox's clock and chains, and which calls fail next."""

    now: str
    realNow: str
    """The real time."""
    chains: tuple[ChainView, ...]
    """The chains that are served: simulated ones, and testnets."""
    failures: tuple[ArmedFailureView, ...]
    """The failures that will occur next."""


@frozen_view
class FundedView:
    """A credit of the faucet, already final."""

    accountId: str
    chainId: int
    assetSymbol: str
    amount: str
    amountAtomic: str
    address: str
    """The vault that was credited."""
    transactionHash: str


class TransferredView(msgspec.Struct, kw_only=True, frozen=True, rename={"from_": "from"}):
    """A transfer in a simulated chain. `block` is null if a reorg has already dropped it."""

    transactionHash: str
    chainId: int
    assetSymbol: str
    amount: str
    amountAtomic: str
    from_: str
    to: str
    succeeded: bool
    """Whether the transfer succeeded on the chain."""
    block: BlockView | None
    """The block that the transfer is in; null if a reorg has dropped it."""


@frozen_view
class RanView:
    """How many jobs were run."""

    jobsRun: int


@frozen_view
class AdvancedView:
    """The new time of the clock, and how many jobs were run."""

    now: str
    jobsRun: int


@frozen_view
class TriggeredView:
    """The event that was triggered."""

    eventId: str
    name: str
    """The event's name."""
    payload: Mapping[str, Any]


@frozen_view
class DecidedPayoutView:
    """A Payment's payout after the bank's decision, and the Payment's new state."""

    paymentId: str
    status: PaymentStatus
    payout: PayoutView


def decided_payout(record: Payment) -> DecidedPayoutView:
    """A Payment that has a payout."""
    return DecidedPayoutView(
        paymentId=record.id,
        status=record.status,
        payout=payout_views.payout(require_payout(record)),
    )


@frozen_view
class DecidedOrderView:
    """An order at the simulated on-ramp, which pays the escrow some seconds later."""

    paymentId: str
    optionId: str
    status: OfferStatus
    """What the on-ramp has said about the order; the next look shows more."""


def decided_order(record: Offer) -> DecidedOrderView:
    """The order of an option's newest offer."""
    return DecidedOrderView(
        paymentId=record.payment_id, optionId=record.option_id, status=record.status
    )


def chain(
    chain_id: int, name: str, kind: NetworkKind, explorer_url: str | None, heads: Heads
) -> ChainView:
    """A chain by its newest blocks."""
    return ChainView(
        chainId=chain_id,
        name=name,
        networkKind="real" if kind == "testnet" else kind,
        isTestnet=kind == "testnet",
        explorerUrl=explorer_url,
        latest=BlockView(number=heads.latest.number, hash=heads.latest.hash),
        final=BlockView(number=heads.final.number, hash=heads.final.hash),
    )


def fund_result(done: FaucetCredit) -> FundedView:
    """A credit."""
    return FundedView(
        accountId=done.account_id,
        chainId=done.chain_id,
        assetSymbol=done.asset_symbol,
        amount=done.amount,
        amountAtomic=str(done.amount_atomic),
        address=done.address,
        transactionHash=done.transaction_hash,
    )


def transfer_result(done: OutsideTransfer) -> TransferredView:
    """A transfer."""
    seen = done.transaction
    block = seen.block if seen is not None else None
    return TransferredView(
        transactionHash=done.transaction_hash,
        chainId=done.chain_id,
        assetSymbol=done.asset_symbol,
        amount=done.amount,
        amountAtomic=str(done.amount_atomic),
        from_=done.sender,
        to=done.recipient,
        succeeded=seen is not None and seen.succeeded,
        block=BlockView(number=block.number, hash=block.hash) if block is not None else None,
    )


def armed_failure(armed: ArmedFailure) -> ArmedFailureView:
    """A failure that was requested."""
    return ArmedFailureView(
        dependency=armed.dependency,
        operation=armed.operation,
        chainId=armed.chain_id,
        times=armed.times,
    )


def bank_deposit(made: IncomingTransfer, onramp_account_id: str) -> BankDepositView:
    """A bank transfer as the simulated bank has it."""
    return BankDepositView(
        bankTransferId=made.id,
        onrampBankAccountId=onramp_account_id,
        amount=format_cents(made.amount_cents),
        rail=made.rail,
        status=made.status,
        expectedAt=format_iso_or_none(made.expected_at_ms),
    )
