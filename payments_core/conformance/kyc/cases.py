"""The promises about cases: opened once for a key, pending until they are decided for good."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from payments_core.accounts.verification.port import KycUnavailable
from payments_core.conformance.kyc.harness import Harness, require_unavailable
from payments_core.evolve import evolve
from payments_core.notices.port import MAX_NAME_LENGTH

THREADS = 4


class CaseChecks(Harness):
    """A key never opens two cases, and what is not decided is never taken for rejected."""

    def test_a_case_has_a_reference_and_a_url(self) -> None:
        case = self.open_case()
        assert isinstance(case.reference, str), "the reference must be a text"
        assert 0 < len(case.reference) <= MAX_NAME_LENGTH, "it must have 1 to 500 characters"
        assert case.reference.isprintable(), "the reference must be printable"
        assert case.hosted_url.startswith(("https://", "http://")), "the URL is for a browser"

    def test_a_key_opens_one_case(self) -> None:
        request = self.new_request()
        first, again = self.open().start(request), self.open().start(request)
        assert first.reference == again.reference, "the same key must find its case again"

    def test_another_return_url_opens_no_other_case(self) -> None:
        request = self.new_request()
        first = self.open().start(request)
        again = self.open().start(evolve(request, return_url=None))
        assert first.reference == again.reference, "only the key names a case"

    def test_different_keys_have_different_cases(self) -> None:
        request = self.new_request()
        again = evolve(request, key=self.new_request().key)  # the same person, after a rejection
        references = [self.open().start(one).reference for one in (request, again)]
        assert len(set(references)) == 2, "another key must open another case"

    def test_a_key_opens_one_case_for_many_threads(self) -> None:
        request, opened = self.new_request(), self.open()
        with ThreadPoolExecutor(THREADS) as pool:
            cases = list(pool.map(lambda _: opened.start(request), range(THREADS)))
        assert len({case.reference for case in cases}) == 1, "threads must get the same case"

    def test_after_a_lost_answer_the_key_finds_its_case(self) -> None:
        self.require_capability("can_lose_answers")
        request, opened = self.new_request(), self.open()
        before = self.count_cases() if self.can_count_cases else None
        self.lose_next_answer()
        require_unavailable(lambda: opened.start(request), "a start whose answer was lost")
        found = {opened.start(request).reference, self.open().start(request).reference}
        assert len(found) == 1, "a repeat must find the case that was opened before"
        if before is not None:
            assert self.count_cases() == before + 1, "the lost start must not leave another case"

    def test_a_new_case_is_pending(self) -> None:
        case = self.open_case()
        finding = self.open().look(case.reference)
        assert finding == "pending", f"nobody has decided the case, but it is {finding!r}"

    def test_an_approval_is_found(self) -> None:
        self.require_capability("can_decide")
        case = self.open_case()
        self.decide(case.reference, "approved")
        findings = [self.open().look(case.reference) for _ in range(2)]
        assert findings == ["approved"] * 2, f"the case was approved, but is {findings}"

    def test_a_rejection_is_found(self) -> None:
        self.require_capability("can_decide")
        case = self.open_case()
        self.decide(case.reference, "rejected")
        findings = [self.open().look(case.reference) for _ in range(2)]
        assert findings == ["rejected"] * 2, f"the case was rejected, but is {findings}"

    def test_cases_are_decided_each_alone(self) -> None:
        self.require_capability("can_decide")
        decided, other = self.open_case(), self.open_case()
        self.decide(decided.reference, "approved")
        finding = self.open().look(other.reference)
        assert finding == "pending", f"another case was approved, but this one is {finding!r}"

    def test_a_start_after_the_decision_changes_nothing(self) -> None:
        self.require_capability("can_decide")
        request = self.new_request()
        case = self.open().start(request)
        self.decide(case.reference, "approved")
        try:
            again = self.open().start(request)
        except KycUnavailable:  # some providers show an ended case to nobody
            return
        assert again.reference == case.reference, "a repeat must not open another case"
        assert self.open().look(case.reference) == "approved", "the decision must stand"

    def test_a_case_of_nobody_is_not_rejected(self) -> None:
        unknown = f"{self.open_case().reference}0"
        require_unavailable(
            lambda: self.open().look(unknown), "a look at a case that does not exist"
        )

    def test_a_provider_that_is_down_is_unavailable(self) -> None:
        self.require_capability("can_fail")
        opened, case = self.open(), self.open_case()
        self.fail()
        require_unavailable(lambda: opened.start(self.new_request()), "a start")
        require_unavailable(lambda: opened.look(case.reference), "a look")
        self.restore()
        assert opened.look(case.reference) == "pending", "the case must be there again"
