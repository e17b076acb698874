"""The offers of the simulated router to payers, who pay it on one of the sandbox's chains.

It offers every other token of these chains, one for one, for a fee. The first payment on time is
delivered in proportion; a late or further payment is returned. Nothing happens between calls: each
`follow` looks for payments in final blocks, and makes the transfers that are due.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from payments_core.addresses import encode_checksum_address
from payments_core.chains.port import Heads, ScannedTransfer, TransactionView
from payments_core.clock import MINUTE, SECOND
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.networks import Asset, Networks
from payments_core.routers.port import (
    OfferOrder,
    OfferProgress,
    RouteKeyReused,
    RouteOffer,
    RouteRefused,
)
from payments_core.routers.simulated.records import SimulatedOffer, SimulatedOfferPayment
from payments_core.storage.port import SIMULATED, Transaction

OFFER_TTL_MS = 5 * MINUTE
FEE_BPS = 30
"""What a payer pays beyond the amount, for the route."""

TAKES_MS = 5 * SECOND
"""How long a delivery takes after its payment is final."""

SEEN_EVERY = 1_000
"""After this many blocks without a payment it is stored that they were looked through."""

_AUTHORITY = WorkerAuthority(SIMULATED, "sandbox")


class OfferedChain(Protocol):
    """The part of a sandbox's chain that the router's offers need (`sandbox/chains.py`)."""

    @property
    def max_scan_blocks(self) -> int:
        """The maximum number of blocks of one scan."""

    def peek_heads(self) -> Heads:
        """The newest and the newest final block."""

    def peek_transaction(self, hash: str) -> TransactionView | None:
        """The transaction, or None if it is not in the chain."""

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        """The transfers of some blocks."""

    def transfer(
        self,
        token_address: str,
        source: str | None,
        recipient: str,
        amount_atomic: int,
        name: str,
    ) -> str:
        """A transfer, once for each `name`; without a `source`, of new tokens. Returns the hash."""


class SimulatedOffers:
    """The offers of one router for a whole sandbox. `returns_next` is asked for each payment."""

    def __init__(
        self,
        ports: Ports,
        chains: Mapping[int, OfferedChain],
        returns_next: Callable[[], bool],
    ) -> None:
        self._storage = ports.storage
        self._networks: Networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._returns_next = returns_next

    def list_sources(self, destination: Asset) -> tuple[Asset, ...]:
        """Every token of the sandbox's chains except the destination."""
        return tuple(
            token
            for number in self._chains
            if number in self._networks
            for token in self._networks[number].tokens
            if token.id != destination.id
        )

    def offer(self, order: OfferOrder) -> RouteOffer:
        """See OffersRoutes."""
        if order.source.chain_id not in self._chains:
            raise RouteRefused("the sandbox does not serve the source's chain")
        height = self._chains[order.source.chain_id].peek_heads().final.number
        wanted = self._book(order, height)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[SimulatedOffer]:
            known = tx.get(SimulatedOffer, order.key, for_update=True)
            if known is None:
                return Decision(wanted, inserts=(wanted,))
            if _terms(known) != _terms(wanted):
                raise RouteKeyReused("this key was used with another order")
            return Decision(known)

        made = self._committer.commit(_AUTHORITY, decide)
        return RouteOffer(
            address=made.address,
            amount_atomic=made.price_atomic,
            expires_at_ms=made.expires_at_ms,
        )

    def follow(self, key: str) -> OfferProgress:
        """See OffersRoutes."""
        offer = self._storage.read(SIMULATED, lambda snapshot: snapshot.get(SimulatedOffer, key))
        if offer is None:
            raise RouteRefused("no offer has this key")
        seen = self._look(offer)
        for payment in seen.payments:
            if self._clock.now() < payment.due_at_ms:
                return OfferProgress(
                    state="paid", payment_hash=payment.hash, amount_atomic=payment.amount_atomic
                )
        settled = [self._settle(seen, payment) for payment in seen.payments]
        delivered = [progress for progress in settled if progress.state == "delivered"]
        return (delivered or settled or [OfferProgress(state="waiting")])[-1]

    def _settle(self, offer: SimulatedOffer, payment: SimulatedOfferPayment) -> OfferProgress:
        """Make the one transfer that settles a payment; the chain makes it once."""
        paid, name = payment.amount_atomic, f"offer/{offer.id}/{payment.hash}"
        if payment.returns:
            asset = self._find_asset(offer.source)
            hash = self._chains[asset.chain_id].transfer(
                asset.address, offer.address, offer.refund_address, paid, name
            )
            return OfferProgress(
                state="returned",
                payment_hash=payment.hash,
                transaction_hash=hash,
                amount_atomic=paid,
            )
        asset = self._find_asset(offer.destination)
        amount = offer.amount_atomic * paid // offer.price_atomic
        hash = self._chains[asset.chain_id].transfer(
            asset.address, None, offer.recipient, amount, name
        )
        return OfferProgress(
            state="delivered",
            payment_hash=payment.hash,
            transaction_hash=hash,
            amount_atomic=amount,
        )

    def _look(self, offer: SimulatedOffer) -> SimulatedOffer:
        """The offer with the payments of final blocks that were not looked through before."""
        asset = self._find_asset(offer.source)
        chain = self._chains[asset.chain_id]
        final = chain.peek_heads().final.number
        found: dict[str, None] = {}
        for first, last in _ranges(offer.seen_height + 1, final, chain.max_scan_blocks):
            transfers = chain.scan([asset.address], [offer.address], first, last)
            found.update(dict.fromkeys(transfer.transaction_hash for transfer in transfers))
        if not found and final - offer.seen_height < SEEN_EVERY:
            return offer
        made = tuple(
            self._receive(offer, hash, is_first=not place and not offer.payments)
            for place, hash in enumerate(found)
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[SimulatedOffer]:
            current = tx.get(SimulatedOffer, offer.id, for_update=True)
            assert current is not None
            if current.version != offer.version:  # another process has looked meanwhile
                return Decision(current)
            seen = evolve(current, seen_height=final, payments=(*current.payments, *made))
            return Decision(seen, replaces=(seen,))

        return self._committer.commit(_AUTHORITY, decide)

    def _receive(
        self, offer: SimulatedOffer, hash: str, *, is_first: bool
    ) -> SimulatedOfferPayment:
        """A payment in a final block: on time and the first, or to be returned."""
        asset = self._find_asset(offer.source)
        view = self._chains[asset.chain_id].peek_transaction(hash)
        assert view is not None, "its block is final"
        assert view.block is not None, "its block is final"
        paid = sum(
            log.amount_atomic
            for log in view.logs
            if (log.token_address, log.recipient) == (asset.address, offer.address)
        )
        is_late = view.block.time is not None and view.block.time > offer.expires_at_ms
        return SimulatedOfferPayment(
            hash=hash,
            amount_atomic=Atomic(paid),
            due_at_ms=self._clock.now() + TAKES_MS,
            returns=is_late or not is_first or self._returns_next(),
        )

    def _book(self, order: OfferOrder, height: int) -> SimulatedOffer:
        digest = hashlib.sha256(f"simulated router/offer/{order.key}".encode()).digest()
        return SimulatedOffer(
            id=order.key,
            source=order.source.id,
            destination=order.destination.id,
            amount_atomic=Atomic(order.amount_atomic),
            price_atomic=Atomic(_price(order)),
            recipient=order.recipient,
            refund_address=order.refund_address,
            address=encode_checksum_address(digest[:20]),
            expires_at_ms=self._clock.now() + OFFER_TTL_MS,
            seen_height=height,
        )

    def _find_asset(self, id: str) -> Asset:
        chain_id, _, symbol = id.partition("/")
        return self._networks.find_asset(int(chain_id), symbol)


def _terms(offer: SimulatedOffer) -> tuple[object, ...]:
    return (
        offer.source, offer.destination, offer.amount_atomic, offer.recipient, offer.refund_address,
    )  # fmt: skip


def _price(order: OfferOrder) -> int:
    """What the payer sends: the amount and the fee in the source's units, rounded up."""
    source_unit: int = 10**order.source.decimals
    destination_unit: int = 10**order.destination.decimals
    wanted = order.amount_atomic * (10_000 + FEE_BPS) * source_unit
    return -(-wanted // (10_000 * destination_unit))


def _ranges(first: int, last: int, most: int) -> Iterator[tuple[int, int]]:
    for begin in range(first, last + 1, most):
        yield begin, min(begin + most - 1, last)
