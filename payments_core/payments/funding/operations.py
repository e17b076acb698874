"""Authorizing a vault's transfer (interface "Authorize a Vault funding operation").

One transaction consumes the action, reserves the balance and stores the authorization with the
job that will send it. Whatever crashes afterwards, the authorization is there exactly once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payments_core.accounts.record import Account
from payments_core.accounts.vaults.lifecycle import Spend, check_policy, spent_today
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.record import Policy, Vault, VaultBalance, balance_id
from payments_core.accounts.vaults.reservations import Asked, asking, reserved
from payments_core.chains.outbox.record import send_job, transfer
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import Idempotent
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.errors import ActionInvalid, NotFound, PaymentsError
from payments_core.payments import lifecycle as payments
from payments_core.payments.details import OptionDetails, locked_option, locked_payment
from payments_core.payments.funding import lifecycle
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options import lifecycle as options
from payments_core.payments.options.operations import active_account, check_active
from payments_core.payments.options.record import Option
from payments_core.payments.record import Payment
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority

SEND = "funding.send"


class Funding:
    """Authorizes transfers from a payer's vault to a Payment's escrow."""

    def __init__(self, ports: Ports, vaults: Vaults) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock
        self._vaults = vaults

    def authorize(
        self,
        authority: Authority,
        payment_id: str,
        option_id: str,
        *,
        action_id: str,
        metadata: Mapping[str, Any] | None = None,
        idempotent: Idempotent | None = None,
    ) -> OptionDetails:
        """Record the authorization of exactly one transfer; the worker sends it.

        Raises NotFound, PaymentExpired, InvalidState, OptionSuperseded, OptionExpired,
        ActionAlreadyUsed, ActionInvalid, ActionExpired, AccountSuspended, PolicyInactive,
        PolicyDenied, InsufficientBalance, DependencyFailed.
        """

        def attempt() -> OptionDetails:
            try:
                asked = self._ask(authority, payment_id, option_id, action_id)
            except PaymentsError:
                # a retry finds its own action used: it is answered
                self._ledger.replay(authority, idempotent)
                raise
            return self._ledger.commit(
                authority,
                lambda tx, draw: self._decide(
                    tx, draw, authority, payment_id, option_id, action_id, metadata, asked
                ),
                idempotent=idempotent,
            )

        return asking(attempt)

    def _ask(self, authority: Authority, payment_id: str, option_id: str, action_id: str) -> Asked:
        """Check what can be checked cheaply, then ask the chain for the vault's balance."""
        now = self._clock.now()

        def look(snapshot: Snapshot) -> tuple[Payment, Vault]:
            payment = snapshot.get(Payment, payment_id)
            option = snapshot.get(Option, option_id)
            if payment is None:
                raise NotFound("payment")
            _check_own(authority, payment, option)
            assert option is not None
            check_active(snapshot.get(Account, authority.account_id))
            payments.check_payable(payment, now=now)
            options.check_action(option, action_id, now=now)
            vault = snapshot.get(Vault, option.vault_id)
            assert vault is not None
            policy = snapshot.get(Policy, vault.policy_id)
            assert policy is not None
            balance = snapshot.get(VaultBalance, balance_id(vault.id, payment.asset_symbol))
            counted = spent_today(balance, now) if balance is not None else 0
            check_policy(policy, spend_of(payment, option.required), spent_today=counted)
            return payment, vault

        payment, vault = self._storage.read(authority.partition, look)
        return self._vaults.ask(vault, payment.asset)

    def _decide(
        self,
        tx: Transaction,
        draw: Draw,
        authority: Authority,
        payment_id: str,
        option_id: str,
        action_id: str,
        metadata: Mapping[str, Any] | None,
        asked: Asked,
    ) -> Decision[OptionDetails]:
        now = self._clock.now()
        payment = locked_payment(tx, payment_id)
        if option_id not in payment.option_ids:
            raise NotFound("payment option")
        option, operation = locked_option(tx, option_id)
        _check_own(authority, payment, option)
        active_account(tx, authority.account_id)
        payments.check_payable(payment, now=now)
        options.check_action(option, action_id, now=now)
        change = payments.authorize(payment, operation.id, now=now)
        if option.required > payment.remaining.amount_atomic:  # part was paid since: refresh it
            raise ActionInvalid()
        consumed = options.consume(option, now=now)
        funded = authorized(
            tx, draw, authority.partition, change.record, operation, asked, metadata, now=now
        )
        details = OptionDetails(change.record, consumed.record, funded.result)
        return consumed.as_decision(details).joined(funded, change.as_decision())


def authorized(
    tx: Transaction,
    draw: Draw,
    partition: str,
    payment: Payment,
    operation: FundingOperation,
    asked: Asked,
    metadata: Mapping[str, Any] | None,
    *,
    now: int,
) -> Decision[FundingOperation]:
    """Reserve what an operation moves and store its authorization, with the job that sends it.

    An operation that was never stored is inserted. Raises as `reserved` does.
    """
    assert payment.escrow is not None
    policy_version = reserved(tx, asked, spend_of(payment, operation.amount), now=now)
    outgoing = transfer(
        draw.id("out"),
        payment.asset,
        "funding",
        operation.id,
        source=asked.vault.contract,
        recipient=payment.escrow.address,
        escrow_of=payment.id,
        amount=operation.amount,
        now=now,
    )
    after = lifecycle.step(
        operation,
        "authorize",
        payment,
        now=now,
        outgoing_id=outgoing.id,
        policy_version=policy_version.result,
        metadata=metadata,
    )
    sending = Decision(None, inserts=(outgoing,), jobs=(send_job(SEND, partition, outgoing, now),))
    return after.as_decision(after.record).joined(sending, policy_version)


def spend_of(payment: Payment, amount: int) -> Spend:
    """What the policy judges: the Payment's recipient, not the escrow on the way."""
    return Spend(payment.asset, amount, payment.destination.address, payment.account_id)


def _check_own(authority: Authority, payment: Payment, option: Option | None) -> None:
    """Raise NotFound unless the option is the Payment's and its payer is the caller."""
    if (
        option is None
        or option.payment_id != payment.id
        or option.payer_account_id != authority.account_id
    ):
        raise NotFound("payment option")
