"""The vaults of an account: one for each chain, in the order of their chains."""

from __future__ import annotations

from payments_core.accounts.vaults.record import Vault
from payments_core.storage.port import Snapshot
from payments_core.storage.reads import Find

MAX_VAULTS = 100
"""More than there are chains, so that one page has all vaults."""


def vaults_of(account_id: str) -> Find:
    """The query of `find_vaults`, to be read ahead."""
    return Find(Vault, "by_account", (account_id,), MAX_VAULTS)


def find_vaults(
    snapshot: Snapshot, account_id: str, *, skip_damaged: bool = False
) -> tuple[Vault, ...]:
    """An account's vaults."""
    page = snapshot.find(
        Vault, "by_account", (account_id,), limit=MAX_VAULTS, skip_damaged=skip_damaged
    )
    return tuple(page.records)


def find_vaults_by_chain(snapshot: Snapshot, account_id: str) -> dict[int, Vault]:
    """An account's vaults by their chains' ids."""
    return {vault.chain_id: vault for vault in find_vaults(snapshot, account_id)}
