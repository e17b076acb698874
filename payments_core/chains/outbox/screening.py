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
    Concern,
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
    """What the provider has said in this look: of each transfer, and the newest of each subject.

    An answer may be for its request only, so it counts for its own transfer and direction. For
    others it counts as a stored verdict does: until its time.
    """

    known: KnownVerdicts
    given: dict[tuple[str, Concern], ScreeningVerdict] = attrs.field(factory=dict)
    to_store: dict[str, tuple[ScreeningRequest, Verdict]] = attrs.field(factory=dict)
    rows: dict[str, ScreeningVerdict] = attrs.field(init=False)
    silent: set[str] = attrs.field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.rows = dict(self.known.rows)

    def add(
        self, transfer_id: str, request: ScreeningRequest, verdict: Verdict, now: Instant
    ) -> None:
        """Note an answer. Of two for one subject, one that is not clear is stored: a notice of the
        provider must find its case."""
        key = request.subject.key
        row = make_verdict(request.subject, verdict, self.known.rows.get(key), now=now)
        self.given[transfer_id, Concern(request.subject, request.direction)] = row
        earlier = self.to_store.get(key)
        if earlier is None or earlier[1].outcome == "clear":
            self.to_store[key], self.rows[key] = (request, verdict), row

    def find(
        self, transfer_id: str, screened: ScreenedTransfer, concern: Concern, now: Instant
    ) -> ScreeningVerdict | None:
        """The verdict that counts for a transfer; None if the provider must be asked."""
        given = self.given.get((transfer_id, concern))
        return given or find_verdict(screened, concern, self.rows, now=now)

    def store(self, tx: Transaction, now: Instant) -> Decision[None]:
        """The rows, in place of what is stored now."""
        stored = [store_verdict(tx, *self.to_store[key], now) for key in sorted(self.to_store)]
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
        answers = _Answers(known)
        if screened is not None:
            try:
                self._ask(first, screened, answers, MAX_ASKING_S)
            except DependencyFailed:
                self._committer.finish(
                    first.claimed, back_off(first.claimed.job, self._clock.now(), "screening")
                )
                return ()
            judgement = self._judge(first, screened, answers)
            if judgement.finding != "clear":
                self._stop(first, screened, judgement, answers)
                return ()
        passing = self._let_others_pass(others, answers)
        if answers.to_store or (screened is not None and screened.is_held):
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

    def _let_others_pass(self, others: Sequence[SendJob], answers: _Answers) -> list[SendJob]:
        ends_at = time.monotonic() + MAX_ASKING_OTHERS_S
        passing = []
        for job in others:
            screened = answers.known.find_screened(job)
            if screened is None:
                passing.append(job)
                continue
            try:
                self._ask(job, screened, answers, ends_at - time.monotonic())
            except DependencyFailed:
                continue
            if screened.is_held:
                continue
            if self._judge(job, screened, answers).finding == "clear":
                passing.append(job)
        return passing

    def _ask(
        self, job: SendJob, screened: ScreenedTransfer, answers: _Answers, within_s: float
    ) -> None:
        """Ask for each subject without a verdict that counts, until one is not answered.

        Raises DependencyFailed if no place for a call was free.
        """
        assert job.transfer is not None
        ends_at = time.monotonic() + within_s
        authority = job.authority
        for concern in screened.concerns:
            now = self._clock.now()
            if concern.subject.key in answers.silent:
                continue
            if answers.find(job.transfer.id, screened, concern, now) is not None:
                continue
            if time.monotonic() > ends_at:
                return
            request = make_request(job.transfer.id, screened, concern)
            try:
                verdict = self._screener.ask(authority.mode, authority.partition, request)
            except ScreeningUnavailable:
                answers.silent.add(concern.subject.key)
                return
            answers.add(job.transfer.id, request, verdict, self._clock.now())

    def _judge(self, job: SendJob, screened: ScreenedTransfer, answers: _Answers) -> Judgement:
        assert job.transfer is not None
        now, id = self._clock.now(), job.transfer.id
        return judge(
            {concern: answers.find(id, screened, concern, now) for concern in screened.concerns}
        )

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
            by_hand, before = tx.get(ScreeningVerdict, decision), answers.rows.get(decision)
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
