"""What a whole Payment costs with one webhook endpoint, from its creation to `succeeded` and after.

    python -m benchmarks.payment_costs [--runs 300] [--jobs] [--statements]

The simulation is left out: its chains and the sandbox's clock live in memory here, and the time
that they take is taken off, as real chains ask their nodes instead. A worker runs the jobs in one
thread, in the batches that it claims while it is busy. Scans are left out of all figures, since
one is for all Payments of its time. `--jobs` shows what each job costs, which adds some time to
all, and `--statements` which statements each of them sends.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs

from benchmarks import pipeline, webhook_receiver, webhooks
from benchmarks.processors import children_of, processor_s
from payments_core.chains.scanner import SCAN
from payments_core.clock import SECOND
from payments_core.conformance.transport.certificates import NAME
from payments_core.payments.record import Payment
from payments_core.record_types import RECORD_TYPES
from payments_core.settings import Settings
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import SIMULATED, Storage
from payments_core.storage.postgres.pipeline import EncodedParams, PipelinedConnection, ResultRow
from payments_core.storage.reads import Get
from payments_core.storage_loader import open_storage
from payments_core.webhooks.record import Delivery
from payments_core.webhooks.settings import WebhookSettings
from tests.servers.cluster import Cluster

T = TypeVar("T")

WARM_UP = 50
"""So many Payments come first: they compile and prepare what all later ones use."""
STEP_S = 2
"""The clock's step: so long a busy worker's backlog is."""
SETTLED_AFTER_S = 40
EXPIRED_AFTER_S = 1_200
TEXT_SHOWN = 160
"""So much of a statement is printed."""

RECORDED = {"trips": 297.1, "statements": 728.4, "commits": 55.0, "ms": 95.1, "PG ms": 77.5}
"""Before jobs were done together; the times under a load of 35 on two cores, and with the scans."""
TARGET = {"trips": 45.0, "statements": 110.0, "commits": 12.0, "ms": 8.0, "PG ms": 9.0}


class SimulationInMemory:
    """A storage whose simulated partition is in memory; `spent_s` is what that took."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._simulated = MemoryStorage()
        self.spent_s = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def transact(self, partition: str, work: Callable[[Any], T]) -> T:
        if partition != SIMULATED:
            return self._storage.transact(partition, work)
        result: T = self._take_time(self._simulated.transact, partition, work)
        return result

    def read(self, partition: str, work: Callable[[Any], T]) -> T:
        if partition != SIMULATED:
            return self._storage.read(partition, work)
        result: T = self._take_time(self._simulated.read, partition, work)
        return result

    def fetch(self, partition: str, *reads: Get) -> Sequence[Any]:
        if partition != SIMULATED:
            return self._storage.fetch(partition, *reads)
        found: Sequence[Any] = self._take_time(self._simulated.fetch, partition, *reads)
        return found

    def _take_time(self, call: Callable[..., Any], *args: Any) -> Any:
        began = time.thread_time()
        try:
            return call(*args)
        finally:
            self.spent_s += time.thread_time() - began


@attrs.define
class StatementCounts:
    """What this process asks PostgreSQL, under the label of what it does just then."""

    read_ours_s: Callable[[], float] = time.process_time
    """The seconds that this process has spent."""
    read_theirs_s: Callable[[], float] = lambda: 0.0
    """The seconds that the server has spent; to find its processes takes milliseconds of ours."""
    times_labels: bool = False
    """Whether the time under each label is read; that takes time itself."""
    label: str = ""
    keeps_texts: bool = False
    """Whether statements are counted by their texts; that takes time too."""
    by_label: dict[str, Any] = attrs.field(factory=lambda: defaultdict(Counter))
    by_text: dict[str, Counter[str]] = attrs.field(factory=lambda: defaultdict(Counter))
    left_out_s: tuple[float, float] = (0.0, 0.0)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count until the end of the block."""
        inner = PipelinedConnection.run

        def run(
            wire: PipelinedConnection, statements: Sequence[tuple[str, EncodedParams]]
        ) -> list[list[ResultRow]]:
            counts = self.by_label[self.label]
            counts["trips"] += 1
            counts["statements"] += len(statements)
            counts["commits"] += statements[-1][0] == "COMMIT"
            if self.keeps_texts:
                self.by_text[self.label].update(sql for sql, _ in statements)
            return inner(wire, statements)

        PipelinedConnection.run = run  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            PipelinedConnection.run = inner  # type: ignore[method-assign]

    def labelled(self, label: str, call: Callable[..., T]) -> Callable[..., T]:
        """The call, counted under a label, unless another call that has one makes it."""

        def count(*args: Any, **more: Any) -> T:
            before, self.label = self.label, self.label or label
            counts = self.by_label[self.label]
            counts["calls"] += 1
            began = time.process_time() if self.times_labels else 0.0
            try:
                return call(*args, **more)
            finally:
                if self.times_labels and not before:
                    counts["ms"] += (time.process_time() - began) * 1000
                self.label = before

        return count

    def leaving_out(self, call: Callable[..., T]) -> Callable[..., T]:
        """The call, whose times are in `left_out_s`."""

        def leave_out(*args: Any, **more: Any) -> T:
            ours_s, theirs_s = self.read_ours_s(), self.read_theirs_s()
            try:
                return call(*args, **more)
            finally:
                theirs_s = self.read_theirs_s() - theirs_s  # first, so that it is left out too
                ours_s = self.read_ours_s() - ours_s
                self.left_out_s = self.left_out_s[0] + ours_s, self.left_out_s[1] + theirs_s

        return leave_out

    def total(self) -> Counter[str]:
        """Everything, without labels, except the scans."""
        counted = (counts for label, counts in self.by_label.items() if label != SCAN)
        return sum(counted, Counter())


@contextmanager
def service_with_endpoint(url: str | None) -> Iterator[tuple[pipeline.Bench, SimulationInMemory]]:
    """A service on PostgreSQL, or on a file, and an endpoint that receives all of its events."""
    with tempfile.TemporaryDirectory() as folder:
        opened = open_storage(url or f"sqlite:///{folder}/payments.db", RECORD_TYPES)
        storage = SimulationInMemory(opened)
        receiver = webhook_receiver.start()
        bench = pipeline.Bench(
            Path(folder),
            storage=storage,
            settings=Settings(webhooks=WebhookSettings(local_allowed=True)),
            transport=webhooks.TRANSPORTS["threads"](),
            resolver=webhooks.Here(),
        )
        chain: Any
        for chain in bench.service.chains.values():  # its scans pass what is not final yet
            chain.max_scan_interval_ms = STEP_S * SECOND
        try:
            url = f"https://{NAME}:{receiver.port}/hook"
            environment_id = bench.app.environments["sandbox"]
            authority = bench.service.tenants.system_authority(environment_id)
            bench.service.acting_as(authority).webhooks.create(url=url)
            yield bench, storage
        finally:
            bench.close()
            receiver.close()


def whole_payments(bench: pipeline.Bench, counts: StatementCounts, runs: int) -> None:
    """Payments from their creation until nothing is left to be done for them."""
    service = bench.service
    worker: Any = service.worker("sandbox")
    storage: Any = service.parts.ports.storage
    for handlers in (worker._executor.handlers, worker._executor.batch_handlers):
        for kind, handler in handlers.items():
            handlers[kind] = counts.labelled(kind, handler)
            if kind == SCAN:
                handlers[kind] = counts.leaving_out(handlers[kind])
    storage.claim = counts.labelled("claims", storage.claim)
    storage.next_due = counts.labelled("next_due", storage.next_due)
    create = counts.labelled("request: create, option", bench.option)
    authorize = counts.labelled("request: authorize", bench.authorize)
    for _ in range(runs):
        authorize(create())
    clock: Any = service.parts.ports.clock
    for step_s, until_s in ((STEP_S, SETTLED_AFTER_S), (EXPIRED_AFTER_S, EXPIRED_AFTER_S)):
        for _ in range(until_s // step_s):
            worker.run_until_idle()
            clock.advance_to(clock.now() + step_s * SECOND)
    worker.run_until_idle()


def require_settled(storage: Any, runs: int) -> None:
    """Raise where not every Payment has succeeded, and every event been delivered."""
    payments = Counter(item.record.status for item in storage.scan_page(Payment, limit=10 * runs))
    deliveries = Counter(
        item.record.status for item in storage.scan_page(Delivery, limit=100 * runs)
    )
    if payments != Counter(succeeded=runs) or set(deliveries) != {"delivered"}:
        raise RuntimeError(f"not all is settled: {payments}, {deliveries}")


def measure(
    url: str | None,
    runs: int,
    *,
    postgres_s: Callable[[], float],
    jobs: bool = False,
    statements: bool = False,
) -> dict[str, Any]:
    """What one Payment costs, and what of that is each job's."""
    with service_with_endpoint(url) as (bench, storage):

        def read_ours_s() -> float:
            return time.process_time() - storage.spent_s

        counts = StatementCounts(read_ours_s, postgres_s, times_labels=jobs, keeps_texts=statements)
        gc.freeze()  # as the command line does for its processes
        for _ in range(WARM_UP):
            bench.authorize(bench.option())
        bench.call("POST", "/v2/sandbox/clock", {"advanceSeconds": 1_200})
        theirs_s, ours_s = postgres_s(), read_ours_s()
        with counts.counting():
            whole_payments(bench, counts, runs)
        ours_s = read_ours_s() - ours_s - counts.left_out_s[0]
        theirs_s = postgres_s() - theirs_s - counts.left_out_s[1]
        require_settled(storage, runs + WARM_UP)
    each = {name: count / runs for name, count in counts.total().items() if name != "ms"}
    return {
        **each,
        "ms": ours_s / runs * 1000,
        "PG ms": theirs_s / runs * 1000,
        "by_label": {
            label: {name: count / runs for name, count in found.items()}
            for label, found in counts.by_label.items()
        },
        "by_text": {
            label: {sql: count / runs for sql, count in found.most_common()}
            for label, found in counts.by_text.items()
        },
    }


def report(runs: int, *, jobs: bool = False, statements: bool = False) -> None:
    """Measure on PostgreSQL and on SQLite, and print it beside the target and the baseline."""
    with Cluster(settings={"full_page_writes": "off"}) as cluster:
        pid = cluster.pid
        assert pid is not None
        found = measure(
            cluster.url(),
            runs,
            postgres_s=lambda: processor_s([pid, *children_of(pid)]),
            jobs=jobs,
            statements=statements,
        )
    on_sqlite = measure(None, runs, postgres_s=lambda: 0.0)
    print(f"{'a whole Payment, one endpoint':34}", *(f"{name:>10}" for name in TARGET))
    rows = {"target": TARGET, "recorded before": RECORDED, "PostgreSQL": found, "SQLite": on_sqlite}
    for title, row in rows.items():
        print(f"{title:34}", *(f"{row.get(name, 0):10.1f}" for name in TARGET))
    if jobs:
        names = ("calls", "trips", "statements", "commits", "ms")
        print(f"\n{'of it, on PostgreSQL':34}", *(f"{name:>10}" for name in names))
        for label, row in sorted(found["by_label"].items()):
            print(f"{label:34}", *(f"{row.get(name, 0):10.2f}" for name in names))
    for label, texts in sorted(found["by_text"].items()) if statements else ():
        print(f"\n{label or 'by no job'}")
        for sql, count in texts.items():
            print(f"{count:10.2f}  {' '.join(sql.split())[:TEXT_SHOWN]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--jobs", action="store_true")
    parser.add_argument("--statements", action="store_true")
    options = parser.parse_args()
    report(options.runs, jobs=options.jobs, statements=options.statements)


if __name__ == "__main__":
    main()
