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
class ChainEntry:
    """A chain of the registry."""

    chain_id: int
    name: str
    chain_type: ChainType
    assets: tuple[Asset, ...]


def _evm_chain(chain_id: int, name: str, usdc: str, *more: Asset) -> ChainEntry:
    assets = (Asset(chain_id, "USDC", usdc, 6), *more)
    return ChainEntry(chain_id, name, "evm", assets)


CHAINS: Mapping[int, ChainEntry] = {
    entry.chain_id: entry
    for entry in (
        _evm_chain(
            1,
            "Ethereum",
            "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
            Asset(1, "USDT", "0xdAC17F958D2ee523a2206206994597C13D831ec7", 6),
        ),
        _evm_chain(8453, "Base", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
        _evm_chain(137, "Polygon", "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359"),
        _evm_chain(42161, "Arbitrum", "0xaf88d065e77c8cC2239327C5EDb3A432268e5831"),
        _evm_chain(10, "Optimism", "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85"),
    )
}


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
