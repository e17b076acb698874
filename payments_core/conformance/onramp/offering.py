"""The promises about offers: one order for a key, with a price that holds and a page to pay it."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

from payments_core.conformance.onramp.harness import (
    Harness,
    require_refused,
    require_unavailable,
)
from payments_core.evolve import evolve
from payments_core.notices.port import MAX_NAME_LENGTH

THREADS = 4


class OfferingChecks(Harness):
    """A key never opens two orders, and an offer says what a payer needs to know."""

    def test_an_offer_has_a_reference_and_a_url(self) -> None:
        offer = self.open_case()
        assert isinstance(offer.reference, str), "the reference must be a text"
        assert 0 < len(offer.reference) <= MAX_NAME_LENGTH, "it must have 1 to 500 characters"
        assert offer.reference.isprintable(), "the reference must be printable"
        assert offer.url.startswith(("https://", "http://")), "the URL is for a browser"

    def test_an_offer_has_a_price_in_a_currency(self) -> None:
        offer = self.open_case()
        is_decimal = re.fullmatch(r"\d{1,15}(\.\d{1,4})?", offer.price) is not None
        assert is_decimal, f"{offer.price!r} is no decimal amount"
        assert float(offer.price) > 0, "nobody sells for nothing"
        assert re.fullmatch("[A-Z]{3}", offer.currency), f"{offer.currency!r} is no currency"

    def test_an_offer_leaves_time_to_pay(self) -> None:
        offer = self.open_case()
        left_ms = offer.expires_at_ms - self.now()
        assert left_ms > 0, f"it expired {-left_ms} ms ago"

    def test_a_key_opens_one_order(self) -> None:
        order, opened = self.new_order(), self.open()
        first = opened.offer(order)
        for handle in (opened, self.open()):
            again = handle.offer(order)
            assert again == first, f"the same order must give {first}, but gave {again}"

    def test_a_key_opens_one_order_for_many_threads(self) -> None:
        order, opened = self.new_order(), self.open()
        with ThreadPoolExecutor(THREADS) as pool:
            offers = list(pool.map(lambda _: opened.offer(order), range(THREADS)))
        assert len({offer.reference for offer in offers}) == 1, "threads must get the same order"

    def test_each_key_has_an_order_of_its_own(self) -> None:
        order = self.new_order()
        again = evolve(order, key=self.new_order().key)  # the next offer to the same payer
        references = {self.open().offer(one).reference for one in (order, again)}
        assert len(references) == 2, "another key must open another order"

    def test_a_key_with_another_order_is_refused(self) -> None:
        order = self.new_order()
        self.open().offer(order)
        for changes in (
            {"amount_atomic": order.amount_atomic * 2},
            {"recipient": "0x" + "11" * 20},
        ):
            other = self.new_order(key=order.key, **changes)
            require_refused(lambda: self.open().offer(other), f"another {[*changes]}")  # noqa: B023

    def test_what_is_not_sold_is_refused(self) -> None:
        self.require_capability("unsold_asset")
        order = self.new_order(asset=self.unsold_asset)
        require_refused(lambda: self.open().offer(order), f"an order of {self.unsold_asset}")

    def test_after_a_lost_answer_the_key_finds_its_order(self) -> None:
        self.require_capability("can_lose_answers")
        order, opened = self.new_order(), self.open()
        before = self.count_orders() if self.can_count_orders else None
        self.lose_next_answer()
        require_unavailable(lambda: opened.offer(order), "an offer whose answer was lost")
        found = {opened.offer(order).reference, self.open().offer(order).reference}
        assert len(found) == 1, "a repeat must find the order that was opened before"
        if before is not None:
            assert self.count_orders() == before + 1, "the lost answer must leave no other order"

    def test_a_provider_that_is_down_is_unavailable(self) -> None:
        self.require_capability("can_fail")
        opened, order = self.open(), self.new_order()
        offer = opened.offer(order)
        self.fail()
        require_unavailable(lambda: opened.offer(self.new_order()), "an offer")
        require_unavailable(lambda: opened.look(offer.reference), "a look")
        self.restore()
        again = opened.offer(order)
        assert again.reference == offer.reference, "the order must be there again"

    def test_an_answer_that_makes_no_sense_is_none(self) -> None:
        self.require_capability("can_answer_nonsense")
        opened, offer = self.open(), self.open_case()
        self.answer_nonsense()
        require_unavailable(lambda: opened.offer(self.new_order()), "an offer")
        require_unavailable(lambda: opened.look(offer.reference), "a look")
        self.restore()
