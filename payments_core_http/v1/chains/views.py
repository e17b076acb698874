"""Chains and balances as v1 gives them out (interface "Chain")."""

from __future__ import annotations

import attrs

from payments_core.accounts.address_balances import AddressBalance
from payments_core.assets import ChainEntry, ChainType
from payments_core.money import format_amount
from payments_core_http.v1.envelope import Success


@attrs.frozen(kw_only=True, slots=False)
class NativeCurrencyView:
    """What a chain's fees are paid in."""

    name: str
    symbol: str
    decimals: int


@attrs.frozen(kw_only=True, slots=False)
class TokenView:
    """A token on a chain."""

    symbol: str
    address: str
    decimals: int


@attrs.frozen(kw_only=True, slots=False)
class SupportedChainView:
    """A chain of the registry; `isActive` says whether this deployment serves it."""

    chainId: int
    name: str
    chainType: ChainType
    nativeCurrency: NativeCurrencyView
    tokens: tuple[TokenView, ...]
    rpcUrl: str
    explorerUrl: str
    isActive: bool


@attrs.frozen(kw_only=True, slots=False)
class SupportedChainsView:
    """The chains of the registry."""

    chains: tuple[SupportedChainView, ...]


@attrs.frozen(kw_only=True, slots=False)
class SupportedChainsAnswer(Success):
    """The chains of the registry."""

    data: SupportedChainsView


@attrs.frozen(kw_only=True, slots=False)
class AddressBalanceView:
    """What an address holds, as a decimal and in the smallest unit."""

    balance: str
    balanceRaw: str
    decimals: int


@attrs.frozen(kw_only=True, slots=False)
class AddressBalanceAnswer(Success):
    """What an address holds."""

    data: AddressBalanceView


def supported_chain(entry: ChainEntry, *, is_active: bool) -> SupportedChainView:
    """A chain of the registry."""
    native = entry.native_currency
    return SupportedChainView(
        chainId=entry.chain_id,
        name=entry.name,
        chainType=entry.chain_type,
        nativeCurrency=NativeCurrencyView(
            name=native.name, symbol=native.symbol, decimals=native.decimals
        ),
        tokens=tuple(
            TokenView(symbol=asset.symbol, address=asset.address, decimals=asset.decimals)
            for asset in entry.assets
        ),
        rpcUrl=entry.rpc_url,
        explorerUrl=entry.explorer_url,
        isActive=is_active,
    )


def address_balance(found: AddressBalance) -> AddressBalanceView:
    """What an address holds."""
    return AddressBalanceView(
        balance=format_amount(found.amount_atomic, found.asset.decimals),
        balanceRaw=str(found.amount_atomic),
        decimals=found.asset.decimals,
    )
