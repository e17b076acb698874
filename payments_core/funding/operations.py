"""Authorizing a vault's transfer (interface "Authorize a Vault funding operation").

One transaction consumes the action, reserves the balance and stores the authorization with the
job that will send it. Whatever crashes afterwards, the authorization is there exactly once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from payments_core.accounts.record import Account
from payments_core.chains.outbox import Outgoing, send_job
from payments_core.chains.port import BalancesAt
from payments_core.clock import Clock
from payments_core.credentials.authorization import Authority
from payments_core.decision import Decision, Ledger, held
from payments_core.errors import DependencyFailed, NotFound, PaymentsError
from payments_core.funding import lifecycle
from payments_core.funding.record import FundingOperation
from payments_core.idempotency.record import Idempotent
from payments_core.identifiers import Draw
from payments_core.money import Money
from payments_core.options import lifecycle as options
from payments_core.options.operations import active_account, check_active
from payments_core.options.record import Option
from payments_core.payments import lifecycle as payments
from payments_core.payments.details import OptionDetails, locked_option, locked_payment
from payments_core.payments.record import Payment
from payments_core.storage.port import Snapshot, Storage, Transaction
from payments_core.vaults.lifecycle import BalanceOutdated, check_policy, observed, reserve
from payments_core.vaults.operations import Vaults
from payments_core.vaults.record import Policy, Vault, VaultBalance, balance_id

SEND = "funding.send"
_ASKS = 8


@attrs.frozen
class _Asked:
    """The vault, and the chain's figure for it."""

    vault: Vault
    at: BalancesAt


class Funding:
    """Authorizes transfers from a payer's vault to a Payment's escrow."""

    def __init__(self, storage: Storage, ledger: Ledger, clock: Clock, vaults: Vaults) -> None:
        self._storage = storage
        self._ledger = ledger
        self._clock = clock
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
        InsufficientBalance, DependencyFailed.
        """
        for _ in range(_ASKS):
            try:
                asked = self._ask(authority, payment_id, option_id, action_id)
            except PaymentsError:
                if idempotent is not None:  # a retry finds its own action used: it is answered
                    self._ledger.replay(authority, idempotent)
                raise
            try:
                return self._ledger.commit(
                    authority,
                    lambda tx, draw, asked=asked: self._decide(  # type: ignore[misc]
                        tx, draw, authority, payment_id, option_id, action_id, metadata, asked
                    ),
                    idempotent=idempotent,
                )
            except BalanceOutdated:
                continue
        raise DependencyFailed("chain")

    def _ask(self, authority: Authority, payment_id: str, option_id: str, action_id: str) -> _Asked:
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
            check_policy(policy)
            return payment, vault

        payment, vault = self._storage.read(authority.partition, look)
        return _Asked(vault, self._vaults.at_final(vault, payment.asset))

    def _decide(
        self,
        tx: Transaction,
        draw: Draw,
        authority: Authority,
        payment_id: str,
        option_id: str,
        action_id: str,
        metadata: Mapping[str, Any] | None,
        asked: _Asked,
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
        payment, paid_events = payments.begin_attempt(payment, now=now)
        policy = held(tx, Policy, asked.vault.policy_id)
        assert policy is not None
        check_policy(policy)
        balance, stored = _reserved(tx, asked, payment, operation)
        outgoing = _outgoing(draw.id("out"), payment, option, operation, now)
        consumed = options.consume(option, now=now)
        authorized, funding_events = lifecycle.step(
            operation,
            "authorize",
            payment,
            now=now,
            outgoing_id=outgoing.id,
            policy_version=policy.policy_version,
            metadata=metadata,
        )
        return Decision(
            OptionDetails(payment, consumed, authorized),
            inserts=(outgoing,) if stored else (outgoing, balance),
            replaces=(payment, consumed, authorized, *((balance,) if stored else ())),
            events=(*funding_events, *paid_events),
            jobs=(send_job(SEND, operation.id, authority.partition, outgoing, now),),
        )


def _check_own(authority: Authority, payment: Payment, option: Option | None) -> None:
    """Raise NotFound unless the option is the Payment's and its payer is the caller."""
    if (
        option is None
        or option.payment_id != payment.id
        or option.payer_account_id != authority.account_id
    ):
        raise NotFound("payment option")


def _reserved(
    tx: Transaction, asked: _Asked, payment: Payment, operation: FundingOperation
) -> tuple[VaultBalance, bool]:
    """The balance with the amount reserved, and whether the record existed.

    The record may have changed since the chain was asked. Whatever ended a reservation noted the
    height of a total that contains its transfer; only an answer that is older than that is wrong,
    and it raises BalanceOutdated.
    """
    asset = payment.asset
    id = balance_id(asked.vault.id, asset.symbol)
    stored = tx.get(VaultBalance, id, for_update=True)
    balance = stored or VaultBalance(id=id, asset_id=asset.id)
    current = observed(balance, asked.at.amounts[asked.vault.address], asked.at.height)
    return reserve(current, Money(operation.amount, asset.id)), stored is not None


def _outgoing(
    id: str, payment: Payment, option: Option, operation: FundingOperation, now: int
) -> Outgoing:
    return Outgoing(
        id=id,
        chain_id=payment.chain_id,
        token_address=payment.asset.address,
        source=option.vault_address,
        recipient=payment.escrow_address,
        amount=operation.amount,
        created_at=now,
    )
