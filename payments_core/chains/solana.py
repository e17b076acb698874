"""Solana over JSON-RPC, read-only: the newest blocks, and balances of tokens.

Nothing is sent there, nothing is scanned, and no addresses are derived: operations that need it are
Unsupported, with a sentence. One node is asked, and trusted. Solana counts slots, some of which
have no block; a `Block.number` is a slot. The methods: https://solana.com/docs/rpc/http.

The numbers of our registry are those of EVM chains (EIP-155), and Solana has none. So it has a
number of our own, which no EVM chain has: 9 · 10^15, and Solana's coin type by SLIP-44.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from payments_core.addresses import decode_base58
from payments_core.chains.evm.rpc import Node, Refusal, RpcCall
from payments_core.chains.http.client import RequestLimits
from payments_core.chains.http.json_fields import (
    U64,
    get_field,
    parse_digits,
    parse_json,
    require_integer,
    require_list,
    require_text,
)
from payments_core.chains.port import (
    Block,
    ChainMismatch,
    ChainUnavailable,
    FinalBalances,
    Heads,
)
from payments_core.chains.read_only import ReadOnlyChain, require_one_node
from payments_core.networks import ChainType, Network

MAINNET_CHAIN_ID = 9_000_000_000_000_501
MAINNET_GENESIS = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
"""The result of `getGenesisHash` on the main network (CAIP-2, namespace solana)."""

TOKEN_PROGRAMS = frozenset({
    "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
    "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb",  # Token-2022
})  # fmt: skip
"""The programs whose accounts hold tokens; balances of other programs do not count."""

MAX_ATTEMPTS = 3
"""How often balances are read until all of them are of one slot."""

_FINAL = {"commitment": "finalized"}
_LATEST = {"commitment": "confirmed"}  # voted for by two thirds of the stake
_WITHOUT_CONTENT = {
    "transactionDetails": "none",
    "rewards": False,
    "maxSupportedTransactionVersion": 0,
}


class SolanaChain(ReadOnlyChain):
    """One cluster of Solana, over one node. Threads may share it."""

    chain_type: ChainType = "solana"
    name = "Solana"

    def __init__(
        self,
        url: str,
        *,
        chain_id: int = MAINNET_CHAIN_ID,
        genesis_hash: str = MAINNET_GENESIS,
        limits: RequestLimits | None = None,
    ) -> None:
        """Raises ValueError, which does not repeat the address, unless it is http or https.

        `genesis_hash` is the cluster's; a node of another raises ChainMismatch.
        """
        self.chain_id = chain_id
        self._genesis_hash = genesis_hash
        self._node = Node(url, limits=limits)
        self._is_ours = False

    def __repr__(self) -> str:
        return f"SolanaChain({self._node.name})"

    def heads(self) -> Heads:
        """`latest` is the newest confirmed block that the node can show.

        Raises ChainUnavailable, ChainMismatch.
        """
        final, latest = self._call_node(
            RpcCall("getSlot", (_FINAL,)), RpcCall("getSlot", (_LATEST,))
        )
        slots = require_integer(final, "finalized slot"), require_integer(latest, "confirmed slot")
        if slots[0] > slots[1]:
            raise ChainUnavailable("the node's finalized slot is above its confirmed slot")
        shown = self._read_blocks((slots[0], _FINAL), (slots[1], _LATEST))
        newest_final = _parse_block(slots[0], shown[0])
        if shown[1] is None:  # it takes a moment until a confirmed block is complete
            return Heads(newest_final, newest_final)
        return Heads(_parse_block(slots[1], shown[1]), newest_final)

    def block(self, number: int) -> Block | None:
        """The block of a slot, or None above the newest confirmed one.

        Raises ChainMismatch, and ChainUnavailable for a slot without a block too: nodes say
        the same of a slot whose block they have forgotten.
        """
        (latest,) = self._call_node(RpcCall("getSlot", (_LATEST,)))
        if not 0 <= number <= require_integer(latest, "confirmed slot"):
            return None
        (shown,) = self._read_blocks((number, _LATEST))
        return _parse_block(number, shown)

    def balances(self, token_address: str, holders: Sequence[str]) -> FinalBalances:
        """Holders' balances of a mint in all their token accounts, at one finalized slot.

        Raises ChainUnavailable, ChainMismatch.
        """
        owners = tuple(dict.fromkeys(holders))
        if not owners:
            (slot,) = self._call_node(RpcCall("getSlot", (_FINAL,)))
            return FinalBalances(require_integer(slot, "finalized slot"), {})
        how = {**_FINAL, "encoding": "jsonParsed"}
        calls = [
            RpcCall("getTokenAccountsByOwner", (owner, {"mint": token_address}, how))
            for owner in owners
        ]
        for _ in range(MAX_ATTEMPTS):
            answers = self._call_node(*calls)
            amounts = {
                owner: _sum_token_accounts(get_field(answer, "value"), token_address, owner)
                for owner, answer in zip(owners, answers, strict=True)
            }
            slots = {
                require_integer(get_field(answer, "context", "slot"), "slot") for answer in answers
            }
            if len(slots) == 1:
                return FinalBalances(slots.pop(), amounts)
        raise ChainUnavailable("the node read the balances at different slots")

    def close(self) -> None:
        """Close the connections that wait."""
        self._node.close()

    def _call_node(self, *calls: RpcCall) -> list[object]:
        """The results of calls; the first ones count only when the node has named its cluster."""
        if self._is_ours:
            return [parse_json(raw) for raw in self._node.call_all(calls)]
        answers = self._node.call_all([RpcCall("getGenesisHash"), *calls])
        genesis, *results = (parse_json(raw) for raw in answers)
        if require_text(genesis, "genesis hash") != self._genesis_hash:
            raise ChainMismatch(f"{self._node.name} serves a different Solana cluster")
        self._is_ours = True
        return results

    def _read_blocks(self, *wanted: tuple[int, dict[str, str]]) -> list[object]:
        """The blocks of slots by a commitment, each None if the node has none."""
        calls = [RpcCall("getBlock", (slot, {**how, **_WITHOUT_CONTENT})) for slot, how in wanted]
        answers = self._node.batch(calls)
        return [None if isinstance(raw, Refusal) else parse_json(raw) for raw in answers]


def open_chain(
    chain_id: int,
    urls: Sequence[str],
    *,
    signer: object = None,
    settings: Mapping[str, str],
    network: Network | None = None,
) -> SolanaChain:
    """What `payments_core.chains.loader` calls for `solana+https://…`. Raises ValueError.

    Nothing is signed on Solana, so no signer is used.
    """
    return SolanaChain(require_one_node("Solana", urls, settings), chain_id=chain_id)


def _parse_block(slot: int, answer: object) -> Block:
    if answer is None:
        raise ChainUnavailable(f"the node has no block of slot {slot}")
    hash = require_text(get_field(answer, "blockhash"), "block hash")
    parent = require_integer(get_field(answer, "parentSlot"), "parent slot")
    if decode_base58(hash, 32) is None or (parent >= slot > 0):
        raise ChainUnavailable(f"the node's block of slot {slot} is not plausible")
    return Block(slot, hash)


def _sum_token_accounts(accounts: object, mint: str, owner: str) -> int:
    """The sum of an owner's token accounts of one mint."""
    amounts = dict(
        _parse_token_account(item, mint, owner) for item in require_list(accounts, "accounts")
    )
    total = sum(amounts.values())
    if len(amounts) != len(require_list(accounts, "accounts")) or total >= U64:
        # All tokens of a mint together are fewer than 2^64.
        raise ChainUnavailable("the node's token accounts contradict each other")
    return total


def _parse_token_account(item: object, mint: str, owner: str) -> tuple[str, int]:
    """A token account's address and its balance."""
    address = require_text(get_field(item, "pubkey"), "account's address")
    info = get_field(item, "account", "data", "parsed", "info")
    is_requested = (
        decode_base58(address, 32) is not None
        and require_text(get_field(item, "account", "owner"), "program") in TOKEN_PROGRAMS
        and get_field(item, "account", "data", "parsed", "type") == "account"
        and get_field(info, "mint") == mint
        and get_field(info, "owner") == owner
        # A frozen account keeps its balance, but cannot send it; the same is true of blacklists.
        and get_field(info, "state") in ("initialized", "frozen")
    )
    if not is_requested:
        raise ChainUnavailable("the response has an account that was not requested")
    return address, parse_digits(get_field(info, "tokenAmount", "amount"), "amount")
