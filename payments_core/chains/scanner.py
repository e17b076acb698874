"""The scanner: reports every transfer on a chain, and every undone block, to its listeners.

One job per chain, in the directory's partition, goes through the blocks. Its cursor is a ring of
recent blocks: if the newest of them is no longer on the chain, the blocks since the newest that
still is were undone, and they are reported and scanned again. Blocks that were scanned before they
were final are scanned once more when they are (`second_scan.py`). Finds are committed before the
cursor; a crash in between finds them again, which must be harmless.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar

import attrs

from payments_core.chains.backoff import MAX_BACKOFF_MS, POLL_MS, back_off
from payments_core.chains.port import Block, Chain, ChainUnavailable, Heads, ScannedTransfer
from payments_core.chains.second_scan import BlockDigests, leave_out_known, merge_digests
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.recurring import ensure_recurring
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.jobs import Job
from payments_core.storage.port import (
    DIRECTORY,
    ClaimedJob,
    CommitUnknown,
    Conflict,
    Storage,
    Transaction,
)
from payments_core.storage.records import Collection, Record

_log = logging.getLogger(__name__)

SCAN = "chains.scan"
RING_BLOCKS = 64
"""The number of blocks that the cursor remembers; only a reorg older than these is missed."""

MAX_OWN_TRANSFERS = 500
"""Transfers to us that one scan reports, give or take a block."""

TARGET_TRANSFERS = 20_000
"""Transfers to anybody that one scan should find; the next covers fewer blocks if there were
more. A busy chain has a hundred a second, of which one is ours."""

INITIAL_LOOKBACK_BLOCKS = 50_000
"""How far back the very first scan begins: addresses may have been issued before it."""

LANDMARK_SPACING_BLOCKS = 64
"""A wider gap between two remembered blocks is divided, so that a reorg is not overestimated."""

RecipientFilter = Callable[[set[str]], set[str]]
TransfersListener = Callable[[int, Sequence[ScannedTransfer]], None]
ReorgListener = Callable[[int, int, int], None]


@attrs.frozen(kw_only=True, slots=False)
class ScanCursor(Record):
    """How far a chain was scanned, for one mode: the id is `<mode>:<chain>`.

    `ring` holds (height, hash), the newest last. `pause_ms` grows while nothing is found, `span` is
    the number of blocks of the next scan. `scanned_at` is when the last scan began.
    `final_height` is the newest block that was scanned when it was final, and `final_time` its
    time: the transfers in it and below are stored, and no other can come there. `found` are the
    digests of our transfers in the scanned blocks above it. `tokens` are the addresses of all that
    were ever scanned: a Payment may wait for one that the registry has no more.
    """

    collection: ClassVar[Collection] = Collection("scan_cursors", schema=5)

    chain_id: int
    ring: tuple[tuple[int, str], ...]
    pause_ms: int = POLL_MS
    span: int | None = None
    scanned_at_ms: Instant = 0
    final_height: int = -1
    final_time: Instant = 0
    found: BlockDigests = ()
    tokens: tuple[str, ...] = ()

    scanned_at: ClassVar[FieldView[datetime]] = instant_view("scanned_at_ms")

    @property
    def tip(self) -> int:
        """The newest scanned height."""
        return self.ring[-1][0]

    @property
    def landmark(self) -> tuple[int, str]:
        """A block (height, hash) by which this chain differs from others with its number.

        It is the newest remembered one that a node which lags a little has as well.
        """
        settled = [one for one in self.ring if one[0] <= self.tip - LANDMARK_SPACING_BLOCKS // 4]
        return settled[-1] if settled else self.ring[0]


@attrs.frozen(kw_only=True, slots=False)
class ScanRequest(Record):
    """How often an extra scan was requested; the id is that of the cursor."""

    collection: ClassVar[Collection] = Collection("scan_wishes")

    count: int


def get_scanned_height(storage: Storage, mode: str, chain_id: int) -> int:
    """The height up to which a reorganisation would be noticed; -1 if nothing was scanned.

    Read it before looking at the chain: if it is reorganised between the scan and the look, the
    next scan sees it; between the look and the scan, nobody would.
    """
    cursor = read_cursor(storage, mode, chain_id)
    return -1 if cursor is None else cursor.tip


def read_cursor(storage: Storage, mode: str, chain_id: int) -> ScanCursor | None:
    """How far a chain was scanned; None if it never was."""
    return storage.read(
        DIRECTORY, lambda snapshot: snapshot.get(ScanCursor, _cursor_id(mode, chain_id))
    )


class Scanner:
    """Scans the chains for one mode."""

    def __init__(
        self,
        ports: Ports,
        chains: Mapping[int, Chain],
        mode: str,
        filter_known: Sequence[RecipientFilter],
        on_transfers: Sequence[TransfersListener],
        on_reorg: Sequence[ReorgListener],
    ) -> None:
        """`filter_known` return the recipients that are ours. `on_transfers` receive the transfers
        to these, `on_reorg` the first and the last block that a reorg undid."""
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.guarded_clock
        self._chains = chains
        self._mode = mode
        self._recipient_filters = filter_known
        self._transfers_listeners = on_transfers
        self._reorg_listeners = on_reorg
        self._telemetry = ports.telemetry

    def ensure_scheduled(self) -> None:
        """Have every chain scanned, from now on; call it before any address is issued.

        See `ensure_recurring`.
        """
        for chain_id in self._chains:
            self._transact_until_done(partial(self._ensure_job, chain_id))

    def _ensure_job(self, chain_id: int, tx: Transaction) -> None:
        id = self._id(chain_id)
        job = Job(
            id=id,
            queue=f"{self._mode}.chain",
            lane=f"scan:{id}",
            kind=SCAN,
            due_at=self._clock.now(),
            subject=str(chain_id),
        )
        longest_ms = max(self._chains[chain_id].max_scan_interval_ms, MAX_BACKOFF_MS)
        ensure_recurring(tx, job, longest_ms)

    def wake(self, chain_id: int) -> None:
        """Have the chain scanned at once: something is known to have happened there.

        A scan in progress may have looked too early. It is left alone, and sees the request
        when it ends.
        """
        id = self._id(chain_id)

        def work(tx: Transaction) -> None:
            job = tx.get(Job, id, for_update=True)  # locked first, as when a scan ends
            wish = tx.get(ScanRequest, id, for_update=True)
            if wish is None:
                tx.insert(ScanRequest(id=id, count=1))
            else:
                tx.replace(evolve(wish, count=wish.count + 1))
            now = self._clock.now()
            if job is not None and job.due_at > now >= job.lease_until:
                tx.replace(evolve(job, due_at=now))

        self._transact_until_done(work)

    def scan(self, claimed: ClaimedJob) -> None:
        """The job: continue from the cursor, as far as one scan goes."""
        chain_id = int(claimed.job.subject)
        chain = self._chains.get(chain_id)
        if chain is None:  # served once, and no longer
            self._committer.finish(claimed)
            return
        id = self._id(chain_id)
        cursor, wish = self._storage.read(
            DIRECTORY,
            lambda snapshot: (snapshot.get(ScanCursor, id), snapshot.get(ScanRequest, id)),
        )
        try:
            after, pause_ms = self._advance(chain, cursor, claimed.job.failures)
        except ChainUnavailable:
            self._telemetry.record_scan_failure(chain_id)
            self._committer.finish(claimed, back_off(claimed.job, self._clock.now()))
            return

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            wished = tx.get(ScanRequest, id, for_update=True) != wish
            next_run_at = self._clock.now() + (0 if wished else pause_ms)
            if after.version == 0:
                return Decision(None, inserts=(after,), next_run_at=next_run_at)
            changed = () if after == cursor else (after,)
            return Decision(None, replaces=changed, next_run_at=next_run_at)

        self._committer.commit(WorkerAuthority(DIRECTORY, self._mode), decide, claimed=claimed)

    def scan_addresses(self, chain_id: int, recipients: Sequence[str]) -> None:
        """Look for transfers to these addresses now, beside the job. Raises ChainUnavailable."""
        chain = self._chains[chain_id]
        latest = chain.heads().latest.number
        first = max(0, latest - chain.max_scan_blocks)
        self._notify_listeners(
            chain_id, chain.scan(self._token_addresses(chain_id), recipients, first, latest)
        )

    def _filter_known(self, transfers: Sequence[ScannedTransfer]) -> tuple[ScannedTransfer, ...]:
        """The transfers to us."""
        if not transfers:  # as in most scans
            return ()
        recipients = {transfer.recipient for transfer in transfers}
        ours = {
            address
            for filter_known in self._recipient_filters
            for address in filter_known(recipients)
        }
        return tuple(transfer for transfer in transfers if transfer.recipient in ours)

    def _advance(
        self, chain: Chain, cursor: ScanCursor | None, failures: int
    ) -> tuple[ScanCursor, int]:
        """The cursor after a scan, and the pause until the next: none if it is far behind."""
        scanned_at = self._clock.now()
        heads = chain.heads()
        if cursor is None:
            first = (
                chain.block(max(0, heads.latest.number - INITIAL_LOOKBACK_BLOCKS)) or heads.final
            )
            if first.number:
                _log.warning("chain %d: the scan starts at block %d", chain.chain_id, first.number)
            cursor = ScanCursor(
                id=self._id(chain.chain_id),
                chain_id=chain.chain_id,
                ring=((first.number, first.hash),),
            )
        known = self._token_addresses(chain.chain_id)
        cursor = evolve(cursor, tokens=tuple(dict.fromkeys((*cursor.tokens, *known))))
        if heads.latest.number < cursor.tip and chain.block(cursor.tip) is None:
            raise ChainUnavailable("the node is behind the node that answered before")
        kept = self._drop_reorged(chain, cursor)
        tip = kept[-1][0]
        if tip < cursor.tip:
            for on_reorg in self._reorg_listeners:
                on_reorg(chain.chain_id, tip + 1, cursor.tip)
        # An unanswered query may have been too large.
        span = max(1, _span(chain, cursor) >> min(failures, 32))
        last = min(heads.latest.number, tip + span)
        # Remembered before they are scanned: a reorg in between then shows at the next scan.
        landmarks = self._choose_landmarks(chain, tip, last, heads)
        blocks = last - tip
        everybody = chain.scan(cursor.tokens, None, tip + 1, last)
        transfers = self._filter_known(everybody)
        if len(transfers) > MAX_OWN_TRANSFERS:  # one scan must end before its lease
            transfers = _take_whole_blocks(transfers)
            last = transfers[-1].block.number
            landmarks = [block for block in landmarks if block.number < last]
            landmarks.append(transfers[-1].block)
        self._notify_listeners(chain.chain_id, transfers)
        final, missed = self._scan_final(chain, cursor, heads, (kept[0][0], tip, last), span)
        pause_ms = cursor.pause_ms
        if transfers or missed or tip < cursor.tip:
            pause_ms = POLL_MS
        elif last == heads.latest.number:
            pause_ms = min(2 * cursor.pause_ms, chain.max_scan_interval_ms)
        noted = self._note_final(chain, cursor, final, (*landmarks, heads.final))
        after = evolve(
            noted,
            ring=_extend_ring(kept, landmarks),
            pause_ms=pause_ms,
            span=_next_span(chain, span, blocks, len(everybody)),
            scanned_at_ms=scanned_at,
            found=merge_digests(cursor.found, tip, transfers, noted.final_height),
        )
        self._telemetry.record_scan(chain.chain_id, last, heads.latest.number)
        is_behind = last < heads.latest.number or final < min(heads.final.number, tip)
        return after, 0 if is_behind else pause_ms

    def _scan_final(
        self,
        chain: Chain,
        cursor: ScanCursor,
        heads: Heads,
        scanned: tuple[int, int, int],
        span: int,
    ) -> tuple[int, bool]:
        """Scan again what has become final: the height up to which all was scanned when final, and
        whether the first scan had missed something.

        `scanned` are the oldest block that the cursor remembers, the newest of earlier scans, and
        the newest of this one. A scan that is behind finds its blocks final, and scans them once.
        """
        oldest, tip, last = scanned
        begin = cursor.final_height if cursor.final_height >= 0 else oldest
        end = min(heads.final.number, tip, begin + span)
        missed: tuple[ScannedTransfer, ...] = ()
        if begin < end:
            ours = self._filter_known(chain.scan(cursor.tokens, None, begin + 1, end))
            missed = leave_out_known(ours, cursor.found)
            if len(missed) > MAX_OWN_TRANSFERS:
                missed = _take_whole_blocks(missed)
                end = missed[-1].block.number
            self._notify_listeners(chain.chain_id, missed)
        final = max(begin, end)
        return max(final, min(heads.final.number, last)) if final >= tip else final, bool(missed)

    def _note_final(
        self, chain: Chain, cursor: ScanCursor, height: int, known: Sequence[Block]
    ) -> ScanCursor:
        """The cursor with the block of that height as its final one, if it is newer."""
        if height <= cursor.final_height:
            return cursor
        seen = (block for block in known if block.number == height and block.time is not None)
        block = next(seen, None) or chain.block(height)
        if block is None or block.time is None:
            return cursor
        return evolve(cursor, final_height=height, final_time=block.time)

    def _drop_reorged(self, chain: Chain, cursor: ScanCursor) -> tuple[tuple[int, str], ...]:
        """The ring without the blocks that the chain has undone; the oldest is always kept."""
        ring = cursor.ring
        while (block := chain.block(ring[-1][0])) is None or block.hash != ring[-1][1]:
            if len(ring) == 1:
                _log.critical(
                    "ALARM: chain %d has a reorg deeper than the blocks that the scanner keeps",
                    chain.chain_id,
                )
                break
            ring = ring[:-1]
        return ring

    def _choose_landmarks(self, chain: Chain, tip: int, last: int, heads: Heads) -> list[Block]:
        """The blocks to remember of those just scanned."""
        heights = {
            last - distance
            for distance in (0, LANDMARK_SPACING_BLOCKS // 4, LANDMARK_SPACING_BLOCKS)
        }
        heights |= {heads.final.number} if heads.final.number <= last else set()
        blocks = [chain.block(height) for height in sorted(heights) if height > tip]
        return [block for block in blocks if block is not None]

    def _notify_listeners(self, chain_id: int, transfers: Sequence[ScannedTransfer]) -> None:
        if transfers:
            for on_transfers in self._transfers_listeners:
                on_transfers(chain_id, transfers)

    def _token_addresses(self, chain_id: int) -> tuple[str, ...]:
        return tuple(token.address for token in self._networks.list_tokens(chain_id))

    def _id(self, chain_id: int) -> str:
        return _cursor_id(self._mode, chain_id)

    def _transact_until_done(self, work: Callable[[Transaction], None]) -> None:
        while True:
            try:
                self._storage.transact(DIRECTORY, work)
                return
            except (Conflict, CommitUnknown):
                continue  # repeating it changes nothing


def _cursor_id(mode: str, chain_id: int) -> str:
    return f"{mode}:{chain_id}"


def _span(chain: Chain, cursor: ScanCursor) -> int:
    return min(chain.max_scan_blocks, cursor.span or chain.max_scan_blocks)


def _next_span(chain: Chain, span: int, blocks: int, held: int) -> int | None:
    """The number of blocks of the next scan, by this one's transfers; None: the maximum."""
    if held > TARGET_TRANSFERS:
        return max(1, blocks * TARGET_TRANSFERS // held)
    wider = span if held > TARGET_TRANSFERS // 4 else 2 * span
    return wider if wider < chain.max_scan_blocks else None


def _take_whole_blocks(transfers: tuple[ScannedTransfer, ...]) -> tuple[ScannedTransfer, ...]:
    """The transfers of as many whole blocks as one scan may report, at least one."""
    beyond = transfers[MAX_OWN_TRANSFERS].block.number
    first = tuple(transfer for transfer in transfers if transfer.block.number < beyond)
    return first or tuple(item for item in transfers if item.block.number == beyond)


def _extend_ring(
    ring: tuple[tuple[int, str], ...], blocks: Sequence[Block]
) -> tuple[tuple[int, str], ...]:
    known = dict(ring)
    known.update({block.number: block.hash for block in blocks})
    return tuple(sorted(known.items()))[-RING_BLOCKS:]
