"""Deliveries: a payment is exchanged once, or returned, and the chain shows it."""

from __future__ import annotations

from payments_core.conformance.router.harness import Harness


class DeliveringChecks(Harness):
    """A payment brings the recipient at least the minimum, or is returned in full."""

    def test_a_payment_is_delivered_within_the_terms(self) -> None:
        router, order = self.open_router(), self.new_order()
        hash = self.pay(router.open(order), order.amount_atomic)
        log = self.require_delivery(order, self.finish(router, order, hash))
        least, most = order.minimum_atomic, order.expected_atomic
        assert least <= log.amount_atomic <= most, f"{log.amount_atomic}: {least} to {most}"

    def test_a_part_is_delivered_in_proportion(self) -> None:
        router, order = self.open_router(), self.new_order()
        hash = self.pay(router.open(order), order.amount_atomic // 5)
        log = self.require_delivery(order, self.finish(router, order, hash))
        least, most = order.minimum_atomic // 5, order.expected_atomic // 5
        assert least <= log.amount_atomic <= most, f"{log.amount_atomic}: {least} to {most}"

    def test_a_payment_is_delivered_once_however_often_it_is_asked(self) -> None:
        router, order = self.open_router(), self.new_order()
        before = self.count_received(order)
        hash = self.pay(router.open(order), order.amount_atomic)
        first = self.finish(router, order, hash)
        for handle in (router, self.open_router(), router):
            self.wait()
            again = handle.deliver(order.key, hash)
            assert again == first, f"the answer must stay {first}, but became {again}"
        log = self.require_delivery(order, first)
        received = self.count_received(order) - before
        assert received == log.amount_atomic, f"{received} came in total, {log.amount_atomic} by it"

    def test_a_second_payment_is_delivered_as_another(self) -> None:
        router, order = self.open_router(), self.new_order()
        address = router.open(order)
        first = self.finish(router, order, self.pay(address, order.amount_atomic))
        second = self.finish(router, order, self.pay(address, order.amount_atomic))
        assert first.transaction_hash != second.transaction_hash, "each must have its own transfer"
        self.require_delivery(order, first)
        self.require_delivery(order, second)

    def test_a_transaction_that_is_not_there_is_waited_for(self) -> None:
        router, order = self.open_router(), self.new_order()
        router.open(order)
        progress = self.finish(router, order, "0x" + "cd" * 32)
        assert progress.state == "waiting", f"nothing was paid, but it is {progress.state}"

    def test_a_payment_to_another_order_is_not_this_ones(self) -> None:
        router, order, other = self.open_router(), self.new_order(), self.new_order()
        router.open(order)
        hash = self.pay(router.open(other), other.amount_atomic)
        progress = self.finish(router, order, hash)
        assert progress.state == "waiting", f"nothing was paid, but it is {progress.state}"

    def test_a_lost_answer_leaves_one_delivery(self) -> None:
        self.require_capability("can_lose_answers")
        router, order = self.open_router(), self.new_order()
        before = self.count_received(order)
        hash = self.pay(router.open(order), order.amount_atomic)
        router.deliver(order.key, hash)
        self.wait()
        self.lose_next_answer()
        self.require_unavailable(lambda: router.deliver(order.key, hash))
        log = self.require_delivery(order, router.deliver(order.key, hash))
        received = self.count_received(order) - before
        assert received == log.amount_atomic, f"{received} came in total, {log.amount_atomic} by it"

    def test_what_is_returned_comes_back_whole_from_the_orders_address(self) -> None:
        self.require_capability("can_return")
        router, order = self.open_router(), self.new_order()
        address = router.open(order)
        before = self.count_received(order)
        self.return_next()
        hash = self.pay(address, order.amount_atomic)
        progress = self.finish(router, order, hash)
        assert progress.state == "returned", f"it must be returned, but is {progress.state}"
        log = self.require_transfer(self.source, order.return_to, progress)
        returned = (log.sender, log.amount_atomic)
        assert returned == (address, order.amount_atomic), f"all from {address}, not {returned}"
        assert self.count_received(order) == before, "a returned payment must not be delivered too"
        self.wait()
        again = router.deliver(order.key, hash)
        assert again == progress, f"a returned payment must stay returned, but became {again}"
