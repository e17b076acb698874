"""On-ramps that each break one promise of the port, made out of a sound one."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import attrs

from payments_core.chains.port import TransferLog
from payments_core.hosted_onramps.port import (
    OnrampOffer,
    OnrampOrder,
    OnrampProgress,
    OnrampRefused,
    OnrampState,
    OnrampUnavailable,
)

NOW = 1_790_000_000_000
TREASURY = "0x00000000000000000000000000000000000E0E0E"


class Books:
    """What the provider and the chain keep for all who open it."""

    def __init__(self) -> None:
        self.orders: dict[str, OnrampOrder] = {}
        self.references: dict[str, str] = {}
        self.states: dict[str, OnrampState] = {}
        self.hashes: dict[str, str] = {}
        self.transactions: dict[str, list[TransferLog]] = {}
        self.numbers = itertools.count(1)
        self.down = self.loses_answer = self.answers_nonsense = False

    def order_of(self, reference: str) -> OnrampOrder:
        [key] = [key for key, one in self.references.items() if one == reference]
        return self.orders[key]

    def transfer(self, order: OnrampOrder, amount_atomic: int) -> str:
        hash = f"0x{next(self.numbers):064x}"
        log = TransferLog(0, 0, order.asset.address, TREASURY, order.recipient, amount_atomic)
        self.transactions[hash] = [log]
        return hash


class Plain:
    """Sound, in memory."""

    name = "office"

    def __init__(self, books: Books) -> None:
        self.books = books

    def offer(self, order: OnrampOrder) -> OnrampOffer:
        self._require_up()
        if order.asset.symbol != "USDC":
            raise OnrampRefused("it sells USDC alone")
        known = self.books.orders.setdefault(order.key, order)
        self.require_same(known, order)
        reference = self.find_reference(order)
        self.books.references[order.key] = reference
        self.books.states.setdefault(reference, "waiting")
        if self.books.loses_answer:
            self.books.loses_answer = False
            raise OnrampUnavailable("its answer was lost")
        return self.make_offer(order, reference)

    def look(self, reference: str) -> OnrampProgress:
        self._require_up()
        state = self.books.states.get(reference)
        if state is None:
            return self.miss(reference)
        if state != "delivered":
            return OnrampProgress(state=state)
        order, hash = self.books.order_of(reference), self.books.hashes[reference]
        return OnrampProgress(
            state=state,
            transaction_hash=hash,
            amount_atomic=order.amount_atomic,
            sender=TREASURY,
        )

    def require_same(self, known: OnrampOrder, order: OnrampOrder) -> None:
        if known != order:
            raise OnrampRefused("this key was used with another order")

    def find_reference(self, order: OnrampOrder) -> str:
        return f"order-{order.key}"

    def make_offer(self, order: OnrampOrder, reference: str) -> OnrampOffer:
        return OnrampOffer(
            reference=reference,
            url=f"https://onramp.invalid/{reference}",
            price="25.50",
            currency="USD",
            expires_at_ms=NOW + 600_000,
        )

    def miss(self, reference: str) -> OnrampProgress:
        raise OnrampUnavailable("no order has this reference")

    def _require_up(self) -> None:
        if self.books.down or self.books.answers_nonsense:
            raise OnrampUnavailable("no answer")

    # What happens at the provider.

    def pay(self, reference: str) -> None:
        self.books.states[reference] = "paid"

    def deliver(self, reference: str) -> None:
        order = self.books.order_of(reference)
        self.books.states[reference] = "delivered"
        self.books.hashes[reference] = self.send(order)

    def send(self, order: OnrampOrder) -> str:
        return self.books.transfer(order, order.amount_atomic)


def offering(name: str, **fields: Any) -> type[Plain]:
    """Sound but for these fields of its offers."""

    class Changed(Plain):
        def make_offer(self, order: OnrampOrder, reference: str) -> OnrampOffer:
            return attrs.evolve(super().make_offer(order, reference), **fields)

    Changed.__name__ = name
    return Changed


HasNoUrl = offering("HasNoUrl", url="")
SellsForNothing = offering("SellsForNothing", price="0")
WritesItsPriceForPeople = offering("WritesItsPriceForPeople", price="$25.50")
HasNoCurrency = offering("HasNoCurrency", currency="dollars")
OffersWhatHasExpired = offering("OffersWhatHasExpired", expires_at_ms=NOW - 1)


class PricesEachAnswerAnew(Plain):
    def make_offer(self, order: OnrampOrder, reference: str) -> OnrampOffer:
        price = f"25.{next(self.books.numbers):02}"
        return attrs.evolve(super().make_offer(order, reference), price=price)


class RacesItself(Plain):
    def find_reference(self, order: OnrampOrder) -> str:
        known = self.books.references.get(order.key)
        if known is None:
            hashlib.pbkdf2_hmac("sha256", b"another thread runs", b"", 40_000)
            known = f"order-{next(self.books.numbers)}"
        return known


class KnowsEscrowsInsteadOfKeys(Plain):
    def find_reference(self, order: OnrampOrder) -> str:
        return f"order-{order.recipient}"


class TakesAnyOrderForARepeat(Plain):
    def require_same(self, known: OnrampOrder, order: OnrampOrder) -> None:
        pass


class ComparesAmountsAlone(Plain):
    def require_same(self, known: OnrampOrder, order: OnrampOrder) -> None:
        if known.amount_atomic != order.amount_atomic:
            raise OnrampRefused("this key was used with another amount")


class SellsEverything(Plain):
    def offer(self, order: OnrampOrder) -> OnrampOffer:
        try:
            return super().offer(order)
        except OnrampRefused:
            if order.key in self.books.orders:
                raise
            return self.make_offer(order, self.find_reference(order))


class ForgetsAfterALostAnswer(Plain):
    def offer(self, order: OnrampOrder) -> OnrampOffer:
        if self.books.loses_answer:
            self.books.states[f"order-{next(self.books.numbers)}"] = "waiting"
        return super().offer(order)


class RaisesTimeouts(Plain):
    def _require_up(self) -> None:
        if self.books.down:
            raise TimeoutError
        super()._require_up()


class PassesNonsenseOn(Plain):
    def _require_up(self) -> None:
        if self.books.answers_nonsense:
            raise KeyError("state")
        super()._require_up()


class TakesNonsenseForFailure(Plain):
    def look(self, reference: str) -> OnrampProgress:
        if self.books.answers_nonsense:
            return OnrampProgress(state="failed")
        return super().look(reference)


class IsPaidAtOnce(Plain):
    def look(self, reference: str) -> OnrampProgress:
        found = super().look(reference)
        return OnrampProgress(state="paid") if found.state == "waiting" else found


class NeverFindsAPayment(Plain):
    def look(self, reference: str) -> OnrampProgress:
        found = super().look(reference)
        return OnrampProgress(state="waiting") if found.state == "paid" else found


class NamesNoTransaction(Plain):
    def look(self, reference: str) -> OnrampProgress:
        return attrs.evolve(super().look(reference), transaction_hash=None)


class SaysAnotherAmount(Plain):
    def look(self, reference: str) -> OnrampProgress:
        found = super().look(reference)
        return found if found.amount_atomic is None else attrs.evolve(found, amount_atomic=1)


class DeliversLess(Plain):
    def send(self, order: OnrampOrder) -> str:
        return self.books.transfer(order, order.amount_atomic - 1)


class DeliversElsewhere(Plain):
    def send(self, order: OnrampOrder) -> str:
        return self.books.transfer(attrs.evolve(order, recipient=TREASURY), order.amount_atomic)


class NamesAnotherSender(Plain):
    def look(self, reference: str) -> OnrampProgress:
        found = super().look(reference)
        return found if found.sender is None else attrs.evolve(found, sender="0x" + "22" * 20)


class TakesFailureForWaiting(Plain):
    def look(self, reference: str) -> OnrampProgress:
        found = super().look(reference)
        return OnrampProgress(state="waiting") if found.state == "failed" else found


class TakesAReturnForFailure(Plain):
    def look(self, reference: str) -> OnrampProgress:
        found = super().look(reference)
        return OnrampProgress(state="failed") if found.state == "returned" else found


class LooksAtTheNewestPayment(Plain):
    def look(self, reference: str) -> OnrampProgress:
        super().look(reference)
        moved = [one for one in self.books.states.values() if one != "waiting"]
        return OnrampProgress(state=moved[-1] if moved else "waiting")


class OffersAnewAfterAPayment(Plain):
    def offer(self, order: OnrampOrder) -> OnrampOffer:
        self.books.states.pop(self.books.references.get(order.key, ""), None)
        return super().offer(order)


class FailsTheUnknown(Plain):
    def miss(self, reference: str) -> OnrampProgress:
        return OnrampProgress(state="failed")
