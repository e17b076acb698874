"""The suite of a router's offers: each broken router fails the check that guards its promise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from payments_core.chains.port import TransferLog
from payments_core.clock import Instant
from payments_core.conformance.router import OffersConformance
from payments_core.plain_calls import port_members
from payments_core.routers.port import OfferOrder, OffersRoutes, RouteOrder
from tests.broken_adapters import broken_offers as broken
from tests.broken_adapters.failing_checks import RemoteSuite, checks_of, failures

SOURCES = "the_sources_of_a_destination_are_its_own"
SAYS = "an_offer_says_what_to_pay_and_until_when"
ANOTHER_ORDER = "an_offers_key_with_another_order_is_refused"
EXACT = "an_offer_delivers_its_exact_amount"
ONCE = "an_offer_is_delivered_once_however_often_it_is_followed"
SHORT = "a_short_payment_is_not_kept"
RETURNED = "a_return_goes_whole_to_the_refund_address"

EXPECTED_FAILURES: tuple[tuple[type[broken.Plain], str], ...] = (
    (broken.ListsNothing, SOURCES),
    (broken.ListsTheDestination, SOURCES),
    (broken.ListsTwice, SOURCES),
    (broken.PricesEachAnswerAnew, "the_same_order_has_the_same_offer"),
    (broken.WantsNothing, SAYS),
    (broken.OffersWhatHasExpired, SAYS),
    (broken.HasOneAddressForAPayer, "each_offer_has_an_address_of_its_own"),
    (broken.NamesAToken, "somebody_can_hold_an_offers_address"),
    (broken.TakesAnyOrderForARepeat, ANOTHER_ORDER),
    (broken.ForgetsWhomToRefund, ANOTHER_ORDER),
    (broken.KnowsEveryKey, "an_offer_that_was_never_made_is_not_followed"),
    (broken.CountsEveryPayment, "an_offer_that_nobody_paid_is_waiting"),
    (broken.KeepsAFee, EXACT),
    (broken.DeliversThePrice, EXACT),
    (broken.SaysAnotherAmount, EXACT),
    (broken.DeliversEachTime, ONCE),
    (broken.DeliversEachTime, "a_lost_answer_leaves_one_delivery_of_an_offer"),
    (broken.KeepsShortPayments, SHORT),
    (broken.DeliversTheWholeForAPart, SHORT),
    (broken.KeepsSecondPayments, "a_second_payment_is_not_kept"),
    (broken.KeepsLatePayments, "a_late_payment_is_not_kept"),
    (broken.ForgetsEarlierOffers, "the_address_of_an_earlier_offer_keeps_nothing"),
    (broken.ReturnsToThePayer, RETURNED),
    (broken.ReturnsFromElsewhere, RETURNED),
    (broken.ReturnsAndDelivers, RETURNED),
    (broken.ReturnsAgain, RETURNED),
    (broken.RaisesTimeouts, "offers_of_a_router_that_is_down_are_unavailable"),
)


class Suite(RemoteSuite, OffersConformance):
    can_return = can_expire = True
    books: broken.Books

    def __init__(self, router_class: type[broken.Plain]) -> None:
        self.router_class = router_class
        self.books = broken.Books()

    def open_router(self) -> OffersRoutes:
        return self.router_class(self.books)

    def pay(self, address: str, amount_atomic: int) -> str:
        return self.books.pay(self.source.address, address, amount_atomic)

    def wait(self) -> None:
        pass  # the routers here answer at once

    def expire(self) -> None:
        self.books.now += 60 * broken.MINUTE_MS

    def now(self) -> Instant:
        return self.books.now

    def read_transfers(self, chain_id: int, hash: str) -> Sequence[TransferLog]:
        return self.books.transactions.get(hash, ())

    def count_received(self, order: RouteOrder | OfferOrder) -> int:
        return self.books.held(order.destination.address, order.recipient)

    def count_refunded(self, order: OfferOrder) -> int:
        return self.books.held(order.source.address, order.refund_address)

    def return_next(self) -> None:
        self.books.returns = True


@pytest.mark.parametrize(("router", "check"), EXPECTED_FAILURES)
def test_a_broken_router_fails_its_check(router: type[broken.Plain], check: str) -> None:
    assert list(failures(Suite(router), check)), f"{check} passes on {router.__name__}"


@pytest.mark.parametrize("check", sorted({check for _, check in EXPECTED_FAILURES}))
def test_what_the_broken_routers_are_made_of_is_sound(check: str) -> None:
    for error in failures(Suite(broken.Plain), check):
        raise AssertionError(f"{check} fails on Plain") from error


def test_every_check_fails_a_broken_router() -> None:
    assert checks_of(OffersConformance) == {check for _, check in EXPECTED_FAILURES}


def test_the_page_names_every_method_of_the_port() -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-router-adapter.md"
    text = page.read_text(encoding="utf-8")
    assert [name for name in sorted(port_members(OffersRoutes)) if f"`{name}(" not in text] == []
