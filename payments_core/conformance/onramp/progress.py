"""The promises about progress: what an order says follows what happened, and its end stays."""

from __future__ import annotations

from payments_core.conformance.onramp.harness import Harness, require_unavailable
from payments_core.hosted_onramps.port import OnrampProgress, OnrampRefused, OnrampUnavailable


class ProgressChecks(Harness):
    """What is not known has not failed, and each order is looked at for itself."""

    def test_a_new_order_is_waiting(self) -> None:
        self.require_state(self.open_case().reference, "waiting", why="nobody has paid")

    def test_a_payment_is_found(self) -> None:
        self.require_capability("can_pay")
        offer = self.open_case()
        self.pay(offer.reference)
        self.require_state(offer.reference, "paid", "delivered", why="the payer has paid")

    def test_a_delivery_is_found(self) -> None:
        progress = self._deliver(self.open_case().reference)
        assert progress.transaction_hash, "a delivery must name its transaction"
        expected = self.amount_atomic
        assert progress.amount_atomic in (None, expected), (
            f"{expected} was sold, but {progress.amount_atomic} was delivered"
        )

    def test_the_chain_has_the_delivery(self) -> None:
        self.require_capability("can_read_chain")
        order = self.new_order()
        progress = self._deliver(self.open().offer(order).reference)
        logs = [
            log
            for log in self.read_transfers(self.asset.chain_id, progress.transaction_hash or "")
            if (log.recipient, log.token_address) == (order.recipient, self.asset.address)
        ]
        amounts = [log.amount_atomic for log in logs]
        assert amounts == [order.amount_atomic], f"{order.amount_atomic} was sold: {amounts}"
        said = progress.sender
        assert said in (None, logs[0].sender), f"{logs[0].sender} has paid it, and not {said}"

    def test_a_refused_payer_is_a_failed_order(self) -> None:
        self.require_capability("can_reject")
        offer = self.open_case()
        self.reject(offer.reference)
        self.require_state(offer.reference, "failed", why="the payer was refused")

    def test_money_that_was_given_back_is_found(self) -> None:
        self.require_capability("can_return")
        offer = self.open_case()
        self.give_back(offer.reference)
        self.require_state(offer.reference, "returned", why="the payer has the money back")

    def test_orders_are_paid_each_alone(self) -> None:
        self.require_capability("can_pay")
        paid, other = self.open_case(), self.open_case()
        self.pay(paid.reference)
        self.require_state(other.reference, "waiting", why="another order was paid")

    def test_an_offer_after_the_payment_changes_nothing(self) -> None:
        self.require_capability("can_pay")
        order = self.new_order()
        offer = self.open().offer(order)
        self.pay(offer.reference)
        try:
            again = self.open().offer(order)
        except (OnrampUnavailable, OnrampRefused):  # some providers show an ended order to nobody
            pass
        else:
            assert again.reference == offer.reference, "a repeat must not open another order"
        self.require_state(offer.reference, "paid", "delivered", why="the payer has paid")

    def test_an_order_of_nobody_has_not_failed(self) -> None:
        unknown = f"{self.open_case().reference}0"
        require_unavailable(
            lambda: self.open().look(unknown), "a look at an order that does not exist"
        )

    def _deliver(self, reference: str) -> OnrampProgress:
        """What the provider says when it has delivered an order."""
        self.require_capability("can_pay")
        self.require_capability("can_deliver")
        self.pay(reference)
        self.deliver(reference)
        self.require_state(reference, "delivered", why="the provider has delivered it")
        return self.open().look(reference)
