"""`make evm-simulation`: random runs on a simulated EVM chain; the same seed makes the same run.

make evm-simulation                         20 minutes, from a random seed, which is printed
make evm-simulation MINUTES=60 SEED=7
make evm-simulation SEED=7 ARGS="--one"     that run alone
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.chains.evm.simulation.run import simulate

STEPS = 150


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 if a run ended with violations."""
    parser = argparse.ArgumentParser(prog="evm-simulation", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--one", action="store_true", help="the run of this seed alone")
    given = parser.parse_args(arguments)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(10**9)
    first, ends, tally, wrong = seed, time.monotonic() + given.minutes * 60, Counter[str](), 0
    print(f"seed {seed}, {given.steps} steps a run", flush=True)
    while time.monotonic() < ends:
        outcome = simulate(seed, given.steps)
        tally += outcome.tally
        if outcome.violations:
            wrong += 1
            print(f"VIOLATION  seed {seed}: {len(outcome.violations)}", flush=True)
            for said in outcome.violations[:6]:
                print(f"  {said[:500]}", flush=True)
        seed += 1
        if given.one:
            break
    print(f"{seed - first} runs, {wrong} of them with violations")
    for name, count in sorted(tally.items()):
        print(f"  {count:>8}  {name}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
