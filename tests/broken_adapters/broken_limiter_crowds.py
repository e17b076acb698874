"""Limiters that each break one promise to crowds, or about failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from payments_core.clock import Instant
from payments_core.limiters.port import LimiterUnavailable, PolicyCheck, PolicyState
from tests.broken_adapters.broken_limiters import Plain, Server

# --- Crowds ---------------------------------------------------------------------------------------


class Racy(Plain):
    """Reads, and writes later."""

    def exclusion(self) -> AbstractContextManager[object]:
        return nullcontext()

    def cost(self, policy_check: PolicyCheck, before: int) -> int:
        time.sleep(0)
        return super().cost(policy_check, before)


class LocksKeyByKey(Plain):
    """And keeps the locks until the end, in the order in which the caller names the keys."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.locks: dict[str, threading.Lock] = {}

    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        with self.in_order(policy_checks):
            return super().check(policy_checks, now)

    @contextmanager
    def in_order(self, policy_checks: Sequence[PolicyCheck]) -> Iterator[None]:
        taken = []
        for policy_check in policy_checks:
            lock = self.locks.setdefault(policy_check.key, threading.Lock())
            lock.acquire()
            taken.append(lock)
            time.sleep(0)
        yield
        for lock in taken:
            lock.release()


class CountsForItself(Plain):
    """Each handle."""

    def __init__(self, server: Server) -> None:
        super().__init__(Server())


class ClosingForgets(Plain):
    def close(self) -> None:
        super().close()
        self.server.counters.clear()


# --- Failures -------------------------------------------------------------------------------------


class AnswersAfterClosing(Plain):
    def close(self) -> None:
        pass


class CannotBeClosedTwice(Plain):
    def close(self) -> None:
        assert not self.closed
        super().close()


class RaisesWhatTheDriverRaises(Plain):
    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        try:
            return super().check(policy_checks, now)
        except LimiterUnavailable:
            raise ConnectionError from None


class AdmitsWhereItCannotSay(Plain):
    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        try:
            return super().check(policy_checks, now)
        except LimiterUnavailable:
            return [
                PolicyState(
                    True, policy_check.limit, policy_check.limit, self.window_end(policy_check, now)
                )
                for policy_check in policy_checks
            ]


class TakesItsTime(Plain):
    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        if self.server.silent:
            threading.Event().wait(1.2)
        return super().check(policy_checks, now)


class NeverComesBack(Plain):
    failed = False

    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        self.failed = self.failed or self.server.silent
        if self.failed:
            raise LimiterUnavailable
        return super().check(policy_checks, now)


class ComesBackEmpty(Plain):
    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        if self.server.silent:
            self.server.counters.clear()
        return super().check(policy_checks, now)


class CountsAloneMeanwhile(Plain):
    """After many failures it takes the counting into its own hands."""

    failures = 0

    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        self.failures = self.failures + 1 if self.server.silent else 0
        if self.failures > 30:
            return Plain(Server()).check(policy_checks, now)
        return super().check(policy_checks, now)
