"""Asking providers for offers: a commit that reserves, a call, and a commit that stores.

No transaction is open during the call. A crash between is taken up by the next request for the same
option, or by the offer's job (`jobs.py`): the provider is asked again under the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import attrs

from payments_core.addresses import AddressError
from payments_core.clock import MINUTE, SECOND, Instant
from payments_core.engine.decision import CommitAuthority, Decision
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.bringing_forward import bring_forward
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import (
    CapabilityNotActive,
    DependencyFailed,
    DestinationNotAllowed,
    FieldError,
    InvalidState,
    NotFound,
    UnsupportedAsset,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.networks import Asset
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.details import OptionDetails, lock_option, lock_payment
from payments_core.payments.lifecycle import require_payable
from payments_core.payments.offers import lifecycle
from payments_core.payments.offers.jobs import (
    AnsweredOffer,
    decide_answer,
    follow_job,
    have_followed,
)
from payments_core.payments.offers.providers import OfferMakers, OfferRefused, OfferUnavailable
from payments_core.payments.options import lifecycle as options
from payments_core.payments.options.limits import require_option_capacity
from payments_core.payments.options.offer import Offer, OfferTerms, offer_id
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.paying.selection import require_no_pending_funds
from payments_core.payments.paying.vault_options import require_same_asset
from payments_core.payments.record import Payment
from payments_core.screening.asking import Screener
from payments_core.storage.damaged_records import lock_readable
from payments_core.storage.jobs import Job
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority

SOURCES_KEPT_MS = 5 * MINUTE
"""How long the assets that a provider takes are not asked for again: a page asks often."""

SILENCE_KEPT_MS = 10 * SECOND
"""How long a provider that did not answer is not asked for them."""

FindOwn = Callable[[str, Collection[str]], frozenset[str]]
"""The addresses of an environment that are this service's, among some."""


@attrs.frozen
class WantedOffer:
    """What a payer asks a provider for; `require_offer` reads it."""

    method: PaymentMethod
    chain_id: int | None
    asset_symbol: str | None
    payer_address: str | None
    refund_address: str | None


@attrs.frozen
class _Terms:
    """A wanted offer, validated: what a router is paid with, and where a return goes."""

    method: PaymentMethod
    source: Asset | None
    refund_address: str | None


class Offers:
    """Options whose offers a provider makes."""

    def __init__(
        self,
        ports: Ports,
        makers: OfferMakers,
        calls: RemoteCalls,
        find_own: FindOwn,
        screener: Screener,
    ) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._makers = makers
        self._calls = calls
        self._find_own = find_own
        self._screener = screener
        self._sources: dict[
            tuple[PaymentMethod, str, Asset], tuple[Instant, tuple[Asset, ...] | None]
        ] = {}
        """Until when the sources of a method are kept, by mode and destination."""

    def serves(self, mode: str, method: PaymentMethod) -> bool:
        """Whether the mode has a provider for the method."""
        return method in self._makers and self._makers[method].serves(mode)

    def list_sources(
        self, authority: CommitAuthority, payment: Payment, method: PaymentMethod
    ) -> tuple[Asset, ...] | None:
        """The assets that pay the Payment by this method; None if its provider does not answer."""
        maker, now, key = self._makers[method], self._clock.now(), (authority.mode, payment.asset)
        until, known = self._sources.get((method, *key), (0, None))
        if now < until:
            return known
        try:
            with self._calls.acquire(maker.dependency, authority.partition):
                known, kept_ms = tuple(maker.list_sources(*key)), SOURCES_KEPT_MS
        except (OfferUnavailable, DependencyFailed):
            known, kept_ms = None, SILENCE_KEPT_MS
        self._sources[method, *key] = now + kept_ms, known
        return known

    def create(
        self,
        authority: Authority,
        payment_id: str,
        wanted: WantedOffer,
        idempotency_key: IdempotencyKey,
    ) -> OptionDetails:
        """An option with a provider's offer; see `PublicOptions.create`."""
        self._committer.replay(authority, idempotency_key)
        payment = self._load_payment(authority, payment_id)
        if not self.serves(authority.mode, wanted.method):
            raise CapabilityNotActive(wanted.method)
        terms = self._read_terms(authority, payment, wanted)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OptionDetails]:
            payment = lock_payment(tx, payment_id)
            require_payable(payment, now=now)
            if wanted.method not in payment.allowed_methods:
                raise CapabilityNotActive(wanted.method)
            require_no_pending_funds(tx, payment, "create option", now=now)
            same = _find_same_offer(tx, authority.partition, payment, terms, now)
            if same is not None:
                return Decision(same)
            require_option_capacity(tx, payment, None)
            option, offer = lifecycle.new_offered_option(
                payment, terms.method, terms.source, terms.refund_address, id_sequence, now
            )
            ids = (*payment.option_ids, option.id)
            offered = evolve(payment, option_ids=ids, updated_at_ms=now)
            job = self._job(authority, offer, now + lifecycle.ASK_AGAIN_MS)
            return Decision(
                OptionDetails(offered, option, offer=offer),
                inserts=(option, offer, job),
                replaces=(offered,),
            )

        reserved = self._committer.commit(authority, decide)
        return self._complete(authority, reserved, idempotency_key)

    def refresh(
        self, authority: Authority, known: OptionDetails, idempotency_key: IdempotencyKey
    ) -> OptionDetails:
        """An option with a new offer for what remains; see `PublicOptions.refresh`."""
        self._committer.replay(authority, idempotency_key)
        if not self.serves(authority.mode, known.option.method):
            raise CapabilityNotActive(known.option.method)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OptionDetails]:
            payment = lock_payment(tx, known.payment.id)
            option = lock_option(tx, known.option.id)
            require_payable(payment, now=now)
            options.require_open(option, "refresh")
            if option.status not in ("creating", "pending"):
                raise InvalidState("payment option", option.status, "refresh")
            details = evolve(known, payment=payment, option=option)
            last = tx.get(Offer, offer_id(option.id, option.offer_count), for_update=True)
            wanted = payment.remaining.amount_atomic
            if last is not None and last.status == "asked" and last.required_atomic == wanted:
                return Decision(evolve(details, offer=last))
            asked, offer = lifecycle.ask_again(option, payment, now=now)
            job = self._job(authority, offer, now + lifecycle.ASK_AGAIN_MS)
            return Decision(
                evolve(details, option=asked, offer=offer),
                inserts=(offer, job),
                replaces=(asked,),
            )

        reserved = self._committer.commit(authority, decide)
        return self._complete(authority, reserved, idempotency_key)

    def look_now(
        self, tx: Transaction, authority: Authority, offer: Offer, *, now: Instant
    ) -> Decision[None]:
        """Have the provider asked now what became of an offer: the payer says that it was paid."""
        return bring_forward(tx, self._job(authority, offer, now), now) or Decision(None)

    def _complete(
        self, authority: Authority, reserved: OptionDetails, idempotency_key: IdempotencyKey
    ) -> OptionDetails:
        """The option with its provider's answer, stored with the answer to the request."""
        offer = reserved.offer
        assert offer is not None
        answer = self._ask(authority, offer, reserved.payment) if not offer.is_answered else None

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OptionDetails]:
            if offer.is_answered:
                return Decision(reserved)
            now = self._clock.now()
            answered = decide_answer(tx, offer, answer, now=now)
            found = answered.result
            next_at = lifecycle.next_look_at(found.offer, now)
            followed = have_followed(tx, self._job(authority, found.offer, next_at or now))
            details = _show(reserved, found)
            return Decision(details).merge(answered, followed)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def _ask(
        self, authority: Authority, offer: Offer, payment: Payment
    ) -> tuple[OfferTerms, str | None] | None:
        """The provider's answer; None if it refuses. Raises DependencyFailed."""
        maker = self._makers[offer.method]
        try:
            with self._calls.acquire(maker.dependency, authority.partition):
                return maker.ask(authority, offer, payment)
        except OfferUnavailable as error:
            raise DependencyFailed(maker.dependency) from error
        except OfferRefused:
            return None

    def _load_payment(self, authority: Authority, payment_id: str) -> Payment:
        def load(snapshot: Snapshot) -> Payment | None:
            return snapshot.get(Payment, payment_id)

        payment = self._storage.read(authority.partition, load)
        if payment is None:
            raise NotFound("payment")
        return payment

    def _read_terms(self, authority: Authority, payment: Payment, wanted: WantedOffer) -> _Terms:
        """What is asked for. Raises ValidationFailed, UnsupportedChain, UnsupportedAsset,
        DestinationNotAllowed, ScreeningRefused, DependencyFailed."""
        if wanted.payer_address is not None:
            raise ValidationFailed.at("payer_address", f"is not for the method {wanted.method}")
        if wanted.method != "routing":
            if wanted.refund_address is not None:
                raise ValidationFailed.at(
                    "refund_address", f"is not for the method {wanted.method}"
                )
            require_same_asset(payment, wanted.chain_id, wanted.asset_symbol)
            return _Terms(wanted.method, None, None)
        if wanted.chain_id is None or wanted.asset_symbol is None or wanted.refund_address is None:
            raise _name_missing(wanted)
        source = self._networks.find_asset(wanted.chain_id, wanted.asset_symbol)
        try:
            chain_type = self._networks.find_network(source.chain_id).chain_type
            refund_address = self._networks.normalize_wallet_address(
                chain_type, wanted.refund_address
            )
        except AddressError as error:
            raise ValidationFailed.at("refund_address", str(error)) from None
        if self._find_own(authority.partition, [refund_address]):
            raise DestinationNotAllowed("it is an address of this service")
        sources = self.list_sources(authority, payment, wanted.method)
        if sources is None:
            raise DependencyFailed(self._makers[wanted.method].dependency)
        if source.id not in {asset.id for asset in sources}:
            raise UnsupportedAsset(source.chain_id, source.symbol)
        self._screener.require_linkable(authority.mode, authority.partition, refund_address)
        return _Terms(wanted.method, source, refund_address)

    def _job(self, authority: Authority, offer: Offer, due_at: Instant) -> Job:
        return follow_job(authority.mode, authority.partition, offer, due_at)


def _name_missing(wanted: WantedOffer) -> ValidationFailed:
    """The fields that a router needs and that are not there."""
    names = ("chain_id", "asset_symbol", "refund_address")
    return ValidationFailed(
        tuple(
            FieldError(name, f"is required for the method {wanted.method}")
            for name in names
            if getattr(wanted, name) is None
        )
    )


def _show(reserved: OptionDetails, found: AnsweredOffer) -> OptionDetails:
    return evolve(reserved, payment=found.payment, option=found.option, offer=found.offer)


def _find_same_offer(
    tx: Transaction, partition: str, payment: Payment, terms: _Terms, now: Instant
) -> OptionDetails | None:
    """The option, locked, whose offer is still asked for or valid, for the same; None without."""
    found = lock_readable(tx, partition, PaymentOption, payment.option_ids)
    for id in payment.option_ids:
        option = found.get(id)
        if option is None or not _offers_same(option, payment, terms):
            continue
        offer = tx.get(Offer, str(option.offer_id), for_update=True)
        if offer is not None and (offer.status == "asked" or offer.is_valid(now)):
            return OptionDetails(payment, option, offer=offer)
    return None


def _offers_same(option: PaymentOption, payment: Payment, terms: _Terms) -> bool:
    return (
        (option.method, option.source, option.refund_address)
        == (terms.method, terms.source, terms.refund_address)
        and option.status in ("creating", "pending")
        and option.selection_status != "superseded"
        and option.required_atomic - option.paid_atomic == payment.remaining.amount_atomic
    )
