"""An episode: a world, some steps in it, and its end; the same for the same seed, always.

Step `n` of a seed is the same rule with the same choices whatever other steps are left out, so a
long replay can be made short.
"""

from __future__ import annotations

import logging
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import attrs

from payments_core.clock import SECOND, Instant
from payments_core.deposits.record import Deposit
from payments_core.engine.events import Event
from payments_core.engine.jobs.parking import describe_error
from payments_core.onramps.record import BankTransaction
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import SIMULATED
from payments_core.storage.records import Record
from tests.service.model.banks_books import (
    BANK_ENDINGS,
    BANK_INVARIANTS,
    BankIndex,
    plans_end_at,
    rows_of,
)
from tests.service.model.early import accept_and_reorg, forgetful
from tests.service.model.index import Index
from tests.service.model.invariants import INVARIANTS
from tests.service.model.mirror import Circling, Commit
from tests.service.model.model_world import ModelWorld
from tests.service.model.onchain import (
    CHAIN_INVARIANTS,
    ENDINGS,
    ChainIndex,
    nothing_is_under_way,
)
from tests.service.model.parts import PARTS
from tests.service.model.rules import Act
from tests.service.model.values import VALUE_INVARIANTS, Values

T = TypeVar("T")

_AS_IT_SHOULD_BE = (
    "a clock that was ahead had written their ends",  # those of the two processes differ
    "cannot look for late leases",
    "cannot look for postponed jobs",
    "did not answer",
    "its Payments cannot expire",
    "are sent again",
    "will be retried when its lease expires",
    "will be retried when their leases expire",
    "ALARM: the credit of",
    "matches no on-ramp and was sent back",
    "was not accepted, and waits",
)

_PARTICULARS = re.compile(r"0x\w+|\w+_[-\w]{24}|\d+")

SHORTEST, LONGEST = 20, 120
MOST_ROUNDS = 80
"""So many minutes, at the most, an episode has to come to its end: a clock was half an hour off."""


@attrs.define(eq=False)
class Violation(Exception):
    """An invariant does not hold, after a step of a seed; `step` is None at the end."""

    invariant: str
    detail: str
    seed: int
    step: int | None
    rule: str

    @property
    def kind(self) -> tuple[str, str]:
        """What is wrong, without the ids and amounts of the case."""
        return self.invariant, _PARTICULARS.sub("*", self.detail)

    def __str__(self) -> str:
        where = "at the end" if self.step is None else f"after step {self.step} ({self.rule})"
        return f"seed {self.seed}, {where}: {self.invariant}: {self.detail}"


class Episode:
    """A world under the eyes of the invariants."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._index, self._chain, self._bank = Index(), ChainIndex(), BankIndex()
        self._values = Values()
        self._rule = "open"
        self._step: int | None = 0
        self.world = ModelWorld(seed, self._look)
        self._check()

    @property
    def tally(self) -> Counter[str]:
        """How often what was reached."""
        return self.world.tally

    def step(self, number: int, act: Act, rng: random.Random) -> None:
        """One rule. Raises Violation."""
        self._step, self._rule = number, act.__name__
        self.tally[f"rule {act.__name__}"] += 1
        self._rest()
        with self._heard():
            act(self.world, rng)
        self._check()

    def end(self) -> None:
        """Let everything come to its end. Raises Violation."""
        world = self.world
        self._step, self._rule = None, "end"
        with self._heard():
            self._calm()
            if world.is_forgetful:  # of the last release nobody is reminded by another one
                accept_and_reorg(world, random.Random(f"{self.seed}/end"))
            for _ in range(MOST_ROUNDS):
                self._rest()
                waits = self._waits_until()
                if waits is not None:
                    world.true.advance((waits - world.chain_clock.now()) // SECOND + 1)
                world.processes[0].advance(60)
                if waits is None and not self._is_under_way():
                    break
            world.processes[0].advance(60 + world.furthest_skew_s)  # what a fast clock put off
        self._check()
        for invariant in (*ENDINGS, *BANK_ENDINGS):
            for detail in invariant(world, self._chain):
                world.report(invariant.__name__, detail)
        self._check()
        self._count()

    def _is_under_way(self) -> bool:
        """Whether something still goes on; a bank's notices are read once in an hour at least."""
        unended = (nothing_is_under_way, *BANK_ENDINGS)
        return any(any(invariant(self.world, self._chain)) for invariant in unended)

    def _waits_until(self) -> Instant | None:
        """When the last of the Payments and options expires that wait for funds, and the bank has
        done all that it plans."""
        payments = self.world.all(Payment).values()
        waiting = [p.expires_at_ms for p in payments if p.status == "awaiting_payment"]
        options = self.world.all(PaymentOption).values()
        waiting += [option.expires_at_ms for option in options if option.status == "pending"]
        now = self.world.chain_clock.now()
        waiting.append(plans_end_at(self.world))
        return max((instant for instant in waiting if instant > now), default=None)

    def _rest(self) -> None:
        """Count the calls from here on."""
        for gate in (self.world.outside, *(process.gate for process in self.world.processes)):
            gate.calls = 0

    def _calm(self) -> None:
        """No clock differs, and nothing is armed to fail."""
        for process in self.world.processes:
            process.system.ahead_ms = 0
        self.world.bank.refusals_left = 0
        self.world.restart()
        self.world.disarm()

    def _look(self, world: ModelWorld, commit: Commit) -> None:
        if commit.partition != SIMULATED:
            self._index.keep_up(commit)
        self._chain.keep_up(world, commit)
        self._bank.keep_up(commit)
        for row in rows_of(commit):
            self.tally[row] += 1
        if commit.partition == SIMULATED:
            _ask(world, CHAIN_INVARIANTS, self._chain, commit)
            _ask(world, BANK_INVARIANTS, self._bank, commit)
        elif commit.partition == world.environment_id:
            _ask(world, INVARIANTS, self._index, commit)
            _ask(world, VALUE_INVARIANTS, self._values, commit)
            _ask(world, CHAIN_INVARIANTS, self._chain, commit)
            _ask(world, BANK_INVARIANTS, self._bank, commit)

    def _check(self) -> None:
        if self.world.faults:
            invariant, detail = self.world.faults[0]
            raise Violation(invariant, detail, self.seed, self._step, self._rule)

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """What the service logs as its own fault is a violation."""
        heard = _Heard(self.world)
        logger = logging.getLogger("payments_core")
        level, propagate = logger.level, logger.propagate
        logger.addHandler(heard)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        try:
            with forgetful(self.world):
                yield
        except Circling:
            self.world.report("a process ends", "it makes calls without end")
        except Exception as error:
            self.world.report("no call fails unforeseen", describe_error(error))
        finally:
            logger.removeHandler(heard)
            logger.setLevel(level)
            logger.propagate = propagate

    def _count(self) -> None:
        kinds: tuple[type[Record], ...] = (
            Payment,
            Receipt,
            Refund,
            FundingOperation,
            Deposit,
            BankTransaction,
        )
        for kind in kinds:
            for record in self.world.all(kind).values():
                self.tally[f"{kind.__name__} ends {getattr(record, 'status', None)}"] += 1
                for entry in getattr(record, "timeline", ()):
                    self.tally[f"status {entry.status}"] += 1
                for label in getattr(record, "labels", ()):
                    self.tally[f"label {label}"] += 1
                if reason := getattr(record, "rejection_reason", None):
                    self.tally[f"reason {reason}"] += 1
        for event in self.world.all(Event).values():
            self.tally[f"event {event.name}"] += 1


def _ask(
    world: ModelWorld,
    invariants: Sequence[Callable[[ModelWorld, T, Commit], Iterator[str]]],
    index: T,
    commit: Commit,
) -> None:
    for invariant in invariants:
        for detail in invariant(world, index, commit):
            world.report(invariant.__name__, detail)


class _Heard(logging.Handler):
    def __init__(self, world: ModelWorld) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if self._world.has_trouble and "Unavailable" in text:
            return
        if any(words in text for words in _AS_IT_SHOULD_BE):
            return
        if self._world.furthest_skew_s and "a clock that was ahead had postponed them" in text:
            self._world.tally["brought forward"] += 1
            return
        if "which expired with nothing received and was purged" in text:
            self._world.tally["alarm of a purged escrow"] += 1
            self._world.alarms.append(text)
            return
        if "after it was accepted" in text:
            self._world.tally["alarm of an accepted transfer"] += 1
            if self._world.reorged:
                return
        if "did not arrive in" in text:
            self._world.tally["alarm"] += 1
            if self._world.reorged:  # it undid a bank's delivery, which the bank makes only once
                return
        if any(
            words in text
            for words in ("undid it in a reorg", "a reorg undid", "has a reorg deeper")
        ):
            self._world.tally["alarm"] += 1
            if self._world.reorged_deeply or (self._world.networks and self._world.reorged):
                return
        self._world.report("no job fails", text)


def run(
    seed: int,
    most: int | None = None,
    only: Collection[int] | None = None,
    part: str = "all",
) -> Episode:
    """The episode of a seed, or its first steps, or only some of them. Raises Violation.

    `part` names the rules that it chooses from (`parts.py`).
    """
    length = length_of(seed)
    episode = Episode(seed)
    for number in range(length if most is None else min(most, length)):
        if only is None or number in only:
            act, rng = chosen(seed, number, part)
            episode.step(number, act, rng)
    episode.end()
    return episode


def shortest(violation: Violation, part: str = "all") -> tuple[int, ...]:
    """The steps of a violation's seed that bring it about without the others.

    Steps are left out, half of them at first and then fewer, while the same invariant breaks.
    """
    last = length_of(violation.seed) if violation.step is None else violation.step + 1
    steps = tuple(range(last))
    size = len(steps)
    while size:
        at = 0
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            if _breaks(violation, fewer, part):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps


def _breaks(violation: Violation, steps: tuple[int, ...], part: str) -> bool:
    try:
        run(violation.seed, only=steps, part=part)
    except Violation as found:
        return found.kind == violation.kind
    return False


def length_of(seed: int) -> int:
    """How many steps an episode has."""
    return random.Random(f"length/{seed}").randint(SHORTEST, LONGEST)


def chosen(seed: int, number: int, part: str = "all") -> tuple[Act, random.Random]:
    """The rule of a step, and what it chooses by."""
    rng = random.Random(f"{seed}/{number}")
    rules = PARTS[part]
    return rng.choices([act for _, act in rules], [weight for weight, _ in rules])[0], rng
