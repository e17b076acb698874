"""Chains and balances as v1 returns them (interface "Chain")."""

from __future__ import annotations

from payments_core.accounts.address_balances import AddressBalance, AddressHoldings
from payments_core.chains.port import NetworkKind
from payments_core.money import format_amount
from payments_core.networks import ChainType, Network
from payments_core_http.v1.envelope import Success
from payments_core_http.wire.classes import frozen_view

NOWHERE = "https://sandbox.invalid"
"""In place of URLs that there are not: a name that never exists (RFC 2606)."""


@frozen_view
class NativeCurrencyView:
    """What a chain's fees are paid in."""

    name: str
    """The currency's name."""
    symbol: str
    decimals: int


@frozen_view
class TokenView:
    """A token on a chain."""

    symbol: str
    address: str
    """The address of the token's contract."""
    decimals: int


@frozen_view
class SupportedChainView:
    """A chain of the registry; `isActive` says whether this deployment serves it."""

    chainId: int
    name: str
    """The chain's name."""
    chainType: ChainType
    nativeCurrency: NativeCurrencyView
    """The currency in which the chain's fees are paid."""
    tokens: tuple[TokenView, ...]
    """The tokens on the chain."""
    rpcUrl: str
    """A public node of the chain."""
    explorerUrl: str
    """The chain's block explorer; `https://sandbox.invalid` if there is none."""
    isActive: bool
    """Whether this deployment serves the chain."""


@frozen_view
class SupportedChainsView:
    """The chains of the registry."""

    chains: tuple[SupportedChainView, ...]
    """The chains."""


@frozen_view
class SupportedChainsResponse(Success):
    """The chains of the registry."""

    data: SupportedChainsView
    """The chains that are known."""


@frozen_view
class AddressBalanceView:
    """What an address holds, as a decimal and in the smallest unit."""

    balance: str
    balanceRaw: str
    decimals: int


@frozen_view
class AddressBalanceResponse(Success):
    """What an address holds."""

    data: AddressBalanceView
    """What the address holds."""


@frozen_view
class HoldingView:
    """What an address holds of a token; `usdValue` is null for a token without a price."""

    chainId: int
    chainName: str
    """The chain's name."""
    token: str
    tokenAddress: str
    balance: str
    balanceRaw: str
    decimals: int
    usdValue: str | None
    """The value in US dollars, rounded down to the cent; null without a price."""


@frozen_view
class AddressHoldingsView:
    """What an address holds on every chain of its type, each value rounded down to the cent."""

    address: str
    addressType: ChainType
    """The family of chains that the address belongs to."""
    balances: tuple[HoldingView, ...]
    """The balance of each token."""
    totalUsdValue: str
    """The sum of the values in US dollars."""


@frozen_view
class AddressHoldingsResponse(Success):
    """What an address holds on every chain of its type."""

    data: AddressHoldingsView
    """What the address holds on each chain."""


def supported_chain(entry: Network, kind: NetworkKind, *, is_active: bool) -> SupportedChainView:
    """A chain of the registry. The URLs lead to the public network, unless the chain is another."""
    is_public = kind in ("real", "testnet")
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
            for asset in entry.tokens
        ),
        rpcUrl=entry.rpc_url if is_public else NOWHERE,
        explorerUrl=(entry.explorer_url if is_public else None) or NOWHERE,
        isActive=is_active,
    )


def address_balance(found: AddressBalance) -> AddressBalanceView:
    """What an address holds."""
    return AddressBalanceView(
        balance=format_amount(found.amount_atomic, found.asset.decimals),
        balanceRaw=str(found.amount_atomic),
        decimals=found.asset.decimals,
    )


def address_holdings(found: AddressHoldings) -> AddressHoldingsView:
    """What an address holds on every chain of its type."""
    return AddressHoldingsView(
        address=found.address,
        addressType=found.chain_type,
        balances=tuple(
            HoldingView(
                chainId=one.balance.asset.chain_id,
                chainName=one.chain_name,
                token=one.balance.asset.symbol,
                tokenAddress=one.balance.asset.address,
                balance=format_amount(one.balance.amount_atomic, one.balance.asset.decimals),
                balanceRaw=str(one.balance.amount_atomic),
                decimals=one.balance.asset.decimals,
                usdValue=None if one.usd_cents is None else format_amount(one.usd_cents, 2),
            )
            for one in found.balances
        ),
        totalUsdValue=format_amount(found.total_usd_cents, 2),
    )
