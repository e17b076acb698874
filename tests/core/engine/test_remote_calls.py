"""How many requests wait for others at the same time."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import attrs
import pytest

from payments_core.engine import remote_calls
from payments_core.engine.remote_calls import (
    MAX_WAITING,
    SLOW_S,
    Dependency,
    RemoteCalls,
    TooManyCalls,
)
from payments_core.errors import DependencyFailed
from tests.recorded_waits import RecordedWaits


def enter(calls: RemoteCalls, stack: ExitStack, dependency: Dependency, environment: str) -> None:
    stack.enter_context(calls.acquire(dependency, environment, wait_s=0))


def test_at_least_one_request_must_be_able_to_call() -> None:
    with pytest.raises(ValueError, match="at least one"):
        RemoteCalls(0)


@pytest.mark.parametrize("limit", [1, 2])
def test_a_small_limit_still_lets_one_call(limit: int) -> None:
    with RemoteCalls(limit).acquire("kyc", "env_a"):
        pass


def enter_often(
    calls: RemoteCalls, stack: ExitStack, dependency: Dependency, environment: str
) -> int:
    """How many places an environment can have."""
    for count in itertools.count():
        try:
            enter(calls, stack, dependency, environment)
        except DependencyFailed:
            return count
    raise AssertionError


def test_a_dependency_leaves_a_place_to_others() -> None:
    calls = RemoteCalls(5)
    with ExitStack() as stack:
        for environment in "abcd":
            enter(calls, stack, "kyc", environment)
        with pytest.raises(DependencyFailed) as refused:
            enter(calls, stack, "kyc", "e")
        assert (refused.value.dependency, refused.value.retryable) == ("kyc", True)
        assert isinstance(refused.value.__cause__, TooManyCalls)
        enter(calls, stack, "chain", "e")
        with pytest.raises(DependencyFailed):  # all of them together
            enter(calls, stack, "router", "f")
    with calls.acquire("router", "f", wait_s=0):
        pass


@pytest.mark.parametrize("limit", range(5, 20))
@pytest.mark.parametrize("dependencies", [["chain"], ["chain", "kyc"]])
def test_two_environments_never_have_all_places(limit: int, dependencies: list[Dependency]) -> None:
    calls = RemoteCalls(limit)
    with ExitStack() as stack:
        for environment in ("env_a", "env_b"):
            for dependency in dependencies:
                enter_often(calls, stack, dependency, environment)
        for dependency in dependencies[:1]:
            enter(calls, stack, dependency, "env_c")


def test_an_environment_has_half_of_the_places_at_most() -> None:
    calls = RemoteCalls(5)
    with ExitStack() as stack:
        assert enter_often(calls, stack, "chain", "env_a") == 2
        assert enter_often(calls, stack, "chain", "env_b") == 1
        assert enter_often(calls, stack, "chain", "env_c") == 1


def test_a_call_that_failed_gives_its_place_back() -> None:
    calls = RemoteCalls(1)
    for _ in range(2):
        with pytest.raises(RuntimeError), calls.acquire("kyc", "env_a", wait_s=0):
            raise RuntimeError


def test_requests_wait_a_moment_for_their_turn_and_few_of_them_behind_what_is_slow() -> None:
    calls, inside, leave = RemoteCalls(1), threading.Event(), threading.Event()

    def hold() -> None:
        with calls.acquire("pricing", "env_a"):
            inside.set()
            assert leave.wait(30)

    def follow() -> str:
        with calls.acquire("pricing", "env_b", wait_s=30):
            return "served"

    count = MAX_WAITING + 1  # as many as come while the call is still quick
    with ThreadPoolExecutor(1 + count) as pool:
        pool.submit(hold)
        assert inside.wait(30)
        waiting = [pool.submit(follow) for _ in range(count)]
        while calls.waiting < count:
            threading.Event().wait(0.001)
        threading.Event().wait(SLOW_S)
        with pytest.raises(DependencyFailed), calls.acquire("pricing", "env_c", wait_s=30):
            pass
        leave.set()
        assert [one.result(30) for one in waiting] == ["served"] * count


def test_requests_get_their_turn_in_the_order_of_their_arrival() -> None:
    calls, served = RemoteCalls(1), list[int]()

    def follow(number: int) -> None:
        with calls.acquire("pricing", "env_b", wait_s=30):
            served.append(number)

    with ThreadPoolExecutor(4) as pool, calls.acquire("pricing", "env_a"):
        for number in range(4):
            pool.submit(follow, number)
            while calls.waiting == number:
                threading.Event().wait(0.001)
    assert served == list(range(4))


def test_a_request_announces_its_wait_for_a_place_and_its_call() -> None:
    waits = RecordedWaits()
    calls = RemoteCalls(1, waits)

    def follow() -> int:
        with calls.acquire("pricing", "env_b", wait_s=30):
            return waits.waiting

    with calls.acquire("pricing", "env_a"):
        following = waits.start(follow)
        waits.expect()
    assert following.result(30) == 1
    assert waits.waiting == 0


def stop() -> None:
    raise KeyboardInterrupt


@attrs.frozen
class StoppedGate:
    """Something happens instead of the wait."""

    release: Callable[[], None]
    instead: Callable[[], object]

    def acquire(self, timeout: float) -> object:
        return self.instead()


def wait_as(monkeypatch: pytest.MonkeyPatch, instead: Callable[[], object]) -> None:
    """Have calls call that where they would wait."""
    sound = remote_calls._Call

    def new_call(dependency: Dependency, environment_id: str) -> object:
        call: Any = sound(dependency, environment_id)
        call.gate = StoppedGate(call.gate.release, instead)
        return call

    monkeypatch.setattr(remote_calls, "_Call", new_call)


@pytest.mark.parametrize(
    ("instead", "raised"), [(lambda: False, DependencyFailed), (stop, KeyboardInterrupt)]
)
def test_a_request_that_stops_waiting_leaves_nothing_behind(
    instead: Callable[[], object], raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = RemoteCalls(1)
    wait_as(monkeypatch, instead)
    with calls.acquire("pricing", "env_a"):
        with pytest.raises(raised), calls.acquire("pricing", "env_b"):
            raise AssertionError("there was no place")
        assert calls.waiting == 0
    with calls.acquire("pricing", "env_b", wait_s=0):
        pass


@pytest.mark.parametrize("instead", [lambda: False, stop])
def test_a_place_that_comes_at_the_last_moment_is_taken_or_given_back(
    instead: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, holder, served = RemoteCalls(1), ExitStack(), list[str]()
    enter(calls, holder, "pricing", "env_a")

    def end_and_stop() -> object:
        holder.close()
        return instead()

    wait_as(monkeypatch, end_and_stop)
    with suppress(KeyboardInterrupt), calls.acquire("pricing", "env_b"):
        served.append("env_b")
    assert served == ([] if instead is stop else ["env_b"])
    with calls.acquire("pricing", "env_c", wait_s=0):
        pass
