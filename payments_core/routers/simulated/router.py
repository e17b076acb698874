"""The simulated router: takes any order, and pays it on the sandbox's own chains.

It keeps the payments, and pays with new tokens. It uses half of the slippage that an order
allows. Its books are rows of the same storage, so that a restart or a second process sees the
same router. Each of its transfers has a name, under which the chain makes it once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TypeVar

from payments_core.addresses import encode_checksum_address
from payments_core.chains.port import ChainUnavailable
from payments_core.clock import SECOND
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import Unavailable
from payments_core.money import Atomic
from payments_core.networks import Asset
from payments_core.routers.port import (
    OfferOrder,
    OfferProgress,
    RouteKeyReused,
    RouteOffer,
    RouteOrder,
    RouteProgress,
    RouteRefused,
    RouterUnavailable,
)
from payments_core.routers.simulated.offers import OfferedChain, SimulatedOffers
from payments_core.routers.simulated.records import SimulatedExchange, SimulatedRoute
from payments_core.storage.port import SIMULATED, StorageError, Transaction

T = TypeVar("T")

TAKES_MS = 5 * SECOND
"""How long the router takes after it sees a payment."""

WAITING = RouteProgress(state="waiting")
_AUTHORITY = WorkerAuthority(SIMULATED, "sandbox")
_INJECTED_FAILURE = "the sandbox makes this call fail"


class SimulatedRouter:
    """One router for a whole sandbox. `fails` is asked with a call's name at each call.

    The calls are `open`, `deliver`, `lost_answer`, after which a delivery has happened without an
    answer, and `return`: the router returns the next payment. Offers have `offer`, `follow_offer`,
    and `refuse_offer`: the router makes no offer.
    """

    def __init__(
        self,
        ports: Ports,
        chains: Mapping[int, OfferedChain],
        fails: Callable[[str], bool] = lambda call: False,
    ) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._fails = fails
        self._offers = SimulatedOffers(ports, chains, lambda: fails("return"))

    def open(self, order: RouteOrder) -> str:
        """See Router."""
        self._require_answer("open")
        if order.source.chain_id not in self._chains or order.destination.chain_id not in (
            self._chains
        ):
            raise RouteRefused("the sandbox does not serve both chains")
        wanted = _book(order)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[str]:
            known = tx.get(SimulatedRoute, order.key, for_update=True)
            if known is None:
                return Decision(wanted.address, inserts=(wanted,))
            if _terms(known) != _terms(wanted):
                raise RouteKeyReused("this key was used with another order")
            return Decision(known.address)

        return self._call(lambda: self._committer.commit(_AUTHORITY, decide))

    def deliver(self, key: str, payment_hash: str) -> RouteProgress:
        """See Router."""
        self._require_answer("deliver")
        progress = self._call(lambda: self._deliver(key, payment_hash))
        if progress.state != "waiting":
            self._require_answer("lost_answer")
        return progress

    def list_sources(self, destination: Asset) -> tuple[Asset, ...]:
        """See OffersRoutes."""
        return self._offers.list_sources(destination)

    def offer(self, order: OfferOrder) -> RouteOffer:
        """See OffersRoutes."""
        self._require_answer("offer")
        if self._fails("refuse_offer"):
            raise RouteRefused(_INJECTED_FAILURE)
        return self._call(lambda: self._offers.offer(order))

    def follow_offer(self, key: str) -> OfferProgress:
        """See OffersRoutes."""
        self._require_answer("follow_offer")
        return self._call(lambda: self._offers.follow(key))

    def _deliver(self, key: str, payment_hash: str) -> RouteProgress:
        id = f"{key}:{payment_hash}"
        route, exchange = self._storage.read(
            SIMULATED,
            lambda snapshot: (
                snapshot.get(SimulatedRoute, key),
                snapshot.get(SimulatedExchange, id),
            ),
        )
        if route is None:
            raise RouteRefused("no order has this key")
        if exchange is None:
            exchange = self._begin(id, route, payment_hash)
        if exchange is None or self._clock.now() < exchange.due_at_ms:
            return WAITING
        name = f"route/{id}"
        if exchange.returns:
            asset = self._find_asset(route.source)
            hash = self._chains[asset.chain_id].transfer(
                asset.address, route.address, route.return_to, exchange.amount_atomic, name
            )
            return RouteProgress(state="returned", transaction_hash=hash)
        asset = self._find_asset(route.destination)
        hash = self._chains[asset.chain_id].transfer(
            asset.address,
            None,
            route.recipient,
            _delivered_amount(route, exchange.amount_atomic),
            name,
        )
        return RouteProgress(state="delivered", transaction_hash=hash)

    def _begin(self, id: str, route: SimulatedRoute, payment_hash: str) -> SimulatedExchange | None:
        """The exchange of a transaction's payment; None while it has paid nothing."""
        asset = self._find_asset(route.source)
        view = self._chains[asset.chain_id].peek_transaction(payment_hash)
        if view is None or view.block is None:
            return None
        paid = sum(
            log.amount_atomic
            for log in view.logs
            if (log.token_address, log.recipient) == (asset.address, route.address)
        )
        if not paid:
            return None
        made = SimulatedExchange(
            id=id,
            amount_atomic=Atomic(paid),
            due_at_ms=self._clock.now() + TAKES_MS,
            returns=self._fails("return"),
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[SimulatedExchange]:
            known = tx.get(SimulatedExchange, id, for_update=True)
            return Decision(known) if known is not None else Decision(made, inserts=(made,))

        return self._committer.commit(_AUTHORITY, decide)

    def _require_answer(self, call: str) -> None:
        if self._fails(call):
            raise RouterUnavailable(_INJECTED_FAILURE)

    def _call(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except (StorageError, Unavailable, ChainUnavailable) as error:
            raise RouterUnavailable("the simulated router's books cannot be read") from error

    def _find_asset(self, id: str) -> Asset:
        chain_id, _, symbol = id.partition("/")
        return self._networks.find_asset(int(chain_id), symbol)


def _book(order: RouteOrder) -> SimulatedRoute:
    digest = hashlib.sha256(f"simulated router/{order.key}".encode()).digest()
    return SimulatedRoute(
        id=order.key,
        source=order.source.id,
        destination=order.destination.id,
        amount_atomic=Atomic(order.amount_atomic),
        expected_atomic=Atomic(order.expected_atomic),
        minimum_atomic=Atomic(order.minimum_atomic),
        recipient=order.recipient,
        return_to=order.return_to,
        address=encode_checksum_address(digest[:20]),
    )


def _terms(route: SimulatedRoute) -> tuple[object, ...]:
    return (
        route.source, route.destination, route.amount_atomic, route.expected_atomic,
        route.minimum_atomic, route.recipient, route.return_to,
    )  # fmt: skip


def _delivered_amount(route: SimulatedRoute, paid: int) -> int:
    """The recipient's amount for a payment: midway between the expected and the minimum."""
    expected = route.expected_atomic * paid // route.amount_atomic
    minimum = route.minimum_atomic * paid // route.amount_atomic
    return expected - (expected - minimum) // 2
