"""What any address holds of USDC on the chain that stands for its chain type (contract §10).

The address need not be ours: this is what a wallet shows of itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.accounts.operations import AccountDetails
from payments_core.addresses import AddressError, normalize_address
from payments_core.assets import READABLE_USDC, Asset, ChainType
from payments_core.chains.port import Chain, ChainUnavailable
from payments_core.chains.read_limit import ReadLimit
from payments_core.chains.token_balances import read_token_balances
from payments_core.errors import (
    CapabilityNotActive,
    DependencyFailed,
    NotFound,
    ValidationFailed,
)


@attrs.frozen
class AddressBalance:
    """What an address holds of an asset, at the newest final block."""

    asset: Asset
    amount_atomic: int


class AddressBalances:
    """Reads balances of addresses."""

    def __init__(self, chains: Mapping[int, Chain], reads: ReadLimit) -> None:
        self._chains = chains
        self._reads = reads

    def read(self, chain_type: ChainType, address: str) -> AddressBalance:
        """What an address holds.

        Raises ValidationFailed at `address`, CapabilityNotActive where no such chain is served,
        DependencyFailed.
        """
        chain, asset = self._find_chain(chain_type)
        try:
            holder = normalize_address(chain_type, address)
        except AddressError as error:
            raise ValidationFailed.at("address", str(error)) from None
        return self._ask(chain, asset, holder)

    def read_vault(self, chain_type: ChainType, details: AccountDetails) -> AddressBalance:
        """What an account's vault on that chain holds. Raises NotFound, and as `read` does."""
        chain, asset = self._find_chain(chain_type)
        for vault in details.vaults:
            if vault.chain_id == chain.chain_id:
                return self._ask(chain, asset, vault.address)
        raise NotFound("vault")

    def _find_chain(self, chain_type: ChainType) -> tuple[Chain, Asset]:
        known = READABLE_USDC[chain_type]
        for chain in self._chains.values():
            if chain.chain_type == chain_type and known.chain_id in (0, chain.chain_id):
                return chain, attrs.evolve(known, chain_id=chain.chain_id)
        raise CapabilityNotActive(f"reading balances on {chain_type}")

    def _ask(self, chain: Chain, asset: Asset, holder: str) -> AddressBalance:
        try:
            with self._reads.acquire():
                found = read_token_balances(chain, [asset.address], [holder])
        except ChainUnavailable as error:
            raise DependencyFailed("chain") from error
        return AddressBalance(asset, found[asset.address].amounts[holder])
