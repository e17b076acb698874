"""Whatever goes wrong between any two calls, what is held is signed once, or never if blocked."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from payments_core.clock import MINUTE
from payments_core.screening.port import ScreeningRequest, ScreeningUnavailable, Verdict
from payments_core.service import PaymentsService
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.faults import (
    Crashed,
    Fault,
    FaultyStorage,
    commit_failed,
    commit_lost,
    crash,
)
from tests.service.screening.desk import Desk
from tests.service.screening.owners import OWNERS, Case, screened
from tests.service.world import World

STORAGE_FAULTS = {
    "crash": crash,
    "commit lost": commit_lost,
    "commit failed": commit_failed,
}
REPEATABLE = ("release", "release of a sender's", "send", "refund", "return of a receipt")
"""Those that can be requested again and again in one world."""


@pytest.fixture(autouse=True)
def _nothing_is_parked(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.CRITICAL)
    yield
    assert not caplog.records, "a job was parked, or the operator alarmed"


class FaultyDesk:
    """A desk whose `at`-th answer has a fault."""

    def __init__(self, desk: Desk, at: int, fault: Fault) -> None:
        self._desk = desk
        self._at = at
        self._fault = fault
        self.calls = 0

    @property
    def had_its_fault(self) -> bool:
        return self.calls >= self._at

    def screen(self, request: ScreeningRequest) -> Verdict:
        self.calls += 1
        if self.calls != self._at:
            return self._desk.screen(request)
        answer: Verdict = self._fault(lambda: self._desk.screen(request))
        return answer


def away(call: Callable[[], Any]) -> Any:
    raise ScreeningUnavailable("for the moment")


def answer_lost(call: Callable[[], Any]) -> Any:
    call()
    raise ScreeningUnavailable("after it had judged")


def breaks(call: Callable[[], Any]) -> Any:
    raise ValueError("a fault of the adapter")


def says_nonsense(call: Callable[[], Any]) -> Any:
    return "clear"


DESK_FAULTS = {
    "crash": crash,
    "away": away,
    "answer lost": answer_lost,
    "breaks": breaks,
    "nonsense": says_nonsense,
}


def play(case: Case, service: PaymentsService, ends: str) -> None:
    """A review, and its end, in the life of one worker."""
    world, desk = case.world, case.desk
    desk.says[case.subject] = "review"
    with contextlib.suppress(Crashed):
        work(world, service, 3)
        desk.says[case.subject] = ends  # type: ignore[assignment]
        work(world, service, 3)


def recover(case: Case, ends: str) -> None:
    """Another worker goes on: the leases of the dead one end, and the pauses of the hold."""
    case.desk.says[case.subject] = ends  # type: ignore[assignment]
    for seconds in (110, 600, 3_600):
        case.world.advance(seconds)


def work(world: World, service: PaymentsService, minutes: int) -> None:
    worker = service.worker("sandbox")
    worker.run_through(world.clock.now() + minutes * MINUTE, world.clock.advance_to)


def check(case: Case, ends: str, reviews: int) -> None:
    assert case.is_signed is (ends == "clear")
    assert not case.in_review
    assert case.held() == []
    if ends == "blocked":
        assert case.status == case.blocked_as
        assert [held.subject.reference for held in case.held("blocked")] == [case.subject]
        case.decide("clear", "blocked")
    assert case.world.event_names()["payment.in_review"] == reviews


def each_fault(
    owner: str, ends: str, broken: Callable[[Case, int], tuple[PaymentsService, Callable[[], bool]]]
) -> None:
    shared = screened(MemoryStorage())
    for at in range(1, 200):
        world, desk = shared if owner in REPEATABLE else screened(MemoryStorage())
        desk.valid_for_ms = 0
        desk.says.clear()
        world.fund("25.00")
        case = OWNERS[owner](world, desk)
        reviews = world.event_names()["payment.in_review"]
        service, had_its_fault = broken(case, at)
        play(case, service, ends)
        recover(case, ends)
        seen = world.event_names()["payment.in_review"] - reviews
        assert seen <= 1
        check(case, ends, reviews + seen)
        if not had_its_fault():
            assert at > 3
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("ends", ["clear", "blocked"])
@pytest.mark.parametrize("fault", STORAGE_FAULTS)
@pytest.mark.parametrize("owner", ["release", "send", "refund"])
def test_any_call_to_the_storage_may_fail(owner: str, fault: str, ends: str) -> None:
    def broken(case: Case, at: int) -> tuple[PaymentsService, Callable[[], bool]]:
        storage = FaultyStorage(case.world.storage, at, STORAGE_FAULTS[fault], ("transact",))
        return case.world.restarted(storage, screening=case.desk), lambda: storage.had_its_fault

    each_fault(owner, ends, broken)


@pytest.mark.parametrize("ends", ["clear", "blocked"])
@pytest.mark.parametrize("fault", DESK_FAULTS)
@pytest.mark.parametrize("owner", ["release", "refund", "return of a deposit", "on-ramp credit"])
def test_any_call_to_the_provider_may_fail(owner: str, fault: str, ends: str) -> None:
    def broken(case: Case, at: int) -> tuple[PaymentsService, Callable[[], bool]]:
        desk = FaultyDesk(case.desk, at, DESK_FAULTS[fault])
        return case.world.restarted(screening=desk), lambda: desk.had_its_fault

    each_fault(owner, ends, broken)
