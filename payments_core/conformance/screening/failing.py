"""The promises of a provider that fails: no answer is never a verdict, least of all `clear`."""

from __future__ import annotations

import threading
from queue import Empty, Queue

from payments_core.conformance.screening.harness import Harness, require_unavailable
from payments_core.screening.port import ScreeningUnavailable, Verdict


class FailureChecks(Harness):
    """What is not answered, or not understood, raises ScreeningUnavailable, and soon."""

    def test_a_provider_that_is_down_is_unavailable(self) -> None:
        self.require_capability("can_fail")
        opened, request = self.open(), self.new_request()
        self.fail()
        require_unavailable(lambda: opened.screen(request), "a screening")
        self.restore()
        assert opened.screen(request).outcome == "clear", "a repeat must find the provider again"

    def test_a_failure_does_not_name_the_subject(self) -> None:
        self.require_capability("can_fail")
        request = self.new_request(self.new_subject("bank_account"))
        self.fail()
        error = require_unavailable(lambda: self.open().screen(request), "a screening")
        said = f"{error} {error!r}"
        self.restore()
        assert request.subject.reference not in said, (
            "an error is logged; a subject may be a person"
        )

    def test_after_a_lost_answer_the_key_finds_its_case(self) -> None:
        self.require_capability("can_lose_answers")
        self.require_capability("can_judge")
        request, opened = self.new_request(), self.open()
        self.judge(request.subject, "review")
        before = self.count_cases() if self.can_count_cases else None
        self.lose_next_answer()
        require_unavailable(lambda: opened.screen(request), "a screening whose answer was lost")
        found = {opened.screen(request).case, self.open().screen(request).case}
        assert len(found) == 1, "a repeat must find the case that was opened before"
        if before is not None:
            assert self.count_cases() == before + 1, "the lost call must not leave another case"

    def test_a_provider_that_hangs_is_unavailable(self) -> None:
        self.require_capability("can_hang")
        opened, request = self.open(), self.new_request()
        ended: Queue[Exception | Verdict] = Queue()

        def screen() -> None:
            try:
                ended.put(opened.screen(request))
            except Exception as error:
                ended.put(error)

        self.hang()
        threading.Thread(target=screen, daemon=True).start()
        try:
            end = ended.get(timeout=self.answer_limit_s)
        except Empty:
            raise AssertionError(f"a screening must end in {self.answer_limit_s} s") from None
        finally:
            self.restore()
        assert isinstance(end, ScreeningUnavailable), f"it must be unavailable, not {end!r}"

    def test_nonsense_is_no_verdict(self) -> None:
        self.require_capability("can_answer_nonsense")
        opened, request = self.open(), self.new_request()
        self.answer_nonsense()
        require_unavailable(lambda: opened.screen(request), "a screening that is not understood")
        self.restore()
        assert opened.screen(request).outcome == "clear", "a repeat must find the provider again"
