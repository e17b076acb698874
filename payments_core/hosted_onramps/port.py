"""The port of hosted on-ramps: the promises of a provider that sells an asset on its own pages.

A payer pays the provider by card or bank, and the provider pays the Payment's escrow (contract
§14). Nothing that it reports moves a Payment: its transfer is looked up on the chain. Bank accounts
whose incoming transfers are credited are another port (`payments_core.banks.incoming`). A provider
that reports by webhook also reads its own notices (`payments_core.notices.port`), whose reference
is `OnrampOffer.reference`.
"""

from __future__ import annotations

from typing import Literal, Protocol

import attrs

from payments_core.clock import Instant
from payments_core.networks import Asset

OnrampState = Literal["waiting", "paid", "delivered", "failed", "returned"]


class OnrampUnavailable(Exception):
    """The provider did not answer in time. The request may have been carried out: repeat it."""


class OnrampRefused(Exception):
    """The provider does not serve this order, now or later. Nothing has happened."""


@attrs.frozen(kw_only=True)
class OnrampOrder:
    """A purchase for a Payment. `amount_atomic` is in the asset's smallest unit.

    `key` is unique to the order. `recipient` is the Payment's escrow. The payer comes back to
    `return_url`. `country` (ISO 3166-1 alpha-2) and `currency` (ISO 4217) are the payer's wishes;
    without them the provider chooses.
    """

    key: str
    asset: Asset
    amount_atomic: int
    recipient: str
    return_url: str | None = attrs.field(default=None, repr=False)
    country: str | None = None
    currency: str | None = None


@attrs.frozen(kw_only=True)
class OnrampOffer:
    """An order of the provider: its own reference, and the URL to which the payer is sent.

    `price` is the decimal amount that the payer pays in all, in `currency` (ISO 4217). The price
    holds until `expires_at_ms`. Whoever has the URL may pay, and see what the provider shows.
    """

    reference: str
    url: str = attrs.field(repr=False)
    price: str
    currency: str
    expires_at_ms: Instant


@attrs.frozen(kw_only=True)
class OnrampProgress:
    """What became of an order.

    `waiting` until the payer has paid, then `paid`, and at last `delivered`, `returned` (the payer
    has the money back), or `failed` (the payer did not pay, or the provider refused the payer).
    `failed` and `returned` are final. `delivered` has the transaction on the Payment's chain, the
    amount in it and its sender, as far as the provider knows them; it need not be final there.
    """

    state: OnrampState
    transaction_hash: str | None = None
    amount_atomic: int | None = None
    sender: str | None = None


class HostedOnramp(Protocol):
    """An adapter. It may be used from many threads, and by several processes at once."""

    @property
    def name(self) -> str:
        """The provider's name, as payers know it; of a provider with notices also in their path."""

    def offer(self, order: OnrampOrder) -> OnrampOffer:
        """Open an order, which asks nobody to pay yet.

        The same key and order give the same offer while it is valid, and after a crash it is asked
        again, so a key must never open two. Raises OnrampUnavailable, and OnrampRefused, also for a
        key that came with another order.
        """

    def look(self, reference: str) -> OnrampProgress:
        """What became of the order that `offer` returned with this reference.

        An order that the provider does not know, as after a loss of its data, has not failed for
        that. Raises OnrampUnavailable then, and if it does not answer.
        """
