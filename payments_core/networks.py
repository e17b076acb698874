"""The networks of the service and their tokens: a registry, which is data.

The rows that are shipped are in `networks.toml`, with the source of each. Decimals and addresses
come from the registry, never from a token contract: a contract can lie.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from payments_core.acceptance import Acceptance, find_acceptance_faults
from payments_core.addresses import NATIVE_ADDRESS, AddressError, normalize_address
from payments_core.addresses import ChainType as ChainType
from payments_core.brief_repr import brief_repr
from payments_core.clock import SECOND
from payments_core.errors import FieldError, UnsupportedAsset, UnsupportedChain, ValidationFailed
from payments_core.evolve import evolve
from payments_core.validation.arguments import check_fields

DEFAULT_CHAIN_ID = 8453
DEFAULT_SYMBOL = "USDC"

MIN_DECIMALS, MAX_DECIMALS = 2, 36
"""A bank's amounts are in cents, which a token with fewer cannot express; none with more is known,
and 256 bits would hold less than 10^42 of it."""

_CHAIN_IDS = range(1, 2**53)
_NAME = re.compile(r"(?! )[ -~]{1,64}(?<! )", re.ASCII)
_NAME_RULE = "must have 1 to 64 visible characters"
_SYMBOL = re.compile(r"[A-Za-z0-9._-]{1,16}", re.ASCII)
_SYMBOL_RULE = "must have 1 to 16 letters, digits or .-_"
_URL = re.compile(r"https?://[!-~]{1,2000}", re.ASCII)
_URL_RULE = "must be an http:// or https:// URL"
_EXPLORER = re.compile(r"https://[\w.-]{1,253}(?::\d{1,5})?(?:/[\w.~/-]*)?", re.ASCII)
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


@attrs.frozen(kw_only=True)
class FeePolicy:
    """The bounds within which a chain's fees are chosen, in wei for one unit of gas.

    `min_priority` is a tip that nodes accept; a first offer follows a node's suggestion up to
    `max_initial_priority`. Increases go up to `max_priority` and `fee_ceiling`, and no further: a
    tip is paid in full, for any base fee. A transaction that no node estimates gets
    `unestimated_margin` times the gas that it usually needs.
    """

    __repr__ = brief_repr

    min_priority: int
    max_initial_priority: int
    max_priority: int
    fee_ceiling: int
    unestimated_margin: int = 2

    def __attrs_post_init__(self) -> None:
        bounds = attrs.astuple(self)[:4]
        if any(type(bound) is not int for bound in attrs.astuple(self)) or bounds[0] < 0:
            raise ValueError("a fee must be an integer of at least zero")
        if self.unestimated_margin < 1:
            raise ValueError("a transaction needs the gas that it usually uses")
        if list(bounds) != sorted(bounds):
            raise ValueError("the bounds of a fee policy must be in ascending order")


@attrs.frozen(kw_only=True)
class Network:
    """A network that a deployment may serve.

    `watch_list` has tokens that payers send by mistake: no Payment can be made in them, but they
    are noticed. `acceptance` has rows by the Payment's amount, the smallest first; the last one is
    for every amount, and says when a block is final. `acceptance_source` is where that is
    documented. `block_ms` is about the time from one block to the next, and `finalized_s` until a
    block has the tag `finalized`; they are for estimates only. An EVM chain is not served without
    `fees`. `rpc_url` and `explorer_url` are public: wallets are given them, and pages link the
    explorer, whose paths are those of EIP-3091.

    >>> from attrs import evolve
    >>> from payments_core import Acceptance, shipped_networks
    >>> small = Acceptance(depth=3, up_to="25.00")
    >>> base = evolve(shipped_networks()[8453], acceptance=(small, Acceptance("finalized")))
    >>> base.choose_acceptance(10_000_000, decimals=6)
    Acceptance(depth=3, up_to='25.00')
    """

    __repr__ = brief_repr

    chain_id: int
    name: str
    chain_type: ChainType = "evm"
    native_currency: NativeCurrency = ETHER
    tokens: tuple[Asset, ...]
    watch_list: tuple[Asset, ...] = ()
    acceptance: tuple[Acceptance, ...] = (Acceptance("finalized"),)
    acceptance_source: str = ""
    block_ms: int | None = None
    finalized_s: int | None = None
    fees: FeePolicy | None = None
    rpc_url: str
    explorer_url: str | None = None
    is_testnet: bool = False

    @property
    def finality(self) -> Acceptance:
        """When a block is final: the rule for every amount, and the strictest."""
        return self.acceptance[-1]

    @property
    def noticed_tokens(self) -> tuple[Asset, ...]:
        """Its own tokens, those of the watch list, and on an EVM chain the native coin.

        Not the coin if a token has its symbol: both may be one balance under two names.
        """
        tokens = (*self.tokens, *self.watch_list)
        coin = self.native_currency
        if self.chain_type != "evm" or any(token.symbol == coin.symbol for token in tokens):
            return tokens
        return (*tokens, Asset(self.chain_id, coin.symbol, NATIVE_ADDRESS, coin.decimals))

    def choose_acceptance(self, amount_atomic: int, decimals: int) -> Acceptance | None:
        """The rule for a Payment of that amount; None if it must wait until a block is final."""
        for row in self.acceptance[:-1]:
            if row.covers(amount_atomic, decimals):
                return row
        return None

    def count_required(self, early: Acceptance | None, confirmations: int) -> int | None:
        """How many blocks must be on top of one that counts; None if its tag decides."""
        row = early or self.finality
        return max(row.depth, confirmations) if row.tag in (None, "latest") else None

    def estimate_ms(self, early: Acceptance | None, confirmations: int) -> int | None:
        """About how long it takes until a new block counts; None if nobody knows."""
        row = early or self.finality
        depth = max(row.depth, confirmations)
        waits = [0 if depth == 0 else None if self.block_ms is None else depth * self.block_ms]
        if row.tag == "safe":
            waits.append(None)
        elif row.tag == "finalized":
            waits.append(None if self.finalized_s is None else self.finalized_s * SECOND)
        known = [wait for wait in waits if wait is not None]
        return max(known) if len(known) == len(waits) else None


class Networks(Mapping[int, Network]):
    """Networks by their chain id, in a fixed order. It never changes.

    >>> from payments_core import shipped_networks
    >>> shipped_networks()[8453].name
    'Base'
    >>> [token.symbol for token in shipped_networks()[1].tokens]
    ['USDC', 'USDT']
    """

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
        """See Network: the tokens of a chain that are noticed."""
        network = self._by_id.get(chain_id)
        return () if network is None else network.noticed_tokens

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

    def merge(self, *networks: Network) -> Networks:
        """The registry with these networks, in place of those with the same chain id.

        Addresses may be given in any letters. Raises ValidationFailed with every fault, by paths
        such as `networks.77.tokens[0].address`.
        """
        for number, network in enumerate(networks):
            if not isinstance(network, Network):
                raise ValidationFailed.at(f"networks[{number}]", "must be a Network")
            check_fields(network)
        faults = [fault for network in networks for fault in find_network_faults(network)]
        if faults:
            raise ValidationFailed(tuple(faults))
        changed = {network.chain_id: _normalize_tokens(network) for network in networks}
        return Networks({**self._by_id, **changed}.values())

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

    def choose_acceptance(self, asset: Asset, amount_atomic: int) -> Acceptance | None:
        """See Network. Raises UnsupportedChain."""
        network = self.find_network(asset.chain_id)
        return network.choose_acceptance(amount_atomic, asset.decimals)

    def identify_token(self, chain_id: int, address: str) -> Asset | None:
        """The noticed token at an address, which may be of the watch list; None for any other."""
        return next((one for one in self.list_tokens(chain_id) if one.address == address), None)


def find_network_faults(network: Network) -> list[FieldError]:
    """Why a network cannot be registered, each reason by its path."""
    path = f"networks.{network.chain_id}"
    coin, shipped = network.native_currency, shipped_networks().get(network.chain_id)
    faults = [
        FieldError(f"{path}.{name}", message)
        for name, is_right, message in (
            ("chain_id", network.chain_id in _CHAIN_IDS, "must be 1 to 2^53 - 1"),
            ("name", bool(_NAME.fullmatch(network.name)), _NAME_RULE),
            ("tokens", bool(network.tokens), "must have at least one token"),
            ("rpc_url", bool(_URL.fullmatch(network.rpc_url)), _URL_RULE),
            (
                "explorer_url",
                network.explorer_url is None or bool(_EXPLORER.fullmatch(network.explorer_url)),
                "must be an https:// URL without a query",
            ),
            ("acceptance", bool(network.acceptance), "must have at least one row"),
            ("native_currency.name", bool(_NAME.fullmatch(coin.name)), _NAME_RULE),
            ("native_currency.symbol", bool(_SYMBOL.fullmatch(coin.symbol)), _SYMBOL_RULE),
            (
                "native_currency.decimals",
                0 <= coin.decimals <= MAX_DECIMALS,
                f"must be 0 to {MAX_DECIMALS}",
            ),
            ("block_ms", network.block_ms is None or network.block_ms > 0, "must be above 0"),
            (
                "finalized_s",
                network.finalized_s is None or network.finalized_s >= 0,
                "must be at least 0",
            ),
            (
                "is_testnet",
                shipped is None or network.is_testnet == shipped.is_testnet,
                "is known of this network: it decides where its money may be served",
            ),
        )
        if not is_right
    ]
    return [
        *faults,
        *_find_token_faults(path, network),
        *find_acceptance_faults(f"{path}.acceptance", network.acceptance),
    ]


def _find_token_faults(path: str, network: Network) -> Iterator[FieldError]:
    """Faults of the tokens and of the watch list: no symbol or address may be there twice."""
    symbols: set[str] = set()
    addresses: set[str] = set()
    for place, name, token in _number_tokens(network):
        at = f"{path}.{name}[{place}]"
        if token.chain_id != network.chain_id:
            yield FieldError(f"{at}.chain_id", f"must be {network.chain_id}")
        if not _SYMBOL.fullmatch(token.symbol):
            yield FieldError(f"{at}.symbol", _SYMBOL_RULE)
        elif token.symbol in symbols:
            yield FieldError(f"{at}.symbol", f"{token.symbol} is given twice")
        if not MIN_DECIMALS <= token.decimals <= MAX_DECIMALS:
            yield FieldError(f"{at}.decimals", f"must be {MIN_DECIMALS} to {MAX_DECIMALS}")
        try:
            address = normalize_address(network.chain_type, token.address)
        except AddressError as error:
            yield FieldError(f"{at}.address", str(error))
            continue
        if address in addresses:
            yield FieldError(f"{at}.address", f"{address} is given twice")
        if address == NATIVE_ADDRESS:
            yield FieldError(f"{at}.address", "is that of native coin, which is noticed anyway")
        symbols.add(token.symbol)
        addresses.add(address)


def _number_tokens(network: Network) -> Iterator[tuple[int, str, Asset]]:
    for name, tokens in (("tokens", network.tokens), ("watch_list", network.watch_list)):
        for place, token in enumerate(tokens):
            yield place, name, token


def _normalize_tokens(network: Network) -> Network:
    def normalize(tokens: tuple[Asset, ...]) -> tuple[Asset, ...]:
        return tuple(
            evolve(token, address=normalize_address(network.chain_type, token.address))
            for token in tokens
        )

    return evolve(
        network, tokens=normalize(network.tokens), watch_list=normalize(network.watch_list)
    )


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
    fields["acceptance"] = tuple(Acceptance(**row) for row in table["acceptance"])
    fields["fees"] = FeePolicy(**table["fees"])
    if "native_currency" in table:
        fields["native_currency"] = NativeCurrency(**table["native_currency"])
    return Network(chain_id=chain_id, **fields)


def _choose(assets: Iterable[Asset], chain_id: int, symbol: str) -> Asset:
    for asset in assets:
        if asset.symbol == symbol:
            return asset
    raise UnsupportedAsset(chain_id, symbol)
