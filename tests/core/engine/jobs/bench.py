"""What the worker's tests stand on: a storage, a ledger and jobs that a test adds."""

from __future__ import annotations

import attrs

from payments_core.clock import FixedClock, Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.committer import Committer
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.execution import Handler
from payments_core.engine.jobs.parking import Queue
from payments_core.engine.jobs.worker import Worker
from payments_core.engine.ports import Ports
from payments_core.storage.jobs import Job
from payments_core.storage.maintenance import scan_all
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import ClaimedJob, Transaction

AUTHORITY = WorkerAuthority("env_test", "sandbox")
STOPPING = Queue("payments")
PASSING = Queue("webhooks", lane_concurrency=1, failure_blocks_lane=False)


@attrs.define
class Bench:
    """A storage, a ledger, and a worker whose handlers a test gives."""

    storage: MemoryStorage = attrs.field(factory=MemoryStorage)
    clock: FixedClock = attrs.field(factory=FixedClock)
    ran: list[str] = attrs.field(factory=list)
    committer: Committer = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        ring = KeyRing.parse(KeyRing.generate())
        self.committer = Ports.over(self.storage, ring, self.clock).committer

    def worker(self, *queues: Queue, **handlers: Handler) -> Worker:
        known = {"note": self.note, "break": self.fail, **handlers}
        return Worker(self.storage, self.clock, "sandbox", known, queues or (STOPPING,))

    def add(
        self, subject: str, kind: str = "note", queue: Queue = STOPPING, lane: str = "",
        delay_ms: int = 0,
    ) -> None:  # fmt: skip
        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            job = Job(
                id=id_sequence.issue("job"), queue=f"sandbox.{queue.name}",
                lane=lane or subject, kind=kind,
                due_at=self.clock.now() + delay_ms, subject=subject,
            )  # fmt: skip
            return Decision(None, inserts=(job,))

        self.committer.commit(AUTHORITY, decide)

    def note(self, claimed: ClaimedJob) -> None:
        self.end(claimed)
        self.ran.append(claimed.job.subject)

    def end(self, claimed: ClaimedJob, next_run_at: Instant | None = None) -> None:
        self.committer.commit(
            AUTHORITY,
            lambda tx, id_sequence: Decision(None, next_run_at=next_run_at),
            claimed=claimed,
        )

    def fail(self, claimed: ClaimedJob) -> None:
        self.ran.append(claimed.job.subject)
        raise ValueError("whsec_a_secret_in_a_text")

    def jobs(self) -> dict[str, Job]:
        return {found.record.subject: found.record for found in scan_all(self.storage, Job)}
