"""Aptos over the REST API of a node, read-only: the newest block, and balances.

Nothing is sent there, nothing is scanned, and no addresses are derived: operations that need it are
Unsupported, with a sentence. One node is asked, and trusted. The API:
https://aptos.dev/rest-api.

The numbers of our registry are those of EVM chains (EIP-155), and there Aptos' own 1 is Ethereum.
So it has our own number, which no EVM chain has: 9 · 10^15, and Aptos' coin type by SLIP-44.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

import attrs

from payments_core.addresses import AddressError, normalize_address
from payments_core.chains.http.client import HttpClient, RequestLimits
from payments_core.chains.http.json_fields import (
    HEIGHT_BOUND,
    U64,
    get_field,
    parse_digits,
    parse_json,
    require_integer,
    require_text,
)
from payments_core.chains.http.node_words import NodeWords, add_words
from payments_core.chains.port import (
    Block,
    ChainMismatch,
    ChainUnavailable,
    FinalBalances,
    Heads,
    UnsupportedByChain,
)
from payments_core.chains.read_only import ReadOnlyChain, require_one_node
from payments_core.networks import ChainType, Network

MAINNET_CHAIN_ID = 9_000_000_000_000_637
MAINNET_NETWORK = 1
"""The `chain_id` of the main network's nodes (CAIP-2, namespace aptos)."""

TOTAL_TIMEOUT_S = 20.0
"""The maximum time of one operation, with all its requests."""

_HASH = re.compile(r"0x[0-9a-f]{64}", re.ASCII)
_COIN = re.compile(r"0x[0-9a-fA-F]{1,64}::[A-Za-z_][A-Za-z0-9_]*::[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@attrs.frozen
class _Tip:
    """The newest block, and the ledger version at its end."""

    block: Block
    version: int


class AptosChain(ReadOnlyChain):
    """One network of Aptos, over one node. Threads may share it."""

    chain_type: ChainType = "aptos"
    name = "Aptos"

    def __init__(
        self,
        url: str,
        *,
        chain_id: int = MAINNET_CHAIN_ID,
        network: int = MAINNET_NETWORK,
        limits: RequestLimits | None = None,
    ) -> None:
        """`url` is the base URL of the API, as in `https://node.example/v1`.

        `network` is Aptos' own number; a node of another raises ChainMismatch. Raises
        ValueError, which does not repeat the address, unless it is http or https.
        """
        self.chain_id = chain_id
        self._network = network
        self._client = HttpClient(url, limits)
        self._words = NodeWords(url)

    def __repr__(self) -> str:
        return f"AptosChain({self._client.name})"

    def heads(self) -> Heads:
        """The newest block, which is final: a block is shown once a quorum has committed it.

        Raises ChainUnavailable, ChainMismatch.
        """
        tip = self._read_tip(time.monotonic() + TOTAL_TIMEOUT_S)
        return Heads(tip.block, tip.block)

    def block(self, number: int) -> Block | None:
        """The block of a height, or None above the newest. Raises as `heads` does."""
        until = time.monotonic() + TOTAL_TIMEOUT_S
        tip = self._read_tip(until)
        if number == tip.block.number:
            return tip.block
        is_below = 0 <= number < tip.block.number
        return self._read_block(number, tip.version, until).block if is_below else None

    def balances(self, token_address: str, holders: Sequence[str]) -> FinalBalances:
        """Holders' balances of an asset at the end of the newest block.

        The asset is a fungible asset, by its metadata address, or a coin, by its type. For a
        fungible asset the node counts only the primary store. Raises ChainUnavailable,
        ChainMismatch, and Unsupported for an asset or a holder that is not of Aptos.
        """
        asset, addresses = (
            _parse_asset(token_address),
            {held: _parse_holder(held) for held in holders},
        )
        until = time.monotonic() + TOTAL_TIMEOUT_S
        tip = self._read_tip(until)
        at = f"?ledger_version={tip.version}"
        amounts = {
            holder: require_integer(
                self._get(f"/accounts/{address}/balance/{asset}{at}", until), "balance", below=U64
            )
            for holder, address in addresses.items()
        }
        return FinalBalances(tip.block.number, amounts)

    def close(self) -> None:
        """Close the connections that wait."""
        self._client.close()

    def _read_tip(self, until: float) -> _Tip:
        ledger = self._get("/", until)
        if require_integer(get_field(ledger, "chain_id"), "chain id") != self._network:
            raise ChainMismatch(f"{self._client.name} serves a different Aptos network")
        height = parse_digits(get_field(ledger, "block_height"), "block height", below=HEIGHT_BOUND)
        newest = parse_digits(get_field(ledger, "ledger_version"), "ledger version")
        return self._read_block(height, newest, until)

    def _read_block(self, height: int, newest_version: int, until: float) -> _Tip:
        shown = self._get(f"/blocks/by_height/{height}?with_transactions=false", until)
        hash = require_text(get_field(shown, "block_hash"), "block hash")
        first = parse_digits(get_field(shown, "first_version"), "first version")
        last = parse_digits(get_field(shown, "last_version"), "last version")
        is_right = (
            parse_digits(get_field(shown, "block_height"), "block height") == height
            and _HASH.fullmatch(hash) is not None
            and first <= last <= newest_version
        )
        if not is_right:
            raise ChainUnavailable(f"the node's block {height} is not plausible")
        return _Tip(Block(height, hash), last)

    def _get(self, path: str, until: float) -> object:
        status, raw = self._client.send("GET", until, path)
        if status != 200:
            text = f"{self._client.name}: answered with status {status}"
            raise ChainUnavailable(add_words(text, self._words.read_body(raw)))
        return parse_json(raw)


def open_chain(
    chain_id: int,
    urls: Sequence[str],
    *,
    signer: object = None,
    settings: Mapping[str, str],
    network: Network | None = None,
) -> AptosChain:
    """What `payments_core.chains.loader` calls for `aptos+https://…`. Raises ValueError.

    Nothing is signed on Aptos, so no signer is used.
    """
    return AptosChain(require_one_node("Aptos", urls, settings), chain_id=chain_id)


def _parse_holder(given: str) -> str:
    try:
        return normalize_address("aptos", given)
    except AddressError:
        raise UnsupportedByChain("the holder is not an Aptos address") from None


def _parse_asset(given: str) -> str:
    """The asset as a part of a path."""
    try:
        return given if _COIN.fullmatch(given) else normalize_address("aptos", given)
    except AddressError:
        raise UnsupportedByChain(
            "the token is neither a fungible asset nor a coin on Aptos"
        ) from None
