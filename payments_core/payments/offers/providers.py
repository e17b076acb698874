"""The providers of offers, asked in the words of their ports. Nothing here is stored."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from payments_core.addresses import AddressError
from payments_core.chains.hashes import HashError, canonical_hash
from payments_core.clock import Clock, Instant
from payments_core.engine.decision import CommitAuthority
from payments_core.hosted_onramps.port import (
    HostedOnramp,
    OnrampOrder,
    OnrampRefused,
    OnrampUnavailable,
)
from payments_core.money import Atomic
from payments_core.networks import Asset, ChainType, Networks
from payments_core.notices.port import MAX_NAME_LENGTH
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.options.methods import Provider
from payments_core.payments.options.offer import Offer, OfferProgress, OfferTerms
from payments_core.payments.record import Payment
from payments_core.routers.port import (
    OfferOrder,
    OffersRoutes,
    RouteKeyReused,
    Router,
    RouteRefused,
    RouterUnavailable,
)

T = TypeVar("T")

MAX_URL_LENGTH = 4096
_PRICE = re.compile(r"(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)

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
        found = _call(lambda: self._routers[mode].list_sources(destination))
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
        made = _call(lambda: self._routers[authority.mode].offer(order))
        chain_type = self._networks.find_network(offer.source.chain_id).chain_type
        try:
            address = self._networks.normalize_wallet_address(chain_type, made.address)
        except AddressError as error:
            raise _unusable(offer) from error
        is_ours = self._is_ours(authority.partition, address)
        if is_ours or address == offer.refund_address or made.amount_atomic <= 0:
            raise _unusable(offer)
        _require_ahead(offer, made.expires_at_ms, self._clock.now())
        terms = OfferTerms(
            expires_at_ms=min(made.expires_at_ms, payment.expires_at_ms),
            address=address,
            amount_atomic=Atomic(made.amount_atomic),
        )
        return terms, None

    def look(self, authority: CommitAuthority, offer: Offer, payment: Payment) -> OfferProgress:
        """See OfferMaker."""
        found = _call(lambda: self._routers[authority.mode].follow_offer(offer.id))
        assert offer.source is not None
        source = self._networks.find_network(offer.source.chain_id).chain_type
        destination = self._networks.find_network(payment.chain_id).chain_type
        ends_at = destination if found.state == "delivered" else source
        return OfferProgress(
            status=found.state,
            payment_hash=_read_hash(source, found.payment_hash, offer),
            transaction_hash=_read_hash(ends_at, found.transaction_hash, offer),
            amount_atomic=_read_amount(found.amount_atomic),
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
        made = _call(lambda: self._onramps[authority.mode].offer(order))
        texts: tuple[object, ...] = (made.reference, made.url, made.price, made.currency)
        is_usable = (
            all(isinstance(text, str) and text.isprintable() for text in texts)
            and 0 < len(made.reference) <= MAX_NAME_LENGTH
            and len(made.url) <= MAX_URL_LENGTH
            and made.url.startswith(("https://", "http://"))
            and _PRICE.fullmatch(made.price)
            and _CURRENCY.fullmatch(made.currency)
        )
        if not is_usable:
            raise _unusable(offer)
        _require_ahead(offer, made.expires_at_ms, self._clock.now())
        terms = OfferTerms(
            expires_at_ms=min(made.expires_at_ms, payment.expires_at_ms),
            url=made.url,
            price=made.price,
            currency=made.currency,
        )
        return terms, made.reference

    def look(self, authority: CommitAuthority, offer: Offer, payment: Payment) -> OfferProgress:
        """See OfferMaker."""
        found = _call(lambda: self._onramps[authority.mode].look(str(offer.reference)))
        chain_type = self._networks.find_network(payment.chain_id).chain_type
        return OfferProgress(
            status=found.state,
            transaction_hash=_read_hash(chain_type, found.transaction_hash, offer),
            amount_atomic=_read_amount(found.amount_atomic),
        )


OfferMakers = Mapping[PaymentMethod, OfferMaker]
"""The maker of offers of each method that has one."""


def _call(call: Callable[[], T]) -> T:
    """The answer of a provider, whose errors are those of this module."""
    try:
        return call()
    except (RouterUnavailable, OnrampUnavailable) as error:
        raise OfferUnavailable from error
    except (RouteRefused, RouteKeyReused, OnrampRefused) as error:
        raise OfferRefused from error


def _require_ahead(offer: Offer, expires_at: Instant, now: Instant) -> None:
    if expires_at <= now:
        raise _unusable(offer)


def _unusable(offer: Offer) -> OfferUnavailable:
    _log.error("ALARM: the provider's offer %s cannot be used", offer.id)
    return OfferUnavailable("the offer cannot be used")


def _read_hash(chain_type: ChainType, text: str | None, offer: Offer) -> str | None:
    """A hash in its canonical form; None, with an alarm, if it cannot be one."""
    if text is None:
        return None
    try:
        return canonical_hash(chain_type, text)
    except HashError:
        _log.error("ALARM: the provider of %s names a transaction that cannot be one", offer.id)
        return None


def _read_amount(amount: int | None) -> Atomic | None:
    return None if amount is None else Atomic(amount)
