"""Refusals: a refused order leaves nothing behind, and reveals nothing."""

from __future__ import annotations

import traceback

from payments_core.banks.port import Bank, BankRefused, KeyReused, PayoutOrder
from payments_core.conformance.bank.harness import Harness
from payments_core.evolve import evolve

PLANTED_NUMBER = "73910264851"


class RefusalChecks(Harness):
    """Invalid orders, and keys that are taken."""

    def test_a_key_with_another_order_is_refused(self) -> None:
        bank, order = self.open(), self.new_order()
        bank.submit(order)
        for name, other in self._other_orders(order).items():
            try:
                bank.submit(other)
            except KeyReused:
                continue
            raise AssertionError(f"a used key with another {name} must be refused")
        self.require_one_payout(order.key)
        found = self.require_payout(bank, order.key)
        assert found.amount_cents == order.amount_cents, "the first order must stay valid"

    def test_an_order_that_the_rails_cannot_carry_is_refused(self) -> None:
        bank, order = self.open(), self.new_order()
        for name, bad in self._bad_orders(order).items():
            self._require_order_refused(bank, bad, name)

    def test_a_refused_order_leaves_no_payout(self) -> None:
        bank = self.open()
        for bad in self._bad_orders(self.new_order()).values():
            self._require_order_refused(bank, bad, "a bad order")
            assert bank.find_payout(bad.key) is None, "a refused order must leave no payout"
        assert self.count_payouts([bad.key]) == 0, "the bank's books must have no payout"

    def test_the_key_of_a_refused_order_can_be_used(self) -> None:
        bank, order = self.open(), self.new_order()
        self._require_order_refused(bank, evolve(order, amount_cents=0), "an amount of zero")
        made = bank.submit(order)
        assert made.amount_cents == order.amount_cents, "the refused order must not count"

    def test_no_answer_and_no_error_holds_the_account_number(self) -> None:
        bank = self.open()
        order = self.new_order(account_number=PLANTED_NUMBER)
        texts = [repr(bank.submit(order)), repr(bank.find_payout(order.key))]
        texts += [repr(bank.list_notices())]
        for bad in (evolve(order, amount_cents=1), *self._bad_orders(order).values()):
            try:
                bank.submit(bad)
            except (BankRefused, KeyReused) as error:
                texts.append("".join(traceback.format_exception(error)))
        assert not [text for text in texts if PLANTED_NUMBER in text], (
            "an account number must not be in answers, notices and errors"
        )

    def _require_order_refused(self, bank: Bank, order: PayoutOrder, what: str) -> None:
        try:
            bank.submit(order)
        except BankRefused as error:
            reason = error.reason
        else:
            raise AssertionError(f"{what} must be refused")
        assert reason, "a refusal must have a reason"

    def _other_orders(self, order: PayoutOrder) -> dict[str, PayoutOrder]:
        """The order with one field changed, by the field's name."""
        recipient = order.recipient
        recipients = {
            "account number": evolve(recipient, account_number="000987654321"),
            "holder": evolve(recipient, holder_name="Grace Hopper"),
            "account type": evolve(recipient, account_type="savings"),
        }
        return {
            "amount": evolve(order, amount_cents=order.amount_cents + 1),
            "rail": evolve(order, rail="wire"),
            "statement text": evolve(order, statement_text="INV 8"),
            **{name: evolve(order, recipient=other) for name, other in recipients.items()},
        }

    def _bad_orders(self, order: PayoutOrder) -> dict[str, PayoutOrder]:
        """Orders under a new key that no rail carries, by their error."""
        order = evolve(order, key=self.new_order().key)
        last = int(self.routing_number[-1])
        wrong_check_digit = f"{self.routing_number[:-1]}{(last + 1) % 10}"
        recipient = order.recipient
        return {
            "an amount of zero": evolve(order, amount_cents=0),
            "a negative amount": evolve(order, amount_cents=-1),
            "an amount beyond ten digits by ACH": evolve(order, amount_cents=10**10),
            "a routing number with a wrong check digit": evolve(
                order, recipient=evolve(recipient, routing_number=wrong_check_digit)
            ),
            "an account number of 18 digits": evolve(
                order, recipient=evolve(recipient, account_number="1" * 18)
            ),
            "a holder's name of 23 letters by ACH": evolve(
                order, recipient=evolve(recipient, holder_name="A" * 23)
            ),
            "a holder's name that is not ASCII": evolve(
                order, recipient=evolve(recipient, holder_name="Jos\u00e9")
            ),
            "a statement text that is not ASCII": evolve(order, statement_text="INV \u2013 7"),
            "a statement text of 81 letters by ACH": evolve(order, statement_text="A" * 81),
            "an asterisk in the message of a wire": evolve(
                order, rail="wire", statement_text="INV*7"
            ),
        }
