"""The hooks of an adapter's suite class, and the shared parts of the checks."""

from __future__ import annotations

import unittest
from collections.abc import Sequence

import attrs
from msgspec.structs import replace

from payments_core.clock import HOUR, MINUTE, Instant
from payments_core.limiters.port import Limiter, PolicyCheck, PolicyState

START: Instant = 500_000 * HOUR
"""The instant at which the checks begin: every window that they use begins here too."""


@attrs.frozen
class AdapterLocation:
    """Where another process finds the same counters: `module:function`, called with the URL."""

    opener: str
    url: str


class Harness:
    """Override `open`, declare what the adapter can do, and override the hooks that it needs.

    A check of something undeclared is skipped, and the skip is reported.
    """

    shared: bool = False
    """Several handles, in several processes, count together. Needs `location`."""

    can_fail: bool = False
    """`fail` and `restore` work."""

    unavailable_within_s: float = 0.75
    """How soon a check must report that there is no answer."""

    recovers_within_s: float = 5.0
    """How soon after `restore` a check must succeed again, without help."""

    hang_timeout_s: float = 60.0
    """How long threads and processes may take before they count as hanging."""

    def open(self) -> Limiter:
        """A handle to this test's counters: none at the first call, later the existing ones."""
        raise NotImplementedError  # the adapter's own test class says how

    def location(self) -> AdapterLocation:
        """How another process opens the same counters."""
        raise NotImplementedError  # the adapter's own test class says how

    def fail(self) -> None:
        """Let the limiter's server stop answering, in the worst way: by silence."""
        raise NotImplementedError  # the adapter's own test class says how

    def restore(self) -> None:
        """Undo `fail`."""
        raise NotImplementedError  # the adapter's own test class says how

    # What a test runner calls around each check.

    def setup_method(self) -> None:
        """Before each check."""
        self._opened: list[Limiter] = []

    def teardown_method(self) -> None:
        """After each check."""
        for limiter in self._opened:
            limiter.close()

    # Shared by the checks.

    def open_handle(self) -> Limiter:
        """A handle, closed after the check."""
        limiter = self.open()
        self._opened.append(limiter)
        return limiter

    def require_capability(self, capability: str) -> None:
        """Skip the check unless the adapter declares the capability."""
        if not getattr(self, capability):
            raise unittest.SkipTest(f"the adapter does not declare `{capability}`")


def new_check(
    key: str = "policy:subject",
    *,
    limit: int = 3,
    window_ms: int = MINUTE,
    cost: int = 1,
    block_ms: int = 0,
) -> PolicyCheck:
    """An ask, by default of three per minute."""
    return PolicyCheck(key, limit, window_ms, cost, block_ms)


def check_once(limiter: Limiter, policy_check: PolicyCheck, now: Instant = START) -> PolicyState:
    """The state of the ask after it was counted alone."""
    (policy_state,) = limiter.check([policy_check], now)
    return policy_state


def peek(limiter: Limiter, policy_check: PolicyCheck, now: Instant = START) -> PolicyState:
    """The state of the ask, without counting."""
    return check_once(limiter, replace(policy_check, cost=0), now)


def check_repeatedly(
    limiter: Limiter, policy_check: PolicyCheck, times: int, now: Instant = START
) -> list[bool]:
    """The results of that many requests in turn."""
    return [check_once(limiter, policy_check, now).admitted for _ in range(times)]


def exhaust(limiter: Limiter, policy_check: PolicyCheck, now: Instant = START) -> None:
    """Use up the whole limit."""
    if policy_check.limit:
        policy_state = check_once(limiter, replace(policy_check, cost=policy_check.limit), now)
        require_state(policy_state, admitted=True, remaining=0)


def require_state(policy_state: PolicyState, **expected: object) -> None:
    """The state must have these fields."""
    for name, value in expected.items():
        found = getattr(policy_state, name)
        assert found == value, f"{name} is {found}, not {value}: {policy_state}"


def require_equal(found: Sequence[object], expected: Sequence[object], why: str) -> None:
    """The two must be equal."""
    assert list(found) == list(expected), f"{why}: {list(found)}, not {list(expected)}"
