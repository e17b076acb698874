"""Routers that each break one promise to payers, made out of a sound one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import attrs

from payments_core.networks import Asset, shipped_networks
from payments_core.routers.port import (
    OfferOrder,
    OfferProgress,
    RouteKeyReused,
    RouteOffer,
    RouteRefused,
    RouterUnavailable,
)
from tests.broken_adapters import broken_routers

PAYER = broken_routers.PAYER
MINUTE_MS = 60_000


@attrs.define
class Paid:
    """A payment to an offer's address, and how it ended."""

    hash: str
    amount: int
    is_late: bool
    end: OfferProgress | None = None


class Books(broken_routers.Books):
    """What the router and the chains keep for all who open it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_790_000_000_000
        self.offers: dict[str, tuple[OfferOrder, RouteOffer]] = {}
        self.payments: dict[str, list[Paid]] = {}

    def pay(self, token: str, address: str, amount: int) -> str:
        hash = self.transfer(token, PAYER, address, amount)
        for key, (_, offer) in self.offers.items():
            if offer.address == address:
                paid = Paid(hash, amount, self.now > offer.expires_at_ms)
                self.payments.setdefault(key, []).append(paid)
        return hash


class Plain(broken_routers.Plain):
    """Sound, in memory: it delivers the first payment on time, and returns the others."""

    books: Books

    def list_sources(self, destination: Asset) -> Sequence[Asset]:
        return [shipped_networks().find_asset(8453, "USDC")]

    def offer(self, order: OfferOrder) -> RouteOffer:
        self._require_up()
        known, offer = self.books.offers.setdefault(order.key, (order, self.make_offer(order)))
        self.require_same(known, order)
        return offer

    def follow_offer(self, key: str) -> OfferProgress:
        self._require_up()
        if key not in self.books.offers:
            return self.miss(key)
        payments = self.books.payments.get(key, [])
        for paid in payments:
            if paid.end is None:
                paid.end = self.settle(key, paid, is_first=paid is payments[0])
        if self.books.loses_answer:
            self.books.loses_answer = False
            raise RouterUnavailable("its answer was lost")
        ends = [paid.end for paid in payments if paid.end is not None]
        delivered = [end for end in ends if end.state == "delivered"]
        return (delivered or ends or [OfferProgress(state="waiting")])[-1]

    def make_offer(self, order: OfferOrder) -> RouteOffer:
        return RouteOffer(
            address=self.offer_address(order),
            amount_atomic=order.amount_atomic + 75_000,
            expires_at_ms=self.books.now + 5 * MINUTE_MS,
        )

    def offer_address(self, order: OfferOrder) -> str:
        return f"0x{abs(hash(order.key)) % 16**40:040x}"

    def require_same(self, known: OfferOrder, order: OfferOrder) -> None:
        if known != order:
            raise RouteKeyReused("this key was used with another order")

    def miss(self, key: str) -> OfferProgress:
        raise RouteRefused("no offer has this key")

    def settle(self, key: str, paid: Paid, *, is_first: bool) -> OfferProgress:
        if self.books.returns:
            self.books.returns = False
            return self.send_back(key, paid)
        if paid.is_late or not is_first:
            return self.send_back(key, paid)
        return self.send_on(key, paid)

    def send_on(self, key: str, paid: Paid) -> OfferProgress:
        order, offer = self.books.offers[key]
        amount = self.amount_delivered(order, offer, paid)
        hash = self.books.transfer(order.destination.address, PAYER, order.recipient, amount)
        return OfferProgress(state="delivered", transaction_hash=hash, amount_atomic=amount)

    def amount_delivered(self, order: OfferOrder, offer: RouteOffer, paid: Paid) -> int:
        return order.amount_atomic * paid.amount // offer.amount_atomic

    def send_back(self, key: str, paid: Paid) -> OfferProgress:
        order, offer = self.books.offers[key]
        to, source = self.refund_address(order), self.returns_from(offer)
        hash = self.books.transfer(order.source.address, source, to, paid.amount)
        return OfferProgress(state="returned", transaction_hash=hash, amount_atomic=paid.amount)

    def refund_address(self, order: OfferOrder) -> str:
        return order.refund_address

    def returns_from(self, offer: RouteOffer) -> str:
        return offer.address


class ListsNothing(Plain):
    def list_sources(self, destination: Asset) -> Sequence[Asset]:
        return []


class ListsTheDestination(Plain):
    def list_sources(self, destination: Asset) -> Sequence[Asset]:
        return [*super().list_sources(destination), destination]


class ListsTwice(Plain):
    def list_sources(self, destination: Asset) -> Sequence[Asset]:
        return [*super().list_sources(destination), *super().list_sources(destination)]


class PricesEachAnswerAnew(Plain):
    def offer(self, order: OfferOrder) -> RouteOffer:
        found = super().offer(order)
        more = next(self.books.numbers)
        return attrs.evolve(found, amount_atomic=found.amount_atomic + more)


class WantsNothing(Plain):
    def make_offer(self, order: OfferOrder) -> RouteOffer:
        return attrs.evolve(super().make_offer(order), amount_atomic=0)


class OffersWhatHasExpired(Plain):
    def make_offer(self, order: OfferOrder) -> RouteOffer:
        return attrs.evolve(super().make_offer(order), expires_at_ms=self.books.now)


class HasOneAddressForAPayer(Plain):
    def offer_address(self, order: OfferOrder) -> str:
        return f"0x{abs(hash(order.key.partition('/')[0])) % 16**40:040x}"


class NamesAToken(Plain):
    def offer_address(self, order: OfferOrder) -> str:
        return order.source.address


class TakesAnyOrderForARepeat(Plain):
    def require_same(self, known: OfferOrder, order: OfferOrder) -> None:
        pass


class ForgetsWhomToRefund(Plain):
    def require_same(self, known: OfferOrder, order: OfferOrder) -> None:
        super().require_same(attrs.evolve(known, refund_address=order.refund_address), order)


class KnowsEveryKey(Plain):
    def miss(self, key: str) -> OfferProgress:
        return OfferProgress(state="waiting")


class CountsEveryPayment(Plain):
    def follow_offer(self, key: str) -> OfferProgress:
        found = super().follow_offer(key)
        return attrs.evolve(found, state="paid") if self.books.payments else found


class KeepsAFee(Plain):
    def amount_delivered(self, order: OfferOrder, offer: RouteOffer, paid: Paid) -> int:
        return super().amount_delivered(order, offer, paid) - 1


class DeliversThePrice(Plain):
    def amount_delivered(self, order: OfferOrder, offer: RouteOffer, paid: Paid) -> int:
        return paid.amount


class SaysAnotherAmount(Plain):
    def follow_offer(self, key: str) -> OfferProgress:
        found = super().follow_offer(key)
        return found if found.amount_atomic is None else attrs.evolve(found, amount_atomic=1)


class DeliversEachTime(Plain):
    def follow_offer(self, key: str) -> OfferProgress:
        for paid in self.books.payments.get(key, []):
            paid.end = None
        return super().follow_offer(key)


class KeepsShortPayments(Plain):
    def settle(self, key: str, paid: Paid, *, is_first: bool) -> OfferProgress:
        _, offer = self.books.offers[key]
        if paid.amount < offer.amount_atomic:
            return OfferProgress(state="returned")
        return super().settle(key, paid, is_first=is_first)


class DeliversTheWholeForAPart(Plain):
    def amount_delivered(self, order: OfferOrder, offer: RouteOffer, paid: Paid) -> int:
        return order.amount_atomic


class KeepsSecondPayments(Plain):
    def settle(self, key: str, paid: Paid, *, is_first: bool) -> OfferProgress:
        if not is_first:
            return OfferProgress(state="returned")
        return super().settle(key, paid, is_first=is_first)


class KeepsLatePayments(Plain):
    def settle(self, key: str, paid: Paid, *, is_first: bool) -> OfferProgress:
        if paid.is_late:
            return OfferProgress(state="returned")
        return super().settle(key, paid, is_first=is_first)


class ForgetsEarlierOffers(Plain):
    def follow_offer(self, key: str) -> OfferProgress:
        if f"{key}/2" in self.books.offers:
            return OfferProgress(state="waiting")
        return super().follow_offer(key)


class ReturnsToThePayer(Plain):
    def refund_address(self, order: OfferOrder) -> str:
        return PAYER


class ReturnsFromElsewhere(Plain):
    def returns_from(self, offer: RouteOffer) -> str:
        return PAYER


class ReturnsAndDelivers(Plain):
    def send_back(self, key: str, paid: Paid) -> OfferProgress:
        self.send_on(key, paid)
        return super().send_back(key, paid)


class ReturnsAgain(Plain):
    def __init__(self, books: Any) -> None:
        super().__init__(books)
        self.turns = itertools.count()

    def follow_offer(self, key: str) -> OfferProgress:
        found = super().follow_offer(key)
        if found.state == "returned" and not next(self.turns):
            self.send_back(key, self.books.payments[key][0])
        return found


class RaisesTimeouts(Plain):
    def _require_up(self) -> None:
        if self.books.down:
            raise TimeoutError
