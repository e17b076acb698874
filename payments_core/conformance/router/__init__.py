"""The router suite: the checks for an adapter before money is sent through it.

With pytest, a few lines make it run::

    class TestMyRouter(RouterConformance):
        can_return = True

        @pytest.fixture(autouse=True)
        def _place(self, my_router_sandbox):
            self.sandbox = my_router_sandbox

        def open_router(self):
            return my_package.open_url(self.sandbox.url)

        def pay(self, address, amount):
            return self.sandbox.pay(address, amount)  # final when it returns

        def wait(self):
            self.sandbox.do_all_work()

        def read_transfers(self, chain_id, hash):
            return self.sandbox.transfers(chain_id, hash)

        def count_received(self, order):
            return self.sandbox.balance(order.destination, order.recipient)

A router that payers pay too passes `OffersConformance` as well (`offering.py`).

Any other runner calls `setup_method`, a `test_...` method and `teardown_method` on an instance;
a check of what the adapter does not declare raises `unittest.SkipTest`.
"""

from payments_core.conformance.router.delivering import DeliveringChecks
from payments_core.conformance.router.harness import Harness
from payments_core.conformance.router.offering import OffersConformance
from payments_core.conformance.router.opening import OpeningChecks

__all__ = ["Harness", "OffersConformance", "RouterConformance"]


class RouterConformance(OpeningChecks, DeliveringChecks):
    """Every check of the router port; override the hooks and declare what the adapter can do."""
