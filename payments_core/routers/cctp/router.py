"""The CCTP router: sends over its forwarders, and offers to payers.

Only USDC for USDC, one atom for one; a fast transfer takes Circle's fee from what is burned. Each
order has a forwarder of its own (`forwarders.py`), which can burn to the order's recipient or give
back, and nothing else. The router holds no funds, and its key can take none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import attrs

from payments_core.addresses import AddressError, normalize_address
from payments_core.chains.hashes import HashError, canonical_hash
from payments_core.chains.port import CallsContracts, Chain, ChainUnavailable, SignerRefused
from payments_core.clock import DAY, MINUTE, SECOND, Clock, SystemClock
from payments_core.networks import Asset, Networks, shipped_networks
from payments_core.routers.cctp.attestations import (
    AttestationService,
    AttestationsUnavailable,
)
from payments_core.routers.cctp.books import Books
from payments_core.routers.cctp.deployments import DEPLOYMENTS, CctpDeployment
from payments_core.routers.cctp.forwarders import OFFER_PAYMENT, RouteTerms, gross_up
from payments_core.routers.cctp.line import KEY_NAME, CallLine
from payments_core.routers.cctp.offers import OfferFollower
from payments_core.routers.cctp.records import CctpRoute, CctpTransfer
from payments_core.routers.cctp.transfers import REORG_BLOCKS, Side, TransferDriver
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
from payments_core.storage.port import Storage, StorageError

T = TypeVar("T")

SYMBOL = "USDC"
STANDARD_FINALITY = 2_000
FAST_FINALITY = 1_000
"""`minFinalityThreshold`: attested when the source block is final, or when it is confirmed."""

MAX_AMOUNT_ATOMIC = 10_000_000 * 10**6
"""Circle burns at most 10,000,000 USDC in one transaction ("Contract interfaces")."""

SENDS_RETURNABLE_AFTER_MS = 30 * DAY
"""From when anybody may have a send's payment given back: were the router's key lost, it would
otherwise stay. It is long, as a release may pay the address days after its quote."""

_WAITING = RouteProgress(state="waiting")


@attrs.frozen(kw_only=True)
class CctpSettings:
    """What an operator decides.

    A fast transfer needs `max_fee_ppm`, the highest fee in millionths of what is burned. An offer
    is for `offer_ms`; it is delivered for `grace_ms` more, and after that what arrives is given
    back.
    The router spends no gas to give back less than `smallest_return_atomic`; anybody may.
    """

    min_finality: int = STANDARD_FINALITY
    max_fee_ppm: int = 0
    offer_ms: int = 30 * MINUTE
    grace_ms: int = 60 * MINUTE
    smallest_return_atomic: int = 100_000


class CctpRouter:
    """See OffersRoutes. Threads may share it, and several processes may have one each."""

    def __init__(
        self,
        service: AttestationService,
        chains: Mapping[int, Chain],
        storage: Storage,
        *,
        networks: Networks | None = None,
        settings: CctpSettings | None = None,
        deployments: Mapping[int, CctpDeployment] = DEPLOYMENTS,
        clock: Clock | None = None,
    ) -> None:
        """Raises ValueError if no two of the chains can be routed between."""
        self._networks = networks or shipped_networks()
        self._settings = settings or CctpSettings()
        self._clock = clock or SystemClock()
        self._books = Books(storage)
        self._sides = {
            number: Side(deployments[number], CallLine(chain, self._books, self._clock))
            for number, chain in chains.items()
            if number in deployments and isinstance(chain, CallsContracts)
        }
        if not any(self._list_reached(number) for number in self._sides):
            raise ValueError("CCTP needs two served chains with nodes, between which it routes")
        self._driver = TransferDriver(self._sides, service, self._books, self._clock)
        self._follower = OfferFollower(
            self._sides,
            self._driver,
            self._books,
            self._clock,
            self._settings.smallest_return_atomic,
        )

    @property
    def key_name(self) -> str:
        """See HasSignerKey."""
        return KEY_NAME

    # Sends.

    def open(self, order: RouteOrder) -> str:
        """See Router."""
        return _answering(lambda: self._open(order)).address

    def deliver(self, key: str, payment_hash: str) -> RouteProgress:
        """See Router."""
        return _answering(lambda: self._deliver(key, payment_hash))

    def _open(self, order: RouteOrder) -> CctpRoute:
        self._require_route(order.source, order.destination, order.amount_atomic)
        fee = -(-order.amount_atomic * self._settings.max_fee_ppm // 10**6)
        known = self._books.find(CctpRoute, order.key)
        words = _write(order)
        if known is None and order.amount_atomic - fee < order.minimum_atomic:
            raise RouteRefused("less than the order's minimum would be delivered")
        now = self._clock.now()
        expires = now + SENDS_RETURNABLE_AFTER_MS
        return self._book(
            known, order.key, words, order.source, order.destination,
            recipient=order.recipient, refund_to=order.return_to, amount=0,
            expires_at_ms=expires, returnable_from_ms=expires,
        )  # fmt: skip

    def _deliver(self, key: str, payment_hash: str) -> RouteProgress:
        route = self._books.find(CctpRoute, key)
        if route is None or route.is_offer:
            raise RouteRefused("no order has this key")
        try:
            payment = canonical_hash("evm", payment_hash)
        except HashError as error:
            raise RouteRefused(f"the payment's hash {error}") from error
        id = f"{key}:{payment}"
        transfer = self._books.find(CctpTransfer, id) or self._begin(id, route, payment)
        if transfer is None:
            return _WAITING
        after = self._driver.drive(route, transfer)
        if after.state in ("minted", "delivered"):
            return RouteProgress(state="delivered", transaction_hash=after.mint_hash)
        if after.state in ("returning", "returned"):
            return RouteProgress(state="returned", transaction_hash=after.return_hash)
        return _WAITING

    def _begin(self, id: str, route: CctpRoute, payment: str) -> CctpTransfer | None:
        """The transfer of a transaction's payment; None while it has paid nothing."""
        source = self._sides[route.source_chain_id].line.chain
        view = source.transaction(payment)
        if view is None or view.block is None or not view.succeeded:
            return None
        paid = sum(
            log.amount_atomic
            for log in view.logs
            if (log.token_address, log.recipient) == (route.terms.token_address, route.address)
        )
        if not paid:
            return None
        return self._follower.begin(route, id, payment, paid, view.block.number)

    # Offers.

    def list_sources(self, destination: Asset) -> Sequence[Asset]:
        """See OffersRoutes."""
        if destination != self._find_usdc(destination.chain_id):
            return ()
        found = map(self._find_usdc, self._list_reached(destination.chain_id))
        return tuple(asset for asset in found if asset is not None)

    def offer(self, order: OfferOrder) -> RouteOffer:
        """See OffersRoutes."""
        route = _answering(lambda: self._offer(order))
        return RouteOffer(
            address=route.address,
            amount_atomic=route.terms.amount,
            expires_at_ms=route.expires_at_ms,
        )

    def follow_offer(self, key: str) -> OfferProgress:
        """See OffersRoutes."""
        return _answering(lambda: self._follow(key))

    def _offer(self, order: OfferOrder) -> CctpRoute:
        self._require_route(order.source, order.destination, order.amount_atomic)
        amount = gross_up(order.amount_atomic, self._settings.max_fee_ppm)
        expires = self._clock.now() + self._settings.offer_ms
        return self._book(
            self._books.find(CctpRoute, order.key), order.key, _write(order),
            order.source, order.destination,
            recipient=order.recipient, refund_to=order.refund_address, amount=amount,
            expires_at_ms=expires, returnable_from_ms=expires + self._settings.grace_ms,
        )  # fmt: skip

    def _follow(self, key: str) -> OfferProgress:
        route = self._books.find(CctpRoute, key)
        if route is None or not route.is_offer:
            raise RouteRefused("no offer has this key")
        transfer = self._books.find(CctpTransfer, f"{key}:{OFFER_PAYMENT}")
        return self._follower.follow(route, transfer)

    # Shared by both.

    def _book(
        self,
        known: CctpRoute | None,
        key: str,
        words: str,
        source: Asset,
        destination: Asset,
        *,
        recipient: str,
        refund_to: str,
        amount: int,
        expires_at_ms: int,
        returnable_from_ms: int,
    ) -> CctpRoute:
        """The route of a key: the stored one, or a new one with the present settings and key."""
        if known is None:
            line = self._sides[source.chain_id].line
            terms = RouteTerms(
                key=key,
                operator=line.caller.find_address(),
                token_address=source.address,
                messenger=self._sides[source.chain_id].cctp.messenger,
                destination_domain=self._sides[destination.chain_id].cctp.domain,
                recipient=self._require_address(recipient),
                refund_to=self._require_address(refund_to),
                amount=amount,
                max_fee_ppm=self._settings.max_fee_ppm,
                min_finality=self._settings.min_finality,
                returnable_from_s=-(-returnable_from_ms // SECOND),
            )
            newest = line.chain.heads().latest.number if amount else 0
            known = self._books.add(
                CctpRoute(
                    id=key,
                    order=words,
                    terms=terms,
                    source_chain_id=source.chain_id,
                    destination_chain_id=destination.chain_id,
                    destination_token=destination.address,
                    address=terms.address,
                    created_at_ms=self._clock.now(),
                    expires_at_ms=expires_at_ms,
                    searched_from=max(newest - REORG_BLOCKS, 0),
                )
            )
        if known.order != words:
            raise RouteKeyReused("this key was used with another order")
        return known

    def _require_route(self, source: Asset, destination: Asset, amount_atomic: int) -> None:
        if source not in self.list_sources(destination):
            raise RouteRefused(f"CCTP does not route {source.id} to {destination.id}")
        if not 0 < amount_atomic <= MAX_AMOUNT_ATOMIC:
            raise RouteRefused("the amount is out of CCTP's range")

    def _require_address(self, text: str) -> str:
        try:
            return self._networks.normalize_wallet_address("evm", text)
        except AddressError as error:
            raise RouteRefused(f"an address {error}") from error

    def _list_reached(self, chain_id: int) -> Sequence[int]:
        """The served chains between which and this one CCTP routes."""
        side = self._sides.get(chain_id)
        if side is None:
            return ()
        return [number for number, one in self._sides.items() if one.cctp.reaches(side.cctp)]

    def _find_usdc(self, chain_id: int) -> Asset | None:
        if chain_id not in self._networks:
            return None
        listed = self._networks.list_tokens(chain_id)
        return next((token for token in listed if token.symbol == SYMBOL), None)


def _write(order: RouteOrder | OfferOrder) -> str:
    """An order's terms in one form, which a key must repeat: addresses in any letters are one."""
    told: tuple[object, ...] = (
        order.source.id, order.source.address, order.destination.id, order.destination.address,
        order.amount_atomic, _write_address(order.recipient),
    )  # fmt: skip
    if isinstance(order, RouteOrder):
        told += (order.expected_atomic, order.minimum_atomic, _write_address(order.return_to))
    else:
        told += ("offer", _write_address(order.refund_address))
    return ";".join(map(str, told))


def _write_address(text: str) -> str:
    try:
        return normalize_address("evm", text)
    except AddressError:
        return text  # it is refused before anything is stored


def _answering(work: Callable[[], T]) -> T:
    """What the work returns; what makes it impossible now becomes RouterUnavailable."""
    try:
        return work()
    except (ChainUnavailable, AttestationsUnavailable, SignerRefused, StorageError) as error:
        raise RouterUnavailable(f"the CCTP router cannot work now: {error}") from error
