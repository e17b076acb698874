"""Balances of an account's vaults (contract §5 "Balances")."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

import attrs

from payments_core.accounts.record import Account
from payments_core.accounts.vaults.of_account import find_vaults
from payments_core.accounts.vaults.record import Vault, VaultBalance, balance_id
from payments_core.accounts.vaults.reservations import BalanceReading
from payments_core.brief_repr import brief_repr
from payments_core.chains.gas import TransferAction, follow_operator, require_gas
from payments_core.chains.port import Chain, ChainUnavailable, FinalBalances
from payments_core.chains.token_balances import read_token_balances
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import DependencyFailed, NotFound
from payments_core.networks import Asset
from payments_core.storage.port import Snapshot
from payments_core.tenants.authorization import Authority

HEIGHT_MARGIN_BLOCKS = 100
"""The number of blocks by which one node may be ahead of another."""


@attrs.frozen
class Holding:
    """A vault's balance of one asset: on chain at the newest final block, and reserved.

    >>> held = shop.accounts.read_balances(eve.id)
    >>> [(one.asset.chain_id, one.asset.symbol) for one in held if one.total_atomic]
    [(8453, 'USDC')]
    """

    __repr__ = brief_repr

    asset: Asset
    total_atomic: int
    reserved_atomic: int

    @property
    def available_atomic(self) -> int:
        """The amount that can still be authorized."""
        return max(0, self.total_atomic - self.reserved_atomic)


class Vaults:
    """Reads vaults' balances."""

    def __init__(
        self, ports: Ports, chains: Mapping[int, Chain], calls: RemoteCalls | None = None
    ) -> None:
        """`calls` bounds how many threads ask chains at the same time; jobs have no bound."""
        self._storage = ports.storage
        self._networks = ports.networks
        self._chains = chains
        self._calls = calls

    def balances(self, authority: Authority, account_id: str) -> tuple[Holding, ...]:
        """Every asset of every vault on a served chain. Raises NotFound, DependencyFailed.

        The chain is asked first: a transfer that becomes final in between is then still counted
        as reserved, so that the available amount is never too high.
        """
        vaults = self._storage.read(authority.partition, lambda s: _load_vaults(s, account_id))
        served = [vault for vault in vaults if vault.chain_id in self._chains]
        pairs = [(v, asset) for v in served for asset in self._list_assets(v)]
        found = {
            vault.id: self._read_final_balances(authority.partition, vault) for vault in served
        }
        totals = [found[vault.id][asset.address] for vault, asset in pairs]

        def load(snapshot: Snapshot) -> tuple[Holding, ...]:
            holdings = []
            for (vault, asset), at in zip(pairs, totals, strict=True):
                row = snapshot.get(VaultBalance, balance_id(vault.id, asset.symbol))
                reserved = row.reserved_atomic if row else 0
                # The chain's answer may be older than one that an authorization has read.
                newer = row is not None and row.height > at.height
                total = row.total_atomic if row is not None and newer else at.amounts[vault.address]
                holdings.append(Holding(asset, total, reserved))
            return tuple(holdings)

        return self._storage.read(authority.partition, load)

    def read_balance(
        self, partition: str, vault: Vault, asset: Asset, *, min_height: int = 0
    ) -> BalanceReading:
        """The chain's balance of a vault, at a final height of at least `min_height`.

        Raises DependencyFailed, also if a node is behind the node that reported that height.
        """
        at = self.read_final_balance(partition, vault, asset)
        if at.height < min_height:
            raise DependencyFailed("chain")
        return BalanceReading(vault, at)

    def read_balance_to_spend(
        self, partition: str, vault: Vault, asset: Asset, action: TransferAction
    ) -> BalanceReading:
        """`read_balance` for a request whose transfer is such an `action`.

        Raises DependencyFailed, also if the environment's operator has too few coins for it.
        """
        chain = self._chains.get(vault.chain_id)
        if chain is None:  # served once, and no longer
            raise DependencyFailed("chain")
        operator = follow_operator(chain, partition)  # before the heads are read
        reading = self.read_balance(partition, vault, asset)
        require_gas(chain, operator, action)
        return reading

    def require_gas(self, partition: str, chain_id: int, action: TransferAction) -> None:
        """Raise DependencyFailed if the environment's operator is known to have too few coins."""
        chain = self._chains.get(chain_id)
        if chain is not None:
            require_gas(chain, follow_operator(chain, partition), action)

    def read_balance_by_id(
        self, partition: str, vault_id: str, asset: Asset, *, min_height: int = 0
    ) -> BalanceReading:
        """`read_balance` for a vault that is known to exist."""
        vault = self._storage.read(partition, lambda snapshot: snapshot.get(Vault, vault_id))
        assert vault is not None
        return self.read_balance(partition, vault, asset, min_height=min_height)

    def read_final_balance(self, partition: str, vault: Vault, asset: Asset) -> FinalBalances:
        """The chain's balance of a vault. Raises DependencyFailed."""
        chain = self._chains.get(vault.chain_id)
        if chain is None:  # served once, and no longer
            raise DependencyFailed("chain")
        try:
            with self._ask(partition):
                at = chain.balances(asset.address, [vault.address])
                newest = chain.heads().latest.number
        except ChainUnavailable as error:
            raise DependencyFailed("chain") from error
        if at.height > newest + HEIGHT_MARGIN_BLOCKS:
            # Perhaps from another chain; if kept, it would outlast every true answer.
            raise DependencyFailed("chain")
        return at

    def _read_final_balances(self, partition: str, vault: Vault) -> Mapping[str, FinalBalances]:
        """A vault's balance of every token of its chain, for display only; nothing stores it.

        Raises DependencyFailed.
        """
        chain = self._chains[vault.chain_id]
        tokens = [asset.address for asset in self._list_assets(vault)]
        try:
            with self._ask(partition):
                return read_token_balances(chain, tokens, [vault.address])
        except ChainUnavailable as error:
            raise DependencyFailed("chain") from error

    def _list_assets(self, vault: Vault) -> tuple[Asset, ...]:
        return self._networks.find_network(vault.chain_id).tokens

    def _ask(self, partition: str) -> AbstractContextManager[None]:
        calls = self._calls
        return nullcontext() if calls is None else calls.acquire("chain", partition)


def _load_vaults(snapshot: Snapshot, account_id: str) -> tuple[Vault, ...]:
    if snapshot.get(Account, account_id) is None:
        raise NotFound("account")
    return find_vaults(snapshot, account_id)
