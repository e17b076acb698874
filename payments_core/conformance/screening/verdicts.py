"""The promises about verdicts: of this subject, in any spelling, as the provider says it now."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import get_args

from payments_core.clock import DAY
from payments_core.conformance.screening.harness import Harness
from payments_core.evolve import evolve
from payments_core.notices.port import MAX_NAME_LENGTH
from payments_core.screening.port import Direction, Outcome, SubjectKind

THREADS = 4
MAX_VALID_DAYS = 400
"""A longer validity is a mistake in the unit: a list changes every day."""
MAX_AMOUNT = 2**256 - 1


class VerdictChecks(Harness):
    """A subject is judged by what the provider says of it now, and a key opens one case."""

    def test_a_subject_that_nobody_listed_is_clear(self) -> None:
        self.require_outcome(self.new_request(), "clear", "nobody has listed the subject")

    def test_a_blocked_subject_is_blocked(self) -> None:
        self._require_judged("blocked")

    def test_a_subject_in_review_is_in_review(self) -> None:
        self._require_judged("review")

    def test_each_kind_is_judged(self) -> None:
        self.require_capability("can_judge")
        for kind in get_args(SubjectKind):
            request = self.new_request(self.new_subject(kind))
            self.judge(request.subject, "blocked")
            self.require_outcome(request, "blocked", f"the {kind} is blocked")

    def test_each_direction_is_judged(self) -> None:
        self.require_capability("can_judge")
        subject = self.new_subject()
        self.judge(subject, "blocked")
        for direction in get_args(Direction):
            request = evolve(self.new_request(subject), direction=direction)
            self.require_outcome(request, "blocked", f"it is blocked for {direction!r} too")

    def test_any_amount_is_judged(self) -> None:
        request = self.new_request()
        for changed in (
            evolve(request, key=self.new_request().key, amount_atomic=1),
            evolve(request, key=self.new_request().key, amount_atomic=MAX_AMOUNT),
            evolve(request, key=self.new_request().key, amount_atomic=None, asset=None),
        ):
            self.require_outcome(changed, "clear", "nobody has listed the subject")

    def test_an_address_is_the_same_in_any_letters(self) -> None:
        self.require_capability("can_judge")
        subject = self.new_subject()
        self.judge(subject, "blocked")
        digits = subject.reference[2:]
        for spelling in (digits.lower(), digits.upper()):
            request = self.new_request(evolve(subject, reference=f"0x{spelling}"))
            self.require_outcome(request, "blocked", "an address has no upper and lower case")

    def test_a_subject_is_not_another(self) -> None:
        self.require_capability("can_judge")
        for kind in get_args(SubjectKind):
            self.judge(self.new_subject(kind), "blocked")
            request = self.new_request(self.new_subject(kind))
            self.require_outcome(request, "clear", f"another {kind} is blocked")

    def test_a_kind_is_not_another(self) -> None:
        self.require_capability("can_judge")
        blocked = self.new_subject("account")
        self.judge(blocked, "blocked")
        same = evolve(self.new_subject("bank_account"), reference=blocked.reference)
        self.require_outcome(self.new_request(same), "clear", "only the account is blocked")

    def test_a_chain_is_not_another(self) -> None:
        self.require_capability("can_judge_by_chain")
        subject = self.new_subject()
        self.judge(subject, "blocked")
        self.require_outcome(self.new_request(subject), "blocked", "it is blocked on its chain")
        other = self.new_request(evolve(subject, chain_id=self.other_chain_id))
        self.require_outcome(other, "clear", "it is blocked on another chain only")

    def test_a_verdict_can_be_stored(self) -> None:
        self.require_capability("can_judge")
        for outcome in get_args(Outcome):
            request = self.new_request()
            self.judge(request.subject, outcome)
            verdict = self.require_outcome(request, outcome, f"the provider says {outcome!r}")
            for name, text in (("case", verdict.case), ("reason", verdict.reason)):
                if text is not None:
                    assert isinstance(text, str), f"the {name} must be a text"
                    assert 0 < len(text) <= MAX_NAME_LENGTH, f"the {name} has 1 to 500 characters"
                    assert text.isprintable(), f"the {name} must be printable"

    def test_a_verdict_is_valid_from_now_on(self) -> None:
        before = self.now()
        until = self.open().screen(self.new_request()).valid_until_ms
        assert type(until) is int, "the validity ends at a whole number of milliseconds"
        assert until >= before, "a validity must not end before its verdict"
        assert until <= self.now() + MAX_VALID_DAYS * DAY, "the validity is in milliseconds"

    def test_a_review_is_not_kept(self) -> None:
        self.require_capability("can_judge")
        request = self.new_request()
        self.judge(request.subject, "review")
        until = self.require_outcome(request, "review", "it is in review").valid_until_ms
        assert until <= self.now(), "a review ends at any time, so it is for this request only"

    def test_a_key_opens_one_case(self) -> None:
        request, case = self.open_review()
        before = self.count_cases() if self.can_count_cases else None
        again = self.require_outcome(request, "review", "nothing has happened in between")
        assert again.case == case, "the same key must find its case again"
        if before is not None:
            assert self.count_cases() == before, "a repeat must open no other case"

    def test_a_key_opens_one_case_for_many_threads(self) -> None:
        self.require_capability("can_judge")
        request, opened = self.new_request(), self.open()
        self.judge(request.subject, "review")
        with ThreadPoolExecutor(THREADS) as pool:
            verdicts = list(pool.map(lambda _: opened.screen(request), range(THREADS)))
        assert len({one.case for one in verdicts}) == 1, "threads must get the same case"

    def test_a_decided_case_is_found_by_its_key(self) -> None:
        self.require_capability("can_decide")
        outcomes: tuple[Outcome, ...] = ("clear", "blocked")
        for outcome in outcomes:
            request, case = self.open_review()
            self.decide(case, outcome)
            for _ in range(2):
                self.require_outcome(request, outcome, f"its case was decided: {outcome}")

    def test_cases_are_decided_each_alone(self) -> None:
        self.require_capability("can_decide")
        (_, decided), (other, _) = self.open_review(), self.open_review()
        self.decide(decided, "clear")
        self.require_outcome(other, "review", "the case of another subject was decided")

    def test_a_new_judgement_is_found(self) -> None:
        self.require_capability("can_judge")
        subject, opened = self.new_subject(), self.open()
        first = opened.screen(self.new_request(subject))
        assert first.outcome == "clear", "nobody has listed the subject"
        self.judge(subject, "blocked")
        for asked in (opened, self.open()):
            found = asked.screen(self.new_request(subject)).outcome
            assert found == "blocked", "the provider is asked each time: who calls keeps verdicts"

    def _require_judged(self, outcome: Outcome) -> None:
        self.require_capability("can_judge")
        request = self.new_request()
        self.judge(request.subject, outcome)
        self.require_outcome(request, outcome, f"the provider says {outcome!r}")
