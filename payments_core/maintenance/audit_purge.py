"""Deletes the old entries of the audit trail: a part of the hourly purge."""

from __future__ import annotations

from payments_core.clock import DAY, Instant
from payments_core.engine.audit import AuditEntry
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.storage.port import DIRECTORY, Transaction

AUDIT_RETENTION_MS = 365 * DAY
MIN_AUDIT_MS = 30 * DAY
"""How far back an operator looks for the beginning of an incident."""

BATCH = 200


class AuditPurge:
    """Deletes the entries of one environment that are older than `audit_ms` milliseconds."""

    def __init__(self, ports: Ports, audit_ms: int) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._audit_ms = audit_ms

    def run(self, partition: str) -> bool:
        """Delete a batch; True if there may be more. Raises StorageUnavailable, Unavailable.

        The entries are the environment's own, the directory's about it, and those of the directory
        that belong to no environment.
        """
        now = self._clock.now()
        # A sandbox whose clock was moved deletes nothing of the deployment, or of its other mode.
        everybodys_now = min(now, self._clock.real_now())
        deleted = [
            self._delete(partition, None, now - self._audit_ms),
            self._delete(DIRECTORY, partition, now - self._audit_ms),
            self._delete(DIRECTORY, None, everybodys_now - self._audit_ms),
        ]
        return max(deleted) == BATCH

    def _delete(self, partition: str, environment_id: str | None, before: Instant) -> int:
        page = self._storage.read(
            partition,
            lambda snapshot: snapshot.find(AuditEntry, "oldest", (environment_id,), limit=BATCH),
        )
        ids = [entry.id for entry in page.records if entry.created_at_ms < before]

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            return Decision(
                None, deletes=tuple(tx.get_many(AuditEntry, ids, for_update=True).values())
            )

        if ids:
            self._committer.commit(WorkerAuthority(partition, "upkeep"), decide)
        return len(ids)
