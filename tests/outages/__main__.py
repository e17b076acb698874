"""`make outages`: a deployment of many processes under load, whose parts die all the time.

make outages                    5 minutes from a seed of chance, which is printed
make outages MINUTES=20 SEED=7
make outages ARGS=--citus
make outages ARGS=--only-workers

Two `payments serve` and three `payments worker` on a PostgreSQL with a synchronous standby. Every
two seconds one of them is killed; the database is restarted twice and fails over once. In the end
nothing that was answered is lost, and nothing has happened twice. A seed repeats who asks for what
and who is killed when, as far as time repeats.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.outages.running import Plan, in_words, run

CALM_S = 20.0
SETTLE_S = 180.0


def main() -> int:
    """Run once and print the figures. 1 where anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=random.getrandbits(32))
    parser.add_argument("--shoppers", type=int, default=8)
    parser.add_argument("--keep", type=Path, help="a folder for the logs and the answers")
    parser.add_argument(
        "--careless", action="store_true", help="a standby that lacks commits: it must be found"
    )
    parser.add_argument(
        "--citus", action="store_true", help="a coordinator and two nodes, which die in turn"
    )
    parser.add_argument(
        "--only-workers", action="store_true", help="kill workers alone, and no database"
    )
    asked = parser.parse_args()
    print(f"SEED={asked.seed}", flush=True)
    plan = Plan(
        seed=asked.seed,
        storm_s=60 * asked.minutes,
        calm_s=CALM_S,
        settle_s=SETTLE_S,
        shoppers=asked.shoppers,
        careless=asked.careless,
        citus=asked.citus,
        only_workers=asked.only_workers,
    )
    with tempfile.TemporaryDirectory(prefix="outages") as made:
        folder = asked.keep or Path(made)
        folder.mkdir(exist_ok=True)
        outcome = run(plan, folder, say=lambda text: print(text, flush=True))
    print(in_words(outcome), flush=True)
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
