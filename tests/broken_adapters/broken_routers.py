"""Routers that each break one promise of the port, made out of a sound one."""

from __future__ import annotations

import itertools

import attrs

from payments_core.chains.port import TransferLog
from payments_core.routers.port import (
    RouteKeyReused,
    RouteOrder,
    RouteProgress,
    RouteRefused,
    RouterUnavailable,
)

PAYER = "0x00000000000000000000000000000000000E0E0E"
WAITING = RouteProgress(state="waiting")


class Books:
    """What the router and the chains keep for all who open it."""

    def __init__(self) -> None:
        self.orders: dict[str, RouteOrder] = {}
        self.done: dict[tuple[str, str], RouteProgress] = {}
        self.transactions: dict[str, list[TransferLog]] = {}
        self.numbers = itertools.count(1)
        self.down = self.loses_answer = self.returns = False

    def transfer(self, token: str, sender: str, recipient: str, amount: int) -> str:
        hash = f"0x{next(self.numbers):064x}"
        self.transactions[hash] = [TransferLog(0, 0, token, sender, recipient, amount)]
        return hash

    def held(self, token: str, holder: str) -> int:
        logs = [log for logs in self.transactions.values() for log in logs]
        return sum(
            log.amount_atomic
            for log in logs
            if (log.token_address, log.recipient) == (token, holder)
        )


class Plain:
    """Sound, in memory."""

    def __init__(self, books: Books) -> None:
        self.books = books

    def open(self, order: RouteOrder) -> str:
        self._require_up()
        known = self.books.orders.setdefault(order.key, order)
        if known != order:
            raise RouteKeyReused("this key was used with another order")
        return self.address(order)

    def deliver(self, key: str, payment_hash: str) -> RouteProgress:
        self._require_up()
        order = self.books.orders.get(key)
        if order is None:
            raise RouteRefused("no order has this key")
        progress = self.books.done.get((key, payment_hash)) or self._exchange(order, payment_hash)
        if self.books.loses_answer:
            self.books.loses_answer = False
            raise RouterUnavailable("its answer was lost")
        return progress

    def address(self, order: RouteOrder) -> str:
        return f"0x{abs(hash(order.key)) % 16**40:040x}"

    def paid(self, order: RouteOrder, payment_hash: str) -> int:
        return sum(
            log.amount_atomic
            for log in self.books.transactions.get(payment_hash, ())
            if log.recipient == self.address(order)
        )

    def amount_out(self, order: RouteOrder, paid: int) -> int:
        return order.expected_atomic * paid // order.amount_atomic

    def _exchange(self, order: RouteOrder, payment_hash: str) -> RouteProgress:
        paid = self.paid(order, payment_hash)
        if not paid:
            return WAITING
        if self.books.returns:
            self.books.returns = False
            progress = self.give_back(order, paid)
        else:
            progress = self.pay(order, paid)
        self.books.done[order.key, payment_hash] = progress
        return progress

    def pay(self, order: RouteOrder, paid: int) -> RouteProgress:
        amount = self.amount_out(order, paid)
        hash = self.books.transfer(order.destination.address, PAYER, order.recipient, amount)
        return RouteProgress(state="delivered", transaction_hash=hash)

    def give_back(self, order: RouteOrder, paid: int) -> RouteProgress:
        hash = self.books.transfer(order.source.address, self.address(order), order.return_to, paid)
        return RouteProgress(state="returned", transaction_hash=hash)

    def _require_up(self) -> None:
        if self.books.down:
            raise RouterUnavailable("it is down")


class MovesItsAddress(Plain):
    def address(self, order: RouteOrder) -> str:
        return f"0x{next(self.books.numbers):040x}"


class HasOneAddress(Plain):
    def address(self, order: RouteOrder) -> str:
        return "0x" + "11" * 20


class NamesAToken(Plain):
    def address(self, order: RouteOrder) -> str:
        return order.source.address


class TakesAnyOrderForARepeat(Plain):
    def open(self, order: RouteOrder) -> str:
        return super().open(self.books.orders.get(order.key, order))


class KnowsEveryKey(Plain):
    def deliver(self, key: str, payment_hash: str) -> RouteProgress:
        return super().deliver(key, payment_hash) if key in self.books.orders else WAITING


class RaisesTimeouts(Plain):
    def _require_up(self) -> None:
        if self.books.down:
            raise TimeoutError


class PaysLessThanTheMinimum(Plain):
    def amount_out(self, order: RouteOrder, paid: int) -> int:
        return order.minimum_atomic * paid // order.amount_atomic - 1


class PaysTheWholeForAPart(Plain):
    def amount_out(self, order: RouteOrder, paid: int) -> int:
        return order.expected_atomic


class PaysInTheSourceToken(Plain):
    def pay(self, order: RouteOrder, paid: int) -> RouteProgress:
        return super().pay(attrs.evolve(order, destination=order.source), paid)


class ForgetsWhatItPaid(Plain):
    def deliver(self, key: str, payment_hash: str) -> RouteProgress:
        self.books.done.clear()
        return super().deliver(key, payment_hash)


class PaysAnOrderOnce(Plain):
    def _exchange(self, order: RouteOrder, payment_hash: str) -> RouteProgress:
        earlier = [it for (key, _), it in self.books.done.items() if key == order.key]
        return earlier[0] if earlier else super()._exchange(order, payment_hash)


class BelievesTheCaller(Plain):
    def paid(self, order: RouteOrder, payment_hash: str) -> int:
        return order.amount_atomic


class CountsEveryTransfer(Plain):
    def paid(self, order: RouteOrder, payment_hash: str) -> int:
        return sum(log.amount_atomic for log in self.books.transactions.get(payment_hash, ()))


class ReturnsLess(Plain):
    def give_back(self, order: RouteOrder, paid: int) -> RouteProgress:
        return super().give_back(order, paid - 1)


class ReturnsFromElsewhere(Plain):
    def give_back(self, order: RouteOrder, paid: int) -> RouteProgress:
        hash = self.books.transfer(order.source.address, PAYER, order.return_to, paid)
        return RouteProgress(state="returned", transaction_hash=hash)


class ReturnsAndDelivers(Plain):
    def give_back(self, order: RouteOrder, paid: int) -> RouteProgress:
        self.pay(order, paid)
        return super().give_back(order, paid)
