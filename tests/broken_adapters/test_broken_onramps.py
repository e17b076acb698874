"""The on-ramp suite: each broken provider fails the check that guards its promise."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.chains.port import TransferLog
from payments_core.clock import Instant
from payments_core.conformance.onramp import OnrampConformance
from payments_core.hosted_onramps.port import HostedOnramp
from payments_core.networks import shipped_networks
from tests.broken_adapters import broken_onramps as broken
from tests.broken_adapters.broken_readers import BROKEN_READERS, ReportingSuite, reading
from tests.broken_adapters.failing_checks import RemoteSuite, checks_of, failures

PRICED = "an_offer_has_a_price_in_a_currency"
ANOTHER_ORDER = "a_key_with_another_order_is_refused"
NONSENSE = "an_answer_that_makes_no_sense_is_none"
DELIVERED = "a_delivery_is_found"
ON_CHAIN = "the_chain_has_the_delivery"

EXPECTED_FAILURES: tuple[tuple[type[broken.Plain], str], ...] = (
    (broken.HasNoUrl, "an_offer_has_a_reference_and_a_url"),
    (broken.SellsForNothing, PRICED),
    (broken.WritesItsPriceForPeople, PRICED),
    (broken.HasNoCurrency, PRICED),
    (broken.OffersWhatHasExpired, "an_offer_leaves_time_to_pay"),
    (broken.PricesEachAnswerAnew, "a_key_opens_one_order"),
    (broken.RacesItself, "a_key_opens_one_order_for_many_threads"),
    (broken.KnowsEscrowsInsteadOfKeys, "each_key_has_an_order_of_its_own"),
    (broken.TakesAnyOrderForARepeat, ANOTHER_ORDER),
    (broken.ComparesAmountsAlone, ANOTHER_ORDER),
    (broken.SellsEverything, "what_is_not_sold_is_refused"),
    (broken.ForgetsAfterALostAnswer, "after_a_lost_answer_the_key_finds_its_order"),
    (broken.RaisesTimeouts, "a_provider_that_is_down_is_unavailable"),
    (broken.PassesNonsenseOn, NONSENSE),
    (broken.TakesNonsenseForFailure, NONSENSE),
    (broken.IsPaidAtOnce, "a_new_order_is_waiting"),
    (broken.NeverFindsAPayment, "a_payment_is_found"),
    (broken.NamesNoTransaction, DELIVERED),
    (broken.SaysAnotherAmount, DELIVERED),
    (broken.DeliversLess, ON_CHAIN),
    (broken.DeliversElsewhere, ON_CHAIN),
    (broken.NamesAnotherSender, ON_CHAIN),
    (broken.TakesFailureForWaiting, "a_refused_payer_is_a_failed_order"),
    (broken.TakesAReturnForFailure, "money_that_was_given_back_is_found"),
    (broken.LooksAtTheNewestPayment, "orders_are_paid_each_alone"),
    (broken.OffersAnewAfterAPayment, "an_offer_after_the_payment_changes_nothing"),
    (broken.FailsTheUnknown, "an_order_of_nobody_has_not_failed"),
    *((reading(broken.Plain, reader), check) for reader, check in BROKEN_READERS),
)


class Suite(RemoteSuite, ReportingSuite, OnrampConformance):
    unsold_asset = shipped_networks().find_asset(1, "USDT")
    can_pay = can_deliver = can_read_chain = can_reject = can_return = True
    can_count_orders = can_answer_nonsense = True
    books: broken.Books

    def __init__(self, onramp_class: type[broken.Plain]) -> None:
        self.onramp_class = onramp_class
        self.books = broken.Books()

    def open(self) -> HostedOnramp:
        return self.onramp_class(self.books)

    def pay(self, reference: str) -> None:
        self.onramp_class(self.books).pay(reference)

    def deliver(self, reference: str) -> None:
        self.onramp_class(self.books).deliver(reference)

    def read_transfers(self, chain_id: int, hash: str) -> Sequence[TransferLog]:
        return self.books.transactions.get(hash, ())

    def reject(self, reference: str) -> None:
        self.books.states[reference] = "failed"

    def give_back(self, reference: str) -> None:
        self.books.states[reference] = "returned"

    def count_orders(self) -> int:
        return len(self.books.states)

    def answer_nonsense(self) -> None:
        self.books.answers_nonsense = True

    def restore(self) -> None:
        self.books.down = self.books.answers_nonsense = False

    def now(self) -> Instant:
        return broken.NOW


@pytest.mark.parametrize(("onramp", "check"), EXPECTED_FAILURES)
def test_a_broken_onramp_fails_its_check(onramp: type[broken.Plain], check: str) -> None:
    assert list(failures(Suite(onramp), check)), f"{check} passes on {onramp.__name__}"


@pytest.mark.parametrize("check", sorted({check for _, check in EXPECTED_FAILURES}))
def test_what_the_broken_onramps_are_made_of_is_sound(check: str) -> None:
    for error in failures(Suite(reading(broken.Plain)), check):
        raise AssertionError(f"{check} fails on Plain") from error


def test_every_check_fails_a_broken_onramp() -> None:
    assert checks_of(OnrampConformance) == {check for _, check in EXPECTED_FAILURES}
