"""The sandbox's own routes (contract §11): only where one app has the deployment to itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import attrs
import msgspec

from payments_core.chains.port import Heads
from payments_core.clock import iso
from payments_core.errors import CapabilityNotActive
from payments_core.idempotency.record import Answer
from payments_core.sandbox.operations import Funded, Transferred
from payments_core.sandbox.record import ArmedFailure
from payments_core_http.calls import Call
from payments_core_http.v2 import verification_views
from payments_core_http.v2.bodies import sandbox as bodies

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


@attrs.frozen(kw_only=True, slots=False)
class BlockView:
    """A block of a simulated chain."""

    number: int
    hash: str


@attrs.frozen(kw_only=True, slots=False)
class ChainView:
    """The newest block of a simulated chain, and the newest final one."""

    chainId: int
    latest: BlockView
    final: BlockView


@attrs.frozen(kw_only=True, slots=False)
class FailureView:
    """What is to fail next, and how often still; without a chain, on all of them."""

    dependency: str
    operation: str
    chainId: int | None
    times: int


@attrs.frozen(kw_only=True, slots=False)
class SandboxView:
    """The sandbox's clock and chains, and what is to fail next."""

    now: str
    realNow: str
    chains: tuple[ChainView, ...]
    failures: tuple[FailureView, ...]


@attrs.frozen(kw_only=True, slots=False)
class FundedView:
    """A credit of the faucet, already final."""

    accountId: str
    chainId: int
    assetSymbol: str
    amount: str
    amountAtomic: str
    address: str
    transactionHash: str


class TransferredView(msgspec.Struct, kw_only=True, frozen=True, rename={"from_": "from"}):
    """A stranger's transfer. `block` is null where a reorg has dropped it already."""

    transactionHash: str
    chainId: int
    assetSymbol: str
    amount: str
    amountAtomic: str
    from_: str
    to: str
    succeeded: bool
    block: BlockView | None


def read(service: PaymentsService, call: Call[None, None]) -> Answer:
    """The sandbox's clock and chains, and what is to fail next."""
    sandbox = service.sandbox(call.mode)
    view = SandboxView(
        now=iso(service.clock.now()),
        realNow=iso(service.clock.real()),
        chains=tuple(_chain(chain_id, heads) for chain_id, heads in sandbox.heads().items()),
        failures=tuple(_failure(armed) for armed in sandbox.failures()),
    )
    return call.answer(view)


def fund(service: PaymentsService, call: Call[bodies.Fund, None]) -> Answer:
    """Tokens for an account's vault."""
    body, account_id = call.body, call.path["accountId"]
    sandbox = service.sandbox(call.mode)
    return call.once(
        lambda idempotent: sandbox.fund(
            call.authority,
            account_id,
            body.chainId,
            body.assetSymbol,
            body.amount,
            idempotent=idempotent,
        ),
        _funded,
    )


def mine(service: PaymentsService, call: Call[bodies.Mine, None]) -> Answer:
    """Blocks on a chain, at once."""
    chain_id, count = call.body.chainId, call.body.count
    sandbox = service.sandbox(call.mode)
    return call.once(
        lambda idempotent: sandbox.mine(call.authority, chain_id, count, idempotent=idempotent),
        lambda heads: _chain(chain_id, heads),
    )


def run(service: PaymentsService, call: Call[None, None]) -> Answer:
    """All work that is due, done before the answer."""
    sandbox = service.sandbox(call.mode)
    return call.once(
        lambda idempotent: sandbox.run(call.authority, idempotent=idempotent),
        lambda ran: {"jobsRun": ran},
    )


def advance(service: PaymentsService, call: Call[bodies.Advance, None]) -> Answer:
    """The clock moved, and what fell due on the way done in order."""
    seconds = call.body.advanceSeconds
    sandbox = service.sandbox(call.mode)
    return call.once(
        lambda idempotent: sandbox.advance(call.authority, seconds, idempotent=idempotent),
        lambda done: {"now": iso(done[0]), "jobsRun": done[1]},
    )


def transfer(service: PaymentsService, call: Call[bodies.TransferFields, None]) -> Answer:
    """A stranger's transfer."""
    body = call.body
    sandbox = service.sandbox(call.mode)
    return call.once(
        lambda idempotent: sandbox.transfer(
            call.authority,
            body.chainId,
            body.assetSymbol,
            body.amount,
            recipient=body.to,
            source=getattr(body, "from"),
            reverts=body.reverts,
            idempotent=idempotent,
        ),
        _transferred,
    )


def reorg(service: PaymentsService, call: Call[bodies.Reorg, None]) -> Answer:
    """A chain's last blocks dropped, and others in their place."""
    body = call.body
    sandbox = service.sandbox(call.mode)
    return call.once(
        lambda idempotent: sandbox.reorg(
            call.authority,
            body.chainId,
            body.depth,
            reinclude=body.reinclude,
            idempotent=idempotent,
        ),
        lambda heads: _chain(body.chainId, heads),
    )


def fail(service: PaymentsService, call: Call[bodies.Fail, None]) -> Answer:
    """Failures ordered."""
    body = call.body
    sandbox = service.sandbox(call.mode)
    return call.once(
        lambda idempotent: sandbox.fail(
            call.authority,
            body.dependency,
            body.operation,
            body.times,
            chain_id=body.chainId,
            idempotent=idempotent,
        ),
        _failure,
    )


def decide_kyc(service: PaymentsService, call: Call[bodies.DecideKyc, None]) -> Answer:
    """What the provider decides of an account's verification."""
    account_id, status = call.path["accountId"], call.body.status
    service.sandbox(call.mode).require_alone()
    return call.once(
        lambda idempotent: service.verifications.decide(
            call.authority, account_id, status, idempotent=idempotent
        ),
        verification_views.verification,
    )


def trigger(service: PaymentsService, call: Call[bodies.TriggerEvent, None]) -> Answer:
    """An event on order."""
    body = call.body
    sandbox = service.sandbox(call.mode)
    return call.once(
        lambda idempotent: sandbox.trigger(
            call.authority,
            body.name,
            account_id=body.accountId,
            payment_id=body.paymentId,
            idempotent=idempotent,
        ),
        lambda done: {"eventId": done.event_id, "name": done.name, "payload": done.payload},
    )


def deposit_at_bank(service: PaymentsService, call: Call[bodies.BankDeposit, None]) -> NoReturn:
    """There is no bank yet."""
    service.sandbox(call.mode).require_alone()
    raise CapabilityNotActive("us_bank_funding")


def decide_payout(service: PaymentsService, call: Call[bodies.DecidePayout, None]) -> NoReturn:
    """There is no bank yet."""
    service.sandbox(call.mode).require_alone()
    raise CapabilityNotActive("us_bank_payout")


def _chain(chain_id: int, heads: Heads) -> ChainView:
    return ChainView(
        chainId=chain_id,
        latest=BlockView(number=heads.latest.number, hash=heads.latest.hash),
        final=BlockView(number=heads.final.number, hash=heads.final.hash),
    )


def _funded(funded: Funded) -> FundedView:
    return FundedView(
        accountId=funded.account_id,
        chainId=funded.chain_id,
        assetSymbol=funded.asset_symbol,
        amount=funded.amount,
        amountAtomic=str(funded.amount_atomic),
        address=funded.address,
        transactionHash=funded.transaction_hash,
    )


def _transferred(done: Transferred) -> TransferredView:
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


def _failure(armed: ArmedFailure) -> FailureView:
    return FailureView(
        dependency=armed.dependency,
        operation=armed.operation,
        chainId=armed.chain_id,
        times=armed.times,
    )
