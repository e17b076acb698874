"""No answer: the behaviour of a limiter that cannot decide."""

from __future__ import annotations

import time

from payments_core.conformance.limiter.harness import (
    Harness,
    check_once,
    exhaust,
    new_check,
    peek,
    require_state,
)
from payments_core.limiters.port import Limiter, LimiterUnavailable


class FailureChecks(Harness):
    """A limiter reports a failure soon, in only one way, and recovers by itself."""

    def test_a_closed_limiter_is_unavailable(self) -> None:
        limiter = self.open_handle()
        check_once(limiter, new_check())
        limiter.close()
        self._require_unavailable(limiter)
        limiter.close()

    def test_silence_is_unavailable_and_soon_each_time(self) -> None:
        self.require_capability("can_fail")
        known, fresh = self.open_handle(), self.open_handle()
        check_once(known, new_check())
        self.fail()
        try:
            for _ in range(12):
                self._require_unavailable(known)
                self._require_unavailable(fresh)
        finally:
            self.restore()

    def test_it_comes_back_by_itself_with_its_counters(self) -> None:
        self.require_capability("can_fail")
        limiter = self.open_handle()
        exhaust(limiter, new_check())
        self.fail()
        try:
            for _ in range(12):
                self._require_unavailable(limiter)
        finally:
            self.restore()
        self._wait_until_recovered(limiter)
        require_state(check_once(limiter, new_check()), admitted=False)

    def test_it_does_not_come_back_while_it_is_silent(self) -> None:
        self.require_capability("can_fail")
        limiter = self.open_handle()
        self.fail()
        try:
            deadline = time.monotonic() + 1.5
            while time.monotonic() < deadline:
                self._require_unavailable(limiter)
        finally:
            self.restore()
        self._wait_until_recovered(limiter)

    def _require_unavailable(self, limiter: Limiter) -> None:
        began = time.monotonic()
        try:
            policy_states = limiter.check([new_check()], 0)
        except LimiterUnavailable:
            took = time.monotonic() - began
            assert took < self.unavailable_within_s, (
                f"it took {took:.3f} s to report that the limiter is unavailable"
            )
            return
        except Exception as error:
            raise AssertionError(f"{error!r} was raised, not LimiterUnavailable") from error
        raise AssertionError(f"it answered {policy_states}")

    def _wait_until_recovered(self, limiter: Limiter) -> None:
        deadline = time.monotonic() + self.recovers_within_s
        while True:
            try:
                peek(limiter, new_check("mended"))
            except LimiterUnavailable:
                assert time.monotonic() < deadline, "the limiter must recover without a restart"
            else:
                return
