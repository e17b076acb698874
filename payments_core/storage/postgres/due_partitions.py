"""The partitions that a claim in PostgreSQL visits, and their order.

A look over all partitions finds those that may have due work: by the hints, by this handle's own
commits, and every two seconds by the jobs themselves. Its finds may be stale, and lease
nothing. The claim then takes one partition after another, each in a separate transaction.

A handle's knowledge saves useless claims: a partition whose due jobs wait for room in their lanes
is skipped for `WAIT_S`, unless the handle itself changes a job there, the next lease ends, or a
later claim allows its lanes more.

If the tables are distributed, a look asks all machines. While one is away, claims go in turn to
the partitions that the handle knows, and skip those of that machine.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import attrs

from payments_core.clock import SECOND, Instant
from payments_core.evolve import evolve
from payments_core.storage.damaged_records import log_damaged_jobs
from payments_core.storage.port import ClaimedJob, StorageUnavailable
from payments_core.storage.postgres.claims import ClaimResult, RunInTransaction, claim_in
from payments_core.storage.postgres.due_jobs import NO_GUESS, ClaimRequest, Guess
from payments_core.storage.postgres.errors import is_node_lost
from payments_core.storage.postgres.hints import (
    FOREVER,
    HINTS,
    QUEUE_OF_READY,
    READY,
    QueueKey,
    make_hint,
)
from payments_core.storage.postgres.pending_transaction import PendingTransaction

MAX_PARTITIONS = 64
"""The number of partitions found together."""
MAX_KNOWN = 32
"""The number of known partitions that a claim visits while a machine is away."""
WARN_S = 10.0
WALKS = 2
"""The ring of a partition is walked to its end, and again from its beginning."""
WAIT_S = 0.5
"""How long a partition is skipped if its due jobs wait for room."""
RECHECK_S = 0.25
"""A hint that was moved later is checked again after this time: a commit may have crossed it."""
SWEEP_S = 2.0
"""By the later of the system's and the caller's clock: a sandbox's clock is advanced."""
SWEEP_JOBS = 1_000
"""The number of due jobs of one sweep; the next sweep continues after them."""

_FIND = f"""
    SELECT partition FROM (
        SELECT partition FROM {HINTS} WHERE queue = $1 AND due_at <= $2::bigint
        UNION
        SELECT partition FROM {HINTS} AS hints WHERE queue = $1 AND partition = ANY ($3::text[])
        AND EXISTS (
            SELECT FROM jobs WHERE jobs.partition = hints.partition AND {QUEUE_OF_READY} = $1
            AND {READY} < hints.due_at
        )
    ) AS found
    WHERE partition <> ALL ($4::text[])
    ORDER BY partition <= $5, partition LIMIT {MAX_PARTITIONS}
"""
_SWEEP = f"""
    SELECT partition, {READY} AS ready FROM jobs
    WHERE {QUEUE_OF_READY} = $1
    AND ({READY}, partition) > ($2::bigint, $3) AND {READY} <= $4::bigint
    ORDER BY {READY}, partition LIMIT {SWEEP_JOBS}
"""
_BEGINNING = (-(2**63), "")

_log = logging.getLogger(__name__)


@attrs.frozen
class _Waiting:
    """A partition whose due jobs wait for room, and the room that their lanes had."""

    now: Instant
    rooms: Mapping[str, int]
    until: Instant
    until_s: float

    def is_over(self, request: ClaimRequest, now_s: float) -> bool:
        """Whether a claim may find something."""
        if now_s >= self.until_s or not self.now <= request.now < self.until:
            return True
        return any(request.concurrency_of(lane) > room for lane, room in self.rooms.items())


@attrs.define
class _Queue:
    """A handle's state of a queue: `last` is the position in its ring of partitions."""

    last: str = ""
    changed: set[str] = attrs.field(factory=set)
    rechecks: dict[str, float] = attrs.field(factory=dict)
    waiting: dict[str, _Waiting] = attrs.field(factory=dict)
    swept: tuple[Instant, str] = _BEGINNING
    sweep_at: Instant = 0
    sweep_at_s: float = 0.0


@attrs.frozen
class _Look:
    """The request of a look. `swept` is None, or where the sweep continues."""

    request: ClaimRequest
    last: str
    own: Sequence[str]
    waiting: Sequence[str]
    swept: tuple[Instant, str] | None


class DuePartitions:
    """The claims of one handle."""

    def __init__(self, look_in: RunInTransaction, write_in: RunInTransaction) -> None:
        """Looks need no snapshot: their finds may be stale."""
        self._look_in = look_in
        self._write_in = write_in
        self._lock = threading.Lock()
        self._queues: dict[str, _Queue] = defaultdict(_Queue)
        self._guesses: dict[QueueKey, Guess] = {}
        self.hinted: set[QueueKey] = set()
        """The partitions and queues that have a row in the table of hints."""
        self._warn_at_s = 0.0

    def note_changed(self, keys: Iterable[QueueKey]) -> None:
        """Record that this handle has changed jobs there, or may have."""
        with self._lock:
            for partition, queue in keys:
                self._queues[queue].changed.add(partition)
                self._queues[queue].waiting.pop(partition, None)

    def note_hinted(self, due: Mapping[QueueKey, Instant]) -> None:
        """Record that the hints were moved to these instants, and committed."""
        self.hinted.update(key for key, at in due.items() if at < FOREVER)

    def claim(self, request: ClaimRequest) -> Sequence[ClaimedJob]:
        """Lease jobs of the next partitions in the ring that have due work and room."""
        while True:
            found = self._find(request)
            claimed = self._claim_in_turn(found, request)
            if claimed or len(found) < MAX_PARTITIONS:
                return claimed

    def _claim_in_turn(
        self, partitions: Sequence[str], request: ClaimRequest
    ) -> Sequence[ClaimedJob]:
        """Claim what there is room for; from contended partitions only if no others have any."""
        claimed: list[ClaimedJob] = []
        busy = []
        for partition in partitions:
            if len(claimed) < request.limit:
                taken = self._try_claim_in(partition, request, len(claimed), wait=False)
                claimed += taken or ()
                busy += [partition] if taken is None else []
        for partition in busy:
            if not claimed:
                claimed += self._try_claim_in(partition, request, 0, wait=True) or ()
        return claimed

    def _try_claim_in(
        self, partition: str, request: ClaimRequest, taken: int, *, wait: bool
    ) -> Sequence[ClaimedJob] | None:
        """Like `_claim_in`; a partition whose machine is away gives nothing, and is skipped."""
        try:
            return self._claim_in(partition, request, taken, wait=wait)
        except StorageUnavailable as error:
            if not is_node_lost(error.__cause__):
                raise
            self._warn(error)
            until_s = time.monotonic() + WAIT_S
            with self._lock:
                waiting = self._queues[request.queue].waiting
                waiting[partition] = _Waiting(request.now, {}, FOREVER, until_s)
            return ()

    def _claim_in(
        self, partition: str, request: ClaimRequest, taken: int, *, wait: bool
    ) -> Sequence[ClaimedJob] | None:
        """Lease jobs of a partition; None if another claim holds it."""
        key = (partition, request.queue)
        if key not in self.hinted:
            self._write_in(partial(make_hint, key=key))
            self.hinted.add(key)
        rest = evolve(request, limit=request.limit - taken)
        ends = 0
        while True:
            guess = self._guesses.pop(key, NO_GUESS)
            result: ClaimResult | None = self._write_in(
                partial(claim_in, partition=partition, request=rest, wait=wait, guess=guess)
            )
            if result is None:
                self._guesses[key] = evolve(guess, contended=True)
                return None
            log_damaged_jobs([(partition, id) for id in result.unreadable])
            ends += result.at_end
            if result.walked or wait:
                self._guesses[key] = Guess(backlog=result.walked, contended=wait)
            if not result.claimed and (result.unreadable or (result.walked and ends < WALKS)):
                continue  # there may be others after them
            self._note_result(partition, request, result)
            return result.claimed

    def _note_result(self, partition: str, request: ClaimRequest, result: ClaimResult) -> None:
        now_s = time.monotonic()
        with self._lock:
            queue = self._queues[request.queue]
            if result.claimed:
                queue.last = partition
            if result.moved:
                queue.rechecks[partition] = now_s + RECHECK_S
            if result.waits_until is not None and partition not in queue.changed:
                rooms = {lane: request.concurrency_of(lane) for lane in result.lanes}
                queue.waiting[partition] = _Waiting(
                    request.now, rooms, result.waits_until, now_s + WAIT_S
                )

    # The look.

    def _find(self, request: ClaimRequest) -> Sequence[str]:
        """The partitions that may have due work, in ring order."""
        look = self._plan_look(request)
        found: set[str] = set()
        ring: Sequence[str]
        swept: tuple[Instant, str] | None
        try:
            ring, found, swept = self._look_in(partial(_look, look=look))
        except StorageUnavailable as error:
            if not is_node_lost(error.__cause__):
                raise
            self._warn(error)
            return self._find_known(look)
        if swept is not None:
            with self._lock:
                self._queues[request.queue].swept = swept
        known = {*ring, *look.waiting}
        unhinted = sorted(found - known, key=lambda name: (name <= look.last, name))
        if not unhinted:
            return ring
        return sorted([*ring, *unhinted], key=lambda name: (name <= look.last, name))

    def _find_known(self, look: _Look) -> Sequence[str]:
        """The next of the partitions that this handle knows, with or without work."""
        queue = look.request.queue
        known = {name for name, of in self.hinted.copy() if of == queue} | {*look.own}
        known -= {*look.waiting}
        ring = sorted(known, key=lambda name: (name <= look.last, name))[:MAX_KNOWN]
        if ring:
            with self._lock:
                self._queues[queue].last = ring[-1]
        return ring

    def _warn(self, error: StorageUnavailable) -> None:
        now_s = time.monotonic()
        with self._lock:
            is_due = now_s >= self._warn_at_s
            if is_due:
                self._warn_at_s = now_s + WARN_S
        if is_due:
            _log.warning("a server of the database is unavailable; its jobs wait: %s", error)

    def _plan_look(self, request: ClaimRequest) -> _Look:
        now_s = time.monotonic()
        with self._lock:
            queue = self._queues[request.queue]
            for partition in [
                name for name, item in queue.waiting.items() if item.is_over(request, now_s)
            ]:
                del queue.waiting[partition]
            due = [name for name, at in queue.rechecks.items() if at <= now_s]
            for partition in due:
                del queue.rechecks[partition]
            own = [*queue.changed, *due]
            queue.changed.clear()
            swept = None
            if now_s >= queue.sweep_at_s or request.now >= queue.sweep_at:
                queue.sweep_at_s = now_s + SWEEP_S
                queue.sweep_at = request.now + int(SWEEP_S * SECOND)
                swept = queue.swept
            return _Look(request, queue.last, own, list(queue.waiting), swept)


def next_due(transaction: PendingTransaction, queue: str, after: Instant | None) -> Instant | None:
    """The earliest instant at which a job of the queue can be claimed, later than `after`."""
    later = "" if after is None else f"AND {READY} > $2"
    sql = f"SELECT {READY} FROM jobs WHERE {QUEUE_OF_READY} = $1 {later} ORDER BY {READY} LIMIT 1"
    rows = transaction.query(sql, (queue,) if after is None else (queue, after))
    return int(rows[0][0] or 0) if rows else None


def _look(
    transaction: PendingTransaction, look: _Look
) -> tuple[Sequence[str], set[str], tuple[Instant, str] | None]:
    """The partitions in ring order, those of a sweep, and where the next sweep continues."""
    queue, now = look.request.queue, look.request.now
    find = (_FIND, (queue, now, look.own, look.waiting, look.last))
    if look.swept is None:
        return [_text(name) for (name,) in transaction.query(*find)], set(), None
    hinted, rows = transaction.query_many(find, (_SWEEP, (queue, *look.swept, now)))
    swept = _BEGINNING
    if len(rows) == SWEEP_JOBS:
        swept = (int(rows[-1][1] or 0), _text(rows[-1][0]))
    return [_text(name) for (name,) in hinted], {_text(name) for name, _ in rows}, swept


def _text(value: bytes | None) -> str:
    return (value or b"").decode()
