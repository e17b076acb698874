"""The second scan of blocks: those that were scanned before they were final are scanned again.

A node may have a new block before its index of logs has the block's logs, and then it returns an
empty list instead of an error; so may one node of several behind one address. Only once the block
is final, and scanned after that, is the list complete. Transfers that the first scan has reported
are not reported again: the cursor keeps a digest of them for each block.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from payments_core.chains.port import ScannedTransfer

BlockDigests = tuple[tuple[int, str], ...]
"""(height, digest) of blocks with transfers to us, in the order of heights."""

MAX_BLOCKS = 1_000
"""The number of digests that are kept: a stranger may send dust in every block. Transfers in older
blocks are reported twice, which changes nothing."""

_DIGEST_CHARS = 16


def digest_blocks(transfers: Sequence[ScannedTransfer]) -> BlockDigests:
    """The digest of the transfers in each block; their order does not matter."""
    lines: dict[int, set[str]] = defaultdict(set)
    for one in transfers:
        lines[one.block.number].add(f"{one.block.hash} {one.transaction_hash} {one.log_index}")
    return tuple(
        (height, hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()[:_DIGEST_CHARS])
        for height, found in sorted(lines.items())
    )


def leave_out_known(
    transfers: Sequence[ScannedTransfer], known: BlockDigests
) -> tuple[ScannedTransfer, ...]:
    """The transfers of blocks in which the first scan did not find the same ones."""
    new = {height for height, _ in set(digest_blocks(transfers)) - set(known)}
    return tuple(one for one in transfers if one.block.number in new)


def merge_digests(
    before: BlockDigests, kept_tip: int, found: Sequence[ScannedTransfer], final_height: int
) -> BlockDigests:
    """The digests that a later second scan needs, of the blocks above `final_height`.

    A reorg has undone the blocks above `kept_tip`, which this scan has scanned anew.
    """
    kept = tuple(one for one in before if one[0] <= kept_tip)
    digests = (*kept, *digest_blocks(found))
    return tuple(one for one in digests if one[0] > final_height)[-MAX_BLOCKS:]
