"""The router suite: each broken router fails the check that guards its promise."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.chains.port import TransferLog
from payments_core.conformance.router import RouterConformance
from payments_core.routers.port import OfferOrder, RouteOrder, Router
from tests.broken_adapters import broken_routers as broken
from tests.broken_adapters.failing_checks import RemoteSuite, checks_of, failures

WITHIN = "a_payment_is_delivered_within_the_terms"
RETURNED = "what_is_returned_comes_back_whole_from_the_orders_address"
ONCE = "a_payment_is_delivered_once_however_often_it_is_asked"

EXPECTED_FAILURES: tuple[tuple[type[broken.Plain], str], ...] = (
    (broken.MovesItsAddress, "the_same_order_has_the_same_address"),
    (broken.HasOneAddress, "each_order_has_an_address_of_its_own"),
    (broken.NamesAToken, "somebody_can_hold_its_address"),
    (broken.TakesAnyOrderForARepeat, "a_key_with_another_order_is_refused"),
    (broken.KnowsEveryKey, "a_key_without_an_order_is_refused"),
    (broken.RaisesTimeouts, "a_router_that_is_down_is_unavailable"),
    (broken.PaysLessThanTheMinimum, WITHIN),
    (broken.PaysInTheSourceToken, WITHIN),
    (broken.PaysTheWholeForAPart, "a_part_is_delivered_in_proportion"),
    (broken.ForgetsWhatItPaid, ONCE),
    (broken.ForgetsWhatItPaid, "a_lost_answer_leaves_one_delivery"),
    (broken.PaysAnOrderOnce, "a_second_payment_is_delivered_as_another"),
    (broken.BelievesTheCaller, "a_transaction_that_is_not_there_is_waited_for"),
    (broken.CountsEveryTransfer, "a_payment_to_another_order_is_not_this_ones"),
    (broken.ReturnsLess, RETURNED),
    (broken.ReturnsFromElsewhere, RETURNED),
    (broken.ReturnsAndDelivers, RETURNED),
)


class Suite(RemoteSuite, RouterConformance):
    can_return = True

    def __init__(self, router_class: type[broken.Plain]) -> None:
        self.router_class = router_class
        self.books = broken.Books()

    def open_router(self) -> Router:
        return self.router_class(self.books)

    def pay(self, address: str, amount_atomic: int) -> str:
        return self.books.transfer(self.source.address, broken.PAYER, address, amount_atomic)

    def wait(self) -> None:
        pass  # the routers here answer at once

    def read_transfers(self, chain_id: int, hash: str) -> Sequence[TransferLog]:
        return self.books.transactions.get(hash, ())

    def count_received(self, order: RouteOrder | OfferOrder) -> int:
        return self.books.held(order.destination.address, order.recipient)

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
    assert checks_of(RouterConformance) == {check for _, check in EXPECTED_FAILURES}
