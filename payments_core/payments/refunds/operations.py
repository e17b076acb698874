"""Refunds: asked for by the partner, and listed (contract §6)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from payments_core.accounts.vaults.lifecycle import BalanceOutdated, Spend
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.reservations import Asked, Rule, asking, reserved
from payments_core.addresses import AddressError, canonical
from payments_core.amounts import amount_of
from payments_core.assets import chain_entry
from payments_core.chains.outbox.record import send_job, transfer
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import Idempotent
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.errors import (
    Conflicting,
    InsufficientPermissions,
    NotFound,
    ValidationFailed,
)
from payments_core.payments.destinations import Destinations
from payments_core.payments.details import locked_payment
from payments_core.payments.record import Payment
from payments_core.payments.refunds import lifecycle
from payments_core.payments.refunds.lifecycle import Part
from payments_core.payments.refunds.record import Purpose, Refund
from payments_core.payments.sends import vault_on
from payments_core.storage.port import Page, Position, Snapshot, Transaction
from payments_core.tenants.authorization import Authority

REFUND = "refunds.send"
MOST_REFUNDS = 100


@attrs.frozen(kw_only=True)
class NewRefund:
    """What a refund is made from: all that can go back, to its sender, unless said otherwise.

    `amount` is decimal text in whole tokens. `destination` is an address on the Payment's chain;
    one that paid nothing needs a standard key. `reason` is stored and given back.
    """

    amount: str | None = None
    destination: str | None = None
    reason: str | None = None


class Refunds:
    """Sends received funds back."""

    def __init__(self, ports: Ports, destinations: Destinations, vaults: Vaults) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock
        self._destinations = destinations
        self._vaults = vaults

    def create(
        self,
        authority: Authority,
        payment_id: str,
        new: NewRefund,
        *,
        idempotent: Idempotent | None = None,
    ) -> Refund:
        """One refund: from escrow while the funds are held, else from the recipient's vault.

        Raises NotFound, ValidationFailed, AmountOutOfRange, InvalidState (nothing to refund, or
        released to an outside wallet), InsufficientPermissions (another destination needs a
        standard key), DestinationNotAllowed, PolicyInactive, PolicyDenied, InsufficientBalance,
        DependencyFailed, Conflicting.
        """
        payment = self._read(authority, payment_id)
        amount = amount_of(new.amount, payment.asset) if new.amount is not None else None
        destination = self._destination(payment, new.destination)

        def attempt() -> Refund:
            # a retry may find its own amount gone: it is answered
            self._ledger.replay(authority, idempotent)
            asked = self._ask(authority, self._read(authority, payment_id))
            return self._ledger.commit(
                authority,
                lambda tx, draw: self._decide(
                    tx, draw, authority, payment_id, amount, destination, new.reason, asked
                ),
                idempotent=idempotent,
            )

        return asking(attempt)

    def list(
        self,
        authority: Authority,
        payment_id: str,
        *,
        after: Position | None = None,
        limit: int = 50,
    ) -> Page[Refund]:
        """The refunds of a Payment, newest first. Raises NotFound."""

        def look(snapshot: Snapshot) -> Page[Refund]:
            if snapshot.get(Payment, payment_id) is None:
                raise NotFound("payment")
            return snapshot.find(Refund, "by_payment", (payment_id,), after=after, limit=limit)

        return self._storage.read(authority.partition, look)

    def _read(self, authority: Authority, payment_id: str) -> Payment:
        payment = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Payment, payment_id)
        )
        if payment is None:
            raise NotFound("payment")
        return payment

    def _destination(self, payment: Payment, text: str | None) -> str | None:
        """The address that was named. Raises ValidationFailed, DestinationNotAllowed."""
        if text is None:
            return None
        try:
            address = canonical(chain_entry(payment.chain_id).chain_type, text)
        except AddressError as error:
            raise ValidationFailed.at("destination", str(error)) from None
        if address == payment.destination.address:  # it would come back to the recipient
            raise ValidationFailed.at("destination", "must not be the recipient's own address")
        self._destinations.refuse_own(address)
        return address

    def _ask(self, authority: Authority, payment: Payment) -> Asked | None:
        """The recipient's vault, where that pays. Raises DependencyFailed."""
        account_id = payment.destination.account_id
        if payment.status not in lifecycle.RELEASED or account_id is None:
            return None
        vault = self._storage.read(
            authority.partition, lambda snapshot: vault_on(snapshot, account_id, payment.asset)
        )
        return self._vaults.ask(vault, payment.asset)

    def _decide(
        self,
        tx: Transaction,
        draw: Draw,
        authority: Authority,
        payment_id: str,
        amount: int | None,
        destination: str | None,
        reason: str | None,
        asked: Asked | None,
    ) -> Decision[Refund]:
        now = self._clock.now()
        payment = locked_payment(tx, payment_id)
        left = lifecycle.left_of(payment, refunds_of(tx, payment))
        part = lifecycle.plan(payment, left, amount, destination)
        # Whoever sent a cent is the sender of that cent, and of no more.
        is_sender = part.amount <= lifecycle.own_part(payment, left.share_of(part.to))
        if not is_sender and authority.key is not None and authority.key.kind != "standard":
            raise InsufficientPermissions(("a standard key",))
        made = refunding(
            tx, draw, authority.partition, payment, (part,), "refund", reason, now=now,
            asked=asked, rule="active" if is_sender else "payee",
        )  # fmt: skip
        return Decision(made.result[0]).joined(made)


def refunds_of(tx: Transaction, payment: Payment) -> tuple[Refund, ...]:
    """The refunds of a locked Payment that are not final, as they certainly are."""
    found = [tx.get(Refund, id, for_update=True) for id in payment.refunding]
    return tuple(refund for refund in found if refund is not None)


def refunding(
    tx: Transaction,
    draw: Draw,
    partition: str,
    payment: Payment,
    parts: Sequence[Part],
    purpose: Purpose,
    reason: str | None,
    *,
    now: Instant,
    asked: Asked | None = None,
    rule: Rule = "active",
) -> Decision[tuple[Refund, ...]]:
    """Refunds with their transfers, and the Payment that knows of them.

    `asked` is the recipient's vault where that pays. Raises Conflicting, and as `reserved` does.
    """
    if len(payment.refunding) + len(parts) > MOST_REFUNDS:
        raise Conflicting(f"At most {MOST_REFUNDS} refunds of a Payment may be under way.")
    refunds: list[Refund] = []
    decision: Decision[None] = Decision(None)
    for part in parts:
        source = None if part.from_recipient else payment.escrow
        if part.from_recipient:
            if asked is None:  # the Payment was released since: ask the recipient's vault
                raise BalanceOutdated
            spend = Spend(payment.asset, part.amount, part.to, None)
            decision = decision.joined(reserved(tx, asked, spend, now=now, counts=False, rule=rule))
            source = asked.vault.contract
        assert source is not None
        refund_id = draw.id("refund")
        outgoing = transfer(
            draw.id("out"),
            payment.asset,
            "refund",
            refund_id,
            source=source,
            recipient=part.to,
            amount=part.amount,
            now=now,
        )
        draft = Refund(
            id=refund_id,
            payment_id=payment.id,
            purpose=purpose,
            status="",
            status_version=0,
            chain_id=payment.chain_id,
            asset_symbol=payment.asset_symbol,
            from_escrow=part.from_escrow,
            from_excess=part.from_excess,
            from_recipient=part.from_recipient,
            destination=part.to,
            reason=reason,
            outgoing_id=outgoing.id,
            vault_id=asked.vault.id if part.from_recipient and asked else None,
            created_at=now,
            updated_at=now,
        )
        made = lifecycle.created(draft, payment)
        job = send_job(REFUND, partition, outgoing, now)
        refunds.append(made.record)
        decision = decision.joined(
            made.as_decision(), Decision(None, inserts=(outgoing,), jobs=(job,))
        )
    ids = tuple(refund.id for refund in refunds)
    knowing = attrs.evolve(payment, refunding=(*payment.refunding, *ids), updated_at=now)
    return Decision(tuple(refunds), replaces=(knowing,)).joined(decision)
