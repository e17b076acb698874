"""The notices of screening providers: the held transfers of a case are looked at now."""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.bringing_forward import bring_known_forward
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.notices.owners import Routed
from payments_core.screening.record import HeldTransfer, ScreeningVerdict
from payments_core.storage.jobs import Job
from payments_core.storage.lookups import locate_with_damaged
from payments_core.storage.port import Page, Position, Transaction
from payments_core.tenants.modes import is_of_mode

PAGE = 100


class ScreeningNotices:
    """Finds the verdict of a provider's case. It no longer counts, so its subject is asked for."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock

    def bring_forward(self, mode: str, reference: str) -> Routed:
        """Look at the transfers of a provider's case now. See NoticeOwner."""
        found, damaged = locate_with_damaged(
            self._storage, ScreeningVerdict, "by_case", [(reference,)]
        )
        ours = [one for one in found if is_of_mode(self._storage, one.partition, mode)]
        if not ours:
            return "unreadable" if damaged else "unknown"
        results = [self._end_verdict(mode, one.partition, one.record.id) for one in ours]
        return "busy" if "busy" in results else "done"

    def _end_verdict(self, mode: str, partition: str, key: str) -> Routed:
        """End a verdict, and bring forward what it holds; some at a time.

        Nobody is clear any more by what was said before, also for a transfer that was asked for.
        """

        def end(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            now = self._clock.now()
            verdict = tx.get(ScreeningVerdict, key, for_update=True)
            if verdict is None or (verdict.valid_until_ms <= now and verdict.outcome != "clear"):
                return Decision(None)
            until = min(now, verdict.valid_until_ms)
            ended = evolve(verdict, outcome="review", valid_until_ms=until)
            return Decision(None, replaces=(ended,))

        self._committer.commit(WorkerAuthority(partition, mode), end)
        routed: Routed = "done"
        after: Position | None = None
        while True:
            page = self._read_held(partition, key, after)
            held = [one for one in page.records if one.status == "in_review"]
            if held and not self._bring_all_forward(mode, partition, held):
                routed = "busy"
            if page.next is None:
                return routed
            after = page.next

    def _read_held(self, partition: str, key: str, after: Position | None) -> Page[HeldTransfer]:
        return self._storage.read(
            partition,
            lambda snapshot: snapshot.find(
                HeldTransfer, "by_subject", (key,), after=after, limit=PAGE
            ),
        )

    def _bring_all_forward(self, mode: str, partition: str, held: Sequence[HeldTransfer]) -> bool:
        """Whether all could be brought forward: a job that runs may have asked too early."""
        ids = sorted(one.id for one in held)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
            now = self._clock.now()
            jobs = tx.get_many(Job, ids, for_update=True)
            moved = [bring_known_forward(job, now) for job in jobs.values()]
            done = [one for one in moved if one is not None]
            return Decision(len(done) == len(moved)).merge(*done)

        return self._committer.commit(WorkerAuthority(partition, mode), decide)
