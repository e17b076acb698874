"""The chains and tokens of the service (interface "Chain"), with their real addresses.

Decimals and addresses come from here, never from a token contract: a contract can lie.
Sources: Circle's list of USDC contracts and Tether's list of supported protocols.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from payments_core.errors import UnsupportedAsset, UnsupportedChain

ChainType = Literal["evm", "solana", "aptos"]

DEFAULT_CHAIN_ID = 8453
DEFAULT_SYMBOL = "USDC"


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
    """The currency in which a chain's fees are paid."""

    name: str
    symbol: str
    decimals: int


@attrs.frozen
class ChainEntry:
    """A chain that a deployment may serve.

    `rpc_url` and `explorer_url` are public: wallets are given them.
    """

    chain_id: int
    name: str
    chain_type: ChainType
    assets: tuple[Asset, ...]
    native_currency: NativeCurrency
    rpc_url: str
    explorer_url: str


ETHER = NativeCurrency("Ether", "ETH", 18)


def _evm_chain(
    chain_id: int,
    name: str,
    usdc: str,
    *more: Asset,
    rpc_url: str,
    explorer_url: str,
    native_currency: NativeCurrency = ETHER,
) -> ChainEntry:
    assets = (Asset(chain_id, "USDC", usdc, 6), *more)
    return ChainEntry(chain_id, name, "evm", assets, native_currency, rpc_url, explorer_url)


CHAINS: Mapping[int, ChainEntry] = {
    entry.chain_id: entry
    for entry in (
        _evm_chain(
            1,
            "Ethereum",
            "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
            Asset(1, "USDT", "0xdAC17F958D2ee523a2206206994597C13D831ec7", 6),
            rpc_url="https://ethereum-rpc.publicnode.com",
            explorer_url="https://etherscan.io",
        ),
        _evm_chain(
            8453,
            "Base",
            "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
            rpc_url="https://mainnet.base.org",
            explorer_url="https://basescan.org",
        ),
        _evm_chain(
            137,
            "Polygon",
            "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359",
            rpc_url="https://polygon-rpc.com",
            explorer_url="https://polygonscan.com",
            native_currency=NativeCurrency("POL", "POL", 18),
        ),
        _evm_chain(
            42161,
            "Arbitrum",
            "0xaf88d065e77c8cC2239327C5EDb3A432268e5831",
            rpc_url="https://arb1.arbitrum.io/rpc",
            explorer_url="https://arbiscan.io",
        ),
        _evm_chain(
            10,
            "Optimism",
            "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85",
            rpc_url="https://mainnet.optimism.io",
            explorer_url="https://optimistic.etherscan.io",
        ),
    )
}

NATIVE_ADDRESS = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
"""Where a token's address is given, this one means an EVM chain's native coin (EIP-7528)."""

WATCH_LIST: tuple[Asset, ...] = (
    # https://docs.sky.money (DAI's addresses on each chain)
    Asset(1, "DAI", "0x6B175474E89094C44Da98b954EedeAC495271d0F", 18),
    Asset(8453, "DAI", "0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb", 18),
    Asset(137, "DAI", "0x8f3Cf7ad23Cd3CaDbD9735AFf958023239c6A063", 18),
    Asset(42161, "DAI", "0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1", 18),
    Asset(10, "DAI", "0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1", 18),
    # Circle: "Bridged USDC", in its list of USDC contracts and its migration guides
    Asset(8453, "USDbC", "0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA", 6),
    Asset(137, "USDC.e", "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174", 6),
    Asset(42161, "USDC.e", "0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8", 6),
    Asset(10, "USDC.e", "0x7F5c764cBc14f9669B88837ca1490cCa17c31607", 6),
    # the token lists of Base, Polygon, Arbitrum and Optimism (bridged USDT)
    Asset(8453, "USDT", "0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2", 6),
    Asset(137, "USDT", "0xc2132D05D31c914a87C6611C10748AEb04B58e8F", 6),
    Asset(42161, "USDT", "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9", 6),
    Asset(10, "USDT", "0x94b008aA00579c1307B0EF2c499aD98a8ce58e58", 6),
    *(
        Asset(id, entry.native_currency.symbol, NATIVE_ADDRESS, entry.native_currency.decimals)
        for id, entry in CHAINS.items()
    ),
)
"""What payers send by mistake: no Payment can be made in it, but it is noticed. Each chain's native
coin is the last of its list."""

READABLE_USDC: Mapping[ChainType, Asset] = {
    "evm": CHAINS[137].assets[0],
    "solana": Asset(0, "USDC", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", 6),
    "aptos": Asset(
        0, "USDC", "0xbae207659db88bea0cbead6da0ed00aac12edcdda169e591cd41c94180b46f3b", 6
    ),
}
"""The USDC whose balance a wallet shows, by chain type; 0 if the chain's number is our own."""


def chain_entry(chain_id: int) -> ChainEntry:
    """The registered chain. Raises UnsupportedChain."""
    entry = CHAINS.get(chain_id)
    if entry is None:
        raise UnsupportedChain(chain_id)
    return entry


def asset_of(chain_id: int, symbol: str) -> Asset:
    """The asset of that symbol on a chain. Raises UnsupportedChain, UnsupportedAsset."""
    for asset in chain_entry(chain_id).assets:
        if asset.symbol == symbol:
            return asset
    raise UnsupportedAsset(chain_id, symbol)


def known_tokens(chain_id: int) -> tuple[Asset, ...]:
    """The tokens of a chain that are noticed: its own, and those of the watch list."""
    watched = tuple(asset for asset in WATCH_LIST if asset.chain_id == chain_id)
    return (*CHAINS[chain_id].assets, *watched) if chain_id in CHAINS else ()


def find_token(chain_id: int, address: str) -> Asset | None:
    """The noticed token at an address, which may be of the watch list; None for any other."""
    return next((asset for asset in known_tokens(chain_id) if asset.address == address), None)


def token_of(chain_id: int, symbol: str) -> Asset:
    """The noticed token of that symbol. Raises UnsupportedChain, UnsupportedAsset."""
    chain_entry(chain_id)
    for asset in known_tokens(chain_id):
        if asset.symbol == symbol:
            return asset
    raise UnsupportedAsset(chain_id, symbol)
