"""Opening: an order has one address, and each order has its own."""

from __future__ import annotations

from payments_core.conformance.router.harness import Harness
from payments_core.networks import shipped_networks
from payments_core.routers.port import RouteKeyReused, RouteRefused


class OpeningChecks(Harness):
    """An address belongs to one order only, for every caller and every time."""

    def test_the_same_order_has_the_same_address(self) -> None:
        router, order = self.open_router(), self.new_order()
        first = router.open(order)
        for handle in (router, self.open_router()):
            again = handle.open(order)
            assert again == first, f"the address must stay {first}, but became {again}"

    def test_each_order_has_an_address_of_its_own(self) -> None:
        router = self.open_router()
        addresses = {router.open(self.new_order()) for _ in range(4)}
        assert len(addresses) == 4, "two orders must not share an address"

    def test_somebody_can_hold_its_address(self) -> None:
        address = self.open_router().open(self.new_order())
        chain_type = shipped_networks().find_network(self.source.chain_id).chain_type
        assert shipped_networks().is_wallet_address(chain_type, address), (
            f"funds sent to {address} would be lost"
        )

    def test_a_key_with_another_order_is_refused(self) -> None:
        router, order = self.open_router(), self.new_order()
        router.open(order)
        for changes in ({"minimum_atomic": 1}, {"recipient": order.return_to}):
            try:
                address = router.open(self.new_order(key=order.key, **changes))
            except RouteKeyReused:
                continue
            raise AssertionError(f"a key with another order must be refused, but got {address}")

    def test_a_key_without_an_order_is_refused(self) -> None:
        try:
            answer = self.open_router().deliver(self.new_order().key, "0x" + "ab" * 32)
        except RouteRefused:
            return
        raise AssertionError(f"no order was opened, but the answer was: {answer}")

    def test_a_router_that_is_down_is_unavailable(self) -> None:
        self.require_capability("can_fail")
        router, order = self.open_router(), self.new_order()
        router.open(order)
        self.fail()
        self.require_unavailable(lambda: router.open(self.new_order()))
        self.require_unavailable(lambda: router.deliver(order.key, "0x" + "ab" * 32))
        self.restore()
        router.open(order)
