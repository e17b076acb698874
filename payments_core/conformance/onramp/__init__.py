"""The on-ramp suite: the checks for a provider before payers are sent to its pages.

With pytest, a few lines make it run::

    class TestMyProvider(OnrampConformance):
        can_pay = can_deliver = can_report = True

        def open(self):
            return my_package.open_url("myprovider://key@host.example")

        def pay(self, reference):
            my_test_service.pay(reference)

        def deliver(self, reference):
            my_test_service.deliver(reference)

        def report(self, reference):
            return my_test_service.sign_webhook_of(reference)

Any other runner calls `setup_method`, a `test_...` method and `teardown_method` on an instance;
a check of what the adapter does not declare raises `unittest.SkipTest`.
"""

from payments_core.conformance.notice_checks import NoticeChecks
from payments_core.conformance.onramp.harness import Harness
from payments_core.conformance.onramp.offering import OfferingChecks
from payments_core.conformance.onramp.progress import ProgressChecks

__all__ = ["Harness", "OnrampConformance"]


class OnrampConformance(OfferingChecks, ProgressChecks, NoticeChecks):
    """Every check of the on-ramp port; override the hooks and declare what the adapter can do."""
