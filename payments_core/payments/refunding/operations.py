"""Refunds: requested by the partner, and listed (contract §6)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs
from msgspec import UNSET, UnsetType

from payments_core.accounts.vaults.balance import StaleBalance
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.policy_rules import Spend
from payments_core.accounts.vaults.reservations import (
    BalanceReading,
    PolicyRule,
    reserve_funds,
    retry_on_stale_balance,
)
from payments_core.amounts import parse_positive_amount
from payments_core.brief_repr import brief_repr
from payments_core.chains.outbox.record import OutboundTransfer, new_transfer, send_job
from payments_core.chains.port import Contract
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import (
    NotFound,
    ResourceConflict,
)
from payments_core.evolve import evolve
from payments_core.payments.destinations import Destinations
from payments_core.payments.details import lock_payment
from payments_core.payments.record import OFFRAMP_OWNER, Payment
from payments_core.payments.refunds import lifecycle, plans
from payments_core.payments.refunds.plans import Refundable, RefundLeg
from payments_core.payments.refunds.record import Purpose, Refund
from payments_core.payments.refunds.waiting import (
    SEND_REFUND,
    choose_acceptance,
    needs_final_release,
)
from payments_core.payments.sends import load_vault
from payments_core.storage.port import Page, Position, Snapshot, Transaction
from payments_core.tenants.authorization import Authority, require_standard_key
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import Address, Amount, PageLimit, Sentence

MAX_PENDING_REFUNDS = 100


@attrs.frozen(kw_only=True)
class NewRefund:
    """The input of a refund; by default, the whole refundable amount goes to its sender.

    None is refused for `amount` and `destination`: it may be a value that was lost.
    `amount` is decimal text in whole tokens. `destination` is an address on the Payment's chain;
    an address that paid nothing needs a standard key. `reason` is stored and returned.

    >>> new = NewRefund(amount="5.00", reason="returned")
    >>> shop.payments.refund(paid.id, new, idempotency_key="refund-1").reason
    'returned'
    """

    __repr__ = brief_repr

    amount: Amount | UnsetType = UNSET
    destination: Address | UnsetType = UNSET
    reason: Sentence | None = None


@attrs.frozen
class PlannedRefund:
    """The refunds that a Payment allows: amounts, recipients and sources."""

    payment: Payment
    legs: tuple[RefundLeg, ...]

    @property
    def amount_atomic(self) -> int:
        """The total amount that goes back."""
        return sum(leg.amount_atomic for leg in self.legs)


class Refunds:
    """Sends received funds back."""

    def __init__(self, ports: Ports, destinations: Destinations, vaults: Vaults) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._destinations = destinations
        self._vaults = vaults

    def create(  # `create_all` is `once_per_key`
        self,
        authority: Authority,
        payment_id: str,
        new: NewRefund,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> Refund:
        """One refund: from escrow while the funds are held, else from the recipient's vault.

        Without a destination, and if several senders are refunded, this is the refund of
        the newest sender: `create_all` returns all. Raises as `create_all`.
        """
        return self.create_all(authority, payment_id, new, idempotency_key=idempotency_key)[0]

    @once_per_key
    def create_all(
        self,
        authority: Authority,
        payment_id: str,
        new: NewRefund,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> tuple[Refund, ...]:
        """The refunds of one request, in one commit: one, or one for each sender.

        Without a destination, an amount that the newest sender has sent goes to that sender. A
        larger one, or no amount, goes to all senders in proportion to what each has sent.

        Raises NotFound, ValidationFailed, AmountOutOfRange, InvalidState (nothing to refund, or
        released to an outside wallet), InsufficientPermissions (another destination needs a
        standard key), DestinationNotAllowed, ScreeningRefused, PolicyInactive, PolicyDenied,
        InsufficientBalance, DependencyFailed, ResourceConflict.
        """
        payment = self._load_payment(authority, payment_id)
        amount = None if new.amount is UNSET else parse_positive_amount(new.amount, payment.asset)
        destination = self._find_destination(authority, payment, new.destination)
        if destination is not None:
            self._committer.replay(authority, idempotency_key)
            self._destinations.screen_payee(authority, payment, destination)

        def attempt() -> tuple[Refund, ...]:
            # a retry may find its own amount gone: it still gets the answer
            self._committer.replay(authority, idempotency_key)
            current = self._load_payment(authority, payment_id)
            payable = self._destinations.find_payable(authority.partition, current)
            reading = self._read_recipient_balance(authority, current)
            return self._committer.commit(
                authority,
                lambda tx, id_sequence: self._decide(
                    tx,
                    id_sequence,
                    authority,
                    payment_id,
                    amount,
                    destination,
                    new.reason,
                    payable,
                    reading,
                ),
                idempotent=idempotency_key,
            )

        return retry_on_stale_balance(attempt)

    def plan(self, authority: Authority, payment_id: str, new: NewRefund) -> PlannedRefund:
        """The refunds that `create` would make now; nothing is changed, and no chain is asked.

        Raises NotFound, ValidationFailed, AmountOutOfRange, InvalidState, DestinationNotAllowed.
        """
        payment = self._load_payment(authority, payment_id)
        amount = None if new.amount is UNSET else parse_positive_amount(new.amount, payment.asset)
        destination = self._find_destination(authority, payment, new.destination)
        payable = self._destinations.find_payable(authority.partition, payment)

        def load(snapshot: Snapshot) -> PlannedRefund:
            payment, pending = load_with_pending_refunds(snapshot, payment_id)
            refundable = plans.compute_refundable(payment, pending, payable)
            legs = plans.plan_refunds(payment, refundable, amount, destination)
            return PlannedRefund(payment, legs)

        return self._storage.read(authority.partition, load)

    def list(
        self,
        authority: Authority,
        payment_id: str,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[Refund]:
        """The refunds of a Payment, newest first. Raises NotFound."""

        def load(snapshot: Snapshot) -> Page[Refund]:
            if snapshot.get(Payment, payment_id) is None:
                raise NotFound("payment")
            return snapshot.find(
                Refund, "by_payment", (payment_id,), after=after, limit=limit, skip_damaged=True
            )

        return self._storage.read(authority.partition, load)

    def _load_payment(self, authority: Authority, payment_id: str) -> Payment:
        payment = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Payment, payment_id)
        )
        if payment is None:
            raise NotFound("payment")
        return payment

    def _find_destination(
        self, authority: Authority, payment: Payment, text: str | UnsetType
    ) -> str | None:
        """The destination, if one was named. Raises as `Destinations.parse_payee`."""
        if text is UNSET:
            return None
        return self._destinations.parse_payee(authority.partition, payment, text)

    def _read_recipient_balance(
        self, authority: Authority, payment: Payment
    ) -> BalanceReading | None:
        """The recipient's vault, if it pays. Raises DependencyFailed."""
        account_id = payment.destination.account_id
        if payment.status not in plans.FUNDS_PAID_OUT or account_id is None:
            self._vaults.require_gas(authority.partition, payment.chain_id, "pay")
            return None
        vault = self._storage.read(
            authority.partition, lambda snapshot: load_vault(snapshot, account_id, payment.asset)
        )
        # What its escrow still has may go back too, and that is the cheapest kind of transfer.
        return self._vaults.read_balance_to_spend(authority.partition, vault, payment.asset, "pay")

    def _decide(
        self,
        tx: Transaction,
        id_sequence: IdSequence,
        authority: Authority,
        payment_id: str,
        amount: int | None,
        destination: str | None,
        reason: str | None,
        payable: Collection[str],
        reading: BalanceReading | None,
    ) -> Decision[tuple[Refund, ...]]:
        now = self._clock.now()
        payment = lock_payment(tx, payment_id)
        refundable = plans.compute_refundable(payment, lock_pending_refunds(tx, payment), payable)
        legs = plans.plan_refunds(payment, refundable, amount, destination)
        is_sender = require_standard_key_for_stranger(authority, payment, refundable, legs)
        return start_refunds(
            tx, id_sequence, authority.partition, payment, legs, "refund", reason, now=now,
            reading=reading, rule="active" if is_sender else "payee",
        )  # fmt: skip


def require_standard_key_for_stranger(
    authority: Authority, payment: Payment, refundable: Refundable, legs: Sequence[RefundLeg]
) -> bool:
    """Whether each leg goes to the sender of its amount. Raises InsufficientPermissions if not, and
    the key is not a standard key.

    An address that sent one cent is the sender of that cent only.
    """
    is_sender = all(
        leg.amount_atomic <= plans.own_amount(payment, refundable.share_of(leg.to)) for leg in legs
    )
    if not is_sender:
        require_standard_key(authority.key)
    return is_sender


def load_with_pending_refunds(
    snapshot: Snapshot, payment_id: str
) -> tuple[Payment, tuple[Refund, ...]]:
    """A Payment and its refunds that are not final. Raises NotFound."""
    payment = snapshot.get(Payment, payment_id)
    if payment is None:
        raise NotFound("payment")
    found = [snapshot.get(Refund, id) for id in payment.refunding]
    return payment, tuple(refund for refund in found if refund is not None)


def lock_pending_refunds(tx: Transaction, payment: Payment) -> tuple[Refund, ...]:
    """The refunds of a locked Payment that are not final, freshly read."""
    found = [tx.get(Refund, id, for_update=True) for id in payment.refunding]
    return tuple(refund for refund in found if refund is not None)


def start_refunds(
    tx: Transaction,
    id_sequence: IdSequence,
    partition: str,
    payment: Payment,
    legs: Sequence[RefundLeg],
    purpose: Purpose,
    reason: str | None,
    *,
    now: Instant,
    reading: BalanceReading | None = None,
    rule: PolicyRule = "active",
) -> Decision[tuple[Refund, ...]]:
    """Refunds with their transfers, and the Payment that lists them as pending.

    `reading` is the balance of the recipient's vault if that vault pays: it reserves the sum
    at once, and the `rule` "payee" is for a single leg, whose destination it checks. They are sent
    when what they return is final (`waiting.py`). Raises ResourceConflict, StaleBalance, and the
    errors of `reserve_funds`.
    """
    if len(payment.refunding) + len(legs) > MAX_PENDING_REFUNDS:
        raise ResourceConflict(
            f"At most {MAX_PENDING_REFUNDS} refunds of a Payment may be pending."
        )
    refunds: list[Refund] = []
    decision = _reserve_from_recipient(tx, payment, legs, reading, rule, now=now)
    for leg in legs:
        source = _holder(payment, leg, reading)
        assert source is not None
        refund_id = id_sequence.issue("refund")
        outgoing = new_transfer(
            id_sequence.issue("out"),
            payment.asset,
            "refund",
            refund_id,
            source=source,
            recipient=leg.to,
            amount=leg.amount_atomic,
            now=now,
            funded_by=payment.release_id if needs_final_release(payment, leg) else None,
        )
        draft = _draft_refund(refund_id, payment, leg, outgoing, purpose, now=now)
        draft = evolve(
            draft,
            reason=reason,
            vault_id=reading.vault.id if leg.from_recipient_atomic and reading else None,
            waits_for=payment.unsettled,
            early_acceptance=choose_acceptance(payment) if source == payment.escrow else None,
        )
        made = lifecycle.create(draft, payment)
        jobs = () if payment.unsettled else (send_job(SEND_REFUND, partition, outgoing, now),)
        refunds.append(made.record)
        queued = Decision(None, inserts=(outgoing,), jobs=jobs)
        decision = decision.merge(made.as_decision(), queued)
    pending = (*payment.refunding, *(refund.id for refund in refunds))
    knowing = evolve(payment, refunding=pending, updated_at_ms=now)
    return Decision(tuple(refunds), replaces=(knowing,)).merge(decision)


def _draft_refund(
    id: str,
    payment: Payment,
    leg: RefundLeg,
    outgoing: OutboundTransfer,
    purpose: Purpose,
    *,
    now: Instant,
) -> Refund:
    return Refund(
        id=id,
        payment_id=payment.id,
        purpose=purpose,
        status="",
        status_version=0,
        chain_id=payment.chain_id,
        asset_symbol=payment.asset_symbol,
        token_address=payment.token_address,
        decimals=payment.decimals,
        from_escrow_atomic=leg.from_escrow_atomic,
        from_excess_atomic=leg.from_excess_atomic,
        from_recipient_atomic=leg.from_recipient_atomic,
        from_offramp_atomic=leg.from_offramp_atomic,
        destination=leg.to,
        outgoing_id=outgoing.id,
        created_at_ms=now,
        updated_at_ms=now,
    )


def _reserve_from_recipient(
    tx: Transaction,
    payment: Payment,
    legs: Sequence[RefundLeg],
    reading: BalanceReading | None,
    rule: PolicyRule,
    *,
    now: Instant,
) -> Decision[None]:
    """The total that the recipient's vault reserves for all legs. Raises as `start_refunds`."""
    amount = sum(leg.from_recipient_atomic for leg in legs)
    if not amount:
        return Decision(None)
    if reading is None:  # the Payment was released meanwhile: ask the recipient's vault
        raise StaleBalance
    spend = Spend(payment.asset, amount, legs[0].to, None)
    reserved = reserve_funds(tx, reading, spend, now=now, counts=False, rule=rule)
    return Decision(None).merge(reserved)


def _holder(payment: Payment, leg: RefundLeg, reading: BalanceReading | None) -> Contract | None:
    """The contract that holds the funds, unless that is the recipient's vault."""
    if leg.from_recipient_atomic and reading is not None:
        return reading.vault.contract
    if leg.from_offramp_atomic:
        return Contract("escrow", OFFRAMP_OWNER, payment.destination.address)
    return payment.escrow
