"""The KYC suite: the checks for a provider of verifications before accounts depend on it.

With pytest, a few lines make it run::

    class TestMyProvider(KycConformance):
        can_decide = can_report = True

        def open(self):
            return my_package.open_url("myprovider://key@host.example")

        def decide(self, reference, finding):
            my_test_service.decide(reference, finding)

        def report(self, reference):
            return my_test_service.sign_webhook_of(reference)

Any other runner calls each `test_...` method of an instance; a check of what the adapter does not
declare raises `unittest.SkipTest`.
"""

from payments_core.conformance.kyc.cases import CaseChecks
from payments_core.conformance.kyc.harness import Harness
from payments_core.conformance.notice_checks import NoticeChecks

__all__ = ["Harness", "KycConformance"]


class KycConformance(CaseChecks, NoticeChecks):
    """Every check of the KYC port; override the hooks and declare what the adapter can do."""
