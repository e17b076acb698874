"""`make soak`: as many steps as you have time for; every seed can be played again.

make soak                          1,000,000 steps from a seed of chance, which is printed
make soak STEPS=50000 SEED=7 JOBS=2
make soak SEED=7 ONLY=3,8,20       these steps of one seed's episode, and its end
make soak PART=banks               payouts and on-ramps alone, with what goes wrong with them
make soak PART=misdirected         mostly what arrives and does not count, and its way back
make soak PART=early               mostly what counts before it is final, and reorgs of that
make soak PART=values              mostly amounts: part payments, excess, refreshes and refunds
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

from payments_core.payments.refunding.reconciliation_rules import RECONCILIATION_ACTIONS
from tests.core import tables
from tests.service.model.banks_books import ROWS
from tests.service.model.episode import Violation, chosen, length_of, run, shortest
from tests.service.model.parts import PARTS

EVERY_S = 10.0
"""How often it says how far it is."""

_OF_ALL = (
    *(f"status {status}" for status in sorted({row[2] for row in tables.PAYMENT})),
    *(
        f"label {label}"
        for label in ("underpaid", "overpaid", "duplicate", "late", "reorged", "misdirected")
    ),
    *(f"reconcile {action}" for action in RECONCILIATION_ACTIONS),
    *(f"reason {reason}" for reason in ("wrong_chain", "wrong_token", "wrong_amount")),
)
_OF_BANKS = ("label returned", "label execution_failed", *ROWS)
_OF_EARLY = (
    *(f"early {status} at a reorg" for status in ("processing", "executing", "succeeded")),
    "alarm of an accepted transfer",
)
_OF_RETURNS = ("label misdirected", "done reconcile return_misdirected", "done return_deposit")
_MUST_BE_REACHED = {
    "all": (*_OF_ALL, *_OF_BANKS, *_OF_RETURNS, *_OF_EARLY),
    "banks": _OF_BANKS,
    "misdirected": _OF_RETURNS,
    "early": _OF_EARLY,
    "values": ("label returned", "label overpaid", "status partially_refunded"),
}
"""Beside every rule of a part, what a long run that misses it has not looked at."""


LONG = 100_000
"""So many steps must reach all of it."""


@attrs.frozen
class Played:
    """What came of one seed."""

    seed: int
    steps: int
    tally: Counter[str]
    violation: str | None = None
    replay: str | None = None


def play(seed: int, part: str = "all") -> Played:
    """One episode; a violation comes with its shortest replay."""
    try:
        return Played(seed, length_of(seed), run(seed, part=part).tally)
    except Violation as violation:
        steps = shortest(violation, part)
        rules = ", ".join(chosen(seed, number, part)[0].__name__ for number in steps)
        only = ",".join(str(number) for number in steps) or "-1"
        of = "" if part == "all" else f" PART={part}"
        replay = f"make soak SEED={seed}{of} ONLY={only}   # {rules}"
        return Played(seed, length_of(seed), Counter(), str(violation), replay)


def soak(first: int, most: int, jobs: int, part: str = "all") -> int:
    """Play seeds from `first` on until there were enough steps.

    Answers 1 where an invariant broke, or where so many steps did not reach all that they must.
    """
    print(f"seed {first}, {most} steps, {jobs} at a time, {part}", flush=True)
    tally: Counter[str] = Counter()
    began = reported = time.monotonic()
    steps, seed, code = 0, first, 0
    try:
        for played in _played(first, most, jobs, part):
            steps, seed = steps + played.steps, max(seed, played.seed)
            tally += played.tally
            if played.violation is not None:
                print(f"VIOLATION  {played.violation}\n  replay:  {played.replay}", flush=True)
                code = 1
                break
            if time.monotonic() - reported > EVERY_S:
                reported = time.monotonic()
                rate = steps / (reported - began)
                print(f"{steps:>9} steps, {rate:.0f} a second, seed {seed}", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
        code = 130
    elapsed = time.monotonic() - began
    print(f"{steps} steps in {elapsed:.0f} s, {steps / elapsed:.0f} a second, up to seed {seed}")
    missed = _report(tally, part)
    return code or int(bool(missed) and steps >= LONG)


def replay(seed: int, only: Sequence[int], part: str = "all") -> int:
    """Some steps of one seed; 1 where an invariant breaks."""
    for number in only:
        if number >= 0:
            print(f"step {number}: {chosen(seed, number, part)[0].__name__}")
    try:
        run(seed, only=only, part=part)
    except Violation as violation:
        print(f"VIOLATION  {violation}")
        return 1
    print("every invariant holds")
    return 0


def _played(first: int, most: int, jobs: int, part: str) -> Iterator[Played]:
    seeds: list[int] = []
    steps = 0
    while steps < most:
        seeds.append(first + len(seeds))
        steps += length_of(seeds[-1])
    play_part = functools.partial(play, part=part)
    if jobs == 1:
        yield from map(play_part, seeds)
        return
    with multiprocessing.Pool(jobs, _leave_interrupts) as pool:
        yield from pool.imap_unordered(play_part, seeds)


def _leave_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _report(tally: Counter[str], part: str) -> list[str]:
    """Print how often what was reached; what never was is answered."""
    width = max((len(name) for name in tally), default=0)
    for name, count in sorted(tally.items()):
        print(f"  {name:<{width}}  {count:>9}")
    wanted = (*(f"rule {act.__name__}" for _, act in PARTS[part]), *_MUST_BE_REACHED[part])
    missed = [name for name in wanted if not tally[name]]
    if tally and missed:
        print(f"  never reached: {', '.join(missed)}")
    return missed


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of `make soak`."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", help="the numbers of some steps of this seed alone")
    parser.add_argument("--part", choices=tuple(PARTS), default="all", help="the rules to play")
    given = parser.parse_args(arguments)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(10**9)
    if given.only is not None:
        return replay(seed, [int(number) for number in given.only.split(",")], given.part)
    return soak(seed, given.steps, given.jobs, given.part)


if __name__ == "__main__":
    sys.exit(main())
