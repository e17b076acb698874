"""Plays the steps: every customer goes through each, while our processes die at its calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

import attrs

from tests.going_live.customers import Customer, Stage
from tests.going_live.deployment import wait_until
from tests.going_live.kills import MOMENTS, Call, Kill, Moment
from tests.going_live.steps import NODE, OTHER_NODE, Rotation, Step

CALLED_S = 90.0
"""A call that is to die comes within this time, a restart of both processes included."""
THROUGH_S = 120.0


class NotThrough(Exception):
    """A customer did not come through a step, or a call of it was never made."""


@attrs.frozen
class Passage:
    """A customer that came through a step: the kills, and the seconds from the last one on. The
    chain's finality is in these."""

    step: str
    customer: str
    kills: Sequence[Kill]
    recovery_s: float


def play(
    stage: Stage, steps: Sequence[Step | Rotation], say: Callable[[str], None]
) -> list[Passage]:
    """All customers through all steps, in an order of the seed. Raises NotThrough."""
    passages = []
    for step in steps:
        began = time.monotonic()
        if isinstance(step, Rotation):
            stage.live.rotate_signer()
            say(f"{step.name}: {step.does} ({time.monotonic() - began:.1f} s)")
            continue
        for customer in stage.chance.sample(stage.customers, len(stage.customers)):
            passages.append(_pass(stage, step, customer))
        say(f"{step.name}: {len(stage.customers)} through ({time.monotonic() - began:.1f} s)")
    return passages


def _pass(stage: Stage, step: Step, customer: Customer) -> Passage:
    wait_until(stage.live.is_ready, CALLED_S, "all processes are ready again")
    groups = [list(chain.from_iterable(_kills(stage, customer, c) for c in group))
              for group in step.calls]  # fmt: skip
    acting = _Acting(stage, step, customer)
    began = time.monotonic()
    for number, kills in enumerate(groups):
        stage.live.kills.order(kills)
        if number == 0:
            acting.start()
        if not stage.live.kills.wait(kills, CALLED_S):
            left = [f"{one.call.name} {one.moment}" for one in stage.live.kills.withdraw()]
            raise NotThrough(f"{customer.name} in {step.name}: nobody was killed at {left}"
                             f" {acting.failure or ''}")  # fmt: skip
    if not groups:
        acting.start()
    acting.end()
    try:
        wait_until(lambda: step.is_through(stage, customer), THROUGH_S, step.name)
    except TimeoutError as error:
        raise NotThrough(f"{customer.name}: {error}") from error
    customer.passed.add(step.name)
    kills = list(chain.from_iterable(groups))
    last = max((one.struck_at or began for one in kills), default=began)
    return Passage(step.name, customer.name, kills, time.monotonic() - last)


def _kills(stage: Stage, customer: Customer, call: Call) -> list[Kill]:
    """Both moments of a call, in an order of the seed if there is a choice."""
    nodes = {NODE: stage.chain_of, OTHER_NODE: stage.other_chain_of}
    if call.provider in nodes:
        node = f"{NODE}-{nodes[call.provider](customer).chain_id}"
        call = attrs.evolve(call, provider=node)
    moments: list[Moment] = list(MOMENTS)
    if call.repeated:
        stage.chance.shuffle(moments)
    return [Kill(call, moment) for moment in moments]


class _Acting(threading.Thread):
    """What a customer does, while processes die."""

    def __init__(self, stage: Stage, step: Step, customer: Customer) -> None:
        super().__init__(name=f"{step.name} of {customer.name}", daemon=True)
        self._act = partial(step.act, stage, customer)
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            self._act()
        except Exception as error:  # whatever it is, the customer is not through
            self.failure = error

    def end(self) -> None:
        """Wait for it. Raises NotThrough."""
        self.join(THROUGH_S)
        if self.failure is not None or self.is_alive():
            raise NotThrough(f"{self.name}: {self.failure or 'still under way'}")
