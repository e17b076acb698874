"""Vault options of a payer: create, read, list, refresh (contract §5 "Client", §6 "Option")."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import attrs

from payments_core.accounts.record import Account
from payments_core.accounts.vaults.of_account import find_vaults_by_chain
from payments_core.accounts.vaults.record import Vault
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, lock_shared
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import (
    AccountSuspended,
    CapabilityNotActive,
    InvalidState,
    NotFound,
    OptionLocked,
    UnsupportedAsset,
    UnsupportedChain,
)
from payments_core.evolve import evolve
from payments_core.networks import Asset
from payments_core.payments.details import (
    OptionDetails,
    load_option,
    load_option_details,
    load_receipts,
    lock_option,
    lock_payment,
    lock_vault_option,
)
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.lifecycle import require_payable
from payments_core.payments.options import lifecycle
from payments_core.payments.options.creation import new_vault_option
from payments_core.payments.options.limits import require_option_capacity
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.paying.selection import (
    require_no_pending_submission,
    supersede_selected,
)
from payments_core.payments.record import Payment
from payments_core.payments.transitions import OPEN
from payments_core.storage.damaged_records import load_listed
from payments_core.storage.port import Snapshot, Transaction
from payments_core.storage.reads import Get
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import AssetSymbol, ChainId


class VaultOptions:
    """Offers a payer's vault as a way to fund a Payment."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock

    @once_per_key
    def create(
        self,
        authority: Authority,
        payment_id: str,
        *,
        chain_id: ChainId | None = None,
        asset_symbol: AssetSymbol | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> OptionDetails:
        """A Vault option of the token's account, selected at once; the previous selection is
        superseded.

        Raises NotFound, PaymentExpired, InvalidState, OptionLocked, PaymentOptionLimitReached,
        CapabilityNotActive, UnsupportedChain, UnsupportedAsset, AccountSuspended.
        """
        vaults = self._storage.read_apart(
            authority.partition,
            lambda snapshot: find_vaults_by_chain(snapshot, authority.account_id),
        )
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OptionDetails]:
            payment = lock_payment(tx, payment_id)
            offer = offer_vault(
                tx,
                id_sequence,
                payment,
                authority.account_id,
                vaults,
                chain_id=chain_id,
                asset_symbol=asset_symbol,
                now=now,
            )
            return Decision(
                OptionDetails(offer.payment, offer.option, offer.operation),
                inserts=(offer.option, offer.operation),
                replaces=(offer.payment,),
            ).merge(offer.superseded)

        reads = (
            Get(Payment, payment_id, "exclusive"),
            Get(Account, authority.account_id, "shared"),
        )
        return self._committer.commit(authority, decide, idempotent=idempotency_key, reads=reads)

    def get(self, authority: Authority, payment_id: str, option_id: str) -> OptionDetails:
        """The payer's option of a Payment. Raises NotFound."""
        return self._get_own(authority, payment_id, option_id)

    def list(self, authority: Authority, payment_id: str) -> tuple[OptionDetails, ...]:
        """The payer's options of a Payment, oldest first. Raises NotFound.

        An option that cannot be read, or whose receipts cannot, is skipped with an alarm.
        """

        def load(snapshot: Snapshot) -> tuple[OptionDetails, ...]:
            payment = _load_payment(snapshot, payment_id)
            find_receipts = cache(lambda: load_receipts(snapshot, payment_id))
            options = load_listed(
                authority.partition,
                PaymentOption,
                payment.option_ids,
                lambda id: load_option_details(
                    snapshot, payment, load_option(snapshot, payment, id), find_receipts()
                ),
            )
            return tuple(
                item for item in options if item.option.payer_account_id == authority.account_id
            )

        return self._storage.read(authority.partition, load)

    @once_per_key
    def refresh(
        self,
        authority: Authority,
        payment_id: str,
        option_id: str,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> OptionDetails:
        """The option with a new one-time action; the old one is void.

        Raises NotFound, PaymentExpired, InvalidState, OptionSuperseded, OptionExpired.
        """
        self._get_own(authority, payment_id, option_id)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OptionDetails]:
            payment = lock_payment(tx, payment_id)
            require_payable(payment, now=now)
            if payment.status not in OPEN:
                raise InvalidState("payment", payment.status, "refresh option")
            lock_active_account(tx, authority.account_id)
            option, operation = lock_vault_option(tx, option_id)
            action_id = id_sequence.issue("action")
            refreshed = lifecycle.refresh(option, payment, now=now, action_id=action_id)
            moving = evolve(
                operation, amount_atomic=refreshed.record.required_atomic, updated_at_ms=now
            )
            details = OptionDetails(payment, refreshed.record, moving)
            return refreshed.as_decision(details).merge(Decision(None, replaces=(moving,)))

        reads = (
            Get(Payment, payment_id, "exclusive"),
            Get(Account, authority.account_id, "shared"),
        )
        return self._committer.commit(authority, decide, idempotent=idempotency_key, reads=reads)

    def _get_own(self, authority: Authority, payment_id: str, option_id: str) -> OptionDetails:
        def load(snapshot: Snapshot) -> OptionDetails:
            payment = _load_payment(snapshot, payment_id)
            option = load_option(snapshot, payment, option_id)
            if option.payer_account_id != authority.account_id:
                raise NotFound("payment option")
            receipts = load_receipts(snapshot, payment_id)
            return load_option_details(snapshot, payment, option, receipts)

        return self._storage.read(authority.partition, load)


@attrs.frozen
class VaultOffer:
    """A new Vault option that is selected, the changed Payment, and the superseded records.

    Nothing of it is stored yet; only `superseded` is a decision.
    """

    payment: Payment
    option: PaymentOption
    operation: FundingOperation
    superseded: Decision[None]


def offer_vault(
    tx: Transaction,
    id_sequence: IdSequence,
    payment: Payment,
    account_id: str,
    vaults: Mapping[int, Vault],
    *,
    chain_id: int | None = None,
    asset_symbol: str | None = None,
    now: Instant,
) -> VaultOffer:
    """Offer an account's vault for a Payment that is locked. `vaults` are the account's, by chain.

    Raises as `VaultOptions.create` does.
    """
    require_payable(payment, now=now)
    if "vault" not in payment.allowed_methods:
        raise CapabilityNotActive("vault")
    asset = require_same_asset(payment, chain_id, asset_symbol)
    if payment.authorized:
        raise OptionLocked(_own_selected_option_id(tx, payment, account_id))
    require_no_pending_submission(tx, payment, now=now)
    if payment.status not in OPEN:
        raise InvalidState("payment", payment.status, "create option")
    require_option_capacity(tx, payment, account_id)
    lock_active_account(tx, account_id)
    vault = vaults.get(asset.chain_id)
    if vault is None:  # the account is older than the deployment's support of that chain
        raise UnsupportedChain(asset.chain_id, "has no vault of this account")
    option, operation = new_vault_option(payment, vault, id_sequence, now)
    superseded = supersede_selected(tx, payment, now)
    selecting = evolve(
        payment,
        option_ids=(*payment.option_ids, option.id),
        selected_option_id=option.id,
        updated_at_ms=now,
    )
    return VaultOffer(selecting, option, operation, superseded)


def _load_payment(snapshot: Snapshot, payment_id: str) -> Payment:
    payment = snapshot.get(Payment, payment_id)
    if payment is None:
        raise NotFound("payment")
    return payment


def _own_selected_option_id(tx: Transaction, payment: Payment, account_id: str) -> str | None:
    """The id of the selected option if it is the payer's own: others' ids are not shown."""
    if payment.selected_option_id is None:
        return None
    option = lock_option(tx, payment.selected_option_id)
    return option.id if option.payer_account_id == account_id else None


def lock_active_account(tx: Transaction, account_id: str) -> Account:
    """The payer's account, locked shared. Raises AccountSuspended."""
    return require_active(lock_shared(tx, Account, account_id))


def require_active(account: Account | None) -> Account:
    """The account, if it may act. Raises AccountSuspended."""
    if account is None:
        raise NotFound("account")
    if account.status != "active":
        raise AccountSuspended(account.id, account.status)
    return account


def require_same_asset(payment: Payment, chain_id: int | None, asset_symbol: str | None) -> Asset:
    """The Payment's asset: no other can pay it. Raises UnsupportedChain, UnsupportedAsset."""
    if chain_id not in (None, payment.chain_id):
        reason = f"is not the Payment's chain, which is {payment.chain_id}"
        raise UnsupportedChain(chain_id or 0, reason)
    if asset_symbol not in (None, payment.asset_symbol):
        reason = f"is not the Payment's asset, which is {payment.asset_symbol}"
        raise UnsupportedAsset(payment.chain_id, asset_symbol or "", reason)
    return payment.asset
