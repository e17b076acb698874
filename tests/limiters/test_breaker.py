"""The circuit breaker, on a clock that the test moves."""

from __future__ import annotations

import pytest

from payments_core.limiters.breaker import CircuitBreaker
from payments_core.limiters.port import LimiterUnavailable


class Trial:
    """A breaker, and what is under it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.tried = 0
        self.breaker = CircuitBreaker(failures=3, pause_s=1, clock=lambda: self.now)

    def attempt(self, *, works: bool) -> bool:
        """Whether it was tried."""
        before = self.tried
        try:
            with self.breaker.attempt():
                self.tried += 1
                if not works:
                    raise ConnectionError
        except (ConnectionError, LimiterUnavailable):
            pass
        return self.tried > before


def test_after_three_failures_in_a_row_nothing_is_tried_for_a_while() -> None:
    trial = Trial()
    assert [trial.attempt(works=False) for _ in range(5)] == [True, True, True, False, False]
    trial.now = 0.99
    assert not trial.attempt(works=True)
    trial.now = 1.0
    assert trial.attempt(works=True)
    assert [trial.attempt(works=True) for _ in range(3)] == [True] * 3


def test_a_success_between_failures_begins_the_count_again() -> None:
    trial = Trial()
    for _ in range(3):
        assert trial.attempt(works=False)
        assert trial.attempt(works=False)
        assert trial.attempt(works=True)


def test_a_probe_that_fails_begins_another_pause() -> None:
    trial = Trial()
    for _ in range(3):
        trial.attempt(works=False)
    for second in (1, 2, 3):
        trial.now = second
        assert trial.attempt(works=False)
        assert not trial.attempt(works=True)


def test_one_probe_goes_through_at_a_time() -> None:
    trial = Trial()
    for _ in range(3):
        trial.attempt(works=False)
    trial.now = 1
    with trial.breaker.attempt():
        assert not trial.attempt(works=True)
    assert trial.attempt(works=True)


def test_a_probe_that_never_ends_is_followed_by_another() -> None:
    trial = Trial()
    for _ in range(3):
        trial.attempt(works=False)
    trial.now = 1
    hanging = trial.breaker.attempt()
    hanging.__enter__()
    trial.now = 2
    assert trial.attempt(works=True)
    hanging.__exit__(None, None, None)


def test_the_child_of_a_fork_starts_afresh() -> None:
    trial = Trial()
    for _ in range(3):
        trial.attempt(works=False)
    trial.breaker.reset_after_fork()
    assert trial.attempt(works=True)


def test_what_is_raised_comes_out_as_it_was() -> None:
    with pytest.raises(ZeroDivisionError), CircuitBreaker().attempt():
        _ = 1 // 0
