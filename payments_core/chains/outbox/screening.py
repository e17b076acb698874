"""The gate before signatures: what no verdict clears is not signed, so it cannot move.

The verdicts of a look come with the read of its jobs. Whoever has none that counts is asked,
outside of any transaction, and one commit stores the answers before anything is signed. A crash
after it finds the verdicts, and asks nobody. What is signed already is never judged again: a node
may have it.

Transfers of one sender are signed together, and judged alone: one that is held or stopped leaves
the others, and is held in its own turn.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import attrs

from payments_core.chains.backoff import back_off
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.chains.outbox.send_jobs import SendJob
from payments_core.clock import HOUR, MINUTE, SECOND, Instant
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import DependencyFailed
from payments_core.evolve import evolve
from payments_core.screening.asking import Screener, store_verdict
from payments_core.screening.judging import (
    Judgement,
    ScreenedTransfer,
    decision_id,
    find_verdict,
    judge,
    list_verdict_ids,
    make_request,
    make_verdict,
)
from payments_core.screening.port import ScreeningRequest, ScreeningUnavailable, Verdict
from payments_core.screening.record import HeldTransfer, ScreeningVerdict
from payments_core.storage.port import ClaimedJob, Snapshot, Transaction
from payments_core.storage.reads import Get

MAX_ASKING_S = 20.0
"""How long one look asks for the subjects of its transfer: a job must end within its run."""

MAX_ASKING_OTHERS_S = 1.0
"""How long it asks for those of the transfers behind it."""

MIN_PAUSE_MS = {"review": 1 * MINUTE, "silent": 5 * SECOND, "blocked": 1 * MINUTE}
MAX_PAUSE_MS = 6 * HOUR
"""The pauses between two looks at a held transfer: a quarter of the time that it has waited."""


@attrs.frozen
class KnownVerdicts:
    """The verdicts of some send jobs as they were read, and their transfers without bytes."""

    rows: Mapping[str, ScreeningVerdict] = attrs.field(factory=dict)
    unsigned: Mapping[str, ScreenedTransfer] = attrs.field(factory=dict)

    def find_screened(self, job: SendJob) -> ScreenedTransfer | None:
        """What a job's transfer must be judged for; None if it must not."""
        return None if job.transfer is None else self.unsigned.get(job.transfer.id)


@attrs.define
class _Answers:
    """What the provider has said in this look."""

    requests: dict[str, ScreeningRequest] = attrs.field(factory=dict)
    verdicts: dict[str, Verdict] = attrs.field(factory=dict)
    rows: dict[str, ScreeningVerdict] = attrs.field(factory=dict)
    silent: set[str] = attrs.field(factory=set)

    def store(self, tx: Transaction, now: Instant) -> Decision[None]:
        """The rows, in place of what is stored now."""
        stored = [
            store_verdict(tx, self.requests[key], self.verdicts[key], now)
            for key in sorted(self.verdicts)
        ]
        return Decision(None).merge(*stored)


class ScreeningGate:
    """Judges transfers before they are signed."""

    def __init__(self, ports: Ports, screener: Screener) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._screener = screener

    def load(self, snapshot: Snapshot, mode: str, jobs: Sequence[SendJob]) -> KnownVerdicts:
        """The verdicts of some jobs, and which of their transfers are signed already."""
        transfers = [job.transfer for job in jobs if job.transfer is not None]
        known = {one.id: one.screened for one in transfers if one.screened is not None}
        if not known or not self._screener.screens(mode):
            return KnownVerdicts()
        screened = {id: one.complete(snapshot) for id, one in known.items()}
        ids = {id for one in screened.values() for id in list_verdict_ids(one)}
        snapshot.read_ahead(
            *(Get(OutboundTransfer, id) for id in screened),
            *(Get(ScreeningVerdict, id) for id in sorted(ids)),
        )
        found = snapshot.get_many(OutboundTransfer, list(screened))
        return KnownVerdicts(
            snapshot.get_many(ScreeningVerdict, sorted(ids)),
            {id: screened[id] for id, one in found.items() if one.status in ("queued", "reserved")},
        )

    def let_pass(
        self, first: SendJob, others: Sequence[SendJob], known: KnownVerdicts
    ) -> Sequence[SendJob]:
        """The jobs whose transfers may be signed; without the first one, it was held or stopped.

        Those behind it that are not clear, or not known in time, are left to their own turns.
        """
        screened = known.find_screened(first)
        answers = _Answers()
        if screened is not None:
            try:
                self._ask(first, screened, known, answers, MAX_ASKING_S)
            except DependencyFailed:
                self._committer.finish(
                    first.claimed, back_off(first.claimed.job, self._clock.now(), "screening")
                )
                return ()
            judgement = self._judge(screened, known, answers)
            if judgement.finding != "clear":
                self._stop(first, screened, judgement, known, answers)
                return ()
        passing = self._let_others_pass(others, known, answers)
        if answers.verdicts or (screened is not None and screened.is_held):
            self._record(first, screened, answers)
        return (first, *passing)

    def forget(self, claimed: ClaimedJob) -> Decision[None]:
        """The end of a job that has nothing to send, with what was stored of its hold."""
        if not self._screener.screens(claimed.job.queue.partition(".")[0]):
            return Decision(None)
        held = self._storage.read(
            claimed.partition, lambda snapshot: snapshot.get(HeldTransfer, claimed.job.id)
        )
        return Decision(None, deletes=() if held is None else (held,))

    def _let_others_pass(
        self, others: Sequence[SendJob], known: KnownVerdicts, answers: _Answers
    ) -> list[SendJob]:
        ends_at = time.monotonic() + MAX_ASKING_OTHERS_S
        passing = []
        for job in others:
            screened = known.find_screened(job)
            if screened is None:
                passing.append(job)
                continue
            try:
                self._ask(job, screened, known, answers, ends_at - time.monotonic())
            except DependencyFailed:
                continue
            if screened.is_held:
                continue
            if self._judge(screened, known, answers).finding == "clear":
                passing.append(job)
        return passing

    def _ask(
        self,
        job: SendJob,
        screened: ScreenedTransfer,
        known: KnownVerdicts,
        answers: _Answers,
        within_s: float,
    ) -> None:
        """Ask for each subject without a verdict that counts, until one is not answered.

        Raises DependencyFailed if no place for a call was free.
        """
        assert job.transfer is not None
        ends_at = time.monotonic() + within_s
        authority = job.authority
        for concern in screened.concerns:
            key, now = concern.subject.key, self._clock.now()
            if key in answers.verdicts or key in answers.silent:
                continue
            if find_verdict(screened, concern, known.rows, now=now) is not None:
                continue
            if time.monotonic() > ends_at:
                return
            request = make_request(job.transfer.id, screened, concern)
            try:
                verdict = self._screener.ask(authority.mode, authority.partition, request)
            except ScreeningUnavailable:
                answers.silent.add(key)
                return
            answers.requests[key], answers.verdicts[key] = request, verdict
            answers.rows[key] = make_verdict(
                concern.subject, verdict, known.rows.get(key), now=self._clock.now()
            )

    def _judge(
        self, screened: ScreenedTransfer, known: KnownVerdicts, answers: _Answers
    ) -> Judgement:
        return judge(screened, known.rows, answers.rows, now=self._clock.now())

    def _record(self, first: SendJob, screened: ScreenedTransfer | None, answers: _Answers) -> None:
        """Store the answers, and end the hold of the first transfer."""
        is_held = screened is not None and screened.is_held

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            now = self._clock.now()
            done: Decision[None] = Decision(None)
            if is_held:
                assert first.owner.on_screened is not None
                step = first.owner.on_screened(
                    tx, first.record, Judgement(finding="clear"), now=now
                )
                held = tx.get(HeldTransfer, first.claimed.job.id, for_update=True)
                ended: Decision[None] = Decision(None, deletes=() if held is None else (held,))
                done = done.merge(*(() if step is None else (step,)), ended)
            return done.merge(answers.store(tx, now))

        self._committer.commit(first.authority, decide)

    def _stop(
        self,
        job: SendJob,
        screened: ScreenedTransfer,
        judgement: Judgement,
        known: KnownVerdicts,
        answers: _Answers,
    ) -> None:
        """Hold or end a transfer, with its owner's step."""
        owner, claimed, concern = job.owner, job.claimed, judgement.concern
        assert owner.on_screened is not None
        assert concern is not None
        on_screened, decision = owner.on_screened, decision_id(screened.resource, concern)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            now = self._clock.now()
            at_once: Decision[None] = Decision(None, next_run_at=now)
            by_hand, before = tx.get(ScreeningVerdict, decision), known.rows.get(decision)
            if by_hand is not None and (before is None or by_hand.version != before.version):
                return at_once  # an operator has decided meanwhile
            step = on_screened(tx, job.record, judgement, now=now)
            if step is None:
                return at_once
            held = tx.get(HeldTransfer, claimed.job.id, for_update=True)
            since = now if held is None else held.created_at_ms
            after = _hold(job, screened, judgement, held, now=now)
            waits = _next_look_at(judgement, since, now) if step.result else None
            done: Decision[None] = Decision(None, next_run_at=waits)
            return done.merge(step, _write(held, after), answers.store(tx, now))

        self._committer.commit(job.authority, decide, claimed=claimed)


def _hold(
    job: SendJob,
    screened: ScreenedTransfer,
    judgement: Judgement,
    held: HeldTransfer | None,
    *,
    now: Instant,
) -> HeldTransfer:
    """The hold after a look."""
    concern, verdict = judgement.concern, judgement.verdict
    assert concern is not None
    assert job.transfer is not None
    is_blocked = judgement.finding == "blocked"
    made = held or HeldTransfer(
        id=job.claimed.job.id,
        status="in_review",
        subject_key=concern.subject.key,
        subject=concern.subject,
        direction=concern.direction,
        resource=screened.resource,
        owner=screened.owner,
        transfer_id=job.transfer.id,
        created_at_ms=now,
        updated_at_ms=now,
    )
    return evolve(
        made,
        status="blocked" if is_blocked else "in_review",
        subject_key=concern.subject.key,
        subject=concern.subject,
        direction=concern.direction,
        case=None if verdict is None else verdict.case,
        reason=None if verdict is None else verdict.reason,
        decided_by=None if verdict is None else verdict.decided_by,
        updated_at_ms=now,
    )


def _write(before: HeldTransfer | None, after: HeldTransfer) -> Decision[None]:
    if before is None:
        return Decision(None, inserts=(after,))
    return Decision(None, replaces=(after,))


def _next_look_at(judgement: Judgement, since: Instant, now: Instant) -> Instant:
    waited = (now - since) // 4
    return now + min(max(waited, MIN_PAUSE_MS[judgement.finding]), MAX_PAUSE_MS)
