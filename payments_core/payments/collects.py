"""Collects: a vault is drawn on under its mandate, then all continues as for a receive Payment."""

from __future__ import annotations

import attrs

from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.record import Vault
from payments_core.accounts.vaults.reservations import BalanceReading, retry_on_stale_balance
from payments_core.amounts import parse_positive_amount
from payments_core.brief_repr import brief_repr
from payments_core.chains.port import AddressSpec
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import NotFound, UnsupportedAsset, UnsupportedChain
from payments_core.evolve import evolve
from payments_core.payment_settings.record import lock_settings
from payments_core.payments import lifecycle
from payments_core.payments.creation import Payee, draft_payment
from payments_core.payments.destinations import DestinationRequest, Destinations
from payments_core.payments.details import OptionDetails, PaymentDetails
from payments_core.payments.expiry import expiry_job
from payments_core.payments.mandates.record import Mandate
from payments_core.payments.mandates.usage import charge_mandate
from payments_core.payments.options import lifecycle as options
from payments_core.payments.options.creation import new_vault_option
from payments_core.payments.paying.authorization import reserve_and_authorize
from payments_core.payments.record import Source
from payments_core.payments.sends import lock_active_payer, require_other_than_source
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import (
    Amount,
    AssetSymbol,
    ChainId,
    Id,
    MetadataInput,
    Reference,
    Sentence,
)


@attrs.frozen(kw_only=True)
class NewCollect:
    """The input of a collect: a Payment that is drawn from a vault under a mandate.

    `amount` is decimal text in whole tokens, and at most the rest of the mandate's
    period. Chain and asset are the mandate's; any other is refused. `reference`, `description` and
    `metadata` are stored and returned.

    >>> daily = NewMandate(vault_id=vault.id, amount_per_period="10.00", period="day")
    >>> mandate = shop.mandates.create(eve.id, daily).mandate
    >>> to_bob = ToAccount(external_user_id="bob")
    >>> new = NewCollect(amount="2.00", mandate_id=mandate.id, destination=to_bob)
    >>> shop.payments.collect(new, idempotency_key="collect-1").payment.status
    'processing'
    """

    __repr__ = brief_repr

    amount: Amount
    mandate_id: Id
    destination: DestinationRequest
    chain_id: ChainId | None = None
    asset_symbol: AssetSymbol | None = None
    reference: Reference | None = None
    description: Sentence | None = None
    metadata: MetadataInput | None = None


class Collects:
    """Creates collect Payments."""

    def __init__(self, ports: Ports, destinations: Destinations, vaults: Vaults) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._destinations = destinations
        self._vaults = vaults

    @once_per_key
    def create(
        self, authority: Authority, new: NewCollect, *, idempotency_key: IdempotencyKey = None
    ) -> PaymentDetails:
        """A collect whose transfer from the vault to the escrow is authorized by the mandate.

        Raises ValidationFailed, NotFound, DestinationNotAllowed, AmountOutOfRange,
        UnsupportedChain, UnsupportedAsset, AccountSuspended, InvalidState for an ended
        mandate, PolicyInactive, PolicyDenied, InsufficientBalance, DependencyFailed.
        """
        mandate, vault = self._storage.read(
            authority.partition, lambda snapshot: _load_mandate(snapshot, new.mandate_id)
        )
        asset = mandate.asset
        if new.chain_id not in (None, asset.chain_id):
            reason = f"is not the mandate's chain, which is {asset.chain_id}"
            raise UnsupportedChain(new.chain_id or 0, reason)
        if new.asset_symbol not in (None, asset.symbol):
            reason = f"is not the mandate's asset, which is {asset.symbol}"
            raise UnsupportedAsset(asset.chain_id, new.asset_symbol or "", reason)
        amount = parse_positive_amount(new.amount, asset)
        recipient_id = self._destinations.resolve_recipient_id(authority, new.destination)

        def attempt() -> PaymentDetails:
            # a retry may find the mandate used up: it still gets the answer
            self._committer.replay(authority, idempotency_key)
            reading = self._vaults.read_balance_to_spend(authority.partition, vault, asset, "fund")
            return self._committer.commit(
                authority,
                lambda tx, id_sequence: self._decide(
                    tx, id_sequence, authority, new, mandate, amount, recipient_id, reading
                ),
                idempotent=idempotency_key,
            )

        return retry_on_stale_balance(attempt)

    def _decide(
        self,
        tx: Transaction,
        id_sequence: IdSequence,
        authority: Authority,
        new: NewCollect,
        mandate: Mandate,
        amount: int,
        recipient_id: str | None,
        reading: BalanceReading,
    ) -> Decision[PaymentDetails]:
        now = self._clock.now()
        terms = lock_settings(tx).terms
        payer, asset = lock_active_payer(tx, authority, mandate.account_id), mandate.asset
        recipient = self._destinations.lock_recipient(tx, authority, recipient_id)
        destination = self._destinations.resolve_destination(
            authority, new.destination, recipient, asset
        )
        require_other_than_source(destination, reading.vault)
        counted = charge_mandate(tx, mandate.id, amount, now=now)
        payee = Payee(asset, amount, destination)
        draft = draft_payment(authority, payee, new, id_sequence, now=now)
        draft = evolve(
            draft,
            intent="collect",
            **terms.freeze_for_payment(asset.chain_id, now=now),
            source=Source(
                account_id=payer.id,
                external_user_id=payer.external_user_id,
                vault_id=reading.vault.id,
                address=reading.vault.address,
                mandate_id=mandate.id,
                reserved_at_ms=now,
            ),
            escrow_address=self._destinations.require_chain(asset).derive(
                AddressSpec(authority.partition, "escrow", draft.id)
            ),
        )
        offered, operation = new_vault_option(draft, reading.vault, id_sequence, now)
        consumed = options.consume_action(offered, now=now)
        option = consumed.record
        drawing = evolve(
            draft,
            option_ids=(option.id,),
            selected_option_id=option.id,
            authorized=(operation.id,),
        )
        step = lifecycle.create(drawing, "create_drawn", now=now)
        funded = reserve_and_authorize(
            tx, id_sequence, authority.partition, step.record, operation, reading, None, now=now
        )
        details = OptionDetails(step.record, option, funded.result)
        expiry = Decision(None, jobs=(expiry_job(authority.partition, step.record),))
        return step.as_decision(PaymentDetails(step.record, (details,))).merge(
            consumed.as_decision(), expiry, counted, funded
        )


def _load_mandate(snapshot: Snapshot, mandate_id: str) -> tuple[Mandate, Vault]:
    mandate = snapshot.get(Mandate, mandate_id)
    if mandate is None:
        raise NotFound("mandate")
    vault = snapshot.get(Vault, mandate.vault_id)
    assert vault is not None
    return mandate, vault
