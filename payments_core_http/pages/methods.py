"""The ways to pay for which the page has a part: `templates/methods/` has a file for each.

A row needs a title here, a template by its name, and the files that its script needs in
`routes.py`. A method is shown if the Payment allows it and the service offers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from payments_core.clock import format_iso
from payments_core.evolve import evolve
from payments_core.money import format_amount
from payments_core.networks import Asset, Networks
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.checkout.checkout import CheckoutPage
from payments_core.payments.details import OptionDetails
from payments_core.payments.offers.lifecycle import MAX_OFFERS
from payments_core_http.pages.languages import Language
from payments_core_http.pages.words import METHOD_TITLES


@attrs.frozen(kw_only=True)
class Source:
    """An asset that a router takes, as a choice of a form."""

    value: str
    label: str


@attrs.frozen(kw_only=True)
class OfferPart:
    """A provider's newest offer; once it is not valid, only a new one can be asked for.

    A router's payer sends `amount` of the token to `to` on the `network`; an on-ramp's payer pays
    `price` at `url`. `option_id` is for the form that asks for a new offer.
    """

    option_id: str
    is_valid: bool
    can_refresh: bool
    expires_at: str
    expires_iso: str
    amount: str | None = None
    symbol: str | None = None
    network: str | None = None
    chain_id: int | None = None
    token_address: str | None = None
    to: str | None = None
    refund_address: str | None = None
    price: str | None = None
    url: str | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class MethodPart:
    """A method by its name, which its template has too, and its title as a tab.

    One with a provider has its newest `offer`, if any, and the `sources` that pay it.
    """

    name: PaymentMethod
    title: str
    offer: OfferPart | None = None
    sources: tuple[Source, ...] = ()


def list_methods(
    page: CheckoutPage, language: Language, networks: Networks
) -> tuple[MethodPart, ...]:
    """The methods of a Payment that is due, in the order of their titles; the first is shown."""
    titles: Mapping[PaymentMethod, str] = METHOD_TITLES
    usable = {method.method: method for method in page.methods}
    return tuple(
        MethodPart(
            name=name,
            title=language.translate(title),
            offer=_describe_offer(page, page.offered.get(name), language, networks),
            sources=_list_sources(usable[name].assets, language, networks),
        )
        for name, title in titles.items()
        if name in usable
    )


def _list_sources(
    assets: Iterable[Asset], language: Language, networks: Networks
) -> tuple[Source, ...]:
    return tuple(
        Source(
            value=asset.id,
            label=language.translate(
                "%(symbol)s on %(network)s",
                symbol=asset.symbol,
                network=networks.name_network(asset.chain_id),
            ),
        )
        for asset in assets
    )


def _describe_offer(
    page: CheckoutPage, details: OptionDetails | None, language: Language, networks: Networks
) -> OfferPart | None:
    if details is None or details.offer is None or details.offer.terms is None:
        return None
    option, offer, terms = details.option, details.offer, details.offer.terms
    part = OfferPart(
        option_id=option.id,
        is_valid=offer.is_valid(page.looked_at),
        can_refresh=option.offer_count < MAX_OFFERS,
        expires_at=language.format_instant(terms.expires_at_ms),
        expires_iso=format_iso(terms.expires_at_ms),
    )
    source = option.source
    if source is None:
        price = language.format_money(str(terms.price), str(terms.currency))
        return evolve(part, price=price, url=terms.url)
    return evolve(
        part,
        amount=format_amount(terms.amount_atomic or 0, source.decimals),
        symbol=source.symbol,
        network=networks.name_network(source.chain_id),
        chain_id=source.chain_id,
        token_address=source.address,
        to=terms.address,
        refund_address=option.refund_address,
    )
