"""The transfers ahead of a transfer: a sender's transactions, in the order of their nonces."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import attrs

from payments_core.chains.outbox.inclusion import (
    NonceView,
    load_signed_versions,
    look_up_many,
)
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.chains.port import Chain
from payments_core.engine.decision import WorkerAuthority
from payments_core.storage.port import Snapshot, Storage

LINE_STEP = 50
"""The number of transfers that are read and looked up in one query."""

MAX_DROPPED = 100
"""The number of transactions that one look rebroadcasts, the oldest; the next look continues."""


@attrs.frozen
class Waiting:
    """A transfer whose nonce nothing final uses, and its versions as the chain knows them."""

    outgoing: OutboundTransfer
    view: NonceView


def find_unknown_before(
    storage: Storage, authority: WorkerAuthority, chain: Chain, outgoing: OutboundTransfer
) -> list[Waiting]:
    """The transfers before this one that the chain does not know, the newest first.

    A pool may have dropped one and kept another that comes after it, so all in line are checked:
    from this transfer back to one that is in a block, or whose nonce a final transaction has used.
    At most `MAX_DROPPED`, the first ones. Raises ChainUnavailable.
    """
    unknown: deque[Waiting] = deque(maxlen=MAX_DROPPED)
    assert outgoing.sender_id is not None
    free = chain.final_nonce(outgoing.sender_id.partition(":")[2])
    before = _load_before(storage, authority, outgoing, free)
    while before:
        versions = [load_signed_versions(storage, authority, one) for one in before]
        for one, view in zip(before, look_up_many(chain, versions), strict=True):
            if view.included is not None:  # so are all before it: blocks take nonces in order
                return list(unknown)
            if not view.is_known:
                unknown.append(Waiting(one, view))
        before = _load_before(storage, authority, before[-1], free)
    return list(unknown)


def _load_before(
    storage: Storage, authority: WorkerAuthority, outgoing: OutboundTransfer, free: int
) -> Sequence[OutboundTransfer]:
    """The next few transfers before one, the newest first, whose nonces are `free` or later."""

    def load(snapshot: Snapshot) -> list[OutboundTransfer]:
        found: list[OutboundTransfer] = []
        id = outgoing.previous_id
        while id is not None and len(found) < LINE_STEP:
            one = snapshot.get(OutboundTransfer, id)
            assert one is not None, f"no outgoing {id}"
            if one.slot is None or one.slot < free:
                break
            found.append(one)
            id = one.previous_id
        return found

    return storage.read(authority.partition, load)
