"""`make storm`: every attack for a while, then all of them at once; figures of each.

make storm                 20 s of each
make storm STORM_S=120     two minutes of each
"""

from __future__ import annotations

import argparse
import sys

from tests.http.hostile.attacks import ATTACKS
from tests.http.hostile.quick_client import measured, under
from tests.http.hostile.target import serving

P99_S = 1.0
TOGETHER_P99_S = 5.0
"""All attacks come from the same two cores as the server and the clients that are measured."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="storm", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20, help="how long each attack lasts")
    for_s = parser.parse_args().seconds
    storms = {name: (attack,) for name, attack in ATTACKS.items()}
    storms["all at once"] = tuple(ATTACKS.values())
    faults = []
    with serving() as target:
        print(f"{'at rest':<20} {target.at_rest.memory_mb:4.0f} MB")
        for name, attacks in storms.items():
            with under(target, *attacks):
                waits = measured(target, for_s)
                held = target.figures()
            print(f"{name:<20} {held.memory_mb:4.0f} MB {held.descriptors:5} descriptors, {waits}")
            allowed_s = P99_S if len(attacks) == 1 else TOGETHER_P99_S
            if waits.p99_s > allowed_s:
                faults.append(f"{name}: others waited too long")
            try:
                target.require_calm()
            except AssertionError as fault:
                faults.append(f"{name}: {fault}")
        log = target.log()
        if "Traceback" in log:
            faults.append(f"the log has a traceback:\n{log[-3_000:]}")
    for fault in faults:
        print(f"storm: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
