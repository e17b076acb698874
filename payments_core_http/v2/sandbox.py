"""The sandbox's own routes (contract §11): only where one app has the deployment to itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from payments_core.chains.port import Heads
from payments_core.clock import iso
from payments_core.idempotency.record import Answer
from payments_core.sandbox.operations import Funded
from payments_core_http.calls import Call
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
class SandboxView:
    """The sandbox's clock and chains."""

    now: str
    realNow: str
    chains: tuple[ChainView, ...]


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


def read(service: PaymentsService, call: Call[None, None]) -> Answer:
    """The sandbox's clock and chains."""
    sandbox = service.sandbox(call.mode)
    view = SandboxView(
        now=iso(service.clock.now()),
        realNow=iso(service.clock.real()),
        chains=tuple(_chain(chain_id, heads) for chain_id, heads in sandbox.heads().items()),
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
