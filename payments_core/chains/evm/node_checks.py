"""Checks of an EVM chain's nodes: of all together at the start, and of each alone for operators.

docs/reference/finality.md says what a node must be able to do; a row here asks for it. A node's own
words are kept in each sentence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import attrs

from payments_core.chains.evm import responses as answers
from payments_core.chains.evm.blocks import block_call
from payments_core.chains.evm.quorum import (
    CHAIN_ID,
    NodeQuorum,
    NodeSession,
    require_chain,
)
from payments_core.chains.evm.rpc import MAX_BATCH_CALLS, Node, RpcCall
from payments_core.chains.loader import NodeCheck
from payments_core.chains.port import Block, ChainError, ChainMismatch
from payments_core.clock import MINUTE, SECOND, Instant
from payments_core.networks import Network

LOG_BLOCKS = 2_000
"""The range of one scan (`EvmChain.max_scan_blocks`)."""

TOO_SOON = TOO_LATE = 10
"""A block that is final after a tenth of the time that its network takes was not finalized; a node
whose newest final block is ten times as old has stopped to follow what is final."""

MIN_LATE_S = 600
"""A chain may do without final blocks for some minutes."""

PROBE_GAS = 10_000_000
_DECIMALS = "0x313ce567"
_PROBE = "0x602a60005260206000f3"
"""Code that returns 42, as the code that asks a wallet which is not deployed yet."""


class Unfit(Exception):
    """The node answered, and its answer shows that it cannot be used."""


@attrs.frozen
class NodeView:
    """A node of a network, its newest block, and the block with each tag of the policy."""

    node: Node
    network: Network
    latest: Block
    tagged: dict[str, Block]
    now: Instant

    @property
    def accepted(self) -> Block:
        """The oldest of the blocks that the policy asks for: its state must be there."""
        depth = max(row.depth for row in self.network.acceptance)
        heights = [block.number for block in self.tagged.values()]
        height = min([*heights, max(0, self.latest.number - depth)])
        known = [block for block in (*self.tagged.values(), self.latest) if block.number == height]
        return known[0] if known else Block(height, "")


@attrs.frozen
class NodeRequirement:
    """Something that a node must be able to do: how it is asked, and what to do if it cannot."""

    name: str
    ask: Callable[[NodeView], str]
    remedy: str
    is_fault: bool = True


def require_decimals(endpoints: NodeQuorum, network: Network) -> None:
    """Return if the contract of each token has its registered decimals.

    Raises ChainMismatch, and ChainUnavailable if too few nodes answer.
    """
    asked = _ask_each_token(network, "latest")

    def ask(session: NodeSession) -> tuple[bytes, ...]:
        return tuple(map(answers.parse_data, session.call_all(asked)))

    for token, raw in zip(network.tokens, endpoints.query_agreed(ask), strict=True):
        where = f"chain {network.chain_id}: {token.symbol} at {token.address}"
        if not raw:
            raise ChainMismatch(f"{where} is not a contract")
        if int.from_bytes(raw, "big") != token.decimals:
            raise ChainMismatch(f"{where} does not have {token.decimals} decimals")


def check_node(node: Node, network: Network, now: Instant) -> Iterator[NodeCheck]:
    """What a node can do, and how long each answer took."""
    began = time.perf_counter()
    try:
        view = _view_node(node, network, now)
    except ChainError as error:
        remedy = (
            "does this machine reach the URL, is it that of a node of this chain,"
            " and does the node know the policy's tags?"
        )
        yield NodeCheck(node.name, False, str(error), remedy)
        return
    behind = ", ".join(
        f"{tag} block {view.latest.number - block.number} behind it"
        for tag, block in view.tagged.items()
    )
    says = f"latest block {view.latest.number}" + (f", {behind}" if behind else "")
    yield NodeCheck(node.name, True, f"{says}{_took(began)}")
    for requirement in REQUIREMENTS:
        began = time.perf_counter()
        try:
            says = f"{requirement.name}: {requirement.ask(view)}{_took(began)}"
        except (ChainError, Unfit) as error:
            says = f"{requirement.name}: {error}"
            yield NodeCheck(node.name, False, says, requirement.remedy, requirement.is_fault)
        else:
            yield NodeCheck(node.name, True, says)


def _took(began: float) -> str:
    return f" ({(time.perf_counter() - began) * 1_000:.0f} ms)"


def _view_node(node: Node, network: Network, now: Instant) -> NodeView:
    """The node's chain and blocks. Raises ChainError."""
    tags = dict.fromkeys(row.tag for row in network.acceptance if row.tag not in (None, "latest"))
    calls = [RpcCall("eth_getBlockByNumber", (tag, False)) for tag in ("latest", *tags)]
    served, *raw = node.call_all([CHAIN_ID, *calls])
    require_chain(node.name, served, network.chain_id)
    blocks: dict[str, Block] = {}
    for tag, found in zip(("latest", *tags), raw, strict=True):
        block = answers.parse_block(found)
        if block is None:
            raise answers.BadResponse(f"{node.name}: has no {tag} block")
        blocks[str(tag)] = block
    return NodeView(node, network, blocks.pop("latest"), blocks, now)


def _ask_ages(view: NodeView) -> str:
    age_ms = 0 if view.latest.time is None else view.now - view.latest.time
    if age_ms > 10 * MINUTE:
        raise Unfit(f"the latest block is {age_ms // MINUTE} minutes old")
    return f"the latest block is {max(0, age_ms) // SECOND} s old"


def _ask_tags(view: NodeView) -> str:
    for tag, block in view.tagged.items():
        if block.number > view.latest.number:
            raise Unfit(f"the {tag} block is above the latest block")
    safe, final = view.tagged.get("safe"), view.tagged.get("finalized")
    if safe is not None and final is not None and final.number > safe.number:
        raise Unfit("the finalized block is above the safe block")
    usual_s = view.network.finalized_s
    if final is None or final.time is None or usual_s is None:
        return "in order"
    age_s = max(0, view.now - final.time) // SECOND
    if age_s * TOO_SOON < usual_s:
        raise Unfit(f"a block of {age_s} s is called finalized, where {usual_s} s are usual")
    if age_s > max(MIN_LATE_S, usual_s * TOO_LATE):
        raise Unfit(f"the finalized block is {age_s} s old, where {usual_s} s are usual")
    return f"the finalized block is {age_s} s old"


def _ask_logs(view: NodeView) -> str:
    first = max(0, view.latest.number - LOG_BLOCKS + 1)
    query = {
        "fromBlock": hex(first),
        "toBlock": hex(view.latest.number),
        "address": [token.address for token in view.network.noticed_tokens],
        "topics": [answers.TRANSFER],
    }
    logs = answers.parse_logs(view.node.call("eth_getLogs", query))
    return f"{len(logs)} transfers in {view.latest.number - first + 1} blocks"


def _ask_decimals(view: NodeView) -> str:
    tokens, calls = view.network.tokens, _ask_each_token(view.network, hex(view.accepted.number))
    for token, raw in zip(tokens, view.node.call_all(calls), strict=True):
        data = answers.parse_data(raw)
        if int.from_bytes(data, "big") != token.decimals or not data:
            found = int.from_bytes(data, "big") if data else "no contract"
            raise Unfit(f"{token.symbol} has {token.decimals} decimals, the node says {found}")
    return f"{len(tokens)} tokens at block {view.accepted.number}"


def _ask_each_token(network: Network, height: str) -> list[RpcCall]:
    return [
        RpcCall("eth_call", ({"to": token.address, "data": _DECIMALS}, height))
        for token in network.tokens
    ]


def _ask_probe(view: NodeView) -> str:
    call = {"data": _PROBE, "gas": hex(PROBE_GAS)}
    data = answers.parse_data(view.node.call("eth_call", call, "latest"))
    if int.from_bytes(data, "big") != 42:
        raise Unfit("the code was not run")
    return "the code was run"


def _ask_batch(view: NodeView) -> str:
    view.node.call_all([block_call(view.latest.number)] * MAX_BATCH_CALLS)
    taken = view.node.accepted_batch
    if taken < MAX_BATCH_CALLS:
        raise Unfit(f"takes {taken} calls in a batch, not {MAX_BATCH_CALLS}")
    return f"{taken} calls in one request"


REQUIREMENTS: tuple[NodeRequirement, ...] = (
    NodeRequirement(
        "follows the chain",
        _ask_ages,
        "compare it with another node: this node or the chain stands",
    ),
    NodeRequirement(
        "tags", _ask_tags, "use another node: this one may call blocks final that are undone later"
    ),
    NodeRequirement(
        "eth_getLogs over a range",
        _ask_logs,
        "the service asks for smaller ranges, which is slower; another plan may allow more",
        is_fault=False,
    ),
    NodeRequirement(
        "eth_call at the accepted block",
        _ask_decimals,
        "use nodes that keep the state of final blocks, and compare the tokens of networks.N",
    ),
    NodeRequirement(
        "eth_call without `to`",
        _ask_probe,
        "signatures of contract wallets cannot be checked on this node",
        is_fault=False,
    ),
    NodeRequirement(
        "batches", _ask_batch, "the service sends smaller batches, which is slower", is_fault=False
    ),
)
"""The order in which a node is asked."""
