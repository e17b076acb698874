"""`make lives`: as many random lives on an EVM chain as you have time for; a seed is played again.

make lives                         for 20 minutes, from a seed of chance, which is printed
make lives MINUTES=60 SEED=7
make lives SEED=7 ARGS="--one"     that life alone
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.chains.evm.life.life import live

STEPS = 150


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 where a life ended with something wrong."""
    parser = argparse.ArgumentParser(prog="lives", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--one", action="store_true", help="the life of this seed alone")
    given = parser.parse_args(arguments)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(10**9)
    first, ends, tally, wrong = seed, time.monotonic() + given.minutes * 60, Counter[str](), 0
    print(f"seed {seed}, {given.steps} steps a life", flush=True)
    while time.monotonic() < ends:
        lived = live(seed, given.steps)
        tally += lived.tally
        if lived.violations:
            wrong += 1
            print(f"VIOLATION  seed {seed}: {len(lived.violations)}", flush=True)
            for said in lived.violations[:6]:
                print(f"  {said[:500]}", flush=True)
        seed += 1
        if given.one:
            break
    print(f"{seed - first} lives, {wrong} of them with something wrong")
    for name, count in sorted(tally.items()):
        print(f"  {count:>8}  {name}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
