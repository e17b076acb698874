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
    list_decision_ids,
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

ANSWERS_COUNT_MS = 10 * MINUTE
"""What one look has cleared counts for its transfer in the next one, if that comes within this
time. So a provider whose answers count for one request can clear more than one look can ask for.
As looks have growing pauses, such an answer is at most five times as old when it counts."""

MAX_CLEARED = 1_000
"""How many of those answers a hold keeps: anybody may pay from any number of senders, and a record
must fit into a document."""


@attrs.frozen
class KnownVerdicts:
    """The verdicts of some send jobs as they were read, and their transfers without bytes.

    `holds` are those of the jobs, and those that an earlier transfer has left, each by its id.
    """

    rows: Mapping[str, ScreeningVerdict] = attrs.field(factory=dict)
    unsigned: Mapping[str, ScreenedTransfer] = attrs.field(factory=dict)
    holds: Mapping[str, HeldTransfer] = attrs.field(factory=dict)

    def find_screened(self, job: SendJob) -> ScreenedTransfer | None:
        """What a job's transfer must be judged for; None if it must not."""
        return None if job.transfer is None else self.unsigned.get(job.transfer.id)

    def list_holds(self, job: SendJob, screened: ScreenedTransfer) -> list[str]:
        """The ids of the holds of a transfer, and of those before it that were blocked."""
        ids = (job.claimed.job.id, *list_decision_ids(screened))
        return sorted(id for id in ids if id in self.holds)


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

    def recall(self, job: SendJob, screened: ScreenedTransfer, now: Instant) -> None:
        """Let count what the look before this one has cleared for the transfer.

        The newest stored answer must be clear too: since then another may have been given, or the
        provider may have reported news of the case.
        """
        assert job.transfer is not None
        held = self.known.holds.get(job.claimed.job.id)
        if held is None or held.transfer_id != job.transfer.id:
            return
        if now - held.updated_at_ms > ANSWERS_COUNT_MS:
            return
        cleared = set(held.cleared)
        for concern in screened.concerns:
            row = self.rows.get(concern.subject.key)
            if concern.key in cleared and row is not None and row.outcome == "clear":
                self.given[job.transfer.id, concern] = row

    def list_cleared(
        self, job: SendJob, screened: ScreenedTransfer, now: Instant
    ) -> tuple[str, ...]:
        """The keys of whom the provider has cleared for a transfer, in this look and before,
        without those whose verdicts count by themselves for so long."""
        assert job.transfer is not None
        given = [(one, self.given.get((job.transfer.id, one))) for one in screened.concerns]
        cleared = [
            one
            for one, verdict in given
            if verdict
            and verdict.outcome == "clear"
            and verdict.valid_until_ms < now + ANSWERS_COUNT_MS
        ]
        return tuple(one.key for one in cleared[:MAX_CLEARED])

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
        by_hand = self.rows.get(decision_id(screened.resource, concern))
        given = self.given.get((transfer_id, concern))
        return by_hand or given or find_verdict(screened, concern, self.rows, now=now)

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
        self._telemetry = ports.telemetry
        self._screener = screener

    def load(self, snapshot: Snapshot, mode: str, jobs: Sequence[SendJob]) -> KnownVerdicts:
        """The verdicts of some jobs, and which of their transfers are signed already."""
        transfers = [job.transfer for job in jobs if job.transfer is not None]
        known = {one.id: one.screened for one in transfers if one.screened is not None}
        if not known or not self._screener.screens(mode):
            return KnownVerdicts()
        screened = {id: one.complete(snapshot) for id, one in known.items()}
        by_hand = {id for one in screened.values() for id in list_decision_ids(one)}
        keys = {concern.subject.key for one in screened.values() for concern in one.concerns}
        verdicts = sorted(by_hand | keys)
        held = {job.claimed.job.id for job in jobs if job.transfer and job.transfer.id in screened}
        holds = sorted(by_hand | held)
        snapshot.read_ahead(
            *(Get(OutboundTransfer, id) for id in screened),
            *(Get(ScreeningVerdict, id) for id in verdicts),
            *(Get(HeldTransfer, id) for id in holds),
        )
        found = snapshot.get_many(OutboundTransfer, list(screened))
        return KnownVerdicts(
            snapshot.get_many(ScreeningVerdict, verdicts),
            {id: screened[id] for id, one in found.items() if one.status in ("queued", "reserved")},
            snapshot.get_many(HeldTransfer, holds),
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
                ran_out = self._ask(first, screened, answers, MAX_ASKING_S)
            except DependencyFailed:
                self._committer.finish(
                    first.claimed, back_off(first.claimed.job, self._clock.now(), "screening")
                )
                return ()
            judgement = self._judge(first, screened, answers)
            if judgement.finding != "clear":
                self._stop(first, screened, judgement, answers, ran_out)
                return ()
        passing = self._let_others_pass(others, answers)
        if answers.to_store or (screened is not None and known.list_holds(first, screened)):
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
            if answers.known.list_holds(job, screened):
                continue  # its own turn ends the hold
            if self._judge(job, screened, answers).finding == "clear":
                passing.append(job)
        return passing

    def _ask(
        self, job: SendJob, screened: ScreenedTransfer, answers: _Answers, within_s: float
    ) -> bool:
        """Ask for each subject without a verdict that counts, until one is not answered.

        Returns whether the time ran out before all were asked for. Raises DependencyFailed if no
        place for a call was free.
        """
        assert job.transfer is not None
        ends_at = time.monotonic() + within_s
        authority = job.authority
        answers.recall(job, screened, self._clock.now())
        for concern in screened.concerns:
            now = self._clock.now()
            if concern.subject.key in answers.silent:
                continue
            if answers.find(job.transfer.id, screened, concern, now) is not None:
                continue
            if time.monotonic() > ends_at:
                return True
            request = make_request(job.transfer.id, screened, concern)
            try:
                verdict = self._screener.ask(authority.mode, authority.partition, request)
            except ScreeningUnavailable:
                answers.silent.add(concern.subject.key)
                return False
            answers.add(job.transfer.id, request, verdict, self._clock.now())
        return False

    def _judge(self, job: SendJob, screened: ScreenedTransfer, answers: _Answers) -> Judgement:
        assert job.transfer is not None
        now, id = self._clock.now(), job.transfer.id
        return judge(
            {concern: answers.find(id, screened, concern, now) for concern in screened.concerns}
        )

    def _record(self, first: SendJob, screened: ScreenedTransfer | None, answers: _Answers) -> None:
        """Store the answers, and end the holds of the first transfer."""
        is_held = screened is not None and screened.is_held
        ids = [] if screened is None else answers.known.list_holds(first, screened)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            now = self._clock.now()
            done: Decision[None] = Decision(None)
            if is_held:
                assert first.owner.on_screened is not None
                step = first.owner.on_screened(
                    tx, first.record, Judgement(finding="clear"), now=now
                )
                done = done.merge(*(() if step is None else (step,)))
            return done.merge(_end(tx, ids), answers.store(tx, now))

        self._committer.commit(first.authority, decide)

    def _stop(
        self,
        job: SendJob,
        screened: ScreenedTransfer,
        judgement: Judgement,
        answers: _Answers,
        ran_out: bool,
    ) -> None:
        """Hold or end a transfer, with its owner's step.

        One hold is left of those that it had, and of those before it that were blocked.
        """
        owner, claimed, concern = job.owner, job.claimed, judgement.concern
        known = answers.known.list_holds(job, screened)
        assert owner.on_screened is not None
        assert concern is not None
        on_screened, decision = owner.on_screened, decision_id(screened.resource, concern)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
            """Its result says whether the transfer is held as it was not before."""
            now = self._clock.now()
            at_once = Decision(False, next_run_at=now)
            by_hand, before = tx.get(ScreeningVerdict, decision), answers.rows.get(decision)
            if by_hand is not None and (before is None or by_hand.version != before.version):
                return at_once  # an operator has decided meanwhile
            step = on_screened(tx, job.record, judgement, now=now)
            if step is None:
                return at_once
            id = claimed.job.id if step.result else decision
            holds = dict(tx.get_many(HeldTransfer, sorted({*known, id}), for_update=True))
            looked_at, stored = holds.get(claimed.job.id), holds.pop(id, None)
            first = stored or looked_at
            since = now if first is None else first.created_at_ms
            after = _hold(id, job, screened, judgement, stored, since, now=now)
            if judgement.finding != "blocked":
                after = evolve(after, cleared=answers.list_cleared(job, screened, now))
            waits = None
            if step.result:
                is_cut = ran_out and judgement.finding == "silent"
                waits = _next_look_at(judgement, now if is_cut else since, now)
            is_new = looked_at is None or looked_at.status != after.status
            done = Decision(is_new, next_run_at=waits)
            ended: Decision[None] = Decision(None, deletes=tuple(holds.values()))
            return done.merge(step, ended, _write(stored, after), answers.store(tx, now))

        is_new = self._committer.commit(job.authority, decide, claimed=claimed)
        if is_new and judgement.finding != "clear":
            self._telemetry.record_held(judgement.finding)


def _hold(
    id: str,
    job: SendJob,
    screened: ScreenedTransfer,
    judgement: Judgement,
    stored: HeldTransfer | None,
    since: Instant,
    *,
    now: Instant,
) -> HeldTransfer:
    """The hold after a look, in place of the one that is `stored` under its id."""
    concern, verdict = judgement.concern, judgement.verdict
    assert concern is not None
    assert job.transfer is not None
    made = stored or HeldTransfer(
        id=id,
        status="in_review",
        subject_key=concern.subject.key,
        subject=concern.subject,
        direction=concern.direction,
        resource=screened.resource,
        owner=screened.owner,
        created_at_ms=since,
        updated_at_ms=now,
    )
    return evolve(
        made,
        status="blocked" if judgement.finding == "blocked" else "in_review",
        subject_key=concern.subject.key,
        subject=concern.subject,
        direction=concern.direction,
        owner=screened.owner,
        transfer_id=job.transfer.id,
        case=None if verdict is None else verdict.case,
        reason=None if verdict is None else verdict.reason,
        decided_by=None if verdict is None else verdict.decided_by,
        cleared=(),
        updated_at_ms=now,
    )


def _end(tx: Transaction, ids: Sequence[str]) -> Decision[None]:
    """The end of some holds."""
    found = tx.get_many(HeldTransfer, ids, for_update=True) if ids else {}
    return Decision(None, deletes=tuple(found.values()))


def _write(before: HeldTransfer | None, after: HeldTransfer) -> Decision[None]:
    if before is None:
        return Decision(None, inserts=(after,))
    return Decision(None, replaces=(after,))


def _next_look_at(judgement: Judgement, since: Instant, now: Instant) -> Instant:
    waited = (now - since) // 4
    return now + min(max(waited, MIN_PAUSE_MS[judgement.finding]), MAX_PAUSE_MS)
