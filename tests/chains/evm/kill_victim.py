"""A service on a real node for test_kills and test_scan_kills, which kill it again and again.

Usage: python -m tests.chains.evm.kill_victim ROLE FOLDER URL SEED POINT AIM

`steps` does all jobs in one thread, and time goes by as they need it. `threads` lets the worker's
threads do them, while time goes by, until SIGTERM. `scan` scans the chain to its newest block, and
so does `short_scan`, a few blocks at a time.
From the POINT-th call on that changes anything it kills itself (SIGKILL) before the next that AIM
names; 0 is never. It writes facts for those who wait to its standard output.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.scanner import ScanCursor
from payments_core.clock import MINUTE, SECOND, FixedClock
from payments_core.credentials.keyring import KeyRing
from payments_core.entropy import Entropy
from payments_core.record_types import RECORD_TYPES
from payments_core.sandbox.clock import SandboxClock
from payments_core.service import PaymentsService
from payments_core.storage.jobs import Job
from payments_core.storage.port import DIRECTORY, ClaimedJob, Snapshot, Storage
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core_http.cli.anvil.chain import AnvilChain
from tests.service.world import BASE, NoTransport

KEY = b"the key of a chain that is no one"[:32]
FATAL = ("transact", "prepare", "broadcast")
"""Between two of these calls nothing changes that the next process could see."""

AIMS = ("any", "prepare", "broadcast", "after broadcast")
PATIENCE = 60
"""So many calls later anything will do: there may be nothing to send any more."""

LEASES_END_MS = 61 * SECOND
LIFE_MS = 5 * MINUTE
"""Longer than any process lasts that is killed, and long enough to bring all to its end."""

TICK_S = 0.05
SHORT_SCAN = 40
SCAN_JOB = f"sandbox:{BASE}"


class Fate:
    """Counts the calls of ports, and ends the process before one of them."""

    def __init__(self, point: int, aim: str = "any") -> None:
        self._point = point
        self._aim = aim
        self._lock = threading.Lock()
        self._before = ""
        self.count = 0

    def over(self, port: Any) -> Any:
        """The port, with its calls counted."""
        return Counted(port, self)

    def meet(self, name: str) -> None:
        """One more call; none comes back from the last."""
        with self._lock:
            self.count += 1
            names = ("any", name, f"after {self._before}")
            self._before = name
            late = self.count - self._point
            if self._point and late >= 0 and (self._aim in names or late > PATIENCE):
                report(killed_at=names[2] if self._aim == names[2] else name)
                os.kill(os.getpid(), signal.SIGKILL)


class Counted:
    """Any port. What has its own idea of `self` inside is not counted twice."""

    def __init__(self, inner: Any, fate: Fate) -> None:
        self._inner = inner
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in FATAL:
            return found

        def counted(*arguments: Any, **more: Any) -> Any:
            self._fate.meet(name)
            return found(*arguments, **more)

        return counted


def chain_at(url: str) -> AnvilChain:
    """Base on that node, which is ready."""
    return AnvilChain(url, BASE, LocalSigner(KEY))


def storage_in(folder: Path) -> SqliteStorage:
    """The folder's file."""
    storage = SqliteStorage(folder / "data.db", RECORD_TYPES)
    storage.migrate()
    return storage


def service_over(
    folder: Path, storage: Storage, chain: Any, entropy: Entropy
) -> tuple[PaymentsService, SandboxClock]:
    """The service on the folder's file, and its clock, which moves only on request."""
    clock = SandboxClock(storage, FixedClock())
    service = PaymentsService(
        storage,
        KeyRing.parse((folder / "keys").read_text()),
        sandbox_chains={BASE: chain},
        clock=clock,
        entropy=entropy,
        transport=NoTransport(),
    )
    return service, clock


def mover(chain: Any, clock: SandboxClock) -> Callable[[int], None]:
    """Moves the clock, and the chain with it: a block for each second."""

    def move(instant: int) -> None:
        before = clock.now()
        clock.advance_to(instant)
        chain.advance_time(before, clock.now())

    return move


def live_by_steps(service: PaymentsService, chain: Any, clock: SandboxClock) -> None:
    """Do what falls due in the next minutes."""
    worker = service.worker("sandbox")
    worker.run_through(clock.now() + LIFE_MS, mover(chain, clock))


def live_by_threads(service: PaymentsService, chain: Any, clock: SandboxClock) -> None:
    """Let the threads work until somebody says that it is enough, and bring all to its end."""
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    worker = service.worker("sandbox")
    worker.start()
    report(works=True)
    move = mover(chain, clock)
    while not over.wait(TICK_S):
        move(clock.now() + SECOND)
    worker.stop()
    live_by_steps(service, chain, clock)


def live_by_scans(service: PaymentsService, chain: Any, clock: SandboxClock) -> None:
    """Do the job that scans, and no other, until it has seen the newest block."""
    scanner = service.parts.scanner("sandbox")
    scanner.ensure_scheduled()
    newest = chain.heads().latest.number
    tip = -1
    while tip < newest:
        job, _ = scan_job_and_tip(service.parts.ports.storage)
        assert job is not None
        scanner.scan(ClaimedJob(DIRECTORY, job))
        _, tip = scan_job_and_tip(service.parts.ports.storage)
        report(tip=tip)


def scan_job_and_tip(storage: Storage) -> tuple[Job | None, int]:
    """The job that scans, and how far it is; -1 is not begun."""

    def look(snapshot: Snapshot) -> tuple[Job | None, int]:
        cursor = snapshot.get(ScanCursor, SCAN_JOB)
        return snapshot.get(Job, SCAN_JOB), -1 if cursor is None else cursor.tip

    return storage.read(DIRECTORY, look)


ROLES: dict[str, Callable[[PaymentsService, Any, SandboxClock], None]] = {
    "steps": live_by_steps,
    "threads": live_by_threads,
    "scan": live_by_scans,
    "short_scan": live_by_scans,
}


def report(**facts: Any) -> None:
    """Tell those who wait."""
    print(json.dumps(facts), flush=True)


def main() -> None:
    """Live until it is killed, or all is done."""
    role, folder, url, seed, point, aim = sys.argv[1:]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # who is about to end anyway ends well
    fate = Fate(int(point), aim)
    real = storage_in(Path(folder))
    node = chain_at(url)
    if role == "short_scan":
        node.max_scan_blocks = SHORT_SCAN
    chain = fate.over(node)
    entropy = random.Random(seed).randbytes
    service, clock = service_over(Path(folder), fate.over(real), chain, entropy)
    clock.refresh()
    # What the process before had leased when it was killed is due again a minute later.
    clock.advance_to(clock.now() + LEASES_END_MS)
    report(ready=True)
    ROLES[role](service, chain, clock)
    report(lived=fate.count)
    service.close()


if __name__ == "__main__":
    main()
