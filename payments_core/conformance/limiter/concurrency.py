"""Concurrency: threads, handles and processes that count the same keys."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from payments_core.conformance.limiter.harness import (
    START,
    Harness,
    check_once,
    exhaust,
    new_check,
    peek,
    require_state,
)
from payments_core.limiters.port import Limiter, PolicyCheck

CHILD = "payments_core.conformance.limiter.child"
THREADS = 16
ROUNDS = 40


class ConcurrencyChecks(Harness):
    """With any number of concurrent calls, no window admits too many, and no count is lost."""

    def test_sixteen_threads_never_get_one_too_many(self) -> None:
        limiter = self.open_handle()
        for number in range(ROUNDS):
            policy_check = new_check(f"round:{number}", limit=THREADS * 3 // 2)
            inside = sum(self._check_from_threads(limiter, [policy_check], each=3))
            assert inside == policy_check.limit, (
                f"{inside} requests were admitted, but the limit is {policy_check.limit}"
            )

    def test_no_count_of_a_thread_is_lost(self) -> None:
        limiter, each = self.open_handle(), 50
        policy_checks = [
            new_check(f"policy:{number}", limit=THREADS * each + 1) for number in range(6)
        ]
        self._check_from_threads(limiter, policy_checks, each=each)
        for policy_check in policy_checks:
            require_state(peek(limiter, policy_check), remaining=1)

    def test_threads_that_ask_in_another_order_do_not_wait_for_each_other(self) -> None:
        limiter = self.open_handle()
        policy_checks = [new_check(f"policy:{number}", limit=1_000_000) for number in range(6)]
        self._check_from_threads(limiter, policy_checks, each=20, turned=True)
        for policy_check in policy_checks:
            require_state(peek(limiter, policy_check), remaining=policy_check.limit - THREADS * 20)

    def test_one_of_many_threads_begins_the_block(self) -> None:
        limiter = self.open_handle()
        for number in range(ROUNDS // 4):
            policy_check = new_check(f"abuse:{number}", limit=5, block_ms=10**7)
            inside = sum(self._check_from_threads(limiter, [policy_check], each=1))
            assert inside == policy_check.limit, (
                f"{inside} requests were admitted, but the limit is {policy_check.limit}"
            )
            require_state(peek(limiter, policy_check), admitted=False, reset_at=START + 10**7)

    def test_handles_count_together(self) -> None:
        self.require_capability("shared")
        one, other = self.open_handle(), self.open_handle()
        exhaust(one, new_check())
        require_state(check_once(other, new_check()), admitted=False)
        abuse = new_check("abuse", limit=0, block_ms=10**7)
        check_once(other, abuse)
        require_state(peek(one, abuse, START + 10**6), admitted=False, reset_at=START + 10**7)

    def test_what_a_closed_handle_counted_is_still_counted(self) -> None:
        self.require_capability("shared")
        exhaust(self.open_handle(), new_check())
        self._opened.pop().close()
        require_state(check_once(self.open_handle(), new_check()), admitted=False)

    def test_processes_never_get_one_too_many(self) -> None:
        self.require_capability("shared")
        address, limit = self.location(), 500
        children = [
            subprocess.Popen(
                [sys.executable, "-m", CHILD, address.opener, address.url,
                 "processes", str(limit), str(START)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
            for _ in range(4)
        ]  # fmt: skip
        try:
            for child in children:
                assert child.stdout is not None
                assert child.stdout.readline() == "ready\n", (
                    "a second process must be able to open the limiter"
                )
            outputs = [
                child.communicate(timeout=self.hang_timeout_s)[0]
                for child in _start_counting(children)
            ]
        finally:
            for child in children:
                child.kill()  # has no effect on those that have ended
                child.communicate()
        inside = sum(map(int, outputs))
        assert inside == limit, f"{inside} requests were admitted, but the limit is {limit}"

    def _check_from_threads(
        self,
        limiter: Limiter,
        policy_checks: Sequence[PolicyCheck],
        *,
        each: int,
        turned: bool = False,
    ) -> list[int]:
        """How many requests of each thread the first ask admitted."""
        start = threading.Barrier(THREADS)
        inside: list[int] = [0] * THREADS
        errors: list[BaseException] = []

        def run(place: int) -> None:
            order = list(policy_checks)
            if turned:
                order = order[place % len(order) :] + order[: place % len(order)]
            start.wait(self.hang_timeout_s)
            try:
                for _ in range(each):
                    inside[place] += limiter.check(order, START)[0].admitted
            except BaseException as error:
                errors.append(error)

        with _frequent_thread_switches():
            threads = [
                threading.Thread(target=run, args=(place,), daemon=True) for place in range(THREADS)
            ]
            for thread in threads:
                thread.start()
            deadline = time.monotonic() + self.hang_timeout_s
            for thread in threads:
                thread.join(max(0, deadline - time.monotonic()))
        for error in errors:
            raise AssertionError(f"a thread failed: {error!r}") from error
        assert not any(thread.is_alive() for thread in threads), "a thread did not end"
        return inside


def _start_counting(children: Sequence[subprocess.Popen[str]]) -> Sequence[subprocess.Popen[str]]:
    """All are started before any is awaited."""
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    return children


@contextmanager
def _frequent_thread_switches() -> Iterator[None]:
    """Switch threads far more often than by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
