"""Payers, partners and the worker at once: one option is selected, and a hint is one hint."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from payments_core.payments.options.submissions import MAX_SUBMISSIONS
from tests.service.payer import Payer
from tests.service.payments.test_concurrency import at_once, kinds
from tests.service.world import World, atomic

THREADS = 12
FULL = atomic("25.00")


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0002)
    yield
    sys.setswitchinterval(before)


def test_twelve_options_at_once_are_ten(world: World) -> None:
    payer = Payer(world)
    outcomes = at_once([payer.another] * THREADS)
    assert kinds(outcomes) == {"OptionDetails": 10, "PaymentOptionLimitReached": 2}
    assert len(set(payer.paid().option_ids)) == 10


def test_twelve_of_one_kind_at_once_are_one(world: World) -> None:
    payer = Payer(world)
    outcomes = at_once([payer.option] * THREADS)
    assert kinds(outcomes) == {"OptionDetails": THREADS}
    assert len(payer.paid().option_ids) == 1


def test_of_two_that_are_selected_at_once_one_is(world: World) -> None:
    for _ in range(4):
        payer = Payer(world)
        options = [payer.option(), payer.another()]
        at_once(
            [
                *(lambda payer=payer, option=option: payer.select(option) for option in options),
                lambda payer=payer: world.option(payer.payment),
            ]
        )
        selected = [one for one in options if payer.now(one).selection_status == "selected"]
        assert len(selected) <= 1
        if selected:
            assert payer.paid().selected_option_id == selected[0].option.id
        else:
            assert payer.paid().selected_option_id in payer.paid().option_ids


def test_a_choice_an_authorization_and_a_cancellation_at_once_end_in_one_way(
    world: World,
) -> None:
    for _ in range(4):
        payer = Payer(world)
        option, vault = payer.option(), world.option(payer.payment)
        at_once(
            [
                lambda payer=payer, option=option: payer.select(option),
                lambda vault=vault: world.authorize(vault),
                lambda payer=payer: world.resources.payments.cancel(payer.id),
            ]
        )
        found = payer.paid()
        if found.authorized:
            assert (found.status, found.selected_option_id) == ("processing", vault.option.id)
            world.resources.payments.cancel(payer.id)
        assert world.held()[1] == 0


def test_one_hint_sent_by_many_is_looked_at_once_and_the_cap_holds(world: World) -> None:
    payer = Payer(world)
    option = payer.option()
    hash = payer.pay()
    outcomes = at_once([lambda: payer.submit(option, hash)] * 4 + [world.run])
    assert kinds(outcomes)["OptionDetails"] == 4
    hashes = [f"0x{number:064x}" for number in range(THREADS)]
    outcomes = at_once([lambda hash=hash: payer.submit(option, hash) for hash in hashes])
    assert kinds(outcomes) == {"OptionDetails": MAX_SUBMISSIONS - 1, "ResourceConflict": 8}
    world.finish()
    assert payer.status(option) == ("succeeded", None, FULL)
    assert payer.paid().received_atomic == FULL


def test_dust_that_is_seen_while_the_choice_changes_is_counted_once(world: World) -> None:
    other_process = world.restarted()
    for _ in range(2):
        payer = Payer(world)
        option, other = payer.select(payer.option()), payer.another()
        payer.submit(option, payer.pay("0.000001"))
        outcomes = at_once(
            [
                lambda: other_process.worker("sandbox").run_until_idle(),
                lambda payer=payer, other=other: payer.select(other),
                lambda payer=payer: world.option(payer.payment),
            ]
        )
        assert set(kinds(outcomes)) <= {
            "int",
            "OptionDetails",
            "OptionLocked",
        }
        world.finish()
        payer.select(other)  # nothing locks any more, however they met
        found = payer.paid()
        assert (found.received_atomic, found.counted_atomic, found.sighted) == (1, 1, ())
        assert [payer.status(one)[2] for one in (option, other)] == [1, 0]
