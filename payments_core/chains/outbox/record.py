"""Our transfers as they are stored, and the pure steps of their lifecycle (see `outbox.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.acceptance import Acceptance
from payments_core.chains.backoff import POLL_MS, REORG_RECHECK_MS
from payments_core.chains.judge import Reason
from payments_core.chains.port import Contract, ModuleIntent, TransferIntent
from payments_core.chains.typed_data import ZERO_ADDRESS
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, NewJob, StaleView
from payments_core.evolve import evolve
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.money import ZERO, Atomic, atomic
from payments_core.networks import Asset
from payments_core.storage.lookups import locate_with_damaged
from payments_core.storage.port import Storage, Transaction
from payments_core.storage.records import Collection, Index, Lookup, Record

FOLLOW_AGAIN = "chains.follow_again"
SENDER_LANE_PREFIX = "sender:"

OutboundTransferStatus = Literal["queued", "reserved", "signed", "failed", "withdrawn"]
StoredPurpose = Literal["funding", "release", "refund", "sweep"]
TransferPurpose = (
    Literal["onramp", "deploy_module", "enable_module", "receipt_return", "deposit_return"]
    | Literal["coin_report", StoredPurpose]
)

_PURPOSES_BY_OWNER: Mapping[tuple[StoredPurpose, str], TransferPurpose] = {
    ("release", "bank_txn_"): "onramp",
    ("refund", "receipt_"): "receipt_return",
    ("refund", "deposit_"): "deposit_return",
    ("sweep", "out_"): "coin_report",
}
"""The purpose of transfers that an old release does not know, by the stored one and the owner."""


@attrs.frozen(kw_only=True, slots=False)
class OutboundTransfer(Record):
    """A transfer of ours, from intent to signed bytes. Its owner has its outcome.

    `owner_id` is the operation, Payment, refund, deposit, receipt or bank transaction it is for, or
    itself for a log of native coin; `source` is which of our contracts pays, and `escrow_of` the
    Payment to whose escrow it goes, if it does. `slot` is the sender's nonce, `previous_id` the
    transfer in the previous slot. It has `failed` when that was final: if a reorg still drops it, a
    transaction that moves nothing takes its slot. `block_number` is where it was when its success
    was final, `reorgs` how often blocks were undone that it may have been in. `searched_to` is the
    last final block searched for it after another transaction had used its nonce.

    `funded_by` is the transfer that brought its funds to an address that also holds other funds:
    it is signed only while that transfer is final (`outbox.py`).
    A step of a role module (`module`) moves nothing. A software release that does not know such
    steps reads a sweep, and refuses to sign for its source, which is the operator.

    `raw` are the first signed bytes, at `signed_at`, when `signed_above` was the newest
    block; `replacements` counts the versions signed after them for the same slot. `raw` is
    empty if the transaction was found on the chain, and its bytes are lost (`lost.py`).
    """

    collection: ClassVar[Collection] = Collection(
        "outgoing",
        columns={"transaction_hash": str},
        lookups=(Lookup("by_transaction", ("transaction_hash",)),),
        schema=5,
    )

    purpose: StoredPurpose
    owner_id: str
    chain_id: int
    token_address: str
    source: Contract
    recipient: str
    escrow_of: str | None = None
    amount_atomic: Atomic = attrs.field(converter=atomic)
    status: OutboundTransferStatus = "queued"
    sender_id: str | None = None
    slot: int | None = None
    previous_id: str | None = None
    transaction_hash: str | None = None
    raw: str | None = None
    signed_at_ms: Instant | None = None
    signed_above: int = 0
    replacements: int = 0
    block_number: int | None = None
    reorgs: int = 0
    searched_to: int = 0
    module: ModuleIntent | None = None
    funded_by: str | None = None
    created_at_ms: Instant

    signed_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("signed_at_ms")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")

    @property
    def owner_purpose(self) -> TransferPurpose:
        """The purpose of the transfer, in the words of its owners."""
        if self.module is None:
            for (stored, prefix), purpose in _PURPOSES_BY_OWNER.items():
                if stored == self.purpose and self.owner_id.startswith(prefix):
                    return purpose
            return self.purpose
        return "deploy_module" if self.module.signature is None else "enable_module"


@attrs.frozen(kw_only=True, slots=False)
class Replacement(Record):
    """Bytes that may take the slot of an outgoing transfer in place of earlier ones.

    They move the same with higher fees, or nothing (`moves` is false). Any of them may still be the
    one that is included, so none is ever deleted. The id is the transfer's, and the number.
    `signed_above` was the newest block when they were signed; 0 if an older software release signed
    them.
    """

    collection: ClassVar[Collection] = Collection(
        "outgoing_replacements",
        columns={"transaction_hash": str},
        lookups=(Lookup("by_transaction", ("transaction_hash",)),),
        schema=3,
    )

    outgoing_id: str
    transaction_hash: str
    raw: str
    moves: bool
    signed_at_ms: Instant
    signed_above: int = 0

    signed_at: ClassVar[FieldView[datetime]] = instant_view("signed_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class ReturnAddress(Record):
    """The address that a recipient sees as the sender of a transfer out of a vault.

    It is an escrow of the transfer `outgoing_id` only. Funds sent back to it belong to the
    vault of the account.
    """

    collection: ClassVar[Collection] = Collection(
        "return_addresses",
        columns={"address": str},
        lookups=(Lookup("by_address", ("address",)),),
        schema=2,
    )

    outgoing_id: str
    account_id: str
    chain_id: int
    address: str
    created_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")


@attrs.frozen(kw_only=True)
class LostBlocks:
    """The blocks with the transactions of a sender that the storage does not know.

    They are after block `first`, up to `last`, and have used the nonces below `nonce`. A transfer
    that was created before `until` is searched there before it is signed.
    """

    nonce: int
    first: int
    last: int
    until: Instant


@attrs.frozen(kw_only=True, slots=False)
class Sender(Record):
    """The environment's sender on a chain: the next free slot, and the transfer in the last one.

    The id is the chain's number and the address: a new key counts its slots from 0. `seen_nonce`
    is the highest number of used nonces that the chain has shown, if that was more than are
    known here, and `lost` the blocks of the unknown transactions (`lost.py`).
    """

    collection: ClassVar[Collection] = Collection(
        "senders",
        columns={"chain_id": int, "address": str},
        indexes=(Index("of_chain", key=("chain_id",)),),
        lookups=(Lookup("by_chain", ("chain_id",)), Lookup("by_address", ("address",))),
        schema=2,
        oldest_reader=1,
    )

    chain_id: int
    next_slot: int = 0
    last_outgoing_id: str | None = None
    seen_nonce: int = 0
    lost: LostBlocks | None = None

    @property
    def address(self) -> str:
        """The address that sends."""
        return self.id.partition(":")[2]


@attrs.frozen
class TransferOutcome:
    """The outcome of a transfer: without a reason, it succeeded.

    `height` was final at the look, `block_number` and `hash` are of the transaction that is there,
    `reorgs` is how often it had been undone, `settled_height` how far all is final and scanned.
    """

    reason: Reason | None
    height: int
    block_number: int
    reorgs: int
    settled_height: int
    hash: str

    @property
    def is_pending(self) -> bool:
        """Not final: any outcome is still possible."""
        return self.reason == "not_final"


@attrs.frozen
class TransferToWatch:
    """A transfer, and the block at which its owner believes it: see `apply_acceptance`."""

    id: str
    confirmations: int = 0
    early_acceptance: Acceptance | None = None


class StaleChainView(StaleView):
    """Blocks were undone since the chain was asked for a transfer's outcome: ask again."""


def new_transfer(
    id: str,
    asset: Asset,
    purpose: StoredPurpose,
    owner_id: str,
    *,
    source: Contract,
    recipient: str,
    amount: int,
    now: Instant,
    escrow_of: str | None = None,
    funded_by: str | None = None,
) -> OutboundTransfer:
    """The intent of a transfer, to be inserted with the decision that needs it."""
    return OutboundTransfer(
        id=id,
        purpose=purpose,
        owner_id=owner_id,
        chain_id=asset.chain_id,
        token_address=asset.address,
        source=source,
        recipient=recipient,
        escrow_of=escrow_of,
        amount_atomic=Atomic(amount),
        funded_by=funded_by,
        created_at_ms=now,
    )


def new_module_step(
    id: str,
    chain_id: int,
    owner_id: str,
    module: ModuleIntent,
    *,
    operator: str,
    now: Instant,
) -> OutboundTransfer:
    """The intent of a step of a role module, to be inserted with the decision that needs it."""
    return OutboundTransfer(
        id=id,
        purpose="sweep",
        owner_id=owner_id,
        chain_id=chain_id,
        token_address=ZERO_ADDRESS,
        source=Contract("operator", "operator", operator),
        recipient=module.module,
        amount_atomic=ZERO,
        module=module,
        created_at_ms=now,
    )


def to_intent(partition: str, outgoing: OutboundTransfer) -> TransferIntent:
    """The action of a transaction for the transfer."""
    return TransferIntent(
        outgoing.id,
        partition,
        outgoing.token_address,
        outgoing.source,
        outgoing.recipient,
        outgoing.amount_atomic,
        outgoing.escrow_of,
        outgoing.module,
    )


def new_return_address(
    id: str, outgoing: OutboundTransfer, payer: str, *, now: Instant
) -> ReturnAddress | None:
    """The address that the recipient of a transfer sees, unless it is watched anyway."""
    if outgoing.source.kind != "vault" or outgoing.escrow_of is not None:
        return None
    return ReturnAddress(
        id=id,
        outgoing_id=outgoing.id,
        account_id=outgoing.source.owner_id,
        chain_id=outgoing.chain_id,
        address=payer,
        created_at_ms=now,
    )


def replacement_id(outgoing_id: str, number: int) -> str:
    """The id of the n-th bytes signed after the first."""
    return f"{outgoing_id}/{number}"


def sender_lane(partition: str, chain_id: int) -> str:
    """The lane of the jobs that send an environment's transfers on a chain."""
    return f"{SENDER_LANE_PREFIX}{partition}:{chain_id}"


def send_job(kind: str, partition: str, outgoing: OutboundTransfer, now: Instant) -> NewJob:
    """The job that sends an outgoing transfer for its owner, in its sender's lane."""
    lane = sender_lane(partition, outgoing.chain_id)
    return NewJob("chain", kind, lane, now, outgoing.owner_id)


def watch_job(
    kind: str,
    lane: str,
    subject: str,
    arguments: Mapping[str, str] | None = None,
    *,
    now: Instant,
) -> NewJob:
    """The job that watches a sent transfer, for its owner."""
    return NewJob("chain", kind, lane, now + POLL_MS, subject, arguments or {})


def withdraw(outgoing: OutboundTransfer) -> OutboundTransfer | None:
    """The intent withdrawn, or None if a slot is reserved and work on it has begun."""
    if outgoing.status != "queued":
        return None
    return evolve(outgoing, status="withdrawn")


def withdraw_unsigned(outgoing: OutboundTransfer) -> OutboundTransfer | None:
    """The transfer withdrawn, or None if it is signed: a node may have it.

    A slot that it has is the sender's last, and goes to the next transfer (`nonces.py`).
    """
    if outgoing.status not in ("queued", "reserved"):
        return None
    return evolve(outgoing, status="withdrawn")


def mark_final(
    tx: Transaction, outgoing_id: str, outcome: TransferOutcome, *, now: Instant
) -> Decision[None]:
    """Record that the outcome of a transfer is final. Raises StaleChainView.

    A transfer in a block that is not final or not scanned is followed on: a reorg may undo it.
    """
    outgoing = lock_transfer(tx, outgoing_id)
    if outgoing.reorgs != outcome.reorgs:
        raise StaleChainView
    if outcome.reason is not None:
        return mark_failed(tx, outgoing_id)
    done = evolve(outgoing, block_number=outcome.block_number)
    if outcome.block_number <= outcome.settled_height:
        return Decision(None, replaces=(done,))
    return Decision(None, replaces=(done,), jobs=(follow_job(outgoing_id, now + REORG_RECHECK_MS),))


def follow_job(outgoing_id: str, due_at: Instant) -> NewJob:
    """The job that checks the outcome of a transfer again."""
    return NewJob("chain", FOLLOW_AGAIN, f"outgoing:{outgoing_id}", due_at, outgoing_id)


def mark_failed(tx: Transaction, outgoing_id: str) -> Decision[None]:
    """Record that a transfer's failure is final: its bytes must never be sent again."""
    outgoing = lock_transfer(tx, outgoing_id)
    return Decision(None, replaces=(evolve(outgoing, status="failed"),))


def find_own_hashes(storage: Storage, hashes: Iterable[str]) -> frozenset[str]:
    """The ones of some transactions that this deployment has signed."""
    keys = [(hash,) for hash in sorted(hashes)]
    found: set[str] = set()
    kinds: tuple[type[OutboundTransfer | Replacement], ...] = (OutboundTransfer, Replacement)
    for kind in kinds:
        located, damaged = locate_with_damaged(storage, kind, "by_transaction", keys)
        found.update(str(item.record.transaction_hash) for item in located)
        found.update(str(row.key[0]) for row in damaged)  # still ours
    return frozenset(found)


def load_transfer(storage: Storage, partition: str, outgoing_id: str) -> OutboundTransfer:
    """A transfer that is known to exist, as it is stored now."""
    outgoing = storage.read(partition, lambda snapshot: snapshot.get(OutboundTransfer, outgoing_id))
    assert outgoing is not None, f"no outgoing {outgoing_id}"
    return outgoing


def lock_transfer(tx: Transaction, outgoing_id: str) -> OutboundTransfer:
    outgoing = tx.get(OutboundTransfer, outgoing_id, for_update=True)
    assert outgoing is not None, f"no outgoing {outgoing_id}"
    return outgoing
