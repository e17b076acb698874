"""The sandbox's own routes (contract §11): only in a deployment with a single app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.clock import format_iso
from payments_core.engine.event_payloads import render_fields
from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v2.sandbox import bodies, views
from payments_core_http.v2.verifications import views as verification_views

if TYPE_CHECKING:
    from payments_core.chains.port import Heads
    from payments_core.service import PaymentsService


def read(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The sandbox's clock and chains, and which calls fail next."""
    state = call.resources.sandbox.read()
    view = views.SandboxView(
        now=format_iso(state.now),
        realNow=format_iso(state.real_now),
        chains=tuple(
            _describe_chain(service, chain_id, heads) for chain_id, heads in state.heads.items()
        ),
        failures=tuple(views.armed_failure(armed) for armed in state.failures),
    )
    return call.respond(view)


def fund(service: PaymentsService, call: ApiCall[bodies.Fund, None]) -> Response:
    """Tokens for an account's vault."""
    body, account_id = call.body, call.path["accountId"]
    return call.run_idempotent(
        lambda idempotent: call.resources.sandbox.fund(
            account_id,
            body.chainId,
            body.assetSymbol,
            body.amount,
            idempotency_key=idempotent,
        ),
        views.fund_result,
    )


def mine(service: PaymentsService, call: ApiCall[bodies.Mine, None]) -> Response:
    """Blocks on a chain, at once."""
    chain_id, count = call.body.chainId, call.body.count
    return call.run_idempotent(
        lambda idempotent: call.resources.sandbox.mine_blocks(
            chain_id, count, idempotency_key=idempotent
        ),
        lambda heads: _describe_chain(service, chain_id, heads),
    )


def run(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """Do all due work before the response."""
    return call.run_idempotent(
        lambda idempotent: call.resources.sandbox.run(idempotency_key=idempotent),
        lambda ran: views.RanView(jobsRun=ran),
    )


def advance(service: PaymentsService, call: ApiCall[bodies.Advance, None]) -> Response:
    """Move the clock, and do the work that becomes due on the way in order."""
    seconds = call.body.advanceSeconds
    return call.run_idempotent(
        lambda idempotent: call.resources.sandbox.advance_clock(
            seconds, idempotency_key=idempotent
        ),
        lambda done: views.AdvancedView(now=format_iso(done[0]), jobsRun=done[1]),
    )


def transfer(service: PaymentsService, call: ApiCall[bodies.TransferFields, None]) -> Response:
    """A stranger's transfer."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.sandbox.transfer(
            body.chainId,
            body.assetSymbol,
            body.amount,
            to=body.to,
            from_=getattr(body, "from"),
            reverts=body.reverts,
            idempotency_key=idempotent,
        ),
        views.transfer_result,
    )


def reorg(service: PaymentsService, call: ApiCall[bodies.Reorg, None]) -> Response:
    """Replace a chain's last blocks with others."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.sandbox.reorg_chain(
            body.chainId,
            body.depth,
            reinclude=body.reinclude,
            idempotency_key=idempotent,
        ),
        lambda heads: _describe_chain(service, body.chainId, heads),
    )


def fail(service: PaymentsService, call: ApiCall[bodies.Fail, None]) -> Response:
    """Failures ordered."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.sandbox.fail_dependency(
            body.dependency,
            body.operation,
            body.times,
            chain_id=body.chainId,
            idempotency_key=idempotent,
        ),
        views.armed_failure,
    )


def decide_kyc(service: PaymentsService, call: ApiCall[bodies.DecideKyc, None]) -> Response:
    """The provider's decision about an account's verification."""
    account_id, status = call.path["accountId"], call.body.status
    return call.run_idempotent(
        lambda idempotent: call.resources.sandbox.decide_kyc(
            account_id, status, idempotency_key=idempotent
        ),
        verification_views.verification,
    )


def trigger(service: PaymentsService, call: ApiCall[bodies.TriggerEvent, None]) -> Response:
    """A triggered event."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.sandbox.trigger_event(
            body.name,
            account_id=body.accountId,
            payment_id=body.paymentId,
            idempotency_key=idempotent,
        ),
        lambda done: views.TriggeredView(
            eventId=done.event_id,
            name=done.name,
            payload=render_fields(
                done.name, done.payload, call.authority.api_version, service.settings.versions
            ),
        ),
    )


def deposit_at_bank(service: PaymentsService, call: ApiCall[bodies.BankDeposit, None]) -> Response:
    """A bank transfer that somebody makes."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.sandbox.deposit_at_bank(
            body.onrampBankAccountId,
            body.amount,
            body.rail,
            outcome=body.outcome,
            idempotency_key=idempotent,
        ),
        lambda made: views.bank_deposit(made, body.onrampBankAccountId),
    )


def decide_payout(service: PaymentsService, call: ApiCall[bodies.DecidePayout, None]) -> Response:
    """A Payment whose payout the bank has settled or returned."""
    body, payment_id = call.body, call.path["paymentId"]
    return call.run_idempotent(
        lambda idempotent: call.resources.sandbox.decide_payout(
            payment_id, body.outcome, body.code, idempotency_key=idempotent
        ),
        lambda decided: views.decided_payout(decided),
    )


def decide_order(service: PaymentsService, call: ApiCall[bodies.DecideOrder, None]) -> Response:
    """The order of an option at the simulated on-ramp."""
    outcome, option_id = call.body.outcome, call.path["optionId"]
    return call.run_idempotent(
        lambda idempotent: call.resources.sandbox.decide_order(
            option_id, outcome, idempotency_key=idempotent
        ),
        views.decided_order,
    )


def _describe_chain(service: PaymentsService, chain_id: int, heads: Heads) -> views.ChainView:
    return views.chain(
        chain_id,
        service.networks.name_network(chain_id),
        service.find_network_kind(chain_id),
        service.choose_explorer(chain_id).url,
        heads,
    )
