"""The owner of a transfer: what to send, which locks, which commits (see `jobs.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar

import attrs

from payments_core.chains.outbox.record import (
    OutboundTransfer,
    TransferOutcome,
    TransferPurpose,
    TransferToWatch,
)
from payments_core.chains.port import SignedTransaction
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.screening.judging import Judgement, ScreenedTransfer
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get
from payments_core.storage.records import Record

R = TypeVar("R", bound=Record)
R_contra = TypeVar("R_contra", bound=Record, contravariant=True)
L = TypeVar("L")
F = TypeVar("F")

Doubt = Literal["silent", "lost", "absent"]
"""Why a transfer does not count as sent.

`silent`: the chain or the signer did not answer, and these bytes were not broadcast now. `lost`:
they were broadcast, and the answer was lost. `absent`: the answer was lost before, and the chain
now reports that it does not know the transaction."""


@attrs.frozen
class TransferToSend:
    """A transfer that its owner wants sent; `is_unknown` if the answer to a broadcast was lost.

    `screened` says whom it concerns; without it the transfer is not screened.
    """

    chain_id: int
    id: str
    is_unknown: bool = False
    screened: ScreenedTransfer | None = None


class OnUnsent(Protocol[R_contra]):
    """The owner's commit if its transfer does not count as sent."""

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
        """The owner's step; None if nothing changes, and the job tries again later.

        With a step the job tries again too: later if `lost`, at once if `absent`. If `silent`, a
        step means that the owner no longer needs the transfer, and the job ends with it.
        """


class OnScreened(Protocol[R_contra]):
    """The owner's commit after a look at the verdicts of a transfer that is not signed."""

    def __call__(
        self, tx: Transaction, record: R_contra, judgement: Judgement, *, now: Instant
    ) -> Decision[bool] | None:
        """The owner's step; None if it no longer needs the transfer, or if that is signed.

        `clear` ends an earlier hold. `review` and `silent` hold: the transfer keeps its place, and
        a repeat changes nothing. `blocked` ends the transfer, or holds it for an operator. The
        result says whether the job waits on.
        """


class TransferOwner(Protocol[R]):
    """The owner of a transfer, for the sending. R is the record that a job's subject names.

    The methods that get a transaction are pure decisions: they may run several times.
    """

    record_type: type[R]
    send_kind: str

    def find_to_send(self, record: R) -> TransferToSend | None:
        """The transfer to send; None if it was sent, or is no longer needed."""

    def locks(self, record: R, transaction_hash: str) -> Sequence[Get]:
        """The rows to lock when it is sent or final, in that order: they are read in one go."""

    def on_sent(
        self, tx: Transaction, record: R, signed: SignedTransaction, *, now: Instant
    ) -> Decision[None]:
        """The step of the owner, if it still needs this transfer, and the job that watches it.

        `record` is as it was read before: rows to be changed are locked here.
        """

    @property
    def on_unsent(self) -> OnUnsent[R] | None:
        """The owner's commit while the transfer does not count as sent.

        None for an owner that just waits: its bytes are sent again until the chain has them.
        """

    @property
    def on_screened(self) -> OnScreened[R] | None:
        """The owner's commit after a verdict; None if its transfers are not screened."""


class FollowedOwner(TransferOwner[R], Protocol[R, L, F]):
    """The owner of a transfer that is followed to its finality, and beyond.

    L are its locked rows, F the facts that it reads from the chain in addition to the outcome.
    """

    watch_kind: str

    @property
    def purpose(self) -> TransferPurpose:
        """The purpose of the owner's transfers: `OutboundTransfer.owner_purpose`."""

    def find_to_watch(self, record: R, job: Job) -> TransferToWatch | None:
        """The transfer that a watch job is for; None if the owner no longer waits for one."""

    def read_chain(self, partition: str, record: R, outcome: TransferOutcome) -> F:
        """Further facts from the chain for the owner, at `outcome.height` or above.

        Called outside of transactions. Raises ChainUnavailable, DependencyFailed: the job waits.
        """

    def lock(self, tx: Transaction, record: R, outgoing_id: str) -> L | None:
        """The rows that the outcome will change, locked; None if the owner no longer waits for it.

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
        """The owner's reversal: the transfer had succeeded, was undone and has failed."""
