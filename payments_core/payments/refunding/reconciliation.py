"""Reconciliation: a partner's decisions on a Payment that did not end as expected."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import UNSET, UnsetType

from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.reservations import (
    BalanceReading,
    retry_on_stale_balance,
)
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import (
    NotFound,
    ValidationFailed,
)
from payments_core.payments import lifecycle
from payments_core.payments.destinations import Destinations
from payments_core.payments.details import PaymentDetails, lock_payment
from payments_core.payments.payouts import lifecycle as payouts
from payments_core.payments.payouts.creation import PayoutCreation, PayoutTerms
from payments_core.payments.progress import advance_payment
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunding.case import Case
from payments_core.payments.refunding.operations import (
    load_with_pending_refunds,
    lock_pending_refunds,
    require_standard_key_for_stranger,
    start_refunds,
)
from payments_core.payments.refunding.reconciliation_rules import (
    ANYBODY,
    RECONCILIATION_ACTIONS,
    SENDS_BACK,
    ReconciliationAction,
    find_refusal,
)
from payments_core.payments.refunding.retries import retry
from payments_core.payments.refunds.plans import (
    Refundable,
    RefundLeg,
    compute_refundable,
    plan_all_held,
    plan_excess,
    plan_unpaid_payout,
)
from payments_core.payments.refunds.record import Purpose, Refund
from payments_core.payments.sending_back import decide_return, require_returnable
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority, require_standard_key
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import Address, Id, Sentence


class Reconciliations:
    """Carries out a partner's decisions."""

    def __init__(
        self, ports: Ports, destinations: Destinations, vaults: Vaults, payouts: PayoutCreation
    ) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._destinations = destinations
        self._vaults = vaults
        self._payouts = payouts

    @once_per_key
    def reconcile(
        self,
        authority: Authority,
        payment_id: str,
        action: ReconciliationAction,
        *,
        destination: Address | UnsetType = UNSET,
        receipt_id: Id | None = None,
        note: Sentence | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> PaymentDetails:
        """Settle a Payment that needs a decision; the worker carries out refunds and releases.

        `receipt_id` is for `return_misdirected`: the receipt whose funds go back on their own
        chain. With a `destination` funds go back there, instead of to their senders; an address
        that paid less needs a standard key; None is refused, as it may be a lost value. `note` has
        up to 512 characters; it is kept with the Payment, and is the reason for refunds.

        Raises NotFound, InvalidState (nothing to decide), ReconciliationActionNotAllowed,
        ValidationFailed, DestinationNotAllowed, ScreeningRefused, InsufficientPermissions,
        DependencyFailed, and for a retried send the errors of its creation.
        """
        if destination is not UNSET and action not in SENDS_BACK:
            raise ValidationFailed.at("destination", f"is only for {', '.join(SENDS_BACK)}")
        if (receipt_id is not None) != (action == "return_misdirected"):
            rule = "is only" if receipt_id is not None else "is required"
            raise ValidationFailed.at("receipt_id", f"{rule} for return_misdirected")

        def attempt() -> PaymentDetails:
            # a retry finds its own decision made: it still gets the answer
            self._committer.replay(authority, idempotency_key)
            payment = self._load_payment(authority, payment_id)
            receipt = self._find_receipt(authority, payment, receipt_id)
            payee = self._find_payee(authority, payment, destination)
            payable = self._destinations.find_payable(authority.partition, payment, receipt)
            terms = self._check_payout(authority, payment, action)
            reading = self._read_source_balance(authority, payment, action)
            self._require_gas(authority, payment, receipt, action)
            permit = authority if terms is None else terms.authority
            return self._committer.commit(
                permit,
                lambda tx, id_sequence: self._decide(
                    tx,
                    id_sequence,
                    permit,
                    payment_id,
                    action,
                    payee,
                    receipt,
                    note,
                    payable,
                    reading,
                    terms,
                ),
                idempotent=idempotency_key,
            )

        return retry_on_stale_balance(attempt)

    def list_allowed(
        self, authority: Authority, payment_id: str
    ) -> tuple[ReconciliationAction, ...]:
        """The actions that a Payment allows now, as `reconcile` judges them. Raises NotFound.

        An action is also listed if it only needs a destination.
        """
        known = self._load_payment(authority, payment_id)
        payable = self._destinations.find_payable(authority.partition, known)

        def load(snapshot: Snapshot) -> tuple[ReconciliationAction, ...]:
            payment, refunds = load_with_pending_refunds(snapshot, payment_id)
            refundable = compute_refundable(payment, refunds, payable)
            return tuple(
                action
                for action in RECONCILIATION_ACTIONS
                if find_refusal(action, payment, refunds, refundable, ANYBODY) is None
            )

        return self._storage.read(authority.partition, load)

    def plan(
        self,
        authority: Authority,
        payment_id: str,
        action: ReconciliationAction,
        *,
        destination: Address | None = None,
    ) -> tuple[RefundLeg, ...]:
        """What an action would send back now, and to whom: to its senders, or to a destination.

        Empty for an action that makes no refunds. The destination is not screened yet. Raises
        NotFound, ValidationFailed, DestinationNotAllowed, ReconciliationActionNotAllowed.
        """
        if action not in _PLANS:
            return ()
        known = self._load_payment(authority, payment_id)
        payable = self._destinations.find_payable(authority.partition, known)
        payee = (
            None
            if destination is None
            else self._destinations.parse_payee(authority.partition, known, destination)
        )

        def load(snapshot: Snapshot) -> tuple[RefundLeg, ...]:
            payment, refunds = load_with_pending_refunds(snapshot, payment_id)
            refundable = compute_refundable(payment, refunds, payable)
            return tuple(_PLANS[action](payment, refundable, payee))

        return self._storage.read(authority.partition, load)

    def _find_receipt(
        self, authority: Authority, payment: Payment, receipt_id: str | None
    ) -> Receipt | None:
        """The Payment's receipt, if one was named. Raises NotFound, UnsupportedChain."""
        if receipt_id is None:
            return None
        receipt = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Receipt, receipt_id)
        )
        if receipt is None or receipt.payment_id != payment.id:
            raise NotFound("receipt")
        self._destinations.require_own_escrow(authority.partition, payment, receipt.chain_id)
        return receipt

    def _find_payee(
        self, authority: Authority, payment: Payment, destination: str | UnsetType
    ) -> str | None:
        """The destination, if one was named and is not blocked.

        Raises as `Destinations.parse_payee` and `screen_payee`.
        """
        if destination is UNSET:
            return None
        if payment.payout is not None:
            raise ValidationFailed.at("destination", "must be absent: it goes back to the vault")
        payee = self._destinations.parse_payee(authority.partition, payment, destination)
        self._destinations.screen_payee(authority, payment, payee)
        return payee

    def _load_payment(self, authority: Authority, payment_id: str) -> Payment:
        payment = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Payment, payment_id)
        )
        if payment is None:
            raise NotFound("payment")
        return payment

    def _check_payout(
        self, authority: Authority, payment: Payment, action: ReconciliationAction
    ) -> PayoutTerms | None:
        """The terms of another payout, if an ended payout is to be tried again."""
        payout = payment.payout
        if action != "retry_execution" or payout is None or not payment.can_retry:
            return None
        assert payment.source is not None
        return self._payouts.check(
            authority,
            payment.source.account_id,
            payout.bank_account_id,
            payout.rail,
            payment.asset,
            payment.amount_atomic,
        )

    def _read_source_balance(
        self, authority: Authority, payment: Payment, action: ReconciliationAction
    ) -> BalanceReading | None:
        """The vault that a send pays from, if it is to be tried again."""
        if action != "retry_execution" or payment.intent != "send":
            return None
        if payment.payout is not None and payouts.is_funded(payment):
            return None
        assert payment.source is not None
        return self._vaults.read_balance_by_id(
            authority.partition, payment.source.vault_id, payment.asset
        )

    def _require_gas(
        self,
        authority: Authority,
        payment: Payment,
        receipt: Receipt | None,
        action: ReconciliationAction,
    ) -> None:
        """Raise DependencyFailed if the operator cannot pay for the cheapest transfer, and the
        action needs one."""
        asks_the_bank = payment.payout is not None and payouts.is_funded(payment)
        if action == "write_off" or (action == "retry_execution" and asks_the_bank):
            return
        chain_id = payment.chain_id if receipt is None else receipt.chain_id
        self._vaults.require_gas(authority.partition, chain_id, "pay")

    def _decide(
        self,
        tx: Transaction,
        id_sequence: IdSequence,
        authority: Authority,
        payment_id: str,
        action: ReconciliationAction,
        destination: str | None,
        receipt: Receipt | None,
        note: str | None,
        payable: Collection[str],
        reading: BalanceReading | None,
        terms: PayoutTerms | None,
    ) -> Decision[PaymentDetails]:
        payment = lock_payment(tx, payment_id)
        refunds = lock_pending_refunds(tx, payment)
        refundable = compute_refundable(payment, refunds, payable)
        refusal = find_refusal(action, payment, refunds, refundable, destination)
        if refusal is not None:
            raise refusal
        case = Case(
            tx,
            id_sequence,
            authority,
            payment,
            refundable,
            destination,
            receipt,
            payable,
            reading,
            terms,
            note,
            self._clock.now(),
        )
        decision = _ACTIONS[action](case)
        after = next(
            record for record in reversed(decision.replaces) if isinstance(record, Payment)
        )
        made = tuple(record for record in decision.inserts if isinstance(record, Refund))
        return Decision(PaymentDetails(after, refunds=made)).merge(decision)


def _accept(case: Case) -> Decision[None]:
    """Release the funds in escrow to the recipient."""
    step = lifecycle.accept(case.payment, now=case.now, note=case.note)
    return advance_payment(case.tx, case.id_sequence, case.authority.partition, step, now=case.now)


def _refund(case: Case) -> Decision[None]:
    """Send all held funds back: to their senders, or to the destination."""
    legs = _plan_refund(case.payment, case.refundable, case.destination)
    return _start_refunds(case, legs, "reconcile_refund")


def _plan_refund(
    payment: Payment, refundable: Refundable, destination: str | None
) -> Sequence[RefundLeg]:
    if payment.payout is not None:
        return plan_unpaid_payout(payment)
    return plan_all_held(refundable, destination)


def _refund_excess(case: Case) -> Decision[None]:
    """Send the excess back: to its senders, or to the destination."""
    return _start_refunds(case, plan_excess(case.refundable, case.destination), "refund_excess")


_PLANS: Mapping[
    ReconciliationAction, Callable[[Payment, Refundable, str | None], Sequence[RefundLeg]]
] = {
    "refund": _plan_refund,
    "refund_excess": lambda payment, refundable, to: plan_excess(refundable, to),
}
"""The legs of the refunds that an action makes, for a destination if one is named."""


def _return_misdirected(case: Case) -> Decision[None]:
    """Send a receipt's misdirected funds back, on their own chain."""
    assert case.receipt is not None
    receipt = case.tx.get(Receipt, case.receipt.id, for_update=True)
    assert receipt is not None
    require_returnable(receipt)
    to = case.destination or receipt.sender
    if to not in case.payable and case.destination is None:
        raise ValidationFailed.at("destination", "is required: no sender is known")
    if to != receipt.sender:
        require_standard_key(case.authority.key)
    return decide_return(
        case.authority.partition,
        case.payment,
        receipt,
        case.id_sequence.issue("out"),
        to,
        note=case.note,
        now=case.now,
    )


def _start_refunds(case: Case, legs: Sequence[RefundLeg], purpose: Purpose) -> Decision[None]:
    if case.destination is not None:
        require_standard_key_for_stranger(case.authority, case.payment, case.refundable, legs)
    made = start_refunds(
        case.tx,
        case.id_sequence,
        case.authority.partition,
        case.payment,
        legs,
        purpose,
        case.note,
        now=case.now,
    )
    return Decision(None).merge(made)


def _write_off(case: Case) -> Decision[None]:
    """Give the Payment up; held funds stay held, and can still be refunded."""
    return lifecycle.write_off(case.payment, now=case.now, note=case.note).as_decision()


_ACTIONS: Mapping[ReconciliationAction, Callable[[Case], Decision[None]]] = {
    "accept": _accept,
    "refund": _refund,
    "refund_excess": _refund_excess,
    "retry_execution": retry,
    "write_off": _write_off,
    "return_misdirected": _return_misdirected,
}
