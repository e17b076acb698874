"""Balances of any address (contract §10): of USDC on the main chain of its chain type, or of
every token on every chain of that type, with its value.

The address need not be ours: a wallet shows this of itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

import attrs

from payments_core.accounts.operations import AccountDetails
from payments_core.addresses import AddressError, identify_chain_type, normalize_address
from payments_core.brief_repr import brief_repr
from payments_core.chains.port import Chain, ChainUnavailable
from payments_core.chains.read_only import READABLE_USDC
from payments_core.chains.token_balances import read_token_balances
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import (
    CapabilityNotActive,
    DependencyFailed,
    NotFound,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.networks import DEFAULT_SYMBOL, Asset, ChainType, Networks
from payments_core.pricing.answers import ask_usd_prices
from payments_core.pricing.port import Pricing, PricingUnavailable
from payments_core.tenants.authorization import Authority

MAIN_CHAINS: Mapping[ChainType, int] = {"evm": 137}
"""The chain whose USDC a wallet shows, by chain type; of the others the first that is served."""


@attrs.frozen
class AddressBalance:
    """An address's balance of an asset, at the newest final block.

    >>> shop.legacy.read_balance("evm", vault.address).asset.symbol
    'USDC'
    """

    __repr__ = brief_repr

    asset: Asset
    amount_atomic: int


@attrs.frozen
class ValuedBalance:
    """A balance and its value in US dollars, rounded down to the cent.

    `usd_cents` is None for an asset without a price.
    """

    __repr__ = brief_repr

    balance: AddressBalance
    chain_name: str
    usd_cents: int | None


@attrs.frozen
class AddressHoldings:
    """An address's balances on the chains of its type; `total_usd_cents` of all with a price.

    The total is rounded once: it may be more than the sum of the values.

    >>> held = shop.legacy.read_balances(vault.address)
    >>> [one.balance.asset.chain_id for one in held.balances]
    [8453]
    """

    __repr__ = brief_repr

    address: str
    chain_type: ChainType
    balances: tuple[ValuedBalance, ...]
    total_usd_cents: int


class AddressBalances:
    """Reads balances of addresses."""

    def __init__(
        self,
        networks: Networks,
        chains: Mapping[int, Chain],
        calls: RemoteCalls,
        pricing: Mapping[str, Pricing],
    ) -> None:
        """`pricing` has the source of prices of each mode that has one."""
        self._networks = networks
        self._chains = chains
        self._calls = calls
        self._pricing = pricing

    def read_all(
        self, authority: Authority, user_address: str, *, above: Decimal = Decimal(0)
    ) -> AddressHoldings:
        """An address's balance of each token on each served chain, if more than `above`.

        The form of the address decides the chain type. Raises ValidationFailed,
        CapabilityNotActive without prices, DependencyFailed.
        """
        try:
            chain_type = identify_chain_type(user_address)
            holder = normalize_address(chain_type, user_address)
        except AddressError as error:
            raise ValidationFailed.at("user_address", str(error)) from None
        pricing = self._pricing.get(authority.mode)
        if pricing is None:
            raise CapabilityNotActive("pricing")
        held = [
            found
            for chain, assets in self._list_assets(chain_type)
            for found in self._ask_all(authority, chain, assets, holder)
            if _is_above(found, above)
        ]
        try:
            with self._calls.acquire("pricing", authority.partition):
                prices = ask_usd_prices(pricing, tuple(one.asset for one in held))
        except PricingUnavailable as error:
            raise DependencyFailed("pricing") from error
        values = [_value_of(one, prices.get(one.asset.id)) for one in held]
        return AddressHoldings(
            holder,
            chain_type,
            tuple(
                ValuedBalance(one, self._name_chain(one.asset, chain_type), _to_cents(value))
                for one, value in zip(held, values, strict=True)
            ),
            int(sum((value for value in values if value is not None), Fraction(0)) * 100),
        )

    def _list_assets(self, chain_type: ChainType) -> Iterator[tuple[Chain, tuple[Asset, ...]]]:
        """Every served chain of a type, with its tokens."""
        for number in sorted(self._chains):
            chain = self._chains[number]
            if chain.chain_type == chain_type:
                yield chain, self._list_tokens(chain)

    def read(self, authority: Authority, chain_type: ChainType, address: str) -> AddressBalance:
        """The balance of an address.

        Raises ValidationFailed at `address`, CapabilityNotActive if no such chain is served,
        DependencyFailed.
        """
        chain, asset = self._find_chain(chain_type)
        try:
            holder = normalize_address(chain_type, address)
        except AddressError as error:
            raise ValidationFailed.at("address", str(error)) from None
        return self._ask(authority, chain, asset, holder)

    def read_vault(
        self, authority: Authority, chain_type: ChainType, details: AccountDetails
    ) -> AddressBalance:
        """The balance of an account's vault on that chain. Raises NotFound, and as `read` does."""
        chain, asset = self._find_chain(chain_type)
        for vault in details.vaults:
            if vault.chain_id == chain.chain_id:
                return self._ask(authority, chain, asset, vault.address)
        raise NotFound("vault")

    def _find_chain(self, chain_type: ChainType) -> tuple[Chain, Asset]:
        for chain in self._chains.values():
            main = MAIN_CHAINS.get(chain_type, chain.chain_id)
            if chain.chain_type == chain_type and chain.chain_id == main:
                tokens = self._list_tokens(chain)
                return chain, min(tokens, key=lambda token: token.symbol != DEFAULT_SYMBOL)
        raise CapabilityNotActive(f"reading balances on {chain_type}")

    def _list_tokens(self, chain: Chain) -> tuple[Asset, ...]:
        """The tokens of a chain; of one that is only read, and not registered, its USDC."""
        network = self._networks.get(chain.chain_id)
        if network is not None:
            return network.tokens
        usdc = READABLE_USDC.get(chain.chain_type)
        return () if usdc is None else (evolve(usdc, chain_id=chain.chain_id),)

    def _name_chain(self, asset: Asset, chain_type: ChainType) -> str:
        network = self._networks.get(asset.chain_id)
        return chain_type.capitalize() if network is None else network.name

    def _ask(self, authority: Authority, chain: Chain, asset: Asset, holder: str) -> AddressBalance:
        [found] = self._ask_all(authority, chain, (asset,), holder)
        return found

    def _ask_all(
        self, authority: Authority, chain: Chain, assets: Sequence[Asset], holder: str
    ) -> tuple[AddressBalance, ...]:
        """The holder's balance of each, in one query if the chain supports it."""
        try:
            with self._calls.acquire("chain", authority.partition):
                found = read_token_balances(chain, [asset.address for asset in assets], [holder])
        except ChainUnavailable as error:
            raise DependencyFailed("chain") from error
        return tuple(
            AddressBalance(asset, found[asset.address].amounts[holder]) for asset in assets
        )


def _is_above(found: AddressBalance, above: Decimal) -> bool:
    scale = Fraction(10) ** found.asset.decimals
    return Fraction(found.amount_atomic) / scale > Fraction(above)


def _value_of(found: AddressBalance, price: Decimal | None) -> Fraction | None:
    if price is None:
        return None
    return Fraction(price) * found.amount_atomic / Fraction(10) ** found.asset.decimals


def _to_cents(value: Fraction | None) -> int | None:
    return None if value is None else int(value * 100)
