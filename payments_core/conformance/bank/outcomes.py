"""Outcomes: payouts settle and are returned, and never go backwards."""

from __future__ import annotations

from payments_core.banks.banking_days import is_banking_day
from payments_core.conformance.bank.harness import Harness


class OutcomeChecks(Harness):
    """The states of a payout after its submission."""

    def test_a_payout_is_submitted_until_it_settles(self) -> None:
        bank, order = self.open(), self.new_order()
        made = bank.submit(order)
        assert made.settled_at_ms is None, "a payout that was just submitted must not be settled"
        found = self.require_payout(bank, order.key)
        assert found.status == "submitted", f"the payout must not be {found.status} yet"

    def test_a_settled_payout_says_when(self) -> None:
        bank, order = self.open(), self.new_order()
        made = bank.submit(order)
        self.settle(order.key)
        found = self.require_payout(bank, order.key)
        assert found.status == "settled", f"the payout must be settled, not {found.status}"
        assert found.settled_at_ms is not None, "a settled payout must say when it settled"
        assert found.settled_at_ms >= made.submitted_at_ms, (
            "a payout must not settle before its order"
        )
        assert (found.returned_at_ms, found.return_code) == (None, None), "it was not returned"

    def test_a_payout_settles_on_a_banking_day(self) -> None:
        for _ in range(3):
            made = self.open().submit(self.new_order())
            assert is_banking_day(made.settles_on), f"{made.settles_on} is not a banking day"

    def test_a_return_before_settlement_has_its_code(self) -> None:
        self.require_capability("can_return")
        bank, order = self.open(), self.new_order()
        bank.submit(order)
        self.return_payout(order.key, "R03")
        found = self.require_payout(bank, order.key)
        shown = (found.status, found.return_code, found.settled_at_ms)
        assert shown == ("returned", "R03", None), f"it was returned with R03: {shown}"
        assert found.returned_at_ms is not None, "a returned payout must say when"

    def test_a_return_after_settlement_has_its_code(self) -> None:
        self.require_capability("can_return")
        bank, order = self.open(), self.new_order()
        bank.submit(order)
        self.settle(order.key)
        settled = self.require_payout(bank, order.key)
        self.return_payout(order.key, "R02")
        found = self.require_payout(bank, order.key)
        shown = (found.status, found.return_code, found.settled_at_ms)
        expected = ("returned", "R02", settled.settled_at_ms)
        assert shown == expected, f"it settled, then came back: {expected}, not {shown}"

    def test_a_returned_payout_stays_returned(self) -> None:
        self.require_capability("can_return")
        bank, order = self.open(), self.new_order()
        bank.submit(order)
        self.settle(order.key)
        self.return_payout(order.key, "R02")
        for answer in (bank.submit(order), self.require_payout(self.open(), order.key)):
            shown = (answer.status, answer.return_code)
            assert shown == ("returned", "R02"), f"a return must be final: {shown}"
        self.require_one_payout(order.key)
