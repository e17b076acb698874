"""A payer's options without an account: create, read, select, refresh, submit (contract §6).

Nothing here moves a Payment, nor an option's status; `tracking/attribution.py` does that, from
receipts.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.addresses import AddressError
from payments_core.brief_repr import brief_repr
from payments_core.chains.hashes import HashError, canonical_hash
from payments_core.chains.outbox.record import find_own_hashes
from payments_core.chains.port import Chain
from payments_core.clock import Instant
from payments_core.engine.decision import CommitAuthority, Decision
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import (
    CapabilityNotActive,
    InsufficientPermissions,
    NotFound,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.networks import Asset, ChainType, Networks
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.details import (
    OptionDetails,
    load_option,
    load_option_details,
    load_receipts,
    lock_option,
    lock_payment,
    sum_pending_amount,
)
from payments_core.payments.lifecycle import require_payable
from payments_core.payments.offers.operations import Offers, WantedOffer
from payments_core.payments.options import lifecycle, submissions
from payments_core.payments.options.creation import new_public_option, offers_same
from payments_core.payments.options.limits import require_option_capacity
from payments_core.payments.options.methods import METHODS, Method
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.paying.selection import (
    require_no_pending_funds,
    supersede_selected,
)
from payments_core.payments.paying.vault_options import require_same_asset
from payments_core.payments.receipts.discovery import track_transaction
from payments_core.payments.receipts.record import TrackedTransaction, tracked_transaction_id
from payments_core.payments.record import Payment
from payments_core.payments.tracking.attribution import HINT_TTL_MS
from payments_core.storage.damaged_records import lock_readable
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import Address, AssetSymbol, ChainId, TransactionHash


@attrs.frozen
class CheckoutMethod:
    """A payment method of one Payment, whether it is available here, and which assets pay it.

    >>> [one.method for one in visitor.public_payments.list_methods(payment.id) if one.available]
    ['direct', 'routing', 'hosted_onramp']
    """

    __repr__ = brief_repr

    payment: Payment
    method: PaymentMethod
    available: bool
    assets: tuple[Asset, ...] = ()


class PublicOptions:
    """A payer's operations on the options of one Payment."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain], offers: Offers) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._offers = offers

    def list_methods(self, authority: Authority, payment_id: str) -> tuple[CheckoutMethod, ...]:
        """The payment methods that the Payment allows without an account. Raises NotFound."""
        authority.require_payment(payment_id)
        payment = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Payment, payment_id)
        )
        if payment is None:
            raise NotFound("payment")
        return self.describe_methods(authority, payment)

    def describe_methods(
        self, authority: CommitAuthority, payment: Payment
    ) -> tuple[CheckoutMethod, ...]:
        """The payment methods of a Payment that is known already."""
        return tuple(
            self._describe_method(authority, payment, method)
            for method in METHODS.values()
            if method.created_by == "secret_holder" and method.name in payment.allowed_methods
        )

    def _describe_method(
        self, authority: CommitAuthority, payment: Payment, method: Method
    ) -> CheckoutMethod:
        if method.provider is None:
            return CheckoutMethod(payment, method.name, True, (payment.asset,))
        if not self._offers.serves(authority.mode, method.name):
            return CheckoutMethod(payment, method.name, False)
        sources = self._offers.list_sources(authority, payment, method.name)
        return CheckoutMethod(payment, method.name, sources is not None, sources or ())

    @once_per_key
    def create(
        self,
        authority: Authority,
        payment_id: str,
        *,
        method: PaymentMethod,
        chain_id: ChainId | None = None,
        asset_symbol: AssetSymbol | None = None,
        payer_address: Address | None = None,
        refund_address: Address | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> OptionDetails:
        """A new option for the remaining amount, not selected yet.

        If an open option offers exactly that to the same `payer_address`, it is returned, selected
        or not: a page that is loaded again creates no further option.

        `chain_id` and `asset_symbol` are the Payment's, and may be left out; only for `routing`
        they are required, and name what the payer sends. `refund_address` is required there, and
        only allowed there: the payer's own on that chain, which gets what cannot be delivered. A
        provider that refuses leaves an option that has `failed`.

        Raises InsufficientPermissions for a vault, NotFound, UnsupportedChain, UnsupportedAsset,
        ValidationFailed, PaymentExpired, CapabilityNotActive, OptionLocked, InvalidState,
        DestinationNotAllowed, ScreeningRefused, PaymentOptionLimitReached, DependencyFailed.
        """
        authority.require_payment(payment_id)
        if METHODS[method].created_by == "account":
            raise InsufficientPermissions(("a client token",))
        if METHODS[method].provider is not None:
            wanted = WantedOffer(method, chain_id, asset_symbol, payer_address, refund_address)
            return self._offers.create(authority, payment_id, wanted, idempotency_key)
        if refund_address is not None:
            raise ValidationFailed.at("refund_address", f"is not for the method {method}")
        receipts = self._storage.read(
            authority.partition, lambda snapshot: load_receipts(snapshot, payment_id)
        )
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OptionDetails]:
            payment = lock_payment(tx, payment_id)
            pending_amount = sum_pending_amount(payment, receipts)
            asset = require_same_asset(payment, chain_id, asset_symbol)
            payer = _parse_payer_address(self._networks, payer_address, asset.chain_id)
            require_payable(payment, now=now)
            if method not in payment.allowed_methods:
                raise CapabilityNotActive(method)
            require_no_pending_funds(tx, payment, "create option", now=now)
            same = _find_same_offer(tx, authority.partition, payment, method, payer)
            if same is not None:
                own = tuple(receipt for receipt in receipts if receipt.option_id == same.id)
                return Decision(OptionDetails(payment, same, None, own, pending_amount))
            require_option_capacity(tx, payment, None)
            option = new_public_option(payment, method, payer, id_sequence, now)
            ids = (*payment.option_ids, option.id)
            offered = evolve(payment, option_ids=ids, updated_at_ms=now)
            details = OptionDetails(offered, option, pending_atomic=pending_amount)
            return Decision(details, inserts=(option,), replaces=(offered,))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def get(self, authority: Authority, payment_id: str, option_id: str) -> OptionDetails:
        """An option of the payer's Payment. Raises NotFound."""
        authority.require_payment(payment_id)

        def load(snapshot: Snapshot) -> OptionDetails:
            payment = snapshot.get(Payment, payment_id)
            if payment is None:
                raise NotFound("payment")
            option = load_option(snapshot, payment, option_id)
            if not option.is_public:
                raise NotFound("payment option")
            receipts = load_receipts(snapshot, payment_id)
            return load_option_details(snapshot, payment, option, receipts)

        return self._storage.read(authority.partition, load)

    @once_per_key
    def select(
        self,
        authority: Authority,
        payment_id: str,
        option_id: str,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> OptionDetails:
        """Select the option that the payer will use; the earlier selection is superseded.

        Selecting the selected option changes nothing. Raises NotFound, PaymentExpired,
        InvalidState, OptionLocked, OptionSuperseded, OptionExpired.
        """
        known = self.get(authority, payment_id, option_id)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OptionDetails]:
            payment, option = _lock_option(tx, payment_id, option_id)
            require_payable(payment, now=now)
            if payment.selected_option_id == option.id:
                return Decision(evolve(known, payment=payment, option=option))
            require_no_pending_funds(tx, payment, "select option", now=now)
            selected = lifecycle.select(option, now=now)
            before = supersede_selected(tx, payment, now)
            selecting = evolve(payment, selected_option_id=option.id, updated_at_ms=now)
            details = evolve(known, payment=selecting, option=selected.record)
            chosen = Decision(details, replaces=(selecting,))
            return chosen.merge(selected.as_decision(), before)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    @once_per_key
    def refresh(
        self,
        authority: Authority,
        payment_id: str,
        option_id: str,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> OptionDetails:
        """The option for the amount that now remains of the Payment, with a new quote if a
        provider makes it. What is paid by an earlier quote is delivered or returned too.

        Raises NotFound, PaymentExpired, InvalidState, OptionSuperseded, OptionExpired,
        PaymentOptionLimitReached, CapabilityNotActive, DependencyFailed.
        """
        known = self.get(authority, payment_id, option_id)
        if known.option.has_provider:
            return self._offers.refresh(authority, known, idempotency_key)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OptionDetails]:
            payment, option = _lock_option(tx, payment_id, option_id)
            require_payable(payment, now=now)
            refreshed = lifecycle.refresh(option, payment, now=now)
            details = evolve(known, payment=payment, option=refreshed.record)
            return refreshed.as_decision(details)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    @once_per_key
    def submit(
        self,
        authority: Authority,
        payment_id: str,
        option_id: str,
        *,
        chain_id: ChainId,
        transaction_hash: TransactionHash,
        idempotency_key: IdempotencyKey = None,
    ) -> OptionDetails:
        """Have a transaction checked that the payer claims to have sent: it is only a hint.

        Raises NotFound, UnsupportedChain, ValidationFailed, PaymentExpired, InvalidState, and
        ResourceConflict if the option has its maximum number of transactions.
        """
        known = self.get(authority, payment_id, option_id)
        source = known.option.source
        if chain_id not in self._chains if source is None else chain_id != source.chain_id:
            raise UnsupportedChain(chain_id)
        hash = _parse_hash(self._networks.find_network(chain_id).chain_type, transaction_hash)
        is_ours = bool(find_own_hashes(self._storage, [hash]))  # the job that sent it follows it
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OptionDetails]:
            payment, option = _lock_option(tx, payment_id, option_id)
            require_payable(payment, now=now)
            submitted = submissions.submit(option, chain_id, hash, now=now)
            details = evolve(known, payment=payment, option=submitted.record)
            if submitted.record == option:
                return Decision(details)
            looked = submitted.as_decision(details)
            if known.offer is not None:
                return looked.merge(self._offers.look_now(tx, authority, known.offer, now=now))
            return (
                looked if is_ours else looked.merge(_track_hint(tx, payment, chain_id, hash, now))
            )

        return self._committer.commit(authority, decide, idempotent=idempotency_key)


def _lock_option(tx: Transaction, payment_id: str, option_id: str) -> tuple[Payment, PaymentOption]:
    """The Payment and one of its options, known to exist."""
    payment = lock_payment(tx, payment_id)
    if option_id not in payment.option_ids:
        raise NotFound("payment option")
    return payment, lock_option(tx, option_id)


def _find_same_offer(
    tx: Transaction,
    partition: str,
    payment: Payment,
    method: PaymentMethod,
    payer_address: str | None,
) -> PaymentOption | None:
    """The option, locked, that offers the same as a new one would; None if there is none."""
    options = lock_readable(tx, partition, PaymentOption, payment.option_ids)
    known = (options[id] for id in payment.option_ids if id in options)
    return next(
        (option for option in known if offers_same(option, payment, method, payer_address)), None
    )


def _track_hint(
    tx: Transaction, payment: Payment, chain_id: int, hash: str, now: Instant
) -> Decision[None]:
    """Check it at once, unless it was found before: then a job follows it, or it is done."""
    if (
        tx.get(
            TrackedTransaction, tracked_transaction_id(payment.id, chain_id, hash), for_update=True
        )
        is not None
    ):
        return Decision(None)
    until = now + HINT_TTL_MS
    return track_transaction(
        tx, payment.id, chain_id, hash, now=now, due_at=now, hinted_until=until
    )


def _parse_payer_address(networks: Networks, address: str | None, chain_id: int) -> str | None:
    if address is None:
        return None
    try:
        chain_type = networks.find_network(chain_id).chain_type
        return networks.normalize_wallet_address(chain_type, address)
    except AddressError as error:
        raise ValidationFailed.at("payer_address", str(error)) from None


def _parse_hash(chain_type: ChainType, text: str) -> str:
    try:
        return canonical_hash(chain_type, text)
    except HashError as error:
        raise ValidationFailed.at("transaction_hash", str(error)) from None
