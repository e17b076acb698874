"""Notices of kind `screening`: the held transfers of a case are looked at at once."""

from __future__ import annotations

import pytest

from payments_core.clock import HOUR
from payments_core.storage.port import Storage
from tests.service.notices.office import new_id, notice
from tests.service.screening.desk import case_of
from tests.service.screening.owners import (
    RELEASED,
    Case,
    begin_release,
    begin_send,
    list_held,
    screened,
)
from tests.service.world import World


@pytest.fixture
def held(storage: Storage) -> Case:
    """A send that has been in review for hours, so that its next look is far away."""
    world, desk = screened(storage)
    desk.says[RELEASED] = "review"
    case = begin_send(world, desk)
    world.run()
    world.advance(10 * 3_600)
    desk.asked.clear()
    return case


def report(world: World, reference: str) -> dict[str, str]:
    """A notice of the case; what became of all notices."""
    door = world.service.parts.provider_notices
    door.receive("sandbox", "screening", "desk", *notice((new_id(), case_of(reference))))
    world.run()
    return {
        one.reference: one.status
        for status in ("received", "routed", "unknown")
        for one in door.list("sandbox", status).records
    }


def test_a_notice_brings_the_look_forward(held: Case) -> None:
    held.desk.says.clear()
    assert report(held.world, RELEASED) == {case_of(RELEASED): "routed"}
    assert held.is_signed
    assert held.desk.references == [RELEASED]


def test_all_that_one_case_holds_is_looked_at(storage: Storage) -> None:
    world, desk = screened(storage)
    world.fund("100.00")
    desk.says[RELEASED] = "review"
    cases = [begin_send(world, desk), begin_release(world, desk), begin_send(world, desk)]
    world.advance(3 * 3_600)
    assert [one.in_review for one in cases] == [True] * 3
    desk.says.clear()
    report(world, RELEASED)
    assert [one.is_signed for one in cases] == [True] * 3
    assert list_held(world) == []


def test_a_notice_of_a_case_that_is_still_in_review_signs_nothing(held: Case) -> None:
    report(held.world, RELEASED)
    assert (held.in_review, held.is_signed) == (True, False)
    assert held.desk.references == [RELEASED]


def test_a_verdict_that_counts_on_is_asked_for_again_after_its_notice(storage: Storage) -> None:
    world, desk = screened(storage)
    case = begin_send(world, desk)
    world.run()
    assert case.is_signed
    desk.says[RELEASED] = "blocked"
    again = begin_send(world, desk)
    world.run()
    assert again.is_signed  # by the verdict of an hour
    world.advance(HOUR // 1_000)
    stopped = begin_send(world, desk)
    world.run()
    assert (stopped.status, stopped.is_signed) == ("action_required", False)
    desk.says.clear()
    report(world, RELEASED)
    assert stopped.status == "action_required"  # nobody has requested it again


def test_a_case_that_nobody_knows_is_kept(held: Case) -> None:
    world = held.world
    assert report(world, "nobody") == {case_of("nobody"): "received"}
    world.advance(3_600)
    door = world.service.parts.provider_notices
    assert [one.reference for one in door.list("sandbox").records] == [case_of("nobody")]


def test_without_a_notice_the_provider_is_asked_less_and_less_often(storage: Storage) -> None:
    world, desk = screened(storage)
    desk.says[RELEASED] = "review"
    begin_send(world, desk)
    world.run()
    world.advance(24 * 3_600)
    first_day = len(desk.asked)
    assert 10 <= first_day <= 40
    world.advance(7 * 24 * 3_600)
    assert len(desk.asked) - first_day <= 7 * 4
