"""Plays the steps: every customer goes through each, while our processes die at its calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Literal

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


@attrs.frozen
class Plan:
    """How processes die: at each call of a step, both before and after it, for each customer; or
    for each customer at one of these places in turn, and several customers at once; or nowhere."""

    kills: Literal["all", "one", "none"] = "one"
    at_once: int = 5


def play(
    stage: Stage, steps: Sequence[Step | Rotation], plan: Plan, say: Callable[[str], None]
) -> list[Passage]:
    """All customers through all steps, in an order of the seed. Raises NotThrough."""
    passages: list[Passage] = []
    for step in steps:
        began = time.monotonic()
        if isinstance(step, Rotation):
            stage.live.rotate_signer()
            say(f"{step.name}: {step.does} ({time.monotonic() - began:.1f} s)")
            continue
        passed = _play_step(stage, step, plan)
        passages += passed
        say(f"{step.name}: {len(passed)} through ({time.monotonic() - began:.1f} s)")
    return passages


def _play_step(stage: Stage, step: Step, plan: Plan) -> list[Passage]:
    turn = stage.chance.sample(stage.customers, len(stage.customers))
    if plan.kills == "all":
        return [_pass(stage, step, one, _all_kills(stage, step, one)) for one in turn]
    orders: list[list[list[Kill]]] = [
        _one_kill(stage, step, one, place) if plan.kills == "one" else []
        for place, one in enumerate(turn)
    ]
    with ThreadPoolExecutor(plan.at_once) as pool:
        passed = list(pool.map(partial(_pass, stage, step), turn, orders))
    _require_each_place(step, [kill for groups in orders for group in groups for kill in group])
    return passed


def _pass(
    stage: Stage, step: Step, customer: Customer, groups: Sequence[Sequence[Kill]]
) -> Passage:
    """A customer through a step. A group of kills is ordered when the one before is carried out; of
    customers who go through it at once, all are served by each other's calls."""
    wait_until(stage.live.is_ready, CALLED_S, "all processes are ready again")
    acting = _Acting(stage, step, customer)
    kills = list(chain.from_iterable(groups))
    began = time.monotonic()
    for number, group in enumerate(groups):
        stage.live.kills.order(group)
        if number == 0:
            acting.start()
        if len(groups) > 1 and not stage.live.kills.wait(group, CALLED_S):
            left = [f"{one.call.name} {one.moment}" for one in stage.live.kills.withdraw(kills)]
            raise NotThrough(f"{customer.name} in {step.name}: nobody was killed at {left}"
                             f" {acting.failure or ''}")  # fmt: skip
    if not groups:
        acting.start()
    acting.end()
    try:
        wait_until(lambda: step.is_through(stage, customer), THROUGH_S, step.name)
    except TimeoutError as error:
        raise NotThrough(f"{customer.name}: {error}") from error
    stage.live.kills.withdraw(kills)
    customer.passed.add(step.name)
    struck = [one for one in kills if one.struck_at is not None]
    last = max((one.struck_at or began for one in struck), default=began)
    return Passage(step.name, customer.name, struck, time.monotonic() - last)


def _all_kills(stage: Stage, step: Step, customer: Customer) -> list[list[Kill]]:
    return [
        [kill for call in group for kill in _kills(stage, customer, call)] for group in step.calls
    ]


def _one_kill(stage: Stage, step: Step, customer: Customer, place: int) -> list[list[Kill]]:
    """One of the step's places: the customers take turns, so that many of them die at each."""
    places = [
        (call, moment, sum(call in earlier for earlier in step.calls[:number]))
        for number, group in enumerate(step.calls)
        for call in group
        for moment in MOMENTS
    ]
    if not places:
        return []
    call, moment, passing = places[place % len(places)]
    return [[Kill(_at_node(stage, customer, call), moment, passing)]]


def _require_each_place(step: Step, kills: Sequence[Kill]) -> None:
    """Calls that come together die together, so not every order is carried out; but each kind of
    order is, where there is one. Raises NotThrough."""
    ordered = {(one.call.name, one.moment) for one in kills}
    done = {(one.call.name, one.moment) for one in kills if one.struck_at is not None}
    if ordered - done:
        raise NotThrough(f"{step.name}: nobody was killed at {sorted(ordered - done)}")


def _kills(stage: Stage, customer: Customer, call: Call) -> list[Kill]:
    """Both moments of a call, in an order of the seed if there is a choice."""
    moments: list[Moment] = list(MOMENTS)
    if call.repeated:
        stage.chance.shuffle(moments)
    return [Kill(_at_node(stage, customer, call), moment) for moment in moments]


def _at_node(stage: Stage, customer: Customer, call: Call) -> Call:
    """The call, at the node of the customer's chain if it is one to a node."""
    nodes = {NODE: stage.chain_of, OTHER_NODE: stage.other_chain_of}
    if call.provider not in nodes:
        return call
    node = f"{NODE}-{nodes[call.provider](customer).chain_id}"
    return attrs.evolve(call, provider=node)


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
