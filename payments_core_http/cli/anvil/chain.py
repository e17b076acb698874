"""A real EVM node as a sandbox's chain: anvil, with our contracts and a token at its real address.

The same adapter as for a real chain does the work (`chains/evm`). This module has what a sandbox
adds: it deploys the contracts, gives its operators the role and ether for fees, and implements the
sandbox's operations with anvil's own methods.
"""

from __future__ import annotations

import gzip
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from payments_core.addresses import NATIVE_ADDRESS
from payments_core.chains.evm import abi as calls
from payments_core.chains.evm import responses as answers
from payments_core.chains.evm.addresses import DEPLOYER, Deployment
from payments_core.chains.evm.artifacts import load_contract
from payments_core.chains.evm.blocks import block_call
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.fees import Action
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.rpc import RpcCall
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.evm.transactions import (
    UnsignedTransaction,
    attach_signature,
    signing_hash,
)
from payments_core.chains.gas import TransferAction
from payments_core.chains.port import (
    ChainUnavailable,
    Heads,
    NetworkKind,
    SignedTransaction,
    TransactionView,
)
from payments_core.clock import SECOND, Instant

FINALITY_BLOCKS = 9
"""The number of blocks after which a transaction is final: anvil's epochs are set to four slots."""

MAX_REORG_DEPTH = 50
MAX_MINED_AT_ONCE = 500
MAX_BLOCKS_PER_ADVANCE = 64
"""The maximum number of blocks of one advance of the clock: enough for all to be final."""

IDLE_GROWTH_S = 120.0
"""How often `mine_if_needed` adds blocks to a chain without transactions."""

_ADMIN = "the sandbox's admin"
_ETHER = 10**18
_ZERO_ADDRESS = "0x0000000000000000000000000000000000000000"
_FEE = 10**11
_GAS = 500_000
_MAX_MINE_ATTEMPTS = 20
_MAX_POOL_LOOKS = 20
_POOL_LOOK_S = 0.005

T = TypeVar("T")


class AnvilChain(EvmChain):
    """One chain of a sandbox, on its own node."""

    max_scan_interval_ms = 2 * SECOND
    heads_shared_for_s: float = 0.0
    """A caller that mines a block here and then reads a balance means that block."""

    faucet = _ZERO_ADDRESS
    supports_fault_injection = False
    network_kind: NetworkKind = "local"

    def __init__(self, url: str, chain_id: int, signer: LocalSigner) -> None:
        """The node must serve that chain; `prepare_node` makes it ready."""
        self._admin = signer.address(_ADMIN)
        self._local = signer
        self._opened: dict[str, int] = {}  # environments, and the block before they were
        self._looked = -1  # up to here `mine_if_needed` has looked into the blocks
        self._busy = 0  # the newest block in which it found transactions
        self._grew_at = time.monotonic()  # when it last added a block
        super().__init__(NodeQuorum([url], chain_id), Deployment(self._admin), signer)

    def prepare_node(self) -> None:
        """Put the tokens and our contracts there, unless they are. Raises ChainUnavailable."""
        for asset in (*self._network.tokens, *self._network.watch_list):
            runtime = load_contract("TestToken").runtime or b""
            self._run_method("anvil_setCode", asset.address, "0x" + runtime.hex())
        if not self._has_code(self._deployment.factory):
            self._send_as_admin(DEPLOYER, calls.deploy(self._deployment.creation), gas=5_000_000)
        self.check()

    # The port, with what an operator needs first.

    def _sign(
        self,
        environment_id: str,
        nonce: int,
        to: str,
        action: Action,
        data: bytes,
        *,
        sender: str | None = None,
    ) -> SignedTransaction:
        if environment_id not in self._opened:
            self.open_environment(environment_id)
        return super()._sign(environment_id, nonce, to, action, data, sender=sender)

    def open_environment(self, environment_id: str) -> None:
        """Give its operator the role, and ether for fees. Raises ChainUnavailable.

        It is called before anything is signed. If the chain may have lost it, and an earlier signed
        transaction will be sent again, it must be called again.
        """
        before = self.heads().latest.number
        operator = self._local.address(environment_id)
        self._run_method("anvil_setBalance", operator, hex(1_000 * _ETHER))
        self._send_as_admin(
            self._deployment.factory,
            calls.set_operator(environment_id, operator, allowed=True),
        )
        self._opened[environment_id] = before

    def count_affordable(self, sender: str, action: TransferAction) -> None:
        """See ReportsGas: not known. Each operator is given ether before its first transaction."""

    def list_affordable(self) -> Mapping[str, int]:
        """See ReportsGas."""
        return {}

    # Its life beside a sandbox.

    def mine_if_needed(self) -> Heads:
        """Add the block of a second, while the newest transactions have few blocks on top.

        An idle chain grows every two minutes, by so many blocks that its newest final block is of
        that time: nothing ends by time before such a block. Anvil keeps the hash of every block in
        each state that it holds, so that a chain of a day's seconds would need gigabytes.
        """
        latest = self.heads().latest.number
        first = max(self._looked + 1, latest - MAX_BLOCKS_PER_ADVANCE, 0)
        for number in range(first, latest + 1):
            if self._read_hashes(number, number):
                self._busy = number
        self._looked = latest
        now = time.monotonic()
        if latest - self._busy < MAX_BLOCKS_PER_ADVANCE:
            self._grew_at = now
            return self.mine(1)
        if now - self._grew_at >= IDLE_GROWTH_S:
            self._grew_at = now
            return self.mine(FINALITY_BLOCKS + 1)
        return self.heads()

    def dump_state(self) -> bytes:
        """The whole chain, in the format that `--state` reads."""
        (raw,) = self._query_node([RpcCall("anvil_dumpState")])
        return gzip.decompress(answers.parse_data(raw))

    # The operations of a sandbox.

    def is_contract(self, address: str) -> bool:
        """See SandboxChain."""
        return self._has_code(address)

    def peek_heads(self) -> Heads:
        """See SandboxChain."""
        return self.heads()

    def peek_transaction(self, hash: str) -> TransactionView | None:
        """See SandboxChain."""
        return self.transaction(hash)

    def mine(self, count: int) -> Heads:
        """See SandboxChain."""
        for start in range(0, count, MAX_MINED_AT_ONCE):
            self._run_method("anvil_mine", hex(min(MAX_MINED_AT_ONCE, count - start)))
        return self.heads()

    def advance_time(self, before: Instant, now: Instant) -> None:
        """See SandboxChain: a block for each second, up to a bound; the last ones are at `now`."""
        self.set_time(now)
        if now > before:
            seconds = math.ceil((now - before) / SECOND)
            self.mine(min(seconds, MAX_BLOCKS_PER_ADVANCE))

    def set_time(self, now: Instant) -> None:
        """Let the node's clock, which stamps its blocks, continue from `now`."""
        self._run_method("evm_setTime", now)

    def transfer(
        self,
        token_address: str,
        source: str | None,
        recipient: str,
        amount_atomic: int,
        name: str,
        *,
        reverts: bool = False,
    ) -> str:
        """See SandboxChain. Each name has its own sender, and so one first transaction.

        Native coin always comes from that sender, and has no log.
        """
        value = amount_atomic if token_address == NATIVE_ADDRESS else 0
        if reverts:
            data = b"\xff" * 4  # not a function of any token
        elif token_address == NATIVE_ADDRESS:
            token_address, data = recipient, b""
        elif source is None:
            data = calls.MINT.call(recipient, amount_atomic)
        else:
            data = calls.MOVE_FROM.call(source, recipient, amount_atomic)
        sender = f"stranger/{name}"
        ready = self._sign_as(sender, 0, token_address, data, _GAS, value=value)
        if self.transaction(ready.hash) is None:
            self._run_method("anvil_setBalance", self._local.address(sender), hex(_ETHER + value))
            self._include(ready)
        return ready.hash

    def mint(self, token_address: str, recipient: str, amount_atomic: int, name: str) -> str:
        """See SandboxChain."""
        hash = self.transfer(token_address, None, recipient, amount_atomic, name)
        self.mine(FINALITY_BLOCKS)
        return hash

    def reorg(self, depth: int, reinclude: bool = False, name: str | None = None) -> Heads:
        """See SandboxChain. A crash before the answer is stored may let it happen twice."""
        if not 1 <= depth <= MAX_REORG_DEPTH:
            raise ValueError(f"a reorg removes 1 to {MAX_REORG_DEPTH} blocks")
        latest = self.heads().latest.number
        depth = min(depth, latest)
        back: list[list[object]] = []
        if reinclude:
            back = [
                [raw, depth - 1] for raw in self._read_raw_transactions(latest - depth + 1, latest)
            ]
        with self._mining_paused():
            self._run_method("anvil_reorg", depth, back)
        self._looked = min(self._looked, latest - depth)
        for environment_id, before in sorted(self._opened.items()):
            if before >= latest - depth:  # the operator's role is undone too
                self.open_environment(environment_id)
        return self.heads()

    @contextmanager
    def _mining_paused(self) -> Iterator[None]:
        """Wait until no block is being made, so that a reorg does not undo half of one.

        Anvil mines a sent transaction a moment after its answer, and does not hold that back while
        it undoes blocks: the receipt would stay and the transfer would not.
        """
        if not self._read_value("anvil_getAutomine", bool):
            yield
            return
        for _ in range(_MAX_MINE_ATTEMPTS):
            self._wait_for_empty_pool()
            self._run_method("evm_setAutomine", False)
            if self._count_pooled() == 0:  # a transaction leaves the pool after it was mined
                break
            self._run_method("evm_setAutomine", True)
        try:
            yield
        finally:
            self._run_method("evm_setAutomine", True)

    def _wait_for_empty_pool(self) -> None:
        """Wait until no transaction is pending, or none of them is mined without more blocks."""
        for _ in range(_MAX_POOL_LOOKS):
            if self._count_pooled() == 0:
                return
            time.sleep(_POOL_LOOK_S)

    def _count_pooled(self) -> int:
        return int(self._read_value("txpool_status", _PoolStatus).pending, 16)

    def _read_raw_transactions(self, first: int, last: int) -> list[str]:
        """The signed transactions of these blocks, in their order."""
        hashes = self._read_hashes(first, last)
        return [
            _TEXT_DECODER.decode(raw)
            for raw in self._query_node(
                [RpcCall("eth_getRawTransactionByHash", (it,)) for it in hashes]
            )
        ]

    def _read_hashes(self, first: int, last: int) -> list[str]:
        """The transactions of these blocks, in their order."""
        blocks = self._query_node([block_call(number) for number in range(first, last + 1)])
        return [hash for raw in blocks for hash in _BLOCK_DECODER.decode(raw).transactions]

    def _send_as_admin(self, to: str, data: bytes, *, gas: int = _GAS) -> None:
        self._run_method("anvil_setBalance", self._admin, hex(1_000 * _ETHER))
        (raw,) = self._query_node([RpcCall("eth_getTransactionCount", (self._admin, "latest"))])
        ready = self._sign_as(_ADMIN, answers.parse_number(raw), to, data, gas)
        if not self._include(ready).succeeded:
            raise ChainUnavailable("the node rejected a transaction of the sandbox's admin")

    def _sign_as(
        self, name: str, nonce: int, to: str, data: bytes, gas: int, *, value: int = 0
    ) -> SignedTransaction:
        """Sign with fixed fees, so that the same arguments give the same bytes."""
        unsigned = UnsignedTransaction(
            chain_id=self.chain_id,
            nonce=nonce,
            to=to,
            value=value,
            data=data,
            gas=gas,
            max_fee=_FEE,
            max_priority_fee=0,
        )
        return attach_signature(unsigned, self._local.sign(name, signing_hash(unsigned)))

    def _include(self, ready: SignedTransaction) -> TransactionView:
        """Send it, and wait until it is in a block, which may be a little later than we ask."""
        self._run_method("eth_sendRawTransaction", "0x" + ready.raw.hex())
        for _ in range(_MAX_MINE_ATTEMPTS):
            view = self.transaction(ready.hash)
            if view is not None and view.block is not None:
                return view
            self._run_method("anvil_mine", "0x1")
        raise ChainUnavailable("the node accepted a transaction but did not mine it")

    def _read_value(self, method: str, shape: type[T]) -> T:
        (raw,) = self._query_node([RpcCall(method, ())])
        return msgspec.json.decode(raw, type=shape)

    def _run_method(self, method: str, *params: object) -> None:
        self._query_node([RpcCall(method, params)])

    def _query_node(self, asked: list[RpcCall]) -> list[msgspec.Raw]:
        return self._endpoints.query_agreed(lambda session: session.call_all(asked))


class _Block(msgspec.Struct):
    transactions: list[str]


class _PoolStatus(msgspec.Struct):
    pending: str


_BLOCK_DECODER = msgspec.json.Decoder(_Block)
_TEXT_DECODER = msgspec.json.Decoder(str)
