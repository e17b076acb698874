"""The screening suite: each broken provider fails the check that guards its promise."""

from __future__ import annotations

import pytest

from payments_core.conformance.screening import ScreeningConformance
from payments_core.screening.port import Outcome, Screening, Subject
from tests.broken_adapters import broken_screening as broken
from tests.broken_adapters.broken_readers import BROKEN_READERS, ReportingSuite, reading
from tests.broken_adapters.failing_checks import checks_of, failures

EXPECTED_FAILURES: tuple[tuple[type[broken.Plain], str], ...] = (
    (broken.SuspectsEverybody, "a_subject_that_nobody_listed_is_clear"),
    (broken.BlocksNobody, "a_blocked_subject_is_blocked"),
    (broken.ClearsWhatIsInReview, "a_subject_in_review_is_in_review"),
    (broken.ScreensAddressesAlone, "each_kind_is_judged"),
    (broken.ScreensWhatGoesOutAlone, "each_direction_is_judged"),
    (broken.NeedsASmallAmount, "any_amount_is_judged"),
    (broken.TellsLettersApart, "an_address_is_the_same_in_any_letters"),
    (broken.JudgesAKindAsAWhole, "a_subject_is_not_another"),
    (broken.MixesKinds, "a_kind_is_not_another"),
    (broken.TakesAnotherChainsVerdict, "a_chain_is_not_another"),
    (broken.HasLongReasons, "a_verdict_can_be_stored"),
    (broken.HasAnEmptyCase, "a_verdict_can_be_stored"),
    (broken.IsValidInThePast, "a_verdict_is_valid_from_now_on"),
    (broken.CountsSeconds, "a_verdict_is_valid_from_now_on"),
    (broken.CountsMicroseconds, "a_verdict_is_valid_from_now_on"),
    (broken.KeepsReviews, "a_review_is_not_kept"),
    (broken.ChangesTheVerdictOfAKey, "a_key_opens_one_case"),
    (broken.OpensACaseForEachCall, "a_key_opens_one_case"),
    (broken.NamesNoCaseOfAReview, "a_key_opens_one_case"),
    (broken.RacesItself, "a_key_opens_one_case_for_many_threads"),
    (broken.NeverFindsADecision, "a_decided_case_is_found_by_its_key"),
    (broken.ClearsWhatWasDecided, "a_decided_case_is_found_by_its_key"),
    (broken.LooksAtTheNewestDecision, "cases_are_decided_each_alone"),
    (broken.KeepsItsVerdicts, "a_new_judgement_is_found"),
    (broken.ClearsWhenItIsDown, "a_provider_that_is_down_is_unavailable"),
    (broken.RaisesTimeouts, "a_provider_that_is_down_is_unavailable"),
    (broken.NamesTheSubject, "a_failure_does_not_name_the_subject"),
    (broken.ForgetsAfterALostAnswer, "after_a_lost_answer_the_key_finds_its_case"),
    (broken.ClearsWithALostAnswer, "after_a_lost_answer_the_key_finds_its_case"),
    (broken.WaitsForever, "a_provider_that_hangs_is_unavailable"),
    (broken.ClearsWithoutAnAnswer, "a_provider_that_hangs_is_unavailable"),
    (broken.TakesNonsenseForClear, "nonsense_is_no_verdict"),
    (broken.RaisesKeyErrors, "nonsense_is_no_verdict"),
    *((reading(broken.Plain, reader), check) for reader, check in BROKEN_READERS),
)


class Suite(ReportingSuite, ScreeningConformance):
    can_judge = can_judge_by_chain = can_decide = can_count_cases = True
    can_fail = can_lose_answers = True
    can_hang = can_answer_nonsense = True
    answer_limit_s = 0.5

    def __init__(self, kind: type[broken.Plain]) -> None:
        self.bureau = kind()

    def open(self) -> Screening:
        return self.bureau

    def judge(self, subject: Subject, outcome: Outcome) -> None:
        self.bureau.judge(subject, outcome)

    def decide(self, case: str, outcome: Outcome) -> None:
        self.bureau.decisions[case] = outcome

    def count_cases(self) -> int:
        return len(self.bureau.cases)

    def lose_next_answer(self) -> None:
        self.bureau.loses_next_answer = True

    def fail(self) -> None:
        self.bureau.is_down = True

    def hang(self) -> None:
        self.bureau.is_answering.clear()

    def answer_nonsense(self) -> None:
        self.bureau.answers_nonsense = True

    def restore(self) -> None:
        self.bureau.is_down = self.bureau.answers_nonsense = False
        self.bureau.is_answering.set()


@pytest.mark.parametrize(("kind", "check"), EXPECTED_FAILURES)
def test_a_broken_provider_fails_its_check(kind: type[broken.Plain], check: str) -> None:
    assert list(failures(Suite(kind), check)), f"{check} passes on {kind.__name__}"


@pytest.mark.parametrize("check", sorted({check for _, check in EXPECTED_FAILURES}))
def test_what_the_broken_providers_are_made_of_is_sound(check: str) -> None:
    for error in failures(Suite(reading(broken.Plain)), check):
        raise AssertionError(f"{check} fails on Plain") from error


def test_every_check_fails_a_broken_provider() -> None:
    assert checks_of(ScreeningConformance) == {check for _, check in EXPECTED_FAILURES}


def test_every_broken_provider_is_tried() -> None:
    kinds = {kind for kind in vars(broken).values() if isinstance(kind, type)}
    made = {kind for kind in kinds if issubclass(kind, broken.Plain)} - {broken.Plain}
    assert made == {kind for kind, _ in EXPECTED_FAILURES if kind in kinds}
