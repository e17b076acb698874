"""The bank suite: the checks for an adapter before money is sent through it.

With pytest, a few lines make it run::

    class TestMyBank(BankConformance):
        can_return = True

        @pytest.fixture(autouse=True)
        def _place(self, my_bank_sandbox):
            self.sandbox = my_bank_sandbox  # what earlier checks left there may stay

        def open(self):
            return my_package.open_url(self.sandbox.url)

        def approve_capability(self, key):
            self.sandbox.approve(key)

        def approve_account(self, key):
            self.sandbox.approve(key)

        def settle(self, key):
            self.sandbox.settle(key)

        def return_payout(self, key, code):
            self.sandbox.return_payout(key, code)

        def count_payouts(self, keys):
            return self.sandbox.count(keys)

A bank that reports by webhook declares `can_report`, and its class has the hooks of
`payments_core.conformance.notice_checks`.

A bank that receives transfers for accounts passes `FundingConformance` too (`funding.py`).

Any other runner calls `setup_method`, a `test_...` method and `teardown_method` on an instance;
a check of what the adapter does not declare raises `unittest.SkipTest`.
"""

from payments_core.conformance.bank.concurrency import ConcurrencyChecks
from payments_core.conformance.bank.funding import FundingConformance
from payments_core.conformance.bank.harness import Harness
from payments_core.conformance.bank.notices import NoticeChecks
from payments_core.conformance.bank.outcomes import OutcomeChecks
from payments_core.conformance.bank.refusals import RefusalChecks
from payments_core.conformance.bank.reviews import ReviewChecks
from payments_core.conformance.bank.submitting import SubmittingChecks
from payments_core.conformance.bank.webhooks import WebhookChecks

__all__ = ["BankConformance", "FundingConformance", "Harness"]


class BankConformance(
    ReviewChecks,
    SubmittingChecks,
    RefusalChecks,
    OutcomeChecks,
    NoticeChecks,
    ConcurrencyChecks,
    WebhookChecks,
):
    """Every check of the bank port; override the hooks and declare what the adapter can do."""
