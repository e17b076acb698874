"""Scans of a range of blocks for transfers: at one node, and merged over enough nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import attrs
import msgspec

from payments_core.chains.evm import responses as answers
from payments_core.chains.evm.blocks import block_call, parse_block_at, read_blocks
from payments_core.chains.evm.quorum import (
    NodeLagging,
    NodeSession,
    QuorumResult,
    find_agreed_value,
)
from payments_core.chains.evm.responses import TRANSFER, BadResponse, Log
from payments_core.chains.evm.rpc import Refusal, RpcCall
from payments_core.chains.port import ChainUnavailable

MAX_FILTERED_RECIPIENTS = 1_000
"""With more recipients than this, transfers to any address are requested, and matched here."""

RECIPIENTS_PER_FILTER = 500
"""The number of recipients in one filter; some nodes accept at most a thousand."""

HASH_CHECKED_BLOCKS = 16
"""The number of newest blocks whose hashes are requested beside the logs, since they may fork."""

MIN_CUT_LOGS = 100
"""No node is known whose limit of logs in one answer is lower."""

MAX_DISPUTED_LOGS = 200
"""The maximum number of logs, not reported by all nodes, that are proven one by one."""


@attrs.frozen
class Scan:
    """A range of blocks, and the addresses searched in it, in small letters."""

    tokens: frozenset[str]
    recipients: frozenset[str] | None
    first: int
    last: int

    @classmethod
    def of(
        cls, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> Scan:
        """A scan for these addresses."""
        wanted = None if recipients is None else frozenset(map(str.lower, recipients))
        return cls(frozenset(map(str.lower, tokens)), wanted, first, last)

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be found."""
        return self.first > self.last or not self.tokens or self.recipients == frozenset()

    def log_filters(self) -> list[Mapping[str, object]]:
        """The filters for `eth_getLogs`, without their range."""
        address = sorted(self.tokens)
        if self.recipients is None or len(self.recipients) > MAX_FILTERED_RECIPIENTS:
            return [{"address": address, "topics": [TRANSFER]}]
        topics = ["0x" + recipient[2:].rjust(64, "0") for recipient in sorted(self.recipients)]
        return [
            {
                "address": address,
                "topics": [TRANSFER, None, topics[start : start + RECIPIENTS_PER_FILTER]],
            }
            for start in range(0, len(topics), RECIPIENTS_PER_FILTER)
        ]

    def require_matching(self, log: Log, hashes: Mapping[int, str]) -> None:
        """Raises BadResponse for a log that no filter here can match."""
        if log.address not in self.tokens or log.topics[:1] != (TRANSFER,):
            raise BadResponse("a log was not requested")
        if not self.first <= log.block.number <= self.last:
            raise BadResponse("a log is of a block that was not requested")
        if hashes.get(log.block.number, log.block.hash) != log.block.hash:
            raise BadResponse("a log has a block hash that differs from the block at its height")

    def matches(self, log: Log) -> bool:
        """Whether it is a transfer to one of the recipients."""
        if not answers.is_transfer(log):
            return False
        return self.recipients is None or "0x" + log.topics[2][26:] in self.recipients


@attrs.frozen
class NodeScan:
    """What a node found, and the hash of the last block, which identifies the chain."""

    last_hash: str
    logs: tuple[Log, ...]


@attrs.frozen
class ScanResult:
    """The logs that enough nodes report, and those that fewer report."""

    agreed: tuple[Log, ...]
    disputed: tuple[Log, ...] = ()


def scan_node(session: NodeSession, scan: Scan) -> NodeScan:
    """The finds of a node. It must have the last block before and after the search."""
    heights = range(max(scan.first, scan.last - HASH_CHECKED_BLOCKS + 1), scan.last + 1)
    queries = scan.log_filters()
    span = {"fromBlock": hex(scan.first), "toBlock": hex(scan.last)}
    calls = [block_call(height) for height in heights]
    calls += [RpcCall("eth_getLogs", ({**query, **span},)) for query in queries]
    results = session.batch(calls)
    hashes: dict[int, str] = {}
    for height, result in zip(heights, results, strict=False):
        block = None if isinstance(result, Refusal) else parse_block_at(result, height)
        if block is None:
            raise NodeLagging(f"{session.name}: does not have block {height} yet")
        hashes[height] = block.hash
    pieces: list[msgspec.Raw] = []
    for query, result in zip(queries, results[len(heights) :], strict=True):
        if isinstance(result, Refusal) or (scan.first < scan.last and _may_be_cut(result)):
            pieces += session.read_logs(query, scan.first, scan.last, _may_be_cut)
        else:
            pieces.append(result)
    (after,) = read_blocks(session, [scan.last])
    if after is None or after.hash != hashes[scan.last]:
        raise NodeLagging(f"{session.name}: its blocks changed during the scan")
    logs = [log for piece in pieces for log in answers.parse_logs(piece)]
    for log in logs:
        scan.require_matching(log, hashes)
    return NodeScan(hashes[scan.last], tuple(filter(scan.matches, answers.sort_logs(logs))))


def _may_be_cut(answer: msgspec.Raw) -> bool:
    """Whether a node may have left out the logs above its limit, and said nothing of that.

    Limits are round numbers, in tens or in twos. One in a hundred whole answers looks so too, and
    is requested in two parts for nothing.
    """
    count = answers.count_logs(answer)
    return count >= MIN_CUT_LOGS and (count % MIN_CUT_LOGS == 0 or count & (count - 1) == 0)


def agree_on_scan(
    replies: Sequence[NodeScan], is_last: bool, enough: int
) -> QuorumResult[ScanResult] | None:
    """The finds of enough nodes on one chain.

    If their finds differ, some have missed logs, or invented them. Each log then
    counts if enough report it, and the others must be proven by their transactions. That is
    postponed until all nodes have answered.
    """
    same = find_agreed_value(replies, enough)
    if same is not None:
        return QuorumResult(ScanResult(same.logs))
    last_hash = find_agreed_value((one.last_hash for one in replies), enough)
    if last_hash is None or not is_last:
        return None
    counts = Counter(log for one in replies if one.last_hash == last_hash for log in one.logs)
    agreed = tuple(log for log, count in counts.items() if count >= enough)
    disputed = tuple(log for log, count in counts.items() if count < enough)
    if len(disputed) > MAX_DISPUTED_LOGS:
        raise ChainUnavailable(f"the nodes disagree about {len(disputed)} logs")
    return QuorumResult(ScanResult(agreed, disputed))
