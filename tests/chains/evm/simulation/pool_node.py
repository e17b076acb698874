"""A node of the network in memory: it has a pool, and may lag, fail, freeze, lie and lose answers.

It stands in the place of `payments_core.chains.evm.rpc.Node`, so no answer goes over a socket.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any
from unittest.mock import patch

import msgspec

from payments_core.addresses import encode_checksum_address
from payments_core.chains.evm import quorum
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.rpc import NodeRefused, Refusal, RpcCall
from payments_core.chains.port import ChainUnavailable
from payments_core.chains.rotated_signer import RotatedSigner
from tests.chains.evm.simulation.network import CHAIN, Block, Network, OurTransaction, Receipt

BUMP_AFTER_MS = 30_000


class RefusedHere(Exception):
    """The node answers with an error."""


class PoolNode:
    """One node; all faults are shares of 1, and healthy at 0."""

    def __init__(self, network: Network, number: int, on_call: Callable[[], None]) -> None:
        self._network = network
        self._on_call = on_call
        self.pool = network.pools[number].waiting
        self.name = f"node{number}"
        self.recover()

    def recover(self) -> None:
        """Be healthy and up to date."""
        self.lag = 0
        self.failing = self.losing = self.lying = 0.0
        self.is_full = False
        self.frozen: Sequence[Block] | None = None

    # What the adapter asks of a node.

    def call(self, method: str, *params: object, until: float | None = None) -> msgspec.Raw:
        return self.call_all([RpcCall(method, params)])[0]

    def call_all(
        self, calls: Sequence[RpcCall], *, until: float | None = None
    ) -> list[msgspec.Raw]:
        found: list[msgspec.Raw] = []
        for call in calls:
            (result,) = self.batch([call])
            if isinstance(result, Refusal):
                raise NodeRefused(call.method)
            found.append(result)
        return found

    def batch(
        self, calls: Sequence[RpcCall], *, until: float | None = None
    ) -> list[msgspec.Raw | Refusal]:
        return [self._answer(call.method, call.params) for call in calls]

    def read_logs(
        self, query: Mapping[str, Any], first: int, last: int, *, until: float | None = None
    ) -> list[msgspec.Raw]:
        asked = {**query, "fromBlock": hex(first), "toBlock": hex(last)}
        return [self.call("eth_getLogs", asked)]

    def close(self) -> None:
        """Nothing is open."""

    def _answer(self, method: str, params: Sequence[Any]) -> msgspec.Raw | Refusal:
        self._on_call()
        if self._happens(self.failing):
            raise ChainUnavailable(f"{self.name} is away")
        try:
            result = getattr(self, method)(*params)
        except RefusedHere:
            return Refusal()
        if method == "eth_sendRawTransaction" and self._happens(self.losing):
            raise ChainUnavailable("the answer was lost")
        if self._happens(self.lying):
            result = _lie(method, result)
        return msgspec.Raw(json.dumps(result).encode())

    def _happens(self, share: float) -> bool:
        return bool(share) and self._network.rng.random() < share

    # The methods.

    def eth_chainId(self) -> str:
        return hex(CHAIN)

    def eth_getCode(self, *_: Any) -> str:
        return "0x01"

    def eth_getBalance(self, address: str, tag: str) -> str:
        return hex(self._require_block(tag).state.gas_money.get(address, 0))

    def eth_estimateGas(self, call: Any) -> str:
        return hex(100_000)

    def eth_feeHistory(self, *_: Any) -> Any:
        return {"baseFeePerGas": [hex(self._network.base_fee)]}

    def eth_maxPriorityFeePerGas(self) -> str:
        return hex(10**6)

    def eth_getBlockByNumber(self, tag: str, full: bool) -> Any:
        block = self._block_at(tag)
        if block is None:
            return None
        return {
            "number": hex(block.number),
            "hash": block.hash,
            "timestamp": hex(block.unix_s),
        }

    def eth_getTransactionCount(self, address: str, tag: str) -> str:
        if tag != "pending":
            return hex(self._require_block(tag).state.nonces.get(address, 0))
        nonce = self._require_block("latest").state.nonces.get(address, 0)
        waiting = {one.nonce for one in self.pool.values() if one.sender == address}
        while nonce in waiting:
            nonce += 1
        return hex(nonce)

    def eth_call(self, call: Any, tag: str) -> str:
        """The one call: balanceOf."""
        holder, token = _checksum(call["data"][-40:]), _checksum(call["to"][2:])
        return f"0x{self._require_block(tag).state.tokens.get((token, holder), 0):064x}"

    def eth_getTransactionByHash(self, hash: str) -> Any:
        is_waiting = any(one.hash == hash for one in self.pool.values())
        return {"hash": hash, "nonce": "0x0"} if is_waiting or self._find(hash) else None

    def eth_getTransactionReceipt(self, hash: str) -> Any:
        found = self._find(hash)
        if found is None:
            return None
        block, receipt = found
        return {
            "blockNumber": hex(block.number),
            "blockHash": block.hash,
            "transactionHash": hash,
            "status": hex(int(receipt.succeeded)),
            "logs": _placed_logs(block, receipt),
        }

    def eth_getLogs(self, query: Any) -> Any:
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        (kind, *more), tokens = query["topics"], set(query["address"])
        recipients = set(more[1]) if len(more) > 1 else None
        return [
            log
            for block in self._blocks[first : last + 1]
            for receipt in block.receipts
            for log in _placed_logs(block, receipt)
            if log["address"] in tokens
            and log["topics"][0] == kind
            and (recipients is None or log["topics"][2] in recipients)
        ]

    def eth_sendRawTransaction(self, raw: str) -> str:
        """As a node's pool does: a replacement offers a tenth more, and gas money is there."""
        offered, network = OurTransaction.of(bytes.fromhex(raw[2:])), self._network
        state, key = self._blocks[-1].state, (offered.sender, offered.nonce)
        known = self.pool.get(key)
        if (
            offered.nonce < state.nonces.get(offered.sender, 0)
            or self.eth_getTransactionByHash(offered.hash) is not None
            or (self.is_full and offered.max_fee < network.base_fee)
            or state.gas_money.get(offered.sender, 0) < offered.gas * offered.max_fee
            or (known is not None and not _outbids(offered, known))
        ):
            raise RefusedHere
        self.pool[key] = offered
        network.signed[offered.hash] = offered
        return offered.hash

    # The chain as this node has it.

    @property
    def _blocks(self) -> Sequence[Block]:
        if self.frozen is not None:
            return self.frozen
        blocks = self._network.blocks
        return blocks[: len(blocks) - self.lag] if self.lag else blocks

    def _block_at(self, tag: str) -> Block | None:
        blocks = self._blocks
        if tag == "latest":
            return blocks[-1]
        if tag == "finalized":
            return blocks[max(0, len(blocks) - 1 - self._network.final_depth)]
        number = int(tag, 16)
        return blocks[number] if number < len(blocks) else None

    def _require_block(self, tag: str) -> Block:
        block = self._block_at(tag)
        if block is None:
            raise RefusedHere
        return block

    def _find(self, hash: str) -> tuple[Block, Receipt] | None:
        for block in reversed(self._blocks):
            for receipt in block.receipts:
                if receipt.transaction.hash == hash:
                    return block, receipt
        return None


def connect(
    network: Network, nodes: Sequence[PoolNode], signer: RotatedSigner, clock_s: Callable[[], float]
) -> EvmChain:
    """Our adapter over these nodes."""
    urls = [f"http://127.0.0.1:{9_000 + number}" for number in range(len(nodes))]
    endpoints = NodeQuorum(urls, CHAIN, clock=clock_s)
    for endpoint, node in zip(endpoints._endpoints, nodes, strict=True):
        endpoint.node = node  # type: ignore[assignment]
    chain = EvmChain(endpoints, network.deployment, signer)
    chain.bump_after_ms = BUMP_AFTER_MS
    return chain


@contextmanager
def nodes_answer_in_turn(shuffle: Callable[[list[Any]], None]) -> Any:
    """Ask nodes one after the other, in an order of chance, and in this thread."""

    def query(asked: Sequence[Any], ask: Any, until: float) -> SimpleQueue[Any]:
        outcomes: SimpleQueue[Any] = SimpleQueue()
        order = list(asked)
        shuffle(order)
        for endpoint in order:
            outcomes.put(endpoint.run_query(ask, until))
        return outcomes

    with patch.object(quorum, "_query_nodes", query):
        yield


def _placed_logs(block: Block, receipt: Receipt) -> list[dict[str, Any]]:
    return [
        {
            **log,
            "blockNumber": hex(block.number),
            "blockHash": block.hash,
            "transactionHash": receipt.transaction.hash,
            "logIndex": hex(receipt.index + number),
            "removed": False,
        }
        for number, log in enumerate(receipt.logs)
    ]


def _outbids(offered: OurTransaction, known: OurTransaction) -> bool:
    return offered.max_fee * 10 >= known.max_fee * 11 and offered.tip * 10 >= known.tip * 11


def _lie(method: str, result: Any) -> Any:
    if method in ("eth_getTransactionReceipt", "eth_getTransactionByHash"):
        return None
    if method == "eth_getLogs":
        return result[:-1]
    if method == "eth_call":
        return f"0x{int(result, 16) * 2 + 10**12:064x}"
    if method == "eth_getTransactionCount":
        return hex(int(result, 16) + 5)
    if method == "eth_getBalance":
        return "0x0"
    if method == "eth_feeHistory":
        return {"baseFeePerGas": [hex(10**15)]}
    return result


def _checksum(digits: str) -> str:
    return encode_checksum_address(bytes.fromhex(digits))
