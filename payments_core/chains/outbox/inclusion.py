"""The state of a nonce on chain: it has one of our versions, a foreign transaction, or nothing.

A transfer is signed again with higher fees, so several versions may exist for its nonce. The chain
includes at most one of them, and only the chain can say which.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.chains.outbox.lost import SCANS_PER_LOOK, find_moved
from payments_core.chains.outbox.record import OutboundTransfer, Replacement, replacement_id
from payments_core.chains.port import Chain, ChainUnavailable, SignedTransaction, TransactionView
from payments_core.clock import Instant
from payments_core.engine.decision import WorkerAuthority
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.port import Storage

NonceStatus = Literal["open", "searching", "taken", "moved"]
"""`open`: no final transaction has the nonce. `taken`: a foreign one has it, permanently.
`searching`: one has it, and not all blocks have been searched for our own transfer yet. `moved`: a
transaction that the storage has lost has moved the money."""


@attrs.frozen
class SignedVersion:
    """Signed bytes for a nonce; `moves` is false for a version that only uses up the nonce."""

    signed: SignedTransaction
    moves: bool
    signed_at_ms: Instant
    signed_above: int

    signed_at: ClassVar[FieldView[datetime]] = instant_view("signed_at_ms")


@attrs.frozen
class IncludedVersion:
    """A version that is in a block, as the chain shows it there."""

    version: SignedVersion
    view: TransactionView
    block_number: int


@attrs.frozen
class NonceView:
    """The versions of a transfer, in the order of signing, and those that the chain knows."""

    versions: Sequence[SignedVersion]
    views: Mapping[str, TransactionView]

    @property
    def newest(self) -> SignedVersion:
        """The last signed version."""
        return self.versions[-1]

    @property
    def is_known(self) -> bool:
        """Whether the chain knows any version, in a block or waiting for one."""
        return bool(self.views)

    @property
    def included(self) -> IncludedVersion | None:
        """The version that is in a block."""
        for version in self.versions:
            view = self.views.get(version.signed.hash)
            if view is not None and view.block is not None:
                return IncludedVersion(version, view, view.block.number)
        return None

    def knows(self, version: SignedVersion) -> bool:
        """Whether the chain knows this version."""
        return version.signed.hash in self.views


@attrs.frozen
class NonceSearch:
    """The status of a nonce, and the last final block searched for our transfer.

    `moved_by` is the transaction that has moved the money, if one has.
    """

    status: NonceStatus
    searched_to: int
    moved_by: str | None = None


def load_signed_versions(
    storage: Storage, authority: WorkerAuthority, outgoing: OutboundTransfer
) -> list[SignedVersion]:
    """All versions of a signed transfer, in the order of signing."""
    assert outgoing.raw is not None
    assert outgoing.transaction_hash is not None
    first = SignedTransaction(outgoing.transaction_hash, base64.b64decode(outgoing.raw))
    signed_at = outgoing.signed_at_ms or outgoing.created_at_ms
    found = [SignedVersion(first, True, signed_at, outgoing.signed_above)]
    if outgoing.replacements:
        ids = [replacement_id(outgoing.id, n + 1) for n in range(outgoing.replacements)]
        later = storage.read(
            authority.partition, lambda snapshot: snapshot.get_many(Replacement, ids)
        )
        found += [
            SignedVersion(
                SignedTransaction(later[id].transaction_hash, base64.b64decode(later[id].raw)),
                later[id].moves,
                later[id].signed_at_ms,
                later[id].signed_above or outgoing.signed_above,
            )
            for id in ids
        ]
    return found


def encode_signed(signed: SignedTransaction) -> str:
    """Signed bytes as they are stored, in base64."""
    return base64.b64encode(signed.raw).decode()


def look_up_versions(chain: Chain, versions: Sequence[SignedVersion]) -> NonceView:
    """The versions as the chain knows them, in one query. Raises ChainUnavailable."""
    (view,) = look_up_many(chain, [versions])
    return view


def look_up_many(chain: Chain, transfers: Sequence[Sequence[SignedVersion]]) -> list[NonceView]:
    """The versions of each transfer as the chain knows them, in one query.

    Raises ChainUnavailable.
    """
    known_views = chain.transactions([it.signed.hash for versions in transfers for it in versions])
    return [_view_of(versions, known_views) for versions in transfers]


def look_up_each(
    chain: Chain, transfers: Sequence[Sequence[SignedVersion]]
) -> list[NonceView | ChainUnavailable]:
    """The versions of each transfer, or the error of one on which the nodes do not agree.

    Raises ChainUnavailable if they do not answer.
    """
    known_views = chain.transactions([it.signed.hash for versions in transfers for it in versions])
    found: list[NonceView | ChainUnavailable] = []
    for versions in transfers:
        try:
            found.append(_view_of(versions, known_views))
        except ChainUnavailable as error:
            found.append(error)
    return found


def _view_of(
    versions: Sequence[SignedVersion], known_views: Mapping[str, TransactionView | None]
) -> NonceView:
    hashes = [version.signed.hash for version in versions]
    known = {hash: found for hash in hashes if (found := known_views.get(hash)) is not None}
    view = NonceView(versions, known)
    if view.included is None and not known_views.keys() >= set(hashes):
        raise ChainUnavailable("the nodes do not agree on all versions of a transfer")
    return view


def search_nonce(
    storage: Storage,
    authority: WorkerAuthority,
    chain: Chain,
    outgoing: OutboundTransfer,
    view: NonceView,
) -> NonceSearch:
    """Whether a final transaction other than ours has the nonce. Raises ChainUnavailable.

    Then somebody else has used the sender's key, or we have signed a version that a restore has
    lost. A node may also have lost its index of transactions, and then it knows ours only by their
    logs. So the blocks since the transfer was signed are searched for its logs, some of them in
    each look: `searched_to` must be stored.
    """
    assert outgoing.slot is not None
    assert outgoing.sender_id is not None
    searched = max(outgoing.signed_above, outgoing.searched_to)
    sender = outgoing.sender_id.partition(":")[2]
    if view.is_known or chain.final_nonce(sender) <= outgoing.slot:
        return NonceSearch("open", outgoing.searched_to)
    # Asked again, in another index, after the nonce was seen to be used.
    if look_up_versions(chain, view.versions).is_known:
        return NonceSearch("open", outgoing.searched_to)
    if outgoing.module is not None:  # it leaves no logs: its owner asks the contracts
        return NonceSearch("taken", outgoing.searched_to)
    hashes = {version.signed.hash for version in view.versions}
    final = chain.heads().final.number
    for _ in range(SCANS_PER_LOOK):
        if searched >= final:
            break
        last = min(searched + chain.max_scan_blocks, final)
        found = chain.scan([outgoing.token_address], [outgoing.recipient], searched + 1, last)
        if any(transfer.transaction_hash in hashes for transfer in found):
            raise ChainUnavailable("a node has the logs of a transaction but not the transaction")
        moved = find_moved(storage, authority, chain, outgoing, found)
        if moved is not None:
            return NonceSearch("moved", searched, moved.transaction_hash)
        searched = last
    return NonceSearch("taken" if searched >= final else "searching", searched)
