"""The screening suite: the checks for a provider before transfers depend on its verdicts.

With pytest, a few lines make it run::

    class TestMyProvider(ScreeningConformance):
        can_judge = can_decide = can_report = True

        def open(self):
            return my_package.open_url("myprovider://key@host.example")

        def judge(self, subject, outcome):
            my_test_service.list(subject.reference, outcome)

        def decide(self, case, outcome):
            my_test_service.decide(case, outcome)

        def report(self, reference):
            return my_test_service.sign_webhook_of(reference)

Any other runner calls each `test_...` method of an instance; a check of what the adapter does not
declare raises `unittest.SkipTest`.
"""

from payments_core.conformance.notice_checks import NoticeChecks
from payments_core.conformance.screening.failing import FailureChecks
from payments_core.conformance.screening.harness import Harness
from payments_core.conformance.screening.verdicts import VerdictChecks

__all__ = ["Harness", "ScreeningConformance"]


class ScreeningConformance(VerdictChecks, FailureChecks, NoticeChecks):
    """Every check of the screening port; override the hooks and declare what the adapter can do."""
