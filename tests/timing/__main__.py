"""Measures whether refusals can be distinguished by their time. Run it with `make timing`.

Beside the real kinds of each group there are two that calibrate: `the same again`, which must be
found alike, and `held up`, the same with a known delay, which must not. Ends with 1 where a
difference is not shown to lie within the margin, and where the calibration does not hold.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import attrs

from payments_core_http.app import create_app
from tests.timing.comparison import (
    CONFIDENCE,
    POWER,
    Comparison,
    batched,
    compared,
    refused_share,
)
from tests.timing.refusals import Deployment, Group, Request
from tests.timing.sending import Send, over_socket, through_wsgi

AGAIN, HELD_UP = "the same again", "the same, held up"
BATCH = 200
WARM_UP = 300


@attrs.frozen
class Measured:
    """A group's comparisons with its first kind, and how often the delay would be found."""

    group: str
    comparisons: tuple[Comparison, ...]
    power: float

    def faults(self, margin_us: float) -> list[str]:
        """What is wrong, in words."""
        faults = []
        if self.power < POWER:
            faults.append(f"a delay of {margin_us:g} µs would be missed too often: more samples")
        for one in self.comparisons:
            if one.kind == HELD_UP or one.is_within(margin_us):
                continue
            if one.kind == AGAIN:
                faults.append("the same request differs from itself: more samples, less load")
            else:
                faults.append(f"{one.kind}: not shown to be within {margin_us:g} µs")
        return [f"{self.group}: {fault}" for fault in faults]


def main() -> int:
    """Measure every group, print what was found, and return the exit status."""
    options = _options()
    id_sequence = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        deployment = Deployment(Path(folder), options.seed)
        stack.callback(deployment.close)
        app = create_app(deployment.service, mode="sandbox")
        if options.socket:
            server, send = over_socket(app, deployment)
            stack.enter_context(server)
        else:
            send = through_wsgi(app)
        found = [
            measured(group, send, options.rounds, options.margin, id_sequence)
            for group in deployment.groups()
        ]
    print(_report(found, options.rounds, options.margin, options.seed))
    faults = [fault for one in found for fault in one.faults(options.margin)]
    for fault in faults:
        print(f"NOT SHOWN: {fault}")
    if not faults:
        print(f"All alike, within {options.margin:g} µs.")
    return 1 if faults else 0


def measured(
    group: Group, send: Send, rounds: int, margin_us: float, id_sequence: random.Random
) -> Measured:
    """The group's kinds in turn, round after round, and what their times say."""
    reference, *others = group.kinds
    make = {**group.kinds, AGAIN: group.kinds[reference], HELD_UP: group.kinds[reference]}
    samples = _sampled(group, make, send, rounds, int(margin_us * 1_000), id_sequence)
    comparisons = tuple(
        compared(kind, samples[kind], samples[reference], BATCH, id_sequence)
        for kind in (*others, AGAIN, HELD_UP)
    )
    held_up = batched(samples[HELD_UP], samples[reference], BATCH)
    return Measured(group.name, comparisons, refused_share(held_up, margin_us, id_sequence))


def _sampled(
    group: Group,
    make: dict[str, Callable[[], Request]],
    send: Send,
    rounds: int,
    delay_ns: int,
    id_sequence: random.Random,
) -> dict[str, list[float]]:
    """The times of each kind, one of every round, in an order that is drawn again each time."""
    samples: dict[str, list[float]] = {kind: [] for kind in make}
    order = list(make)
    gc.collect()
    gc.disable()
    try:
        for number in range(-WARM_UP, rounds):
            id_sequence.shuffle(order)
            for kind in order:
                timed = send(make[kind](), delay_ns if kind == HELD_UP else 0)
                if (timed.status, timed.code) != group.answer:
                    raise SystemExit(f"{group.name}: {kind} answered {timed.status} {timed.code}")
                if number >= 0:
                    samples[kind].append(timed.took_us)
            if number % BATCH == 0:
                gc.collect()
    finally:
        gc.enable()
    return samples


def _report(found: list[Measured], rounds: int, margin_us: float, seed: int) -> str:
    lines = [
        f"{rounds} samples of each kind, in batches of {BATCH}; seed {seed}; times in µs;"
        f" {CONFIDENCE:.0%} intervals."
    ]
    for one in found:
        lines += ["", f"{one.group:<44} difference         interval   slower  chance"]
        for it in one.comparisons:
            interval = f"{it.low_us:+.2f} to {it.high_us:+.2f}"
            lines.append(
                f"  {it.kind:<42} {it.difference_us:+10.2f} {interval:>16} {it.slower:7.1%}"
                f" {it.chance:7.4f}"
            )
        smallest = max(it.smallest_seen_us for it in one.comparisons)
        lines += [
            f"  A delay of {margin_us:g} would be found in {one.power:.1%} of such measurements;",
            f"  any difference of {smallest:.2f} would be seen to be one in {POWER:.0%} of them.",
        ]
    return "\n".join([*lines, ""])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make timing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=8_000, help="samples of each kind")
    parser.add_argument("--margin", type=float, default=10.0, help="in microseconds")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--socket", action="store_true", help="measure over a socket")
    options = parser.parse_args()
    if options.rounds < 10 * BATCH:
        parser.error(f"--rounds needs at least {10 * BATCH}")
    return options


if __name__ == "__main__":
    sys.exit(main())
