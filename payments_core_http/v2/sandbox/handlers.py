"""The sandbox's own routes (contract §11): only where one app has the deployment to itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from payments_core.clock import iso
from payments_core.engine.idempotency.record import Answer
from payments_core.errors import CapabilityNotActive
from payments_core_http.calls import Call
from payments_core_http.v2.sandbox import bodies, views
from payments_core_http.v2.verifications import views as verification_views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def read(service: PaymentsService, call: Call[None, None]) -> Answer:
    """The sandbox's clock and chains, and what is to fail next."""
    sandbox = service.sandbox(call.mode)
    view = views.SandboxView(
        now=iso(service.ports.clock.now()),
        realNow=iso(service.ports.clock.real()),
        chains=tuple(views.chain(chain_id, heads) for chain_id, heads in sandbox.heads().items()),
        failures=tuple(views.failure(armed) for armed in sandbox.failures()),
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
        views.funded,
    )


def mine(service: PaymentsService, call: Call[bodies.Mine, None]) -> Answer:
    """Blocks on a chain, at once."""
    chain_id, count = call.body.chainId, call.body.count
    sandbox = service.sandbox(call.mode)
    return call.once(
        lambda idempotent: sandbox.mine(call.authority, chain_id, count, idempotent=idempotent),
        lambda heads: views.chain(chain_id, heads),
    )


def run(service: PaymentsService, call: Call[None, None]) -> Answer:
    """All work that is due, done before the answer."""
    sandbox = service.sandbox(call.mode)
    return call.once(
        lambda idempotent: sandbox.run(call.authority, idempotent=idempotent),
        lambda ran: views.RanView(jobsRun=ran),
    )


def advance(service: PaymentsService, call: Call[bodies.Advance, None]) -> Answer:
    """The clock moved, and what fell due on the way done in order."""
    seconds = call.body.advanceSeconds
    sandbox = service.sandbox(call.mode)
    return call.once(
        lambda idempotent: sandbox.advance(call.authority, seconds, idempotent=idempotent),
        lambda done: views.AdvancedView(now=iso(done[0]), jobsRun=done[1]),
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
        views.transferred,
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
        lambda heads: views.chain(body.chainId, heads),
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
        views.failure,
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
        lambda done: views.TriggeredView(
            eventId=done.event_id, name=done.name, payload=done.payload
        ),
    )


def deposit_at_bank(service: PaymentsService, call: Call[bodies.BankDeposit, None]) -> NoReturn:
    """There is no bank yet."""
    service.sandbox(call.mode).require_alone()
    raise CapabilityNotActive("us_bank_funding")


def decide_payout(service: PaymentsService, call: Call[bodies.DecidePayout, None]) -> NoReturn:
    """There is no bank yet."""
    service.sandbox(call.mode).require_alone()
    raise CapabilityNotActive("us_bank_payout")
