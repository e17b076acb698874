"""The KYC suite: each broken provider fails the check that guards its promise."""

from __future__ import annotations

import pytest

from payments_core.accounts.verification.port import KycFinding, KycProvider
from payments_core.conformance.kyc import KycConformance
from tests.broken_adapters import broken_kyc as broken
from tests.broken_adapters.broken_readers import BROKEN_READERS, ReportingSuite
from tests.broken_adapters.failing_checks import checks_of, failures
from tests.service.notices.office import Office

EXPECTED_FAILURES: tuple[tuple[type[Office], str], ...] = (
    (broken.HasNoUrl, "a_case_has_a_reference_and_a_url"),
    (broken.OpensACaseForEachCall, "a_key_opens_one_case"),
    (broken.OpensACaseForEachReturnUrl, "another_return_url_opens_no_other_case"),
    (broken.KnowsPeopleInsteadOfKeys, "different_keys_have_different_cases"),
    (broken.RacesItself, "a_key_opens_one_case_for_many_threads"),
    (broken.ForgetsAfterALostAnswer, "after_a_lost_answer_the_key_finds_its_case"),
    (broken.ApprovesAtOnce, "a_new_case_is_pending"),
    (broken.NeverFindsAnApproval, "an_approval_is_found"),
    (broken.TakesARejectionForApproval, "a_rejection_is_found"),
    (broken.LooksAtTheNewestDecision, "cases_are_decided_each_alone"),
    (broken.StartsAgainAfterADecision, "a_start_after_the_decision_changes_nothing"),
    (broken.RejectsTheUnknown, "a_case_of_nobody_is_not_rejected"),
    (broken.RaisesTimeouts, "a_provider_that_is_down_is_unavailable"),
    *BROKEN_READERS,
)


class Suite(ReportingSuite, KycConformance):
    can_decide = can_count_cases = can_fail = can_lose_answers = True

    def __init__(self, kind: type[Office]) -> None:
        self.office = kind()

    def open(self) -> KycProvider:
        return self.office

    def decide(self, reference: str, finding: KycFinding) -> None:
        self.office.findings[reference] = finding

    def count_cases(self) -> int:
        return len(self.office.findings)

    def lose_next_answer(self) -> None:
        self.office.loses_next_answer = True

    def fail(self) -> None:
        self.office.is_down = True

    def restore(self) -> None:
        self.office.is_down = False


@pytest.mark.parametrize(("kind", "check"), EXPECTED_FAILURES)
def test_a_broken_provider_fails_its_check(kind: type[Office], check: str) -> None:
    assert list(failures(Suite(kind), check)), f"{check} passes on {kind.__name__}"


@pytest.mark.parametrize("check", sorted({check for _, check in EXPECTED_FAILURES}))
def test_what_the_broken_providers_are_made_of_is_sound(check: str) -> None:
    for error in failures(Suite(broken.Plain), check):
        raise AssertionError(f"{check} fails on Plain") from error


def test_every_check_fails_a_broken_provider() -> None:
    assert checks_of(KycConformance) == {check for _, check in EXPECTED_FAILURES}
