"""A chain that says nothing for long: it is asked ever more rarely, and never given up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import attrs
import pytest

from payments_core.chains.port import ChainUnavailable, TransactionView
from payments_core.clock import MINUTE, SECOND, Instant
from payments_core.payments.details import OptionDetails
from payments_core.storage.jobs import NEVER
from tests.service.faults import FaultyChain
from tests.service.world import BASE, World

T = TypeVar("T")

PAUSES_S = [1, 2, 4, 8, 16, 32, 60, 60]
STAGES = [  # of the operation and of the Payment: where each kind of job asks the chain
    ("authorized", "processing"),
    ("broadcast", "processing"),
    ("confirmed", "accepted"),
    ("confirmed", "executing"),
]


class Silent(FaultyChain):
    """A node that can be silenced, and notes when it was asked."""

    def __init__(self, world: World, silent: Callable[[], bool]) -> None:
        super().__init__(world.chain, 0, lambda call: call())
        self._world = world
        self.silent = silent
        self.asked: list[Instant] = []
        self.in_no_block = False
        self.shown = 0

    def transaction(self, hash: str) -> TransactionView | None:
        return self._show(super().transaction(hash))

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        return {hash: self._show(view) for hash, view in super().transactions(hashes).items()}

    def _show(self, view: TransactionView | None) -> TransactionView | None:
        self.shown += self.in_no_block
        if view is not None and self.in_no_block:
            return attrs.evolve(view, block=None, logs=(), succeeded=False)
        return view

    def _through(self, call: Callable[[], T]) -> T:
        if not self.silent():
            return call()
        self.asked.append(self._world.clock.now())
        raise ChainUnavailable("no answer")

    @property
    def pauses_s(self) -> list[int]:
        return [(later - sooner) // SECOND for sooner, later in pairwise(self.asked)]


def fallen_silent(world: World, option: OptionDetails, stage: tuple[str, str]) -> Silent:
    """A chain that answered until the Payment reached that stage."""

    def here() -> bool:
        return stage == (
            world.operation_now(option).status,
            world.paid(option.payment.id).status,
        )

    chain = Silent(world, here)
    world.service = world.restarted(chains={BASE: chain})
    world.leave_scans_to_others()
    while not chain.asked:
        world.advance(1)
    assert here()
    chain.silent = lambda: True
    return chain


@pytest.mark.parametrize("stage", STAGES)
def test_a_silent_chain_is_asked_with_pauses_that_double_up_to_a_minute(
    memory_world: World, stage: tuple[str, str]
) -> None:
    chain = fallen_silent(memory_world, memory_world.authorized(), stage)
    began = chain.asked[0]
    memory_world.advance(600)
    assert chain.pauses_s[: len(PAUSES_S)] == PAUSES_S
    assert set(chain.pauses_s[len(PAUSES_S) :]) == {60}
    assert len([at for at in chain.asked if at <= began + 10 * MINUTE]) < 20


@pytest.mark.parametrize("stage", STAGES)
def test_what_waits_for_a_silent_chain_never_parks_and_goes_on_when_it_speaks(
    memory_world: World, stage: tuple[str, str]
) -> None:
    world = memory_world
    option = world.authorized()
    chain = fallen_silent(world, option, stage)
    world.advance(2 * 3_600)
    assert len(chain.asked) > 100  # far more often than a job may fail
    due = world.storage.next_due("sandbox.chain")
    assert due is not None
    assert due <= world.clock.now() + MINUTE < NEVER
    chain.silent = lambda: False
    world.advance(60)
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"
    assert world.sent() == 2


@pytest.mark.parametrize("stage", [STAGES[1], STAGES[3]])
def test_an_answer_makes_the_pauses_short_again(
    memory_world: World, stage: tuple[str, str]
) -> None:
    """A transaction that is not final yet is watched by the same job."""
    world = memory_world
    option = world.authorized()
    chain = fallen_silent(world, option, stage)
    world.advance(600)
    assert chain.pauses_s[-1] == 60
    silent, chain.silent = chain.silent, lambda: False
    chain.in_no_block = True
    while not chain.shown:  # once: the node is back, and not yet there
        world.advance(1)
    chain.silent, chain.asked = silent, []
    world.advance(120)
    assert chain.pauses_s[:6] == PAUSES_S[:6]
    chain.silent, chain.in_no_block = (lambda: False), False
    world.advance(60)
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"


def test_a_long_silence_is_reported_as_an_alarm(
    memory_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    chain = fallen_silent(memory_world, memory_world.authorized(), STAGES[1])
    memory_world.advance(200)
    assert "ALARM" not in caplog.text
    memory_world.advance(400)
    assert len(chain.asked) > 10
    assert "ALARM" in caplog.text
