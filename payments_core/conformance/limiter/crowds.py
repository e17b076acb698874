"""Many at once: threads, handles and processes that count the same keys."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from payments_core.conformance.limiter.setting import (
    START,
    Setting,
    a_policy,
    count,
    fill,
    look,
    require,
)
from payments_core.limiters.port import Ask, Limiter

CHILD = "payments_core.conformance.limiter.child"
THREADS = 16
ROUNDS = 40


class CrowdChecks(Setting):
    """However many ask at once, no window admits one too many, and none is lost."""

    def test_sixteen_threads_never_get_one_too_many(self) -> None:
        limiter = self.start()
        for number in range(ROUNDS):
            ask = a_policy(f"round:{number}", limit=THREADS * 3 // 2)
            inside = sum(self._by_threads(limiter, [ask], each=3))
            assert inside == ask.limit, f"{inside} were admitted, and the limit is {ask.limit}"

    def test_no_count_of_a_thread_is_lost(self) -> None:
        limiter, each = self.start(), 50
        asks = [a_policy(f"policy:{number}", limit=THREADS * each + 1) for number in range(6)]
        self._by_threads(limiter, asks, each=each)
        for ask in asks:
            require(look(limiter, ask), remaining=1)

    def test_threads_that_ask_in_another_order_do_not_wait_for_each_other(self) -> None:
        limiter = self.start()
        asks = [a_policy(f"policy:{number}", limit=1_000_000) for number in range(6)]
        self._by_threads(limiter, asks, each=20, turned=True)
        for ask in asks:
            require(look(limiter, ask), remaining=ask.limit - THREADS * 20)

    def test_one_of_many_threads_begins_the_block(self) -> None:
        limiter = self.start()
        for number in range(ROUNDS // 4):
            ask = a_policy(f"abuse:{number}", limit=5, block_ms=10**7)
            inside = sum(self._by_threads(limiter, [ask], each=1))
            assert inside == ask.limit, f"{inside} were admitted, and the limit is {ask.limit}"
            require(look(limiter, ask), admitted=False, reset_at=START + 10**7)

    def test_handles_count_together(self) -> None:
        self.require("shared")
        one, other = self.start(), self.start()
        fill(one, a_policy())
        require(count(other, a_policy()), admitted=False)
        abuse = a_policy("abuse", limit=0, block_ms=10**7)
        count(other, abuse)
        require(look(one, abuse, START + 10**6), admitted=False, reset_at=START + 10**7)

    def test_what_a_closed_handle_counted_is_still_counted(self) -> None:
        self.require("shared")
        fill(self.start(), a_policy())
        self._opened.pop().close()
        require(count(self.start(), a_policy()), admitted=False)

    def test_processes_never_get_one_too_many(self) -> None:
        self.require("shared")
        address, limit = self.address(), 500
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
                assert child.stdout.readline() == "ready\n", "a process cannot open the limiter"
            outputs = [child.communicate(timeout=self.hang_s)[0] for child in _told(children)]
        finally:
            for child in children:
                child.kill()  # does nothing to those that have ended
                child.communicate()
        inside = sum(map(int, outputs))
        assert inside == limit, f"{inside} were admitted, and the limit is {limit}"

    def _by_threads(
        self, limiter: Limiter, asks: Sequence[Ask], *, each: int, turned: bool = False
    ) -> list[int]:
        """How many of its requests each thread had admitted by the first ask."""
        start = threading.Barrier(THREADS)
        inside: list[int] = [0] * THREADS
        errors: list[BaseException] = []

        def run(place: int) -> None:
            order = list(asks)
            if turned:
                order = order[place % len(order) :] + order[: place % len(order)]
            start.wait(self.hang_s)
            try:
                for _ in range(each):
                    inside[place] += limiter.check(order, START)[0].admitted
            except BaseException as error:
                errors.append(error)

        with _quick_switches():
            threads = [
                threading.Thread(target=run, args=(place,), daemon=True) for place in range(THREADS)
            ]
            for thread in threads:
                thread.start()
            deadline = time.monotonic() + self.hang_s
            for thread in threads:
                thread.join(max(0, deadline - time.monotonic()))
        for error in errors:
            raise AssertionError(f"a thread failed: {error!r}") from error
        assert not any(thread.is_alive() for thread in threads), "a thread hangs"
        return inside


def _told(children: Sequence[subprocess.Popen[str]]) -> Sequence[subprocess.Popen[str]]:
    """All are told to begin before any is waited for."""
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    return children


@contextmanager
def _quick_switches() -> Iterator[None]:
    """Let threads change places far more often than they do by themselves."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
