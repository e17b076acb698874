"""The limiter suite: the checks for an adapter before it counts requests.

With pytest, a few lines make it run::

    class TestMyLimiter(LimiterConformance):
        shared = True

        @pytest.fixture(autouse=True)
        def _place(self):
            self.url = f"mine://server/{uuid4()}"  # each check begins with no counter

        def open(self):
            return my_package.open_url(self.url)

        def location(self):
            return AdapterLocation("my_package:open_url", self.url)

Any other runner calls `setup_method`, a `test_...` method and `teardown_method` on an instance;
a check of what the adapter does not declare raises `unittest.SkipTest`.
"""

from payments_core.conformance.limiter.blocks import BlockChecks
from payments_core.conformance.limiter.clocks import ClockChecks
from payments_core.conformance.limiter.concurrency import ConcurrencyChecks
from payments_core.conformance.limiter.counting import CountingChecks
from payments_core.conformance.limiter.failures import FailureChecks
from payments_core.conformance.limiter.harness import AdapterLocation, Harness

__all__ = ["LimiterConformance", "AdapterLocation", "Harness"]


class LimiterConformance(
    CountingChecks, ClockChecks, BlockChecks, ConcurrencyChecks, FailureChecks
):
    """Every check of the limiter port; override `open` and declare what the adapter can do."""
