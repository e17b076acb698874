"""`make going-live`: a deployment in production mode, whose processes die at every provider call.

make going-live                         25 customers, from a seed of chance, which is printed
make going-live CUSTOMERS=2 SEED=7
make going-live CUSTOMERS=1 STEPS="account kyc verify"
make going-live CUSTOMERS=1 ARGS="--kills none"
make going-live CUSTOMERS=1 ARGS="--kills all"

Two `payments serve` and two `payments worker` on PostgreSQL, two nodes, keys in AWS KMS (moto) and
then in an HSM (SoftHSM), and the providers of the examples. In each step a process that makes a
provider call is killed (-9), before the call is passed on or after it was answered: once for each
customer, who take turns at the step's calls, or at all of them for each customer. In the end
nothing is lost, and nothing has happened twice. A seed repeats the order of customers and kills,
and the amounts.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import attrs

from payments_core_http.cli.interrupts import STOP_SIGNALS
from tests.going_live.customers import Stage
from tests.going_live.deployment import LiveDeployment
from tests.going_live.evidence import Evidence, compare_books, gather
from tests.going_live.figures import table
from tests.going_live.laws import LAWS, broken
from tests.going_live.playing import NotThrough, Plan, play
from tests.going_live.steps import STEPS
from tests.going_live.tamperings import unfound

SETTLED_S = 60.0
INTERRUPTED = 130


def main() -> int:
    """Play once, and print what came of it. 1 where anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--customers", type=int, default=25)
    parser.add_argument("--seed", type=int, default=random.getrandbits(32))
    parser.add_argument("--steps", default="", help="play these alone; default: all")
    parser.add_argument("--kills", choices=["all", "one", "none"], default="one")
    parser.add_argument("--at-once", type=int, default=5, help="so many customers together")
    parser.add_argument("--keep", type=Path, help="a folder for the logs and the answers")
    asked = parser.parse_args()
    wanted = asked.steps.split()
    steps = [step for step in STEPS if not wanted or step.name in wanted]
    if asked.keep and asked.keep.exists():
        parser.error(f"{asked.keep} is there already: remove it, or name another folder")
    if unknown := set(wanted) - {step.name for step in steps}:
        parser.error(f"no step {unknown}; there are {', '.join(step.name for step in STEPS)}")
    say(f"SEED={asked.seed}")
    handle_one_interrupt()
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryDirectory(prefix="going-live"))
        folder = asked.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=not asked.keep)
        try:
            live = stack.enter_context(LiveDeployment(folder))
            say("the deployment is ready")
            stage = Stage(live, asked.customers, asked.seed)
            passages = play(stage, steps, Plan(asked.kills, asked.at_once), say)
            faults = judge(settled(stage))
        except KeyboardInterrupt:
            say("interrupted: everything that was started is ended")
            return INTERRUPTED
        except NotThrough as error:
            say(f"FAULT  {error}")
            return 1
    say("\n" + table(steps, passages, asked.customers) + "\n")
    for fault in faults:
        say(f"FAULT  {fault}")
    say(f"{len(LAWS)} laws, {len(faults)} faults")
    return 1 if faults else 0


def handle_one_interrupt() -> None:
    """The first signal ends the play; later ones must not keep it from ending what it started."""

    def interrupt(*_: object) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in STOP_SIGNALS:
        signal.signal(number, interrupt)


def settled(stage: Stage) -> Evidence:
    """The evidence, once all has come to its end or should have."""
    until = time.monotonic() + SETTLED_S
    evidence = gather(stage)
    while evidence.left and time.monotonic() < until:
        time.sleep(0.5)
        evidence = gather(stage)
    return attrs.evolve(evidence, differences=compare_books(stage))


def judge(evidence: Evidence) -> list[str]:
    """What is wrong: what a law finds, and altered evidence in which its law finds nothing."""
    faults = list(broken(evidence))
    tried = list(unfound(evidence))
    faults += [f"nobody noticed {one.does}: {one.law.__name__}" for one, missed in tried if missed]
    say(f"{sum(not missed for _, missed in tried)} of {len(tried)} tamperings were found")
    return faults


def say(text: str) -> None:
    """Print it now."""
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
