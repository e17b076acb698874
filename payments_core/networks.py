"""The networks of the service and their tokens: a registry, which is data.

The rows that are shipped are in `networks.toml`, with the source of each. Decimals and addresses
come from the registry, never from a token contract: a contract can lie.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import attrs

from payments_core.addresses import AddressError, normalize_address
from payments_core.addresses import ChainType as ChainType
from payments_core.errors import UnsupportedAsset, UnsupportedChain

Tag = Literal["latest", "safe", "finalized"]

DEFAULT_CHAIN_ID = 8453
DEFAULT_SYMBOL = "USDC"

_SHIPPED = Path(__file__).with_name("networks.toml")


@attrs.frozen
class Asset:
    """A token on a chain."""

    chain_id: int
    symbol: str
    address: str
    decimals: int

    @property
    def id(self) -> str:
        """`chainId/symbol`, the asset's name inside."""
        return f"{self.chain_id}/{self.symbol}"


@attrs.frozen
class NativeCurrency:
    """The currency in which a network's fees are paid."""

    name: str
    symbol: str
    decimals: int


ETHER = NativeCurrency("Ether", "ETH", 18)


@attrs.frozen
class Acceptance:
    """When a block counts: the chain's own tag, a number of blocks on top of it (`depth`), or both.

    With both, the lower of the two blocks is the newest that counts. Only a depth is for chains
    whose nodes know no tags.
    """

    tag: Tag | None = None
    depth: int = attrs.field(default=0, validator=attrs.validators.ge(0))

    def __attrs_post_init__(self) -> None:
        if self.tag is None and self.depth == 0:
            raise ValueError("acceptance needs a tag or a depth")

    def find_height(self, latest: int, tagged: int | None) -> int:
        """The newest height that counts, by the heights of the newest and of the tagged block."""
        deep = max(0, latest - self.depth)
        return deep if tagged is None else min(deep, tagged)


@attrs.frozen(kw_only=True)
class FeePolicy:
    """The bounds within which a chain's fees are chosen, in wei for one unit of gas.

    `min_priority` is a tip that nodes accept; a first offer follows a node's suggestion up to
    `max_initial_priority`. Increases go up to `max_priority` and `fee_ceiling`, and no further: a
    tip is paid in full, for any base fee. A transaction that no node estimates gets
    `unestimated_margin` times the gas that it usually needs.
    """

    min_priority: int
    max_initial_priority: int
    max_priority: int
    fee_ceiling: int
    unestimated_margin: int = 2

    def __attrs_post_init__(self) -> None:
        bounds = attrs.astuple(self)[:4]
        if any(type(bound) is not int for bound in attrs.astuple(self)) or bounds[0] < 0:
            raise ValueError("a fee must be an integer of at least zero")
        if list(bounds) != sorted(bounds):
            raise ValueError("the bounds of a fee policy must be in ascending order")


@attrs.frozen(kw_only=True)
class Network:
    """A network that a deployment may serve.

    `watch_list` has tokens that payers send by mistake: no Payment can be made in them, but they
    are noticed. `acceptance` says when a block is final there, and `acceptance_source` where that
    is documented. An EVM chain is not served without `fees`. `rpc_url` and `explorer_url` are
    public: wallets are given them.
    """

    chain_id: int
    name: str
    chain_type: ChainType = "evm"
    native_currency: NativeCurrency = ETHER
    tokens: tuple[Asset, ...]
    watch_list: tuple[Asset, ...] = ()
    acceptance: Acceptance
    acceptance_source: str = ""
    fees: FeePolicy | None = None
    rpc_url: str
    explorer_url: str
    is_testnet: bool = False


class Networks(Mapping[int, Network]):
    """Networks by their chain id, in a fixed order. It never changes."""

    def __init__(self, networks: Iterable[Network]) -> None:
        self._by_id = {network.chain_id: network for network in networks}
        self._tokens = frozenset(
            (network.chain_type, token.address)
            for network in self._by_id.values()
            for token in self.list_tokens(network.chain_id)
        )

    def __getitem__(self, chain_id: int) -> Network:
        return self._by_id[chain_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def name_network(self, chain_id: int) -> str:
        """The network's name, for people; one that is no longer registered has its number."""
        network = self._by_id.get(chain_id)
        return f"chain {chain_id}" if network is None else network.name

    def find_network(self, chain_id: int) -> Network:
        """The registered network. Raises UnsupportedChain."""
        network = self._by_id.get(chain_id)
        if network is None:
            raise UnsupportedChain(chain_id)
        return network

    def find_asset(self, chain_id: int, symbol: str) -> Asset:
        """The asset of that symbol on a chain. Raises UnsupportedChain, UnsupportedAsset."""
        return _choose(self.find_network(chain_id).tokens, chain_id, symbol)

    def find_token(self, chain_id: int, symbol: str) -> Asset:
        """The noticed token of that symbol. Raises UnsupportedChain, UnsupportedAsset."""
        self.find_network(chain_id)
        return _choose(self.list_tokens(chain_id), chain_id, symbol)

    def list_tokens(self, chain_id: int) -> tuple[Asset, ...]:
        """The tokens of a chain that are noticed: its own, and those of the watch list."""
        network = self._by_id.get(chain_id)
        return () if network is None else (*network.tokens, *network.watch_list)

    def list_symbols(self) -> frozenset[str]:
        """The symbols of all tokens in which Payments can be made."""
        return frozenset(token.symbol for one in self._by_id.values() for token in one.tokens)

    def normalize_wallet_address(self, chain_type: ChainType, text: str) -> str:
        """The canonical form of an address that somebody holds.

        Raises AddressError, also for a token's own contract: what is sent there is lost.
        """
        address = normalize_address(chain_type, text)
        if (chain_type, address) in self._tokens:
            raise AddressError("must not be the contract of a token")
        return address

    def is_wallet_address(self, chain_type: ChainType, text: str) -> bool:
        """Whether somebody may hold an address that a chain names: not zero, and no token's."""
        try:
            self.normalize_wallet_address(chain_type, text)
        except AddressError:
            return False
        return True

    def keep_served(self, chain_ids: Iterable[int]) -> Networks:
        """The registry of a deployment: without the testnets that it does not serve."""
        served = frozenset(chain_ids)
        return Networks(
            one for one in self._by_id.values() if not one.is_testnet or one.chain_id in served
        )

    def is_credited(self, token: Asset) -> bool:
        """Whether Payments can be made in it; it is not one of the watch list."""
        network = self._by_id.get(token.chain_id)
        return network is not None and token in network.tokens

    def identify_token(self, chain_id: int, address: str) -> Asset | None:
        """The noticed token at an address, which may be of the watch list; None for any other."""
        return next((one for one in self.list_tokens(chain_id) if one.address == address), None)


@cache
def shipped_networks() -> Networks:
    """The networks of `networks.toml`, testnets included."""
    document = tomllib.loads(_SHIPPED.read_text(encoding="utf-8"))
    return Networks(_parse_network(int(number), table) for number, table in document.items())


def pin_token(document: Mapping[str, Any]) -> dict[str, Any]:
    """A stored document with its token, which earlier releases looked up by its symbol."""
    token = shipped_networks().find_token(document["chain_id"], document["asset_symbol"])
    return {**document, "token_address": token.address, "decimals": token.decimals}


def _parse_network(chain_id: int, table: Mapping[str, Any]) -> Network:
    fields = dict(table)
    for name in ("tokens", "watch_list"):
        fields[name] = tuple(
            Asset(chain_id, row["symbol"], row["address"], row["decimals"])
            for row in table.get(name, ())
        )
    [fields["acceptance"]] = (Acceptance(**row) for row in table["acceptance"])
    fields["fees"] = FeePolicy(**table["fees"])
    if "native_currency" in table:
        fields["native_currency"] = NativeCurrency(**table["native_currency"])
    return Network(chain_id=chain_id, **fields)


def _choose(assets: Iterable[Asset], chain_id: int, symbol: str) -> Asset:
    for asset in assets:
        if asset.symbol == symbol:
            return asset
    raise UnsupportedAsset(chain_id, symbol)


READABLE_USDC: Mapping[ChainType, Asset] = {
    "solana": Asset(0, "USDC", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", 6),
    "aptos": Asset(
        0, "USDC", "0xbae207659db88bea0cbead6da0ed00aac12edcdda169e591cd41c94180b46f3b", 6
    ),
}
"""The USDC of the types that are only read: their networks have numbers of an operator's own."""
