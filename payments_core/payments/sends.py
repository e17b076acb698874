"""Sends: from a vault straight to the recipient, without escrow or receipts (contract §6)."""

from __future__ import annotations

import attrs

from payments_core.accounts.record import Account
from payments_core.accounts.vaults.of_account import find_vaults_by_chain
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.policy_rules import Spend
from payments_core.accounts.vaults.record import Vault
from payments_core.accounts.vaults.reservations import (
    BalanceReading,
    reserve_funds,
    retry_on_stale_balance,
)
from payments_core.amounts import parse_positive_amount
from payments_core.brief_repr import brief_repr
from payments_core.chains.outbox.record import new_transfer, send_job
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, lock_shared
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import (
    AccountSuspended,
    DestinationNotAllowed,
    EntitlementRequired,
    NotFound,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.networks import Asset
from payments_core.payments import lifecycle
from payments_core.payments.creation import Payee, draft_payment
from payments_core.payments.destinations import Destinations, SendDestination, ToBankAccount
from payments_core.payments.details import PaymentDetails
from payments_core.payments.operations import choose_asset
from payments_core.payments.payouts.creation import (
    PayoutCreation,
    PayoutTerms,
    lock_recipient,
    require_text_of_rail,
    resolve_bank_account,
)
from payments_core.payments.payouts.lifecycle import new_payout
from payments_core.payments.record import OFFRAMP_OWNER, Destination, Payment, Payout, Source
from payments_core.payments.release import SEND_RELEASE
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.tenants.record import Environment
from payments_core.validation.fields import (
    AccountId,
    Amount,
    AssetSymbol,
    ChainId,
    MetadataInput,
    Reference,
    Sentence,
)


@attrs.frozen(kw_only=True)
class NewSend:
    """The input of a send: a Payment from the vault of an account.

    `amount` is decimal text in whole tokens, greater than zero. `account_id` is the payer's. Chain
    and asset are by default the recipient's preference. `destination_chain_id` must be the
    source's: nothing is bridged. `reference`, `description` and `metadata` are stored and
    returned.

    >>> to_bob = ToPaymentAddress(payment_address="bob@shop")
    >>> new = NewSend(amount="1.00", account_id=eve.id, destination=to_bob)
    >>> shop.payments.send(new, idempotency_key="send-1").payment.status
    'processing'
    """

    __repr__ = brief_repr

    amount: Amount
    account_id: AccountId
    destination: SendDestination
    chain_id: ChainId | None = None
    asset_symbol: AssetSymbol | None = None
    destination_chain_id: ChainId | None = None
    reference: Reference | None = None
    description: Sentence | None = None
    metadata: MetadataInput | None = None


class Sends:
    """Creates send Payments."""

    def __init__(
        self, ports: Ports, destinations: Destinations, vaults: Vaults, payouts: PayoutCreation
    ) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._destinations = destinations
        self._vaults = vaults
        self._payouts = payouts

    @once_per_key
    def create(
        self, authority: Authority, new: NewSend, *, idempotency_key: IdempotencyKey = None
    ) -> PaymentDetails:
        """A send with its funds reserved; the worker sends it to the chain.

        Raises ValidationFailed, NotFound, DestinationNotAllowed, AmountOutOfRange,
        UnsupportedChain, UnsupportedAsset, AccountSuspended, PolicyInactive, PolicyDenied,
        InsufficientBalance, DependencyFailed; to a bank account also EntitlementRequired and
        CapabilityNotActive.
        """
        recipient_id = self._resolve_recipient_id(authority, new)
        preferring = self._storage.read(
            authority.partition,
            lambda snapshot: snapshot.get(Account, recipient_id) if recipient_id else None,
        )
        chain_id = new.chain_id or new.destination_chain_id
        asset = choose_asset(self._networks, chain_id, new.asset_symbol, preferring)
        if new.destination_chain_id not in (None, asset.chain_id):
            raise DestinationNotAllowed("it is on another chain than the source")
        self._destinations.require_chain(asset)
        amount = parse_positive_amount(new.amount, asset)
        vault = self._storage.read(
            authority.partition, lambda snapshot: load_vault(snapshot, new.account_id, asset)
        )
        terms = self._check_payout(authority, new, asset, amount)
        authority = authority if terms is None else terms.authority

        def attempt() -> PaymentDetails:
            # a retry may find its own funds gone: it still gets the answer
            self._committer.replay(authority, idempotency_key)
            reading = self._vaults.read_balance_to_spend(
                authority.partition, vault, asset, "pay_out" if terms is None else "fund"
            )
            return self._committer.commit(
                authority,
                lambda tx, id_sequence: self._decide(
                    tx, id_sequence, authority, new, asset, amount, recipient_id, terms, reading
                ),
                idempotent=idempotency_key,
            )

        return retry_on_stale_balance(attempt)

    def _decide(
        self,
        tx: Transaction,
        id_sequence: IdSequence,
        authority: Authority,
        new: NewSend,
        asset: Asset,
        amount: int,
        recipient_id: str | None,
        terms: PayoutTerms | None,
        reading: BalanceReading,
    ) -> Decision[PaymentDetails]:
        now = self._clock.now()
        payer = lock_active_payer(tx, authority, new.account_id)
        destination = self._lock_destination(tx, authority, new, asset, recipient_id, terms)
        require_other_than_source(destination, reading.vault)
        spend = Spend(asset, amount, destination.address, destination.account_id)
        reservation = reserve_funds(tx, reading, spend, now=now)
        source = _new_source(payer, reading, reservation.result, now=now)
        payee = Payee(asset, amount, destination)
        draft = draft_payment(authority, payee, new, id_sequence, now=now)
        outgoing = new_transfer(
            id_sequence.issue("out"),
            asset,
            "release",
            draft.id,
            source=reading.vault.contract,
            recipient=destination.address,
            amount=amount,
            now=now,
            escrow_of=None if terms is None else OFFRAMP_OWNER,
        )
        sending = evolve(
            draft,
            intent="send",
            account_id=payer.id,
            external_user_id=payer.external_user_id,
            source=source,
            release_id=outgoing.id,
            released_atomic=Atomic(amount),
            payout=None if terms is None else _new_payout(authority, draft, terms),
        )
        step = lifecycle.create(sending, "create_drawn", now=now)
        job = send_job(SEND_RELEASE, authority.partition, outgoing, now)
        return step.as_decision(PaymentDetails(step.record)).merge(
            Decision(None, inserts=(outgoing,), jobs=(job,)), reservation
        )

    def _resolve_recipient_id(self, authority: Authority, new: NewSend) -> str | None:
        if isinstance(new.destination, ToBankAccount):
            require_text_of_rail(new.destination)
            return None
        return self._destinations.resolve_recipient_id(authority, new.destination)

    def _check_payout(
        self, authority: Authority, new: NewSend, asset: Asset, amount: int
    ) -> PayoutTerms | None:
        """The terms of a payout; None for a send that stays on the chain."""
        to = new.destination
        if not isinstance(to, ToBankAccount):
            return None
        return self._payouts.check(
            authority, new.account_id, to.bank_account_id, to.rail, asset, amount
        )

    def _lock_destination(
        self,
        tx: Transaction,
        authority: Authority,
        new: NewSend,
        asset: Asset,
        recipient_id: str | None,
        terms: PayoutTerms | None,
    ) -> Destination:
        """The recipient, locked shared. Raises the errors of the destination's rules."""
        if isinstance(new.destination, ToBankAccount):
            assert terms is not None
            bank_account = lock_recipient(tx, terms)
            chain = self._destinations.require_chain(asset)
            return resolve_bank_account(authority.partition, new.destination, bank_account, chain)
        recipient = self._destinations.lock_recipient(tx, authority, recipient_id)
        return self._destinations.resolve_destination(authority, new.destination, recipient, asset)


def load_vault(snapshot: Snapshot, account_id: str, asset: Asset) -> Vault:
    """The account's vault on the asset's chain. Raises NotFound, UnsupportedChain."""
    if snapshot.get(Account, account_id) is None:
        raise NotFound("account")
    vault = find_vaults_by_chain(snapshot, account_id).get(asset.chain_id)
    if vault is None:
        raise UnsupportedChain(asset.chain_id, "has no vault of this account")
    return vault


def lock_active_payer(tx: Transaction, authority: Authority, account_id: str) -> Account:
    """The account whose vault pays, locked shared.

    Raises EntitlementRequired if the environment has no vaults, NotFound, AccountSuspended.
    """
    environment = lock_shared(tx, Environment, authority.partition)
    if environment is not None and "vaults" not in environment.products:
        raise EntitlementRequired("vaults")
    account = lock_shared(tx, Account, account_id)
    if account is None:
        raise NotFound("account")
    if account.status != "active":
        raise AccountSuspended(account.id, account.status)
    return account


def require_other_than_source(destination: Destination, vault: Vault) -> None:
    """Raise ValidationFailed if a vault would pay itself."""
    if destination.address == vault.address:
        raise ValidationFailed.at("destination", "must not be the source itself")


def _new_payout(authority: Authority, draft: Payment, terms: PayoutTerms) -> Payout:
    to = draft.destination
    assert to.rail is not None
    return new_payout(
        authority.partition,
        draft.id,
        1,
        bank_account_id=terms.bank_account_id,
        rail=to.rail,
        amount_cents=terms.amount_cents,
        statement_text=to.statement_text,
    )


def _new_source(
    payer: Account, reading: BalanceReading, policy_version: int, *, now: Instant
) -> Source:
    """The vault that pays, and the version of its policy that allowed it."""
    return Source(
        account_id=payer.id,
        external_user_id=payer.external_user_id,
        vault_id=reading.vault.id,
        address=reading.vault.address,
        policy_version=policy_version,
        reserved_at_ms=now,
    )
