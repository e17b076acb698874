"""The providers of offers, asked in the words of their ports. Nothing here is stored."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar, cast, get_args

from payments_core.addresses import AddressError
from payments_core.chains.hashes import HashError, canonical_hash
from payments_core.clock import Clock, Instant
from payments_core.engine.decision import CommitAuthority
from payments_core.hosted_onramps.port import (
    HostedOnramp,
    OnrampOffer,
    OnrampOrder,
    OnrampProgress,
    OnrampRefused,
    OnrampState,
    OnrampUnavailable,
)
from payments_core.money import MAX_ATOMIC, Atomic
from payments_core.networks import Asset, ChainType, Networks
from payments_core.notices.port import MAX_NAME_LENGTH
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.options.methods import Provider
from payments_core.payments.options.offer import Offer, OfferProgress, OfferTerms
from payments_core.payments.record import Payment
from payments_core.routers.port import (
    OfferOrder,
    OffersRoutes,
    OfferState,
    RouteKeyReused,
    RouteOffer,
    Router,
    RouteRefused,
    RouterUnavailable,
)
from payments_core.routers.port import OfferProgress as RouterProgress
from payments_core.validation.urls import is_page_url

T = TypeVar("T")

_PRICE = re.compile(r"(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)

_ROUTER_STATES = get_args(OfferState)
_ONRAMP_STATES = get_args(OnrampState)

_log = logging.getLogger(__name__)


class OfferUnavailable(Exception):
    """The provider did not answer, or its answer cannot be used: ask again."""


class OfferRefused(Exception):
    """The provider does not make this offer, now or later."""


class OfferMaker(Protocol):
    """One kind of provider."""

    @property
    def dependency(self) -> Provider:
        """The kind, as errors name it."""

    def serves(self, mode: str) -> bool:
        """Whether the mode has such a provider."""

    def list_sources(self, mode: str, destination: Asset) -> Sequence[Asset]:
        """The assets with which a payer may pay. Raises OfferUnavailable."""

    def ask(
        self, authority: CommitAuthority, offer: Offer, payment: Payment
    ) -> tuple[OfferTerms, str | None]:
        """The terms of an offer, and its reference. Raises OfferUnavailable, OfferRefused."""

    def look(self, authority: CommitAuthority, offer: Offer, payment: Payment) -> OfferProgress:
        """What became of an offer. Raises OfferUnavailable, OfferRefused."""


class RouteOffers:
    """Offers of the routers that payers may pay. `is_ours` says whether an address is."""

    dependency: Provider = "router"

    def __init__(
        self,
        routers: Mapping[str, Router],
        networks: Networks,
        clock: Clock,
        is_ours: Callable[[str, str], bool],
    ) -> None:
        self._routers = {
            mode: router for mode, router in routers.items() if isinstance(router, OffersRoutes)
        }
        self._networks = networks
        self._clock = clock
        self._is_ours = is_ours

    def serves(self, mode: str) -> bool:
        """See OfferMaker."""
        return mode in self._routers

    def list_sources(self, mode: str, destination: Asset) -> Sequence[Asset]:
        """See OfferMaker. The Payment's own asset is paid directly."""
        found = _call(lambda: tuple(self._routers[mode].list_sources(destination)))
        if not all(isinstance(asset, Asset) for asset in found):
            _log.error("ALARM: the router's adapter lists what is no asset")
            raise OfferUnavailable("the answer cannot be used")
        return tuple(asset for asset in found if asset.id != destination.id)

    def ask(
        self, authority: CommitAuthority, offer: Offer, payment: Payment
    ) -> tuple[OfferTerms, str | None]:
        """See OfferMaker."""
        assert offer.source is not None
        assert offer.refund_address is not None
        assert payment.escrow_address is not None
        order = OfferOrder(
            key=offer.id,
            source=offer.source,
            destination=payment.asset,
            amount_atomic=offer.required_atomic,
            recipient=payment.escrow_address,
            refund_address=offer.refund_address,
        )
        made = _ask_for(RouteOffer, lambda: self._routers[authority.mode].offer(order))
        _require(_is_name(made.address), offer)
        chain_type = self._networks.find_network(offer.source.chain_id).chain_type
        try:
            address = self._networks.normalize_wallet_address(chain_type, made.address)
        except AddressError as error:
            raise _unusable(offer) from error
        _require(not self._is_ours(authority.partition, address), offer)
        _require(address != offer.refund_address, offer)
        _require(_is_amount(made.amount_atomic) and made.amount_atomic > 0, offer)
        _require(_is_ahead(made.expires_at_ms, self._clock.now()), offer)
        terms = OfferTerms(
            expires_at_ms=min(made.expires_at_ms, payment.expires_at_ms),
            address=address,
            amount_atomic=Atomic(made.amount_atomic),
        )
        return terms, None

    def look(self, authority: CommitAuthority, offer: Offer, payment: Payment) -> OfferProgress:
        """See OfferMaker."""
        found = _ask_for(
            RouterProgress, lambda: self._routers[authority.mode].follow_offer(offer.id)
        )
        _require(found.state in _ROUTER_STATES, offer)
        assert offer.source is not None
        source = self._networks.find_network(offer.source.chain_id).chain_type
        destination = self._networks.find_network(payment.chain_id).chain_type
        ends_at = destination if found.state == "delivered" else source
        return OfferProgress(
            status=found.state,
            payment_hash=_read_hash(source, found.payment_hash, offer),
            transaction_hash=_read_hash(ends_at, found.transaction_hash, offer),
            amount_atomic=_read_amount(found.amount_atomic, offer),
        )


class OnrampOffers:
    """Orders of the hosted on-ramps."""

    dependency: Provider = "onramp"

    def __init__(
        self,
        onramps: Mapping[str, HostedOnramp],
        networks: Networks,
        clock: Clock,
    ) -> None:
        self._onramps = onramps
        self._networks = networks
        self._clock = clock

    def serves(self, mode: str) -> bool:
        """See OfferMaker."""
        return mode in self._onramps

    def list_sources(self, mode: str, destination: Asset) -> Sequence[Asset]:
        """See OfferMaker: a payer pays with no asset."""
        return ()

    def ask(
        self, authority: CommitAuthority, offer: Offer, payment: Payment
    ) -> tuple[OfferTerms, str | None]:
        """See OfferMaker."""
        assert payment.escrow_address is not None
        order = OnrampOrder(
            key=offer.id,
            asset=payment.asset,
            amount_atomic=offer.required_atomic,
            recipient=payment.escrow_address,
            return_url=offer.return_url,
        )
        made = _ask_for(OnrampOffer, lambda: self._onramps[authority.mode].offer(order))
        _require(all(map(_is_name, (made.reference, made.price, made.currency))), offer)
        _require(is_page_url(made.url), offer)
        _require(_PRICE.fullmatch(made.price) is not None, offer)
        _require(_CURRENCY.fullmatch(made.currency) is not None, offer)
        _require(_is_ahead(made.expires_at_ms, self._clock.now()), offer)
        terms = OfferTerms(
            expires_at_ms=min(made.expires_at_ms, payment.expires_at_ms),
            url=made.url,
            price=made.price,
            currency=made.currency,
        )
        return terms, made.reference

    def look(self, authority: CommitAuthority, offer: Offer, payment: Payment) -> OfferProgress:
        """See OfferMaker."""
        reference = str(offer.reference)
        found = _ask_for(OnrampProgress, lambda: self._onramps[authority.mode].look(reference))
        _require(found.state in _ONRAMP_STATES, offer)
        chain_type = self._networks.find_network(payment.chain_id).chain_type
        return OfferProgress(
            status=found.state,
            transaction_hash=_read_hash(chain_type, found.transaction_hash, offer),
            amount_atomic=_read_amount(found.amount_atomic, offer),
        )


OfferMakers = Mapping[PaymentMethod, OfferMaker]
"""The maker of offers of each method that has one."""


def _call(call: Callable[[], T]) -> T:
    """The answer of a provider, whose errors are those of this module.

    Whatever else an adapter raises counts as no answer: a payer may have paid already, so nothing
    may end because of it.
    """
    try:
        return call()
    except (RouterUnavailable, OnrampUnavailable) as error:
        raise OfferUnavailable from error
    except (RouteRefused, RouteKeyReused, OnrampRefused) as error:
        raise OfferRefused from error
    except Exception as error:
        _log.exception("ALARM: a provider's adapter failed")
        raise OfferUnavailable("the adapter failed") from error


def _ask_for(kind: type[T], call: Callable[[], T]) -> T:
    """The same, if the answer is of this class: nobody checks the types of an adapter."""
    answer = _call(call)
    if not isinstance(answer, kind):
        _log.error("ALARM: a provider's adapter returned no %s", kind.__name__)
        raise OfferUnavailable("the answer cannot be used")
    return answer


def _require(is_usable: bool, offer: Offer) -> None:
    if not is_usable:
        raise _unusable(offer)


def _is_name(text: object) -> bool:
    return isinstance(text, str) and text.isprintable() and 0 < len(text) <= MAX_NAME_LENGTH


def _is_ahead(expires_at: object, now: Instant) -> bool:
    """Whether it is an instant after this one."""
    return type(expires_at) is int and now < expires_at < 2**63


def _is_amount(amount: object) -> bool:
    return type(amount) in (int, Atomic) and 0 <= cast(int, amount) <= MAX_ATOMIC


def _unusable(offer: Offer) -> OfferUnavailable:
    _log.error("ALARM: the provider's offer %s cannot be used", offer.id)
    return OfferUnavailable("the offer cannot be used")


def _read_hash(chain_type: ChainType, text: object, offer: Offer) -> str | None:
    """A hash in its canonical form; None, with an alarm, if it cannot be one."""
    if text is None:
        return None
    try:
        return canonical_hash(chain_type, text if isinstance(text, str) else "")
    except HashError:
        _log.error("ALARM: the provider of %s names a transaction that cannot be one", offer.id)
        return None


def _read_amount(amount: int | None, offer: Offer) -> Atomic | None:
    if amount is None:
        return None
    _require(_is_amount(amount), offer)
    return Atomic(amount)
