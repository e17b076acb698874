"""The router port: the promises of a service that exchanges assets, also across chains.

We pay the router on the source chain, and it pays the recipient on the destination chain. Nothing
that it reports moves a Payment: its payments are looked up on the chain.
"""

from __future__ import annotations

from typing import Literal, Protocol

import attrs

from payments_core.networks import Asset

RouteState = Literal["waiting", "delivered", "returned"]


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
