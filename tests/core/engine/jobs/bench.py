"""What the worker's tests stand on: a storage, a ledger and jobs that a test adds."""

from __future__ import annotations

import attrs

from payments_core.clock import FixedClock, Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.committer import Ledger
from payments_core.engine.decision import Decision, Scope
from payments_core.engine.identifiers import Draw
from payments_core.engine.jobs.parking import Queue
from payments_core.engine.jobs.worker import Handler, Worker
from payments_core.engine.ports import Ports
from payments_core.storage.jobs import Job
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Claimed, Transaction

SCOPE = Scope("env_test", "sandbox")
STOPPING = Queue("payments")
PASSING = Queue("webhooks", slots=1, stops=False)


@attrs.define
class Bench:
    """A storage, a ledger, and a worker whose handlers a test gives."""

    storage: MemoryStorage = attrs.field(factory=MemoryStorage)
    clock: FixedClock = attrs.field(factory=FixedClock)
    ran: list[str] = attrs.field(factory=list)
    ledger: Ledger = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        ring = KeyRing.parse(KeyRing.generate())
        self.ledger = Ports.over(self.storage, ring, self.clock).committer

    def worker(self, *queues: Queue, **handlers: Handler) -> Worker:
        known = {"note": self.note, "break": self.fail, **handlers}
        return Worker(self.storage, self.clock, "sandbox", known, queues or (STOPPING,))

    def add(
        self, subject: str, kind: str = "note", queue: Queue = STOPPING, lane: str = "",
        delay_ms: int = 0,
    ) -> None:  # fmt: skip
        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            job = Job(
                id=draw.id("job"), queue=f"sandbox.{queue.name}", lane=lane or subject, kind=kind,
                due_at=self.clock.now() + delay_ms, subject=subject,
            )  # fmt: skip
            return Decision(None, inserts=(job,))

        self.ledger.commit(SCOPE, decide)

    def note(self, claimed: Claimed) -> None:
        self.end(claimed)
        self.ran.append(claimed.job.subject)

    def end(self, claimed: Claimed, again_at: Instant | None = None) -> None:
        self.ledger.commit(
            SCOPE, lambda tx, draw: Decision(None, again_at=again_at), claimed=claimed
        )

    def fail(self, claimed: Claimed) -> None:
        self.ran.append(claimed.job.subject)
        raise ValueError("whsec_a_secret_in_a_text")

    def jobs(self) -> dict[str, Job]:
        page = self.storage.read(
            SCOPE.partition,
            lambda tx: [
                job
                for lane in ("a", "b", "shared")
                for job in tx.find(Job, "by_lane", (lane,)).records
            ],
        )
        return {job.subject: job for job in page}
