"""Reconciliation: what a partner decides about a Payment that went out of the ordinary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

import attrs

from payments_core.accounts.vaults.lifecycle import BalanceOutdated, Spend
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.reservations import Asked, asking, reserved
from payments_core.chains.outbox.record import Outgoing, send_job, transfer
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import Idempotent
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.errors import (
    InvalidState,
    NotFound,
    ReconciliationActionNotAllowed,
    ValidationFailed,
)
from payments_core.money import Atomic
from payments_core.payments import lifecycle
from payments_core.payments.details import PaymentDetails, locked_payment
from payments_core.payments.machine import PAYMENT
from payments_core.payments.progress import RELEASE, carry_on, release_of
from payments_core.payments.record import Payment
from payments_core.payments.refunds.lifecycle import Left, Part, left_of, plan_all_held, plan_excess
from payments_core.payments.refunds.operations import refunding, refunds_of
from payments_core.payments.refunds.record import UNFINISHED, Purpose, Refund
from payments_core.payments.sends import active_payer
from payments_core.storage.port import Transaction
from payments_core.tenants.authorization import Authority

Action = Literal["accept", "refund", "refund_excess", "retry_execution", "write_off"]
ACTIONS: tuple[Action, ...] = get_args(Action)


@attrs.frozen
class _Case:
    """A Payment to decide on, locked, with what can still go back."""

    tx: Transaction
    draw: Draw
    authority: Authority
    payment: Payment
    left: Left
    refunds_under_way: bool
    asked: Asked | None
    note: str | None
    now: Instant


class Reconciliations:
    """Carries out a partner's decisions."""

    def __init__(self, ports: Ports, vaults: Vaults) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock
        self._vaults = vaults

    def reconcile(
        self,
        authority: Authority,
        payment_id: str,
        action: Action,
        *,
        note: str | None = None,
        idempotent: Idempotent | None = None,
    ) -> PaymentDetails:
        """Settle a Payment that needs a decision; refunds and releases go on in the worker.

        Raises NotFound, InvalidState (nothing to decide), ReconciliationActionNotAllowed,
        ValidationFailed, and for a send that is tried again what creating it raises.
        """
        if action not in ACTIONS:
            raise ValidationFailed.at("action", f"must be one of {', '.join(ACTIONS)}")

        def attempt() -> PaymentDetails:
            # a retry finds its own decision made: it is answered
            self._ledger.replay(authority, idempotent)
            asked = self._ask(authority, payment_id, action)
            return self._ledger.commit(
                authority,
                lambda tx, draw: self._decide(tx, draw, authority, payment_id, action, note, asked),
                idempotent=idempotent,
            )

        return asking(attempt)

    def _ask(self, authority: Authority, payment_id: str, action: Action) -> Asked | None:
        """The vault that a send pays from, where it is to be tried again."""
        payment = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Payment, payment_id)
        )
        if payment is None:
            raise NotFound("payment")
        if action != "retry_execution" or payment.intent != "send":
            return None
        assert payment.source is not None
        return self._vaults.ask_by_id(authority.partition, payment.source.vault_id, payment.asset)

    def _decide(
        self,
        tx: Transaction,
        draw: Draw,
        authority: Authority,
        payment_id: str,
        action: Action,
        note: str | None,
        asked: Asked | None,
    ) -> Decision[PaymentDetails]:
        payment = locked_payment(tx, payment_id)
        if not PAYMENT.allows(payment.status, _TRIGGERS[action]):
            raise InvalidState("payment", payment.status, action)
        refunds = refunds_of(tx, payment)
        case = _Case(
            tx,
            draw,
            authority,
            payment,
            left_of(payment, refunds),
            any(refund.status in UNFINISHED for refund in refunds),
            asked,
            note,
            self._clock.now(),
        )
        decision = _ACTIONS[action](case)
        after = next(
            record for record in reversed(decision.replaces) if isinstance(record, Payment)
        )
        made = tuple(record for record in decision.inserts if isinstance(record, Refund))
        return Decision(PaymentDetails(after, refunds=made)).joined(decision)


def _accept(case: _Case) -> Decision[None]:
    """Release what is in escrow to the recipient."""
    _require_quiet(case, "accept")
    if case.payment.can_retry:
        raise ReconciliationActionNotAllowed("accept", "its execution failed; retry that")
    if case.left.escrow <= 0:
        raise ReconciliationActionNotAllowed("accept", "nothing is held for the recipient")
    change = lifecycle.accept(case.payment, now=case.now)
    return carry_on(case.tx, case.draw, case.authority.partition, change, now=case.now)


def _retry(case: _Case) -> Decision[None]:
    """Send the transfer to the recipient again, after the one before failed for good."""
    _require_quiet(case, "retry_execution")
    payment = case.payment
    if not payment.can_retry:
        raise ReconciliationActionNotAllowed("retry_execution", "no transfer to pay out has failed")
    if payment.intent == "send":
        return _send_again(case)
    if case.left.escrow <= 0:
        raise ReconciliationActionNotAllowed("retry_execution", "nothing is held")
    outgoing = release_of(payment, case.draw.id("out"), now=case.now)
    return _sent(case, payment, outgoing, payment.releasable)


def _send_again(case: _Case) -> Decision[None]:
    payment, asked = case.payment, case.asked
    if asked is None:
        raise BalanceOutdated
    assert payment.source is not None
    active_payer(case.tx, case.authority, payment.source.account_id)
    destination = payment.destination
    spend = Spend(payment.asset, payment.amount, destination.address, destination.account_id)
    reservation = reserved(case.tx, asked, spend, now=case.now)
    outgoing = transfer(
        case.draw.id("out"),
        payment.asset,
        "release",
        payment.id,
        source=asked.vault.contract,
        recipient=destination.address,
        amount=payment.amount,
        now=case.now,
    )
    source = attrs.evolve(payment.source, policy_version=reservation.result, reserved_at=case.now)
    drawing = attrs.evolve(payment, source=source)
    return _sent(case, drawing, outgoing, payment.amount).joined(reservation)


def _sent(case: _Case, payment: Payment, outgoing: Outgoing, amount: int) -> Decision[None]:
    change = lifecycle.retry(payment, now=case.now)
    sending = attrs.evolve(change.record, release_id=outgoing.id, released=Atomic(amount))
    job = send_job(RELEASE, case.authority.partition, outgoing, case.now)
    return (
        attrs.evolve(change, record=sending)
        .as_decision()
        .joined(Decision(None, inserts=(outgoing,), jobs=(job,)))
    )


def _refund(case: _Case) -> Decision[None]:
    """Send all that is held back to whom it came from."""
    _require_quiet(case, "refund")
    if case.payment.release_id is not None:
        raise ReconciliationActionNotAllowed("refund", "it has been released; refund it instead")
    return _refunding(case, plan_all_held(case.left), "reconcile_refund")


def _refund_excess(case: _Case) -> Decision[None]:
    """Send the excess back to whoever sent it."""
    if not case.left.excess:
        _require_quiet(case, "refund_excess")  # it is on its way already
    return _refunding(case, plan_excess(case.left), "refund_excess")


def _refunding(case: _Case, parts: Sequence[Part], purpose: Purpose) -> Decision[None]:
    made = refunding(
        case.tx,
        case.draw,
        case.authority.partition,
        case.payment,
        parts,
        purpose,
        case.note,
        now=case.now,
    )
    return Decision(None).joined(made)


def _write_off(case: _Case) -> Decision[None]:
    """Give the Payment up; what is held stays held, and can still be refunded."""
    _require_quiet(case, "write_off")
    return lifecycle.write_off(case.payment, now=case.now).as_decision()


def _require_quiet(case: _Case, action: str) -> None:
    if case.refunds_under_way:
        raise ReconciliationActionNotAllowed(action, "a refund is under way")


_ACTIONS: Mapping[Action, Callable[[_Case], Decision[None]]] = {
    "accept": _accept,
    "refund": _refund,
    "refund_excess": _refund_excess,
    "retry_execution": _retry,
    "write_off": _write_off,
}

_TRIGGERS: Mapping[Action, str] = {
    "accept": "reconcile_accept",
    "refund": "reconcile_refund",
    "refund_excess": "refund_excess",
    "retry_execution": "retry_execution",
    "write_off": "write_off",
}
"""The trigger of the Payment's table that an action leads to, now or when its refunds are final."""
