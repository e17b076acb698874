"""Submitting: a key makes one payout, even if the answer is lost."""

from __future__ import annotations

from payments_core.conformance.bank.harness import Harness


class SubmittingChecks(Harness):
    """A payout is made once per key, and found under it."""

    def test_a_payout_says_what_was_ordered(self) -> None:
        order = self.new_order(amount_cents=1_234_567)
        made = self.open().submit(order)
        found = (made.key, made.rail, made.amount_cents, made.status)
        expected = (order.key, order.rail, order.amount_cents, "submitted")
        assert found == expected, f"the payout must be {expected}, not {found}"

    def test_a_payout_is_found_by_its_key(self) -> None:
        bank, order = self.open(), self.new_order()
        made = bank.submit(order)
        found = self.require_payout(bank, order.key)
        assert found.reference == made.reference, "a payout must keep its reference"

    def test_a_key_that_was_never_used_finds_nothing(self) -> None:
        found = self.open().find_payout(self.new_order().key)
        assert found is None, f"no payout was made, and this was found: {found}"

    def test_another_handle_finds_the_payout(self) -> None:
        order = self.new_order()
        made = self.open().submit(order)
        found = self.require_payout(self.open(), order.key)
        assert found.reference == made.reference, "both handles must show the same payout"

    def test_the_same_order_again_makes_no_second_payout(self) -> None:
        bank, order = self.open(), self.new_order()
        first = bank.submit(order)
        for handle in (bank, self.open()):
            again = handle.submit(order)
            assert again.reference == first.reference, "the same key must give the same payout"
        self.require_one_payout(order.key)

    def test_the_same_order_after_settlement_makes_no_second_payout(self) -> None:
        bank, order = self.open(), self.new_order()
        bank.submit(order)
        self.settle(order.key)
        again = bank.submit(order)
        assert again.status == "settled", f"it has settled, but its status is {again.status}"
        self.require_one_payout(order.key)

    def test_the_same_order_under_other_keys_makes_a_payout_for_each(self) -> None:
        bank = self.open()
        orders = [self.new_order() for _ in range(3)]
        references = {bank.submit(order).reference for order in orders}
        assert len(references) == len(orders), "each key must have its own payout"
        self.require_one_payout(*(order.key for order in orders))

    def test_a_lost_answer_is_unavailable_and_its_payout_is_found(self) -> None:
        self.require_capability("can_lose_answers")
        bank, order = self.open(), self.new_order()
        self.lose_next_answer()
        self.require_unavailable(lambda: bank.submit(order))
        self.require_payout(bank, order.key)

    def test_after_a_lost_answer_the_same_order_makes_no_second_payout(self) -> None:
        self.require_capability("can_lose_answers")
        bank, order = self.open(), self.new_order()
        self.lose_next_answer()
        self.require_unavailable(lambda: bank.submit(order))
        bank.submit(order)
        self.require_one_payout(order.key)

    def test_a_bank_that_is_down_is_unavailable(self) -> None:
        self.require_capability("can_fail")
        bank, order = self.open(), self.new_order()
        bank.submit(order)
        self.fail()
        for call in (
            lambda: bank.submit(self.new_order()),
            lambda: bank.find_payout(order.key),
            bank.list_notices,
            lambda: bank.acknowledge(["nothing"]),
        ):
            self.require_unavailable(call)
        self.restore()
        self.require_payout(bank, order.key)
