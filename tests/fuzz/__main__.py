"""`make fuzz`: as many made-up requests as you have time for; every seed can be played again.

make fuzz                       20 minutes from a seed of chance, which is printed
make fuzz MINUTES=5 SEED=7
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.fuzz.running import Plan, Report, run

EXAMPLES, SCENARIOS = 40, 150
"""Of one round, which takes some minutes."""


def main() -> int:
    """Play rounds until the time is up. 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=random.getrandbits(32))
    asked = parser.parse_args()
    until, seed = time.monotonic() + 60 * asked.minutes, asked.seed
    faults, totals = 0, Counter[int]()
    print(f"SEED={seed}", flush=True)
    edges = Plan(seed, examples=1, scenarios=1, phases=("coverage",))  # the same in every run
    waiting = [edges, round_of(seed)]  # the round first: it is what a seed plays again
    while waiting or time.monotonic() < until:
        plan = waiting.pop() if waiting else round_of(seed)
        report = apart(plan)
        for (_, status), times in report.statuses.items():
            totals[status] += times
        for fault in report.faults:
            print(f"\nmake fuzz MINUTES=0.1 SEED={plan.seed}\n{fault}", flush=True)
        faults += len(report.faults)
        print(f"seed {plan.seed}: {totals.total():,} requests so far, {faults} faults", flush=True)
        seed += plan is not edges
    print(", ".join(f"{status}: {times:,}" for status, times in sorted(totals.items())))
    return 1 if faults else 0


def apart(plan: Plan) -> Report:
    """A run in a process of its own: Schemathesis keeps much of what it did."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(run, plan).result()


def round_of(seed: int) -> Plan:
    """What one seed stands for."""
    return Plan(seed, EXAMPLES, SCENARIOS, phases=("examples", "fuzzing"))


if __name__ == "__main__":
    sys.exit(main())
