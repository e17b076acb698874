"""What stands in a slot: which of our bytes the chain has taken, or that it took another's."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import attrs

from payments_core.chains.outbox.record import OutboundTransfer, Replacement, replacement_id
from payments_core.chains.port import Chain, ChainUnavailable, SignedTransaction, TransactionView
from payments_core.clock import Instant
from payments_core.engine.decision import WorkerAuthority
from payments_core.storage.bulk import get_many
from payments_core.storage.port import Storage


@attrs.frozen
class SignedVersion:
    """One of those that may take a slot; `moves` is false for what only fills it."""

    signed: SignedTransaction
    moves: bool
    signed_at: Instant


def load_signed_versions(
    storage: Storage, authority: WorkerAuthority, outgoing: OutboundTransfer
) -> list[SignedVersion]:
    """All that may take the transfer's slot, in the order in which it was signed."""
    assert outgoing.raw is not None
    assert outgoing.transaction_hash is not None
    first = SignedTransaction(outgoing.transaction_hash, base64.b64decode(outgoing.raw))
    found = [SignedVersion(first, True, outgoing.signed_at or outgoing.created_at)]
    if outgoing.replacements:
        ids = [replacement_id(outgoing.id, n + 1) for n in range(outgoing.replacements)]
        later = storage.read(
            authority.partition, lambda snapshot: get_many(snapshot, Replacement, ids)
        )
        found += [
            SignedVersion(
                SignedTransaction(later[id].transaction_hash, base64.b64decode(later[id].raw)),
                later[id].moves,
                later[id].signed_at,
            )
            for id in ids
        ]
    return found


def find_included_version(
    chain: Chain, known: Sequence[SignedVersion]
) -> tuple[SignedVersion, TransactionView | None]:
    """Those bytes that are in a block, else those that the chain knows, else the newest."""
    found: tuple[SignedVersion, TransactionView | None] = (known[-1], None)
    for bytes in known:
        view = chain.transaction(bytes.signed.hash)
        if view is not None and view.block is not None:
            return bytes, view
        if view is not None:
            found = bytes, view
    return found


def nonce_was_taken(
    chain: Chain, outgoing: OutboundTransfer, known: Sequence[SignedVersion]
) -> bool:
    """Whether what took a transfer's slot is final and none of its bytes.

    Somebody else has used the sender's key, then. A node may also have lost the index of its
    transactions, and then knows ours by their logs alone: what left a log is not lost. Raises
    ChainUnavailable.
    """
    assert outgoing.slot is not None
    assert outgoing.sender_id is not None
    sender = outgoing.sender_id.partition(":")[2]
    if chain.final_nonce(sender) <= outgoing.slot:
        return False
    # By what was final when that was asked: looked at once more, and in another index.
    if find_included_version(chain, known)[1] is not None:
        return False
    hashes = {bytes.signed.hash for bytes in known}
    final = chain.heads().final.number
    for first in range(outgoing.signed_above + 1, final + 1, chain.max_scan_blocks):
        last = min(first + chain.max_scan_blocks - 1, final)
        found = chain.scan([outgoing.token_address], [outgoing.recipient], first, last)
        if any(transfer.transaction_hash in hashes for transfer in found):
            raise ChainUnavailable("a node has the logs of a transaction but not the transaction")
    return True
