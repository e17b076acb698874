"""The router port: the promises of a service that exchanges assets, also across chains.

We, or a payer, pay the router on the source chain, and it pays the recipient on the destination
chain. Nothing that it reports moves a Payment: its payments are looked up on the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import attrs

from payments_core.clock import Instant
from payments_core.networks import Asset

RouteState = Literal["waiting", "delivered", "returned"]
OfferState = Literal["waiting", "paid", "delivered", "returned"]


class RouterUnavailable(Exception):
    """The router did not answer in time. The request may have been carried out: repeat it."""


class RouteRefused(Exception):
    """The router does not serve this route, now or later. Nothing has happened."""


class RouteKeyReused(Exception):
    """The key belongs to another order. Nothing has happened."""


@attrs.frozen(kw_only=True)
class RouteOrder:
    """An exchange to be made when the funds arrive. Amounts are in the smallest unit.

    `key` is unique to the order. `recipient` is an address on the destination chain, and
    `return_to` one of ours on the source chain. The expected result of `amount_atomic` is
    `expected_atomic`, and at least `minimum_atomic`; if less or more is paid, both change in
    proportion, rounded down.
    """

    key: str
    source: Asset
    destination: Asset
    amount_atomic: int
    expected_atomic: int
    minimum_atomic: int
    recipient: str
    return_to: str


@attrs.frozen(kw_only=True)
class RouteProgress:
    """The router's progress with the funds that it was paid.

    `delivered` and `returned` are final, and have the transaction that did it: on the destination
    chain, or on the source chain. It may not be final on its chain yet.
    """

    state: RouteState
    transaction_hash: str | None = None


class Router(Protocol):
    """An adapter. It may be used from many threads, and by several processes at once."""

    def open(self, order: RouteOrder) -> str:
        """Return the address on the source chain for the payment of this order only.

        The same order always gives the same address, in any form of letters; somebody must hold it,
        or the order is refused (contract §6). Raises RouterUnavailable, RouteRefused, and
        RouteKeyReused if the key came with another order.
        """

    def deliver(self, key: str, payment_hash: str) -> RouteProgress:
        """Begin the exchange of a transaction's payment, or return its progress.

        The caller asks until it is final, and after a crash it asks again: a payment is exchanged
        once. The router delivers at least the order's minimum to its recipient in one transfer, or
        returns all that was paid in one transfer, from the order's address to `return_to`. For a
        transaction that it does not see yet, or that paid nothing to the address, it returns
        `waiting`. Raises RouterUnavailable, and RouteRefused for a key without an order.
        """


@attrs.frozen(kw_only=True)
class OfferOrder:
    """A payer's way to pay a Payment with another asset. Amounts are in the smallest unit.

    `key` is unique to the order. One delivery pays exactly `amount_atomic` of `destination` to
    `recipient`, the Payment's escrow. `refund_address` is the payer's, on the source chain.
    """

    key: str
    source: Asset
    destination: Asset
    amount_atomic: int
    recipient: str
    refund_address: str


@attrs.frozen(kw_only=True)
class RouteOffer:
    """What the payer sends: `amount_atomic` of the source asset to `address` on its chain.

    The address is of this order only. The terms hold for a payment that the source chain has before
    `expires_at_ms`.
    """

    address: str
    amount_atomic: int
    expires_at_ms: Instant


@attrs.frozen(kw_only=True)
class OfferProgress:
    """What became of the funds that were paid to an offer's address.

    `paid` while the router holds any of them, then `delivered` if it has delivered, otherwise
    `returned` if it has returned; `waiting` before the first payment. The rest describes the newest
    transfer in this state: `payment_hash` is the payer's transaction on the source chain,
    `transaction_hash` the delivery on the destination chain or the return on the source chain, and
    `amount_atomic` the amount that was paid, delivered or returned. None of them need be final.
    """

    state: OfferState
    payment_hash: str | None = None
    transaction_hash: str | None = None
    amount_atomic: int | None = None


@runtime_checkable
class OffersRoutes(Router, Protocol):
    """A router that payers pay too. Nothing that is paid to it is ever kept."""

    def list_sources(self, destination: Asset) -> Sequence[Asset]:
        """The assets with which a payer may pay for `destination`, the same for every amount.

        Raises RouterUnavailable.
        """

    def offer(self, order: OfferOrder) -> RouteOffer:
        """Offer a route for an exact amount; nothing is paid yet.

        The same key and order give the same offer while it is valid, and after a crash it is asked
        again. A new offer for the same payer has a new key, and the address of the earlier one
        still delivers or returns what arrives there. Raises RouterUnavailable, RouteRefused, and
        RouteKeyReused if the key came with another order.
        """

    def follow_offer(self, key: str) -> OfferProgress:
        """Do what is due for the payments to an offer's address, and return the progress.

        Repeating it is safe: a payment is delivered or returned once. A payment on time and of at
        least the offer's amount is delivered. A late, short or further payment is delivered if the
        promised terms still hold for it, in proportion; otherwise all of it is returned to
        `refund_address` in one transfer from the offer's address. Raises RouterUnavailable, and
        RouteRefused for a key without an offer.
        """


@runtime_checkable
class HasSignerKey(Protocol):
    """A router that signs with a key of the deployment's signer, which checks of it include."""

    @property
    def key_name(self) -> str:
        """The key's name at the signer, in place of an environment's id."""
