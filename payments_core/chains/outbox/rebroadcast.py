"""Gets signed transactions into a block: rebroadcasts them in order, later with higher fees.

1. The newest version is offered until the chain knows it. A refusal ends nothing: missing
   transactions before it in the order of nonces are offered first, then its older versions.
2. Only the fees of the first in line are raised: the chain includes a sender's transactions in the
   order of their nonces, so a transaction behind another one waits for that, not for higher fees.
3. They are raised only after blocks have passed over it for `bump_after_ms`. While a chain makes no
   blocks, a higher tip buys nothing, and it is paid in full later.
4. A refusal does not prevent higher fees: the base fee may have exceeded the offer.
5. A sender whose first in line was passed over for `STALLED_MS` raises an alarm.

A new version is stored before it is offered. All versions have one nonce, so at most one of them
moves the money.
"""

from __future__ import annotations

import logging

import attrs

from payments_core.chains.outbox.inclusion import (
    NonceView,
    SignedVersion,
    encode_signed,
    load_signed_versions,
    look_up_versions,
    search_nonce,
)
from payments_core.chains.outbox.line import MAX_DROPPED, find_unknown_before
from payments_core.chains.outbox.nonces import get_sender_id, load_senders
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    Replacement,
    load_transfer,
    lock_transfer,
    replacement_id,
)
from payments_core.chains.port import Chain, ChainUnavailable, SignedTransaction, SignerRefused
from payments_core.clock import MINUTE, SECOND, Instant, is_ahead
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.plain_calls import call_plainly
from payments_core.storage.port import Transaction

STALLED_MS = 15 * MINUTE
"""After this time without progress a sender raises an alarm, and again after the same time."""

REOFFER_MS = 15 * SECOND
"""How often, at most, nodes are offered a version that they refused, and fees are reconsidered."""

_MIN_BLOCKS_PASSED = 3
"""Fewer blocks than this prove nothing: the first after a halt is late, not expensive."""
_MAX_REMEMBERED = 10_000

_log = logging.getLogger(__name__)


@attrs.frozen
class Missing:
    """A transfer whose nonce nothing uses on the chain, and the version that must use it."""

    outgoing: OutboundTransfer
    version: SignedVersion


class Rebroadcaster:
    """Rebroadcasts transfers that are in no block, for the outbox."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._last_done: dict[tuple[str, str], Instant] = {}

    def push(
        self,
        authority: WorkerAuthority,
        chain: Chain,
        outgoing: OutboundTransfer,
        view: NonceView,
        *,
        is_refused: bool = False,
    ) -> None:
        """Offer a transfer that is in no block, and raise its fees if it is time.

        `is_refused` says that the nodes have just refused its newest version. Raises
        ChainUnavailable if the chain knows no version, and no node accepts one.
        """
        is_offered = view.knows(view.newest)
        if not is_offered and (
            not view.is_known or self._is_time(outgoing.id, "offer", REOFFER_MS)
        ):
            is_offered = self._offer(authority, chain, outgoing, view, is_refused=is_refused)
        raised = self._raise_if_passed_over(authority, chain, outgoing, view.newest)
        if raised is not None:
            is_offered = self._try_broadcast(chain, raised)
        if not is_offered and not view.is_known:
            raise ChainUnavailable(f"no node of chain {chain.chain_id} accepts {outgoing.id}")

    def store_lost_version(
        self, authority: WorkerAuthority, outgoing: OutboundTransfer, hash: str
    ) -> None:
        """Store a transaction that has moved the money of a transfer, and whose bytes are lost."""
        _log.warning(
            "%s of %s was replaced before the storage was restored: %s",
            outgoing.id, authority.partition, hash,
        )  # fmt: skip
        above = outgoing.signed_above
        self._store_replacement(
            authority, outgoing, SignedTransaction(hash, b""), moves=True, signed_above=above
        )

    def rebroadcast_dropped(self, authority: WorkerAuthority, chain: Chain) -> int:
        """Rebroadcast the transactions of all senders that a reorg dropped, in any state of their
        owners.

        Returns how many transactions were missing. A sender whose transactions are refused delays
        no other; ChainUnavailable is then raised at the end.
        """
        count = 0
        refusals: list[str] = []
        senders = self._storage.read(
            authority.partition, lambda snapshot: load_senders(snapshot, chain.chain_id)
        )
        for sender in senders:
            if sender.last_outgoing_id is None:
                continue
            last = load_transfer(self._storage, authority.partition, sender.last_outgoing_id)
            missing = self._find_dropped(authority, chain, last)
            newest = self._find_missing(authority, chain, last)
            if newest is not None:
                missing.insert(0, newest)
            if not self._offer_missing(authority, chain, missing):
                refusals.append(f"the nodes refuse dropped transactions of {sender.id}")
            elif len(missing) >= MAX_DROPPED:
                refusals.append(f"a reorg may have dropped more of {sender.id}")
            count += len(missing)
        if refusals:
            raise ChainUnavailable("; ".join(refusals))
        return count

    def _offer(
        self,
        authority: WorkerAuthority,
        chain: Chain,
        outgoing: OutboundTransfer,
        view: NonceView,
        *,
        is_refused: bool,
    ) -> bool:
        """Offer the newest version; False if no node accepted any."""
        newest = view.newest.signed
        if not is_refused and self._try_broadcast(chain, newest):
            return True
        dropped = self._find_dropped(authority, chain, outgoing)
        if dropped:
            return self._offer_missing(authority, chain, dropped) and self._try_broadcast(
                chain, newest
            )
        if view.is_known:
            return False
        # The sender's balance may suffice for an older and cheaper version.
        return any(self._try_broadcast(chain, it.signed) for it in reversed(view.versions[:-1]))

    def _offer_missing(
        self, authority: WorkerAuthority, chain: Chain, missing: list[Missing]
    ) -> bool:
        """Offer transactions in the order of their nonces; they are given the newest first."""
        for one in reversed(missing):
            if self._try_broadcast(chain, one.version.signed):
                continue
            raised = self._raise_if_passed_over(authority, chain, one.outgoing, one.version)
            if raised is None or not self._try_broadcast(chain, raised):
                return False
        return True

    def _try_broadcast(self, chain: Chain, signed: SignedTransaction) -> bool:
        try:
            broadcast(chain, signed)
        except ChainUnavailable as error:
            _log.info("%s was not accepted: %s", signed.hash, error)
            return False
        return True

    def _raise_if_passed_over(
        self,
        authority: WorkerAuthority,
        chain: Chain,
        outgoing: OutboundTransfer,
        newest: SignedVersion,
    ) -> SignedTransaction | None:
        """A new version with higher fees, stored; None if it is too early, or none is possible.

        Raises ChainUnavailable.
        """
        patience_ms, now = chain.bump_after_ms, self._clock.now()
        is_known = not is_ahead(newest.signed_at_ms, now)
        if patience_ms is None or (is_known and now < newest.signed_at_ms + patience_ms):
            return None
        if not self._is_time(outgoing.id, "raise", REOFFER_MS):
            return None
        first_in_line_at = self._find_block_before(authority, chain, outgoing)
        if first_in_line_at is None:
            return None
        latest = chain.heads().latest.number
        now = self._clock.now()

        def passed_over_ms(signed_at: Instant, signed_above: int) -> int:
            """How long blocks have passed over it, from their number and the chain's pace."""
            passed = latest - max(signed_above, first_in_line_at)
            if passed < _MIN_BLOCKS_PASSED:
                return 0
            since = _right_time(chain, signed_at, signed_above, now)
            return (now - since) * passed // (latest - signed_above)

        first_signed_at = outgoing.signed_at_ms or outgoing.created_at_ms
        stalled_ms = passed_over_ms(first_signed_at, outgoing.signed_above)
        if stalled_ms >= STALLED_MS and self._is_time(outgoing.sender_id, "alarm", STALLED_MS):
            _log.critical(
                "ALARM: sender %s of %s has made no progress for %d minutes: "
                "nonce %s (%s) is in no block",
                outgoing.sender_id, authority.partition, stalled_ms // MINUTE, outgoing.slot,
                outgoing.id,
            )  # fmt: skip
        if passed_over_ms(newest.signed_at_ms, newest.signed_above) < patience_ms:
            return None
        return self._raise_fees(authority, chain, outgoing, newest, latest)

    def _raise_fees(
        self,
        authority: WorkerAuthority,
        chain: Chain,
        outgoing: OutboundTransfer,
        newest: SignedVersion,
        latest: int,
    ) -> SignedTransaction | None:
        if not newest.signed.raw:
            return None
        try:
            raised = chain.bump(authority.partition, newest.signed)
        except SignerRefused as error:
            self._alarm_refusal(authority, outgoing, "its fees must rise", error)
            return None
        if raised is None:
            _log.info("%s is not in a block, and its fees are at their maximum", outgoing.id)
            return None
        is_stored = self._store_replacement(
            authority, outgoing, raised, moves=newest.moves, signed_above=latest
        )
        return raised if is_stored else None

    def _alarm_refusal(
        self,
        authority: WorkerAuthority,
        outgoing: OutboundTransfer,
        why: str,
        error: SignerRefused,
    ) -> None:
        """Alert an operator, but not at each look, that a sender waits for its signer."""
        if self._is_time(outgoing.sender_id, "refusal", STALLED_MS):
            _log.critical(
                "ALARM: sender %s of %s waits: %s (nonce %s) is in no block, %s, and the signer "
                "refused: %s (docs/how-to/keys.md)",
                outgoing.sender_id, authority.partition, outgoing.id, outgoing.slot, why, error,
            )  # fmt: skip

    def _find_block_before(
        self, authority: WorkerAuthority, chain: Chain, outgoing: OutboundTransfer
    ) -> int | None:
        """The block that made the transfer the first in line; None if another one is."""
        if outgoing.previous_id is None:
            return 0
        previous = load_transfer(self._storage, authority.partition, outgoing.previous_id)
        if previous.block_number is not None:
            return previous.block_number
        versions = load_signed_versions(self._storage, authority, previous)
        included = look_up_versions(chain, versions).included
        if included is not None:
            return included.block_number
        assert previous.sender_id is not None
        assert previous.slot is not None
        address = previous.sender_id.partition(":")[2]
        return 0 if chain.final_nonce(address) > previous.slot else None

    def _find_dropped(
        self, authority: WorkerAuthority, chain: Chain, outgoing: OutboundTransfer
    ) -> list[Missing]:
        """The missing transfers before a transfer, the newest first. Raises ChainUnavailable."""
        unknown = find_unknown_before(self._storage, authority, chain, outgoing)
        found = [self._choose_version(authority, chain, it.outgoing, it.view) for it in unknown]
        return [missing for missing in found if missing is not None]

    def _find_missing(
        self, authority: WorkerAuthority, chain: Chain, outgoing: OutboundTransfer
    ) -> Missing | None:
        """The version that must use the transfer's nonce, if nothing on the chain does.

        A final foreign transaction uses it permanently.
        """
        if outgoing.raw is None:
            return None
        view = look_up_versions(chain, load_signed_versions(self._storage, authority, outgoing))
        if view.is_known:
            return None
        if search_nonce(self._storage, authority, chain, outgoing, view).status != "open":
            return None
        return self._choose_version(authority, chain, outgoing, view)

    def _choose_version(
        self,
        authority: WorkerAuthority,
        chain: Chain,
        outgoing: OutboundTransfer,
        view: NonceView,
    ) -> Missing | None:
        """The version that must use a nonce; None if it cannot be signed.

        A failed transfer must never move anything: a transaction that does nothing takes
        its nonce.
        """
        if outgoing.status != "failed" or not view.newest.moves:
            return Missing(outgoing, view.newest)
        assert outgoing.slot is not None
        assert outgoing.sender_id is not None
        former = (
            ()
            if outgoing.sender_id == get_sender_id(authority, chain)
            else (outgoing.sender_id.partition(":")[2],)
        )
        try:
            nothing = chain.prepare_noop(authority.partition, outgoing.slot, *former)
        except SignerRefused as error:
            self._alarm_refusal(authority, outgoing, "its nonce must be used up", error)
            return None
        self._store_replacement(
            authority, outgoing, nothing, moves=False, signed_above=chain.heads().latest.number
        )
        stored = load_transfer(self._storage, authority.partition, outgoing.id)
        return Missing(stored, load_signed_versions(self._storage, authority, stored)[-1])

    def _store_replacement(
        self,
        authority: WorkerAuthority,
        outgoing: OutboundTransfer,
        signed: SignedTransaction,
        *,
        moves: bool,
        signed_above: int,
    ) -> bool:
        """Store another version of a transfer; False if another worker stored one first."""

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
            current = lock_transfer(tx, outgoing.id)
            if current.replacements != outgoing.replacements:
                return Decision(False)
            number = current.replacements + 1
            replacement = Replacement(
                id=replacement_id(current.id, number),
                outgoing_id=current.id,
                transaction_hash=signed.hash,
                raw=encode_signed(signed),
                moves=moves,
                signed_at_ms=self._clock.now(),
                signed_above=signed_above,
            )
            counted = evolve(current, replacements=number)
            return Decision(True, inserts=(replacement,), replaces=(counted,))

        return self._committer.commit(authority, decide)

    def _is_time(self, subject: str | None, what: str, interval_ms: int) -> bool:
        """Whether this process has not done something for this long; it then counts as done."""
        now = self._clock.now()
        last = self._last_done.get((str(subject), what))
        if last is not None and 0 <= now - last < interval_ms:
            return False
        if len(self._last_done) >= _MAX_REMEMBERED:
            self._last_done.clear()
        self._last_done[str(subject), what] = now
        return True


def _right_time(chain: Chain, signed_at: Instant, signed_above: int, now: Instant) -> Instant:
    """When bytes were signed: by the chain's newest block then, if our clock was ahead."""
    if not is_ahead(signed_at, now):
        return signed_at
    block = chain.block(signed_above)
    return now if block is None or block.time is None else block.time


def broadcast(chain: Chain, signed: SignedTransaction) -> None:
    """Send signed bytes. Lost bytes (`lost.py`) can only be searched for.

    Raises ChainUnavailable.
    """
    if signed.raw:
        call_plainly("broadcast", chain.broadcast, signed)
    elif chain.transaction(signed.hash) is None:
        raise ChainUnavailable(f"the bytes of {signed.hash} are lost, and no node has them")
