"""`make fuzz`: as many made-up requests as you have time for; every seed can be played again.

make fuzz                       20 minutes from a seed of chance, which is printed
make fuzz MINUTES=5 SEED=7
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter

from tests.fuzz.running import Plan, run

EXAMPLES, SCENARIOS = 40, 150
"""Of one round, which takes some minutes."""


def main() -> int:
    """Play rounds until the time is up or one found something; how many were wrong is told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=random.getrandbits(32))
    asked = parser.parse_args()
    until, seed, faults, totals = (
        time.monotonic() + 60 * asked.minutes,
        asked.seed,
        0,
        Counter[int](),
    )
    print(f"SEED={seed}", flush=True)
    while time.monotonic() < until:
        phases = ("examples", "coverage", "fuzzing") if seed == asked.seed else ("fuzzing",)
        report = run(Plan(seed, EXAMPLES, SCENARIOS, phases))
        for (_, status), times in report.statuses.items():
            totals[status] += times
        for fault in report.faults:
            print(f"\nmake fuzz MINUTES=0.1 SEED={seed}\n{fault}", flush=True)
        faults += len(report.faults)
        print(f"seed {seed}: {totals.total():,} requests so far, {faults} faults", flush=True)
        seed += 1
    print(", ".join(f"{status}: {times:,}" for status, times in sorted(totals.items())))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
