"""A screening provider that hangs: its transfers are held, and no thread or lane waits for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from payments_core.screening import bounded
from payments_core.screening.port import ScreeningRequest, Verdict
from tests.service.screening.desk import Desk
from tests.service.screening.owners import RELEASED, send
from tests.service.world import World


class HangingDesk(Desk):
    """Answers nobody while `answers` is not set."""

    answers = threading.Event()

    def screen(self, request: ScreeningRequest) -> Verdict:
        verdict = super().screen(request)
        assert self.answers.wait(30)
        return verdict


@pytest.fixture
def desk(memory_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[HangingDesk]:
    monkeypatch.setattr(bounded, "ANSWER_LIMIT_S", 0.05)
    desk = HangingDesk(memory_world.clock)
    memory_world.service = memory_world.restarted(screening=desk)
    desk.answers = threading.Event()
    yield desk
    desk.answers.set()


def test_a_transfer_is_held_and_goes_on_when_the_provider_answers(
    memory_world: World, desk: HangingDesk
) -> None:
    world = memory_world
    world.fund("100.00")
    id = send(world, "1.00")
    world.run()
    assert "in_review" in world.paid(id).labels
    world.advance(600)
    assert world.paid(id).status == "processing"
    desk.answers.set()
    world.advance(3_600)
    assert world.paid(id).status == "succeeded"


def test_few_calls_hang_at_once_however_often_it_is_asked(
    memory_world: World, desk: HangingDesk
) -> None:
    world = memory_world
    world.fund("100.00")
    ids = [send(world, "1.00") for _ in range(3)]
    for _ in range(20):
        world.advance(60)
    assert len(desk.asked) == bounded.MAX_LATE
    assert all("in_review" in world.paid(id).labels for id in ids)
    assert desk.references == [RELEASED] * bounded.MAX_LATE
