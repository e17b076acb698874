"""The jobs of every transfer of ours: send it, watch it to finality, follow it after a reorg.

There are five kinds of transfers: the funding of a Payment from a vault, the release to its
recipient, a refund, the sweep of a deposit, and the credit of a bank transfer. Their owners are
records of five rooms, and the money is moved in one way: here. What differs is what an owner reads
and commits, and that is the protocol below. An owner has no loop, no exception handling and,
`read_chain` apart, no I/O.

The life of one transfer, and what a crash at each point leaves:

1. The intent. A decision inserts an `OutboundTransfer` and a send job, in one commit with the
   change that needs it. A crash before leaves nothing, a crash after leaves a job that is due. The
   owner may still withdraw the intent, until a nonce is reserved; then the send job finds nothing
   to send. A release whose receipt was undone is withdrawn until its bytes are stored.
2. The nonce. `Outbox.ensure_signed` reserves the sender's next nonce in a commit of its own. A
   crash leaves a reserved nonce: the job runs again and signs the same intent for the same nonce.
   If another transfer is sent before that, or a release is withdrawn, that one gets the nonce, and
   the job reserves the next. So nothing is signed but in its own turn, to be offered at once.
3. The bytes. They are signed, then stored, then broadcast. A crash before they are stored loses
   bytes that nobody has seen. A crash after leaves stored bytes, and only those are ever sent.
   A replacement with higher fees is stored in the same way, and uses the same nonce.
4. The broadcast. A crash, or an answer that is lost, leaves bytes that the chain may have. To send
   them again moves nothing twice, since a nonce is used once. An owner may record that it does not
   know: its operation is `unknown`, and the chain is asked for the transaction before the same
   bytes are sent again (`TransferToSend.is_unknown`).
5. Sent. `on_sent` commits the owner's step and the job that watches, with the end of the send job.
   A crash before leaves the send job, which sends the same bytes again.
6. The wait. Each look only reads, and pushes what is in no block. While the chain is silent the
   pauses double; while the transfer is not final it is polled. Neither ever gives up.
7. The outcome. It is final, with success or without. What else the owner has to know, such as a
   balance at that height or above, is read outside the transaction. Then one commit locks the
   owner, notes the outcome on the `OutboundTransfer` and takes the owner's step, with the end of
   the job. A crash before leaves the watch job, and it looks again. So does a reorg, or a newer
   balance, that was recorded between the look and the commit (`StaleView`).
8. A reorg beyond finality. `reorg_recovery` sends the same bytes again and adds a follow job for
   what had succeeded. If it fails now, one commit notes that and has the owner take its success
   back (`on_reversed`).

Funding differs at both ends. A lost answer is a state of its operation, and its authorization
expires while nothing is signed: `on_unsent`. And its transfer arrives in our own escrow as a
receipt, which proves it like any other payment there: `on_sent` adds the job of the receipt
(`payments/receipts/jobs.py`) in place of a watch job. Steps 6 to 8 are then the receipt's. So
funding is a `TransferOwner`, and the four others are each a `FollowedOwner`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

import attrs

from payments_core.chains.backoff import back_off, poll_again
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import (
    FOLLOW_AGAIN,
    OutboundTransfer,
    TransferOutcome,
    TransferPurpose,
    mark_final,
)
from payments_core.chains.port import ChainUnavailable, SignedTransaction
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, StaleView, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import DependencyFailed
from payments_core.storage.jobs import Job
from payments_core.storage.port import ClaimedJob, Transaction
from payments_core.storage.records import Record

R = TypeVar("R", bound=Record)
R_contra = TypeVar("R_contra", bound=Record, contravariant=True)
L = TypeVar("L")
F = TypeVar("F")

Doubt = Literal["silent", "lost", "absent"]
"""Why a transfer does not count as sent.

`silent`: the chain or the signer did not answer, and these bytes were not broadcast now. `lost`:
they were broadcast, and the answer was lost. `absent`: the answer was lost before, and the chain
says now that it does not know the transaction."""

_log = logging.getLogger(__name__)


@attrs.frozen
class TransferToSend:
    """A transfer that its owner wants sent; `is_unknown` if the answer to a broadcast was lost."""

    chain_id: int
    id: str
    is_unknown: bool = False


@attrs.frozen
class TransferToWatch:
    """A transfer that its owner waits for, until so many blocks are on top of what is final."""

    id: str
    confirmations: int = 0


class OnUnsent(Protocol[R_contra]):
    """What the owner commits when its transfer does not count as sent."""

    def __call__(
        self,
        tx: Transaction,
        id_sequence: IdSequence,
        partition: str,
        record: R_contra,
        doubt: Doubt,
        *,
        now: Instant,
    ) -> Decision[None] | None:
        """The owner's step; None where nothing changes, and the job tries again later.

        With a step the job tries again too: later if `lost`, at once if `absent`. If `silent`, a
        step says that the owner wants the transfer no more, and the job ends with it.
        """


class TransferOwner(Protocol[R]):
    """The owner of a transfer, as far as it is sent. R is the record that a job's subject names.

    The methods that get a transaction are pure decisions: they may run several times.
    """

    record_type: type[R]
    send_kind: str

    def find_to_send(self, record: R) -> TransferToSend | None:
        """The transfer to send; None if it was sent, or is no longer wanted."""

    def on_sent(
        self, tx: Transaction, record: R, signed: SignedTransaction, *, now: Instant
    ) -> Decision[None]:
        """The step of the owner, if it still wants this transfer, and the job that watches it.

        `record` is as it was read before: what is to be changed is locked here.
        """

    @property
    def on_unsent(self) -> OnUnsent[R] | None:
        """What the owner commits while the transfer does not count as sent.

        None for an owner that waits as it is: its bytes are sent again until the chain has them.
        """


class FollowedOwner(TransferOwner[R], Protocol[R, L, F]):
    """The owner of a transfer that is followed to its finality, and beyond.

    L is what it locks, F are the facts that it reads from the chain beside the outcome.
    """

    watch_kind: str

    @property
    def purpose(self) -> TransferPurpose:
        """Which transfers are the owner's: `OutboundTransfer.owner_purpose`."""

    def find_to_watch(self, record: R, job: Job) -> TransferToWatch | None:
        """The transfer that a watch job is for; None if the owner no longer waits for one."""

    def read_chain(self, partition: str, record: R, outcome: TransferOutcome) -> F:
        """What the owner must know of the chain besides, at `outcome.height` or above.

        Called outside of transactions. Raises ChainUnavailable, DependencyFailed: the job waits.
        """

    def lock(self, tx: Transaction, record: R, outgoing_id: str) -> L | None:
        """What the outcome will change, locked; None if the owner no longer waits for it.

        The transfer itself is locked after this, and a vault's balance after that.
        """

    def on_final(
        self, tx: Transaction, locked: L, outcome: TransferOutcome, facts: F, *, now: Instant
    ) -> Decision[None]:
        """The owner's step on the final outcome, which may be success or failure.

        Raises StaleView: the job looks again.
        """

    def on_reversed(
        self, tx: Transaction, outgoing: OutboundTransfer, reason: str, *, now: Instant
    ) -> Decision[None]:
        """What the owner takes back: the transfer had succeeded, was undone and has failed."""


class TransferJobs:
    """Runs the jobs of our transfers, for their owners."""

    def __init__(
        self,
        ports: Ports,
        outbox: Outbox,
        *,
        sent: Iterable[TransferOwner[Any]],
        followed: Iterable[FollowedOwner[Any, Any, Any]],
    ) -> None:
        """`followed` are sent and watched here; `sent` are sent here and watched elsewhere."""
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock
        self._outbox = outbox
        self._followed = {owner.purpose: owner for owner in followed}
        self._owners = (*sent, *self._followed.values())

    def handlers(self) -> Mapping[str, Callable[[ClaimedJob], None]]:
        """What does which job, by its kind."""
        return {
            FOLLOW_AGAIN: self.follow,
            **{owner.send_kind: partial(self.send, owner) for owner in self._owners},
            **{owner.watch_kind: partial(self.watch, owner) for owner in self._followed.values()},
        }

    def send(self, owner: TransferOwner[R], claimed: ClaimedJob) -> None:
        """Hand the transfer to the chain. Its bytes are fixed: sent again, it moves nothing more.

        One that was withdrawn, or that its owner wants no more, ends the job.
        """
        record = self._read(owner, claimed)
        transfer = owner.find_to_send(record)
        sent = (
            self._broadcast(WorkerAuthority.of(claimed), transfer) if transfer is not None else None
        )
        if sent is None:
            self._ledger.finish(claimed)
        elif isinstance(sent, SignedTransaction):
            self._ledger.commit(
                WorkerAuthority.of(claimed),
                lambda tx, id_sequence: owner.on_sent(tx, record, sent, now=self._clock.now()),
                claimed=claimed,
            )
        else:
            self._try_again(owner, claimed, record, sent)

    def watch(self, owner: FollowedOwner[R, L, F], claimed: ClaimedJob) -> None:
        """Look at the transfer: not final, final, or failed for good."""
        record = self._read(owner, claimed)
        transfer = owner.find_to_watch(record, claimed.job)
        if transfer is None:
            self._ledger.finish(claimed)
            return
        look = self._check_outcome(
            claimed, transfer, partial(owner.read_chain, claimed.partition, record)
        )
        if look is None:
            return
        outcome, facts = look

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            now = self._clock.now()
            locked = owner.lock(tx, record, transfer.id)
            if locked is None:
                return Decision(None)
            noted = mark_final(tx, transfer.id, outcome, now=now)
            return noted.merge(owner.on_final(tx, locked, outcome, facts, now=now))

        self._commit_outcome(claimed, decide)

    def follow(self, claimed: ClaimedJob) -> None:
        """Look at a transfer whose success had been final, since a reorg may have undone it."""
        outgoing_id = claimed.job.subject
        look = self._check_outcome(claimed, TransferToWatch(outgoing_id), lambda outcome: None)
        if look is None:
            return
        outcome, _ = look

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            now = self._clock.now()
            outgoing = tx.get(OutboundTransfer, outgoing_id)
            assert outgoing is not None
            reversed: Decision[None] = Decision(None)
            if outcome.reason is not None:
                owner = self._followed[outgoing.owner_purpose]
                reversed = owner.on_reversed(tx, outgoing, outcome.reason, now=now)
            return reversed.merge(mark_final(tx, outgoing_id, outcome, now=now))

        if self._commit_outcome(claimed, decide) and outcome.reason is not None:
            _log.critical(
                "ALARM: a reorg undid %s after finality, and it failed when sent again: %s",
                outgoing_id, outcome.reason,
            )  # fmt: skip

    def _read(self, owner: TransferOwner[R], claimed: ClaimedJob) -> R:
        record = self._storage.read(
            claimed.partition, lambda snapshot: snapshot.get(owner.record_type, claimed.job.subject)
        )
        assert record is not None
        return record

    def _broadcast(
        self, authority: WorkerAuthority, transfer: TransferToSend
    ) -> SignedTransaction | Doubt | None:
        """The bytes that the chain has now, else why it has none; None if it was withdrawn."""
        try:
            signed = self._outbox.ensure_signed(authority, transfer.chain_id, transfer.id)
            if signed is None:
                return None
            if transfer.is_unknown:  # no other step before the chain was asked
                return signed if self._outbox.is_known(authority, transfer.id) else "absent"
        except ChainUnavailable:
            return "silent"
        try:
            return self._outbox.broadcast(authority, transfer.id)
        except ChainUnavailable:
            return "lost"

    def _try_again(
        self, owner: TransferOwner[R], claimed: ClaimedJob, record: R, doubt: Doubt
    ) -> None:
        """Keep the job, with what its owner commits meanwhile; or end it, if the owner has."""
        now = self._clock.now()
        again: Decision[None] = Decision(None, next_run_at=now, made_no_progress=True)
        later = again if doubt == "absent" else back_off(claimed.job, now)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            change = None
            if owner.on_unsent is not None:
                change = owner.on_unsent(
                    tx, id_sequence, claimed.partition, record, doubt, now=self._clock.now()
                )
            if change is None:
                return later
            return change if doubt == "silent" else later.merge(change)

        self._ledger.commit(WorkerAuthority.of(claimed), decide, claimed=claimed)

    def _check_outcome(
        self,
        claimed: ClaimedJob,
        transfer: TransferToWatch,
        read_chain: Callable[[TransferOutcome], F],
    ) -> tuple[TransferOutcome, F] | None:
        """The final outcome with the owner's facts; None where the job was put off."""
        authority = WorkerAuthority.of(claimed)
        try:
            outcome = self._outbox.check_outcome(
                authority, transfer.id, confirmations=transfer.confirmations
            )
            if not outcome.is_pending:
                return outcome, read_chain(outcome)
        except (ChainUnavailable, DependencyFailed):
            self._ledger.finish(claimed, back_off(claimed.job, self._clock.now()))
        else:
            self._ledger.finish(claimed, poll_again(self._clock.now()))
        return None

    def _commit_outcome(
        self, claimed: ClaimedJob, decide: Callable[[Transaction, IdSequence], Decision[None]]
    ) -> bool:
        """Commit what a look means; False where it is outdated, and the job looks again."""
        try:
            self._ledger.commit(WorkerAuthority.of(claimed), decide, claimed=claimed)
        except StaleView:  # the chain has moved on meanwhile
            self._ledger.finish(claimed, poll_again(self._clock.now()))
            return False
        return True
