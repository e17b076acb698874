"""What the audit trail costs: creating and authorizing Payments with and without its entries.

Both are measured in one run, in turns, and reported as ratios of processor time and of real time.
`python -m benchmarks.audit postgresql://...` measures on that server.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.pipeline import Bench
from payments_core.tenants.authorization import Authority

BATCH = 25
ROUNDS = 9


def main() -> None:
    """Measure, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?", help="of an empty database; a SQLite file unless given")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), parser.parse_args().url)
        try:
            _report("create", _compare(lambda: None, lambda _: bench.create()))
            _report("authorize", _compare(bench.option, bench.authorize))
        finally:
            bench.close()


def _compare(
    prepare: Callable[[], Any], act: Callable[[Any], Any]
) -> tuple[list[float], list[float]]:
    """The ratio with the entries to without them, in each round: processor time, real time."""
    processor, real = [], []
    for number in range(ROUNDS):
        with_first = number % 2 == 0
        measured = {}
        for with_entries in (with_first, not with_first):
            prepared = [prepare() for _ in range(BATCH)]
            trace = Authority.trace if with_entries else property(lambda _: None)
            with patch.object(Authority, "trace", trace):
                at, used = time.perf_counter(), time.process_time()
                for one in prepared:
                    act(one)
                measured[with_entries] = (time.process_time() - used, time.perf_counter() - at)
        processor.append(measured[True][0] / measured[False][0])
        real.append(measured[True][1] / measured[False][1])
    return processor, real


def _report(name: str, ratios: tuple[list[float], list[float]]) -> None:
    processor, real = (statistics.median(one) for one in ratios)
    print(f"{name}: {processor:.3f} of the processor time, {real:.3f} of the time, with entries")


if __name__ == "__main__":
    main()
