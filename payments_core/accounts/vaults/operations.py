"""What an account's vaults hold (contract §5 "Balances")."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.accounts.record import Account
from payments_core.accounts.vaults.record import Vault, VaultBalance, balance_id
from payments_core.accounts.vaults.reservations import Asked
from payments_core.assets import Asset, chain_entry
from payments_core.chains.port import BalancesAt, Chain, ChainUnavailable
from payments_core.engine.ports import Ports
from payments_core.errors import DependencyFailed, NotFound
from payments_core.storage.port import Snapshot
from payments_core.tenants.authorization import Authority

HEIGHT_MARGIN = 100
"""So many blocks one node may be ahead of another."""


@attrs.frozen
class Holding:
    """What a vault holds of one asset: on chain at the newest final block, and reserved."""

    asset: Asset
    total_atomic: int
    reserved_atomic: int

    @property
    def available_atomic(self) -> int:
        """What can still be authorized."""
        return max(0, self.total_atomic - self.reserved_atomic)


class Vaults:
    """Reads vaults' balances."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain]) -> None:
        self._storage = ports.storage
        self._chains = chains

    def balances(self, authority: Authority, account_id: str) -> tuple[Holding, ...]:
        """Every asset of every vault on a chain that is served. Raises NotFound, DependencyFailed.

        The chain is asked first: a transfer that becomes final in between is then still counted
        as reserved, so that the available amount is never too high.
        """
        vaults = self._storage.read(authority.partition, lambda s: _vaults_of(s, account_id))
        served = [vault for vault in vaults if vault.chain_id in self._chains]
        pairs = [(v, asset) for v in served for asset in chain_entry(v.chain_id).assets]
        totals = [self.at_final(vault, asset) for vault, asset in pairs]

        def look(snapshot: Snapshot) -> tuple[Holding, ...]:
            holdings = []
            for (vault, asset), at in zip(pairs, totals, strict=True):
                row = snapshot.get(VaultBalance, balance_id(vault.id, asset.symbol))
                reserved = row.reserved if row else 0
                # What was read of the chain may be older than what an authorization has read.
                newer = row is not None and row.height > at.height
                total = row.total if row is not None and newer else at.amounts[vault.address]
                holdings.append(Holding(asset, total, reserved))
            return tuple(holdings)

        return self._storage.read(authority.partition, look)

    def ask(self, vault: Vault, asset: Asset, *, least: int = 0) -> Asked:
        """The chain's own figure for a vault, at a final height of at least `least`.

        Raises DependencyFailed, also where a node is behind the one that told of that height.
        """
        at = self.at_final(vault, asset)
        if at.height < least:
            raise DependencyFailed("chain")
        return Asked(vault, at)

    def ask_by_id(self, partition: str, vault_id: str, asset: Asset, *, least: int = 0) -> Asked:
        """`ask`, of a vault that is known to exist."""
        vault = self._storage.read(partition, lambda snapshot: snapshot.get(Vault, vault_id))
        assert vault is not None
        return self.ask(vault, asset, least=least)

    def at_final(self, vault: Vault, asset: Asset) -> BalancesAt:
        """The chain's own figure for a vault. Raises DependencyFailed."""
        chain = self._chains.get(vault.chain_id)
        if chain is None:  # served once, and no longer
            raise DependencyFailed("chain")
        try:
            at = chain.balances(asset.address, [vault.address])
            newest = chain.heads().latest.number
        except ChainUnavailable as error:
            raise DependencyFailed("chain") from error
        if at.height > newest + HEIGHT_MARGIN:  # of another chain, perhaps; kept, it would outlast
            raise DependencyFailed("chain")  # every true answer
        return at


def _vaults_of(snapshot: Snapshot, account_id: str) -> tuple[Vault, ...]:
    if snapshot.get(Account, account_id) is None:
        raise NotFound("account")
    return snapshot.find(Vault, "by_account", (account_id,), limit=100).records
