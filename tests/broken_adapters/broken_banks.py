"""Banks that each break one promise of the port, made out of a sound one."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from datetime import date

import attrs

from payments_core.banks.payouts import BankPayout, BankPayoutStatus
from payments_core.banks.port import (
    MAX_NOTICES,
    AccountRegistration,
    BankNotice,
    BankRefused,
    BankUnavailable,
    CapabilityRequest,
    KeyReused,
    PayoutOrder,
)
from payments_core.banks.reviews import BankReview
from payments_core.banks.simulated.outcomes import require_acceptable, require_valid_account

NOW = 1_790_000_000_000
KINDS = ("capability", "account")
MONDAY = date(2026, 9, 21)


class Books:
    """What the bank keeps for all who open it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.orders: dict[str, PayoutOrder] = {}
        self.payouts: dict[str, BankPayout] = {}
        self.made: list[str] = []
        self.notices: dict[str, BankNotice] = {}
        self.requests: dict[tuple[str, str], object] = {}
        self.reviews: dict[tuple[str, str], BankReview] = {}
        self.numbers = itertools.count(1)
        self.loses_answer = False
        self.down = False


class Plain:
    """Sound, in memory."""

    def __init__(self, books: Books) -> None:
        self.books = books

    # The port.

    def request_capability(self, request: CapabilityRequest) -> BankReview:
        self._require_up()
        return self._review("capability", request.key, request)

    def find_capability(self, key: str) -> BankReview | None:
        self._require_up()
        return self._find_review("capability", key)

    def register_account(self, registration: AccountRegistration) -> BankReview:
        self._require_up()
        self._require_valid_account(registration)
        return self._review("account", registration.key, registration)

    def find_account(self, key: str) -> BankReview | None:
        self._require_up()
        return self._find_review("account", key)

    def submit(self, order: PayoutOrder) -> BankPayout:
        self._require_up()
        with self.books.lock:
            self._require_acceptable(order)
            made = self._find_made(order) or self._make(order)
        if self.books.loses_answer:
            self.books.loses_answer = False
            self._lose_answer()
        return made

    def find_payout(self, key: str) -> BankPayout | None:
        self._require_up()
        return self.books.payouts.get(key)

    def list_notices(self, limit: int = MAX_NOTICES) -> Sequence[BankNotice]:
        self._require_up()
        return list(self.books.notices.values())[:limit]

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        self._require_up()
        for id in notice_ids:
            self.books.notices.pop(id, None)

    # What a check lets happen.

    def approve(self, kind: str, key: str) -> None:
        known = self.books.reviews[kind, key]
        self.books.reviews[kind, key] = attrs.evolve(known, status="active")

    def settle(self, key: str) -> None:
        self._change(
            key, attrs.evolve(self.books.payouts[key], status="settled", settled_at_ms=NOW)
        )

    def return_payout(self, key: str, code: str) -> None:
        payout = self.books.payouts[key]
        self._change(
            key, attrs.evolve(payout, status="returned", returned_at_ms=NOW, return_code=code)
        )

    # What the broken ones break.

    def _review(self, kind: str, key: str, request: object) -> BankReview:
        if self.books.requests.setdefault((kind, key), request) != request:
            raise KeyReused("the key is taken")
        made = self.books.reviews.get((kind, key)) or self._make_review(kind, key)
        if self.books.loses_answer:
            self.books.loses_answer = False
            self._lose_answer()
        return made

    def _make_review(self, kind: str, key: str) -> BankReview:
        reference = f"review_{next(self.books.numbers)}"
        made = BankReview(key=key, reference=reference, status="pending")
        self.books.reviews[kind, key] = made
        return made

    def _find_review(self, kind: str, key: str) -> BankReview | None:
        return self.books.reviews.get((kind, key))

    def _require_valid_account(self, registration: AccountRegistration) -> None:
        require_valid_account(registration.account)

    def _require_up(self) -> None:
        if self.books.down:
            raise BankUnavailable("down")

    def _lose_answer(self) -> None:
        raise BankUnavailable("no answer")

    def _require_acceptable(self, order: PayoutOrder) -> None:
        require_acceptable(order)

    def _find_made(self, order: PayoutOrder) -> BankPayout | None:
        known = self.books.orders.get(order.key)
        if known is not None and known != order:
            raise KeyReused("the key is taken")
        return self.books.payouts.get(order.key)

    def _make(self, order: PayoutOrder) -> BankPayout:
        made = BankPayout(
            key=order.key,
            reference=f"bank_{next(self.books.numbers)}",
            status="submitted",
            rail=order.rail,
            amount_cents=order.amount_cents,
            submitted_at_ms=NOW,
            settles_on=MONDAY,
        )
        self.books.made.append(order.key)
        self.books.orders[order.key] = order
        self.books.payouts[order.key] = made
        return made

    def _change(self, key: str, after: BankPayout) -> None:
        self.books.payouts[key] = after
        self._notify(key, after.status)

    def _notify(self, key: str, status: BankPayoutStatus) -> None:
        id = f"notice_{next(self.books.numbers)}"
        self.books.notices[id] = BankNotice(
            id=id, payout_key=key, status=status, occurred_at_ms=NOW
        )


# Submitting.


class AnswersAnotherAmount(Plain):
    def submit(self, order: PayoutOrder) -> BankPayout:
        return attrs.evolve(super().submit(order), amount_cents=order.amount_cents // 100)


class FindsNothing(Plain):
    def find_payout(self, key: str) -> BankPayout | None:
        return None


class FindsAnythingAsked(Plain):
    def find_payout(self, key: str) -> BankPayout | None:
        return next(iter(self.books.payouts.values()), None) or BankPayout(
            key=key, reference="bank_0", status="submitted", rail="ach", amount_cents=1,
            submitted_at_ms=NOW, settles_on=MONDAY,
        )  # fmt: skip


class FindsOnlyItsOwn(Plain):
    def __init__(self, books: Books) -> None:
        super().__init__(books)
        self.own: set[str] = set()

    def _make(self, order: PayoutOrder) -> BankPayout:
        self.own.add(order.key)
        return super()._make(order)

    def find_payout(self, key: str) -> BankPayout | None:
        return super().find_payout(key) if key in self.own else None


class NamesItAnew(Plain):
    def find_payout(self, key: str) -> BankPayout | None:
        found = super().find_payout(key)
        return found and attrs.evolve(found, reference=f"bank_{next(self.books.numbers)}")


class IgnoresKeys(Plain):
    def _find_made(self, order: PayoutOrder) -> BankPayout | None:
        return None


class PaysAgainBehindTheAnswer(Plain):
    """It answers the first payout, and makes another one."""

    def _find_made(self, order: PayoutOrder) -> BankPayout | None:
        known = super()._find_made(order)
        if known is not None:
            self.books.made.append(order.key)
        return known


class ForgetsKeysAfterSettlement(Plain):
    def _find_made(self, order: PayoutOrder) -> BankPayout | None:
        known = super()._find_made(order)
        return None if known is not None and known.status != "submitted" else known


class KnowsOrdersByTheirContents(Plain):
    """The same amount to the same account is taken for a repeat."""

    def _find_made(self, order: PayoutOrder) -> BankPayout | None:
        for key, other in self.books.orders.items():
            if attrs.evolve(other, key=order.key) == order:
                return self.books.payouts[key]
        return super()._find_made(order)


class RaisesTimeouts(Plain):
    def _require_up(self) -> None:
        if self.books.down:
            raise TimeoutError

    def _lose_answer(self) -> None:
        raise TimeoutError


class SaysRefusedWhereItLostTheAnswer(Plain):
    def _lose_answer(self) -> None:
        raise BankRefused("unknown", "no answer")


class HidesWhatWasNotAnswered(Plain):
    def _lose_answer(self) -> None:
        key = self.books.made[-1]
        del self.books.payouts[key], self.books.orders[key]
        raise BankUnavailable("no answer")


class RepeatsWhatWasNotAnswered(Plain):
    """What it lost the answer to is queued, and paid beside the repeat."""

    def _lose_answer(self) -> None:
        self.books.made.append(self.books.made[-1])
        raise BankUnavailable("no answer")


class AnswersWhileItIsDown(Plain):
    def find_payout(self, key: str) -> BankPayout | None:
        return self.books.payouts.get(key)


# Refusing.


class TakesAnyOrderForARepeat(Plain):
    def _find_made(self, order: PayoutOrder) -> BankPayout | None:
        return self.books.payouts.get(order.key)


class ComparesAmountsAlone(Plain):
    def _find_made(self, order: PayoutOrder) -> BankPayout | None:
        known = self.books.orders.get(order.key)
        if known is not None and known.amount_cents != order.amount_cents:
            raise KeyReused("the key is taken")
        return self.books.payouts.get(order.key)


class RefusesNothing(Plain):
    def _require_acceptable(self, order: PayoutOrder) -> None:
        """Whatever it is."""


class CarriesAnyText(Plain):
    def _require_acceptable(self, order: PayoutOrder) -> None:
        recipient = attrs.evolve(order.recipient, holder_name="Ada")
        require_acceptable(attrs.evolve(order, recipient=recipient, statement_text=None))


class KeepsWhatItRefuses(Plain):
    def _require_acceptable(self, order: PayoutOrder) -> None:
        try:
            require_acceptable(order)
        except BankRefused:
            if order.key not in self.books.payouts:
                self._make(order)
            raise


class GivesTheAccountNumberAway(Plain):
    def _require_acceptable(self, order: PayoutOrder) -> None:
        try:
            require_acceptable(order)
        except BankRefused as error:
            number = order.recipient.account_number
            raise BankRefused(error.reason, f"{error}: {number}") from error


class ReferenceIsTheAccountNumber(Plain):
    def _make(self, order: PayoutOrder) -> BankPayout:
        made = super()._make(order)
        made = attrs.evolve(made, reference=f"{order.recipient.account_number}/{made.reference}")
        self.books.payouts[order.key] = made
        return made


# Outcomes.


class SettlesAtOnce(Plain):
    def _make(self, order: PayoutOrder) -> BankPayout:
        made = attrs.evolve(super()._make(order), status="settled", settled_at_ms=NOW)
        self.books.payouts[order.key] = made
        return made


class NeverSettles(Plain):
    def settle(self, key: str) -> None:
        self._notify(key, "settled")


class SettlesWithoutATime(Plain):
    def settle(self, key: str) -> None:
        self._change(key, attrs.evolve(self.books.payouts[key], status="settled"))


class SettlesOnSundays(Plain):
    def _make(self, order: PayoutOrder) -> BankPayout:
        made = attrs.evolve(super()._make(order), settles_on=date(2026, 9, 20))
        self.books.payouts[order.key] = made
        return made


class ReturnsWithoutACode(Plain):
    def return_payout(self, key: str, code: str) -> None:
        payout = self.books.payouts[key]
        self._change(key, attrs.evolve(payout, status="returned", returned_at_ms=NOW))


class ForgetsThatItSettled(Plain):
    def return_payout(self, key: str, code: str) -> None:
        super().return_payout(key, code)
        self.books.payouts[key] = attrs.evolve(self.books.payouts[key], settled_at_ms=None)


class SettlesWhatItReturns(Plain):
    def return_payout(self, key: str, code: str) -> None:
        super().return_payout(key, code)
        self.books.payouts[key] = attrs.evolve(self.books.payouts[key], settled_at_ms=NOW)


class SubmitsAgainWhatWasReturned(Plain):
    def _find_made(self, order: PayoutOrder) -> BankPayout | None:
        known = super()._find_made(order)
        if known is None or known.status != "returned":
            return known
        again = attrs.evolve(known, status="submitted", return_code=None, returned_at_ms=None)
        self.books.payouts[order.key] = again
        return again


# Many at once.


class _Unlocked(Plain):
    """Between the look and the payout there is time for another caller."""

    def submit(self, order: PayoutOrder) -> BankPayout:
        made = self._find_made(order)
        if made is None:
            self._wait_for_another()
            made = self._make(order)
        return made

    def _wait_for_another(self) -> None:
        raise NotImplementedError


class LocksNothing(_Unlocked):
    def _wait_for_another(self) -> None:
        threading.Event().wait(0.02)


class LocksEachHandle(LocksNothing):
    """Callers of one handle wait for each other; other handles do not."""

    def __init__(self, books: Books) -> None:
        super().__init__(books)
        self.own = threading.Lock()

    def submit(self, order: PayoutOrder) -> BankPayout:
        with self.own:
            return super().submit(order)
