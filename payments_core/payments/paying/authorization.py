"""Authorizing a vault's transfer (interface "Authorize a Vault funding operation").

One transaction consumes the action, reserves the balance and stores the authorization with the
job that will send it. After any crash the authorization exists exactly once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payments_core.accounts.record import Account
from payments_core.accounts.vaults.balance import daily_spend
from payments_core.accounts.vaults.of_account import find_vaults, vaults_of
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.policy_rules import Spend, require_policy_allows
from payments_core.accounts.vaults.record import Policy, Vault, VaultBalance, balance_id
from payments_core.accounts.vaults.reservations import (
    BalanceReading,
    reads_of_reservation,
    reserve_funds,
    retry_on_stale_balance,
)
from payments_core.chains.outbox.record import new_transfer, send_job
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import ActionInvalid, NotFound, PaymentsError
from payments_core.payments import lifecycle as payments
from payments_core.payments.details import (
    OptionDetails,
    lock_operation,
    lock_option,
    lock_payment,
)
from payments_core.payments.funding import lifecycle
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options import lifecycle as options
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.paying.vault_options import lock_active_account, require_active
from payments_core.payments.record import Payment
from payments_core.storage.port import Snapshot, Transaction
from payments_core.storage.reads import Get
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import ActionId, MetadataInput

SEND_FUNDING = "funding.send"


class Funding:
    """Authorizes transfers from a payer's vault to a Payment's escrow."""

    def __init__(self, ports: Ports, vaults: Vaults) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._vaults = vaults

    @once_per_key
    def authorize(
        self,
        authority: Authority,
        payment_id: str,
        option_id: str,
        *,
        action_id: ActionId,
        metadata: MetadataInput | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> OptionDetails:
        """Record the authorization of exactly one transfer; the worker sends it.

        Raises NotFound, PaymentExpired, InvalidState, OptionSuperseded, OptionExpired,
        ActionAlreadyUsed, ActionInvalid, ActionExpired, AccountSuspended, PolicyInactive,
        PolicyDenied, InsufficientBalance, DependencyFailed.
        """

        def attempt() -> OptionDetails:
            try:
                reading, reads = self._check_and_read_balance(
                    authority, payment_id, option_id, action_id
                )
            except PaymentsError:
                # a retry finds its own action used: it still gets the answer
                self._committer.replay(authority, idempotency_key)
                raise
            return self._committer.commit(
                authority,
                lambda tx, id_sequence: self._decide(
                    tx, id_sequence, authority, payment_id, option_id, action_id, metadata, reading
                ),
                idempotent=idempotency_key,
                reads=reads,
            )

        return retry_on_stale_balance(attempt)

    def _check_and_read_balance(
        self, authority: Authority, payment_id: str, option_id: str, action_id: str
    ) -> tuple[BalanceReading, tuple[Get, ...]]:
        """Check what can be checked cheaply, then ask the chain for the vault's balance.

        Also reads the rows that `_decide` needs.
        """
        now = self._clock.now()
        account_id = authority.account_id

        def load(snapshot: Snapshot) -> tuple[Payment, PaymentOption, Vault]:
            snapshot.read_ahead(
                Get(Payment, payment_id),
                Get(PaymentOption, option_id),
                Get(Account, account_id),
                vaults_of(account_id),
            )
            payment = snapshot.get(Payment, payment_id)
            option = snapshot.get(PaymentOption, option_id)
            if payment is None:
                raise NotFound("payment")
            _require_own_option(authority, payment, option)
            assert option is not None
            require_active(snapshot.get(Account, account_id))
            payments.require_payable(payment, now=now)
            options.require_live_action(option, action_id, now=now)
            vaults = find_vaults(snapshot, account_id)
            vault = next(vault for vault in vaults if vault.id == option.vault_id)
            held_id = balance_id(vault.id, payment.asset_symbol)
            snapshot.read_ahead(Get(Policy, vault.policy_id), Get(VaultBalance, held_id))
            policy = snapshot.get(Policy, vault.policy_id)
            assert policy is not None
            balance = snapshot.get(VaultBalance, held_id)
            counted = daily_spend(balance, now) if balance is not None else 0
            require_policy_allows(
                policy, spend_of(payment, option.required_atomic), daily_spend=counted
            )
            return payment, option, vault

        payment, option, vault = self._storage.read(authority.partition, load)
        reading = self._vaults.read_balance_to_spend(
            authority.partition, vault, payment.asset, "fund"
        )
        assert option.funding_operation_id is not None
        reads = (
            Get(Payment, payment.id, "exclusive"),
            Get(PaymentOption, option.id, "exclusive"),
            Get(FundingOperation, option.funding_operation_id, "exclusive"),
            Get(Account, account_id, "shared"),
            *reads_of_reservation(reading, payment.asset_symbol),
        )
        return reading, reads

    def _decide(
        self,
        tx: Transaction,
        id_sequence: IdSequence,
        authority: Authority,
        payment_id: str,
        option_id: str,
        action_id: str,
        metadata: Mapping[str, Any] | None,
        reading: BalanceReading,
    ) -> Decision[OptionDetails]:
        now = self._clock.now()
        payment = lock_payment(tx, payment_id)
        if option_id not in payment.option_ids:
            raise NotFound("payment option")
        option = lock_option(tx, option_id)
        _require_own_option(authority, payment, option)
        operation = lock_operation(tx, option)
        assert operation is not None
        lock_active_account(tx, authority.account_id)
        payments.require_payable(payment, now=now)
        options.require_live_action(option, action_id, now=now)
        return authorize_option(
            tx,
            id_sequence,
            authority.partition,
            payment,
            option,
            operation,
            reading,
            metadata,
            now=now,
        )


def authorize_option(
    tx: Transaction,
    id_sequence: IdSequence,
    partition: str,
    payment: Payment,
    option: PaymentOption,
    operation: FundingOperation,
    reading: BalanceReading,
    metadata: Mapping[str, Any] | None,
    *,
    now: int,
) -> Decision[OptionDetails]:
    """Consume an option's live action, and authorize its transfer from the vault.

    The Payment is locked, as are the option and the operation unless they were never stored.
    Raises InvalidState, ActionInvalid, and as `reserve_funds` does.
    """
    step = payments.authorize(payment, operation.id, now=now)
    if option.required_atomic > payment.remaining.amount_atomic:  # part was paid: refresh it
        raise ActionInvalid()
    consumed = options.consume_action(option, now=now)
    funded = reserve_and_authorize(
        tx, id_sequence, partition, step.record, operation, reading, metadata, now=now
    )
    details = OptionDetails(step.record, consumed.record, funded.result)
    return consumed.as_decision(details).merge(funded, step.as_decision())


def reserve_and_authorize(
    tx: Transaction,
    id_sequence: IdSequence,
    partition: str,
    payment: Payment,
    operation: FundingOperation,
    reading: BalanceReading,
    metadata: Mapping[str, Any] | None,
    *,
    now: int,
) -> Decision[FundingOperation]:
    """Reserve what an operation moves and store its authorization, with the job that sends it.

    An operation that was never stored is inserted. Raises as `reserve_funds` does.
    """
    assert payment.escrow is not None
    policy_version = reserve_funds(tx, reading, spend_of(payment, operation.amount_atomic), now=now)
    outgoing = new_transfer(
        id_sequence.issue("out"),
        payment.asset,
        "funding",
        operation.id,
        source=reading.vault.contract,
        recipient=payment.escrow.address,
        escrow_of=payment.id,
        amount=operation.amount_atomic,
        now=now,
    )
    after = lifecycle.apply_trigger(
        operation,
        "authorize",
        payment,
        now=now,
        outgoing_id=outgoing.id,
        policy_version=policy_version.result,
        metadata=metadata,
    )
    sending = Decision(
        None, inserts=(outgoing,), jobs=(send_job(SEND_FUNDING, partition, outgoing, now),)
    )
    return after.as_decision(after.record).merge(sending, policy_version)


def spend_of(payment: Payment, amount: int) -> Spend:
    """The target that the policy judges: the Payment's recipient, not the escrow on the way."""
    return Spend(payment.asset, amount, payment.destination.address, payment.account_id)


def _require_own_option(
    authority: Authority, payment: Payment, option: PaymentOption | None
) -> None:
    """Raise NotFound unless the option belongs to the Payment and its payer is the caller."""
    if (
        option is None
        or option.payment_id != payment.id
        or option.payer_account_id != authority.account_id
    ):
        raise NotFound("payment option")
