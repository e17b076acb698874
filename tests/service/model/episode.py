"""An episode: a stage, some steps on it, and its end; the same for the same seed, always.

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
from tests.service.model.index import Index
from tests.service.model.invariants import INVARIANTS
from tests.service.model.mirror import Circling, Commit
from tests.service.model.onchain import (
    CHAIN_INVARIANTS,
    ENDINGS,
    ChainIndex,
    nothing_is_under_way,
)
from tests.service.model.parts import PARTS
from tests.service.model.rules import Act
from tests.service.model.stage import Stage
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
    """A stage under the eyes of the invariants."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._index, self._chain, self._bank = Index(), ChainIndex(), BankIndex()
        self._values = Values()
        self._rule = "open"
        self._step: int | None = 0
        self.stage = Stage(seed, self._look)
        self._check()

    @property
    def tally(self) -> Counter[str]:
        """How often what was reached."""
        return self.stage.tally

    def step(self, number: int, act: Act, rng: random.Random) -> None:
        """One rule. Raises Violation."""
        self._step, self._rule = number, act.__name__
        self.tally[f"rule {act.__name__}"] += 1
        self._rest()
        with self._heard():
            act(self.stage, rng)
        self._check()

    def end(self) -> None:
        """Let everything come to its end. Raises Violation."""
        stage = self.stage
        self._step, self._rule = None, "end"
        with self._heard():
            self._calm()
            for _ in range(MOST_ROUNDS):
                self._rest()
                waits = self._waits_until()
                if waits is not None:
                    stage.true.advance((waits - stage.chain_clock.now()) // SECOND + 1)
                stage.processes[0].advance(60)
                if waits is None and not self._is_under_way():
                    break
            stage.processes[0].advance(60 + stage.furthest_skew_s)  # what a fast clock put off
        self._check()
        for invariant in (*ENDINGS, *BANK_ENDINGS):
            for detail in invariant(stage, self._chain):
                stage.report(invariant.__name__, detail)
        self._check()
        self._count()

    def _is_under_way(self) -> bool:
        """Whether something still goes on; a bank's notices are read once in an hour at least."""
        unended = (nothing_is_under_way, *BANK_ENDINGS)
        return any(any(invariant(self.stage, self._chain)) for invariant in unended)

    def _waits_until(self) -> Instant | None:
        """When the last of the Payments and options expires that wait for funds, and the bank has
        done all that it plans."""
        payments = self.stage.all(Payment).values()
        waiting = [p.expires_at for p in payments if p.status == "awaiting_payment"]
        options = self.stage.all(PaymentOption).values()
        waiting += [option.expires_at for option in options if option.status == "pending"]
        now = self.stage.chain_clock.now()
        waiting.append(plans_end_at(self.stage))
        return max((instant for instant in waiting if instant > now), default=None)

    def _rest(self) -> None:
        """Count the calls from here on."""
        for gate in (self.stage.outside, *(process.gate for process in self.stage.processes)):
            gate.calls = 0

    def _calm(self) -> None:
        """No clock differs, and nothing is armed to fail."""
        for process in self.stage.processes:
            process.system.ahead_ms = 0
        self.stage.bank.refusals_left = 0
        self.stage.restart()
        self.stage.disarm()

    def _look(self, stage: Stage, commit: Commit) -> None:
        if commit.partition != SIMULATED:
            self._index.keep_up(commit)
        self._chain.keep_up(stage, commit)
        self._bank.keep_up(commit)
        for row in rows_of(commit):
            self.tally[row] += 1
        if commit.partition == SIMULATED:
            _ask(stage, CHAIN_INVARIANTS, self._chain, commit)
            _ask(stage, BANK_INVARIANTS, self._bank, commit)
        elif commit.partition == stage.environment_id:
            _ask(stage, INVARIANTS, self._index, commit)
            _ask(stage, VALUE_INVARIANTS, self._values, commit)
            _ask(stage, CHAIN_INVARIANTS, self._chain, commit)
            _ask(stage, BANK_INVARIANTS, self._bank, commit)

    def _check(self) -> None:
        if self.stage.faults:
            invariant, detail = self.stage.faults[0]
            raise Violation(invariant, detail, self.seed, self._step, self._rule)

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """What the service logs as its own fault is a violation."""
        heard = _Heard(self.stage)
        logger = logging.getLogger("payments_core")
        level, propagate = logger.level, logger.propagate
        logger.addHandler(heard)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        try:
            yield
        except Circling:
            self.stage.report("a process ends", "it makes calls without end")
        except Exception as error:
            self.stage.report("no call fails unforeseen", describe_error(error))
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
            for record in self.stage.all(kind).values():
                self.tally[f"{kind.__name__} ends {getattr(record, 'status', None)}"] += 1
                for entry in getattr(record, "timeline", ()):
                    self.tally[f"status {entry.status}"] += 1
                for label in getattr(record, "labels", ()):
                    self.tally[f"label {label}"] += 1
                if reason := getattr(record, "rejection_reason", None):
                    self.tally[f"reason {reason}"] += 1
        for event in self.stage.all(Event).values():
            self.tally[f"event {event.name}"] += 1


def _ask(
    stage: Stage,
    invariants: Sequence[Callable[[Stage, T, Commit], Iterator[str]]],
    index: T,
    commit: Commit,
) -> None:
    for invariant in invariants:
        for detail in invariant(stage, index, commit):
            stage.report(invariant.__name__, detail)


class _Heard(logging.Handler):
    def __init__(self, stage: Stage) -> None:
        super().__init__(logging.WARNING)
        self._stage = stage

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if self._stage.has_trouble and "Unavailable" in text:
            return
        if any(words in text for words in _AS_IT_SHOULD_BE):
            return
        if self._stage.furthest_skew_s and "a clock that was ahead had postponed them" in text:
            self._stage.tally["brought forward"] += 1
            return
        if "which expired with nothing received and was purged" in text:
            self._stage.tally["alarm of a purged escrow"] += 1
            self._stage.alarms.append(text)
            return
        if "did not arrive in" in text:
            self._stage.tally["alarm"] += 1
            if self._stage.reorged:  # it undid a bank's delivery, which the bank makes only once
                return
        if any(
            words in text
            for words in ("undid it in a reorg", "a reorg undid", "has a reorg deeper")
        ):
            self._stage.tally["alarm"] += 1
            if self._stage.reorged_deeply:
                return
        self._stage.report("no job fails", text)


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
