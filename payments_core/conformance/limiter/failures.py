"""No answer: what a limiter does when it cannot say."""

from __future__ import annotations

import time

from payments_core.conformance.limiter.setting import (
    Setting,
    a_policy,
    count,
    fill,
    look,
    require,
)
from payments_core.limiters.port import Limiter, LimiterUnavailable


class FailureChecks(Setting):
    """It says so soon, in one way only, and comes back by itself."""

    def test_a_closed_limiter_is_unavailable(self) -> None:
        limiter = self.start()
        count(limiter, a_policy())
        limiter.close()
        self._require_unavailable(limiter)
        limiter.close()

    def test_silence_is_unavailable_and_soon_each_time(self) -> None:
        self.require("can_fail")
        known, fresh = self.start(), self.start()
        count(known, a_policy())
        self.fail()
        try:
            for _ in range(12):
                self._require_unavailable(known)
                self._require_unavailable(fresh)
        finally:
            self.mend()

    def test_it_comes_back_by_itself_with_its_counters(self) -> None:
        self.require("can_fail")
        limiter = self.start()
        fill(limiter, a_policy())
        self.fail()
        try:
            for _ in range(12):
                self._require_unavailable(limiter)
        finally:
            self.mend()
        self._wait_until_mended(limiter)
        require(count(limiter, a_policy()), admitted=False)

    def test_it_does_not_come_back_while_it_is_silent(self) -> None:
        self.require("can_fail")
        limiter = self.start()
        self.fail()
        try:
            deadline = time.monotonic() + 1.5
            while time.monotonic() < deadline:
                self._require_unavailable(limiter)
        finally:
            self.mend()
        self._wait_until_mended(limiter)

    def _require_unavailable(self, limiter: Limiter) -> None:
        began = time.monotonic()
        try:
            standings = limiter.check([a_policy()], 0)
        except LimiterUnavailable:
            took = time.monotonic() - began
            assert took < self.unavailable_within_s, f"it took {took:.3f} s to say so"
            return
        except Exception as error:
            raise AssertionError(f"{error!r} came out, not LimiterUnavailable") from error
        raise AssertionError(f"it answered {standings}")

    def _wait_until_mended(self, limiter: Limiter) -> None:
        deadline = time.monotonic() + self.mended_within_s
        while True:
            try:
                look(limiter, a_policy("mended"))
            except LimiterUnavailable:
                assert time.monotonic() < deadline, "it does not come back by itself"
            else:
                return
