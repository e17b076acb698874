"""Yield settings of vaults: stored; nothing earns before there is a yield adapter (contract §5)."""

from __future__ import annotations

import attrs

from payments_core.accounts.vaults.provisioning import held_vault, vault_of
from payments_core.accounts.vaults.record import Vault, YieldSettings
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import Idempotent
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.errors import CapabilityNotActive, ValidationFailed
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority

MAX_STRATEGY = 64


@attrs.frozen
class VaultYield:
    """A vault and its yield settings."""

    vault: Vault
    settings: YieldSettings


class VaultYields:
    """Reads and replaces vaults' yield settings."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock

    def read(self, authority: Authority, account_id: str, vault_id: str) -> VaultYield:
        """The settings; without any, yield is off. Raises NotFound."""

        def look(snapshot: Snapshot) -> VaultYield:
            vault = vault_of(snapshot, account_id, vault_id)
            stored = snapshot.get(YieldSettings, vault.id)
            return VaultYield(vault, stored or _unset(vault))

        return self._storage.read(authority.partition, look)

    def replace(
        self,
        authority: Authority,
        account_id: str,
        vault_id: str,
        *,
        enabled: bool,
        strategy: str | None = None,
        idempotent: Idempotent | None = None,
    ) -> VaultYield:
        """The new settings; `strategy` has 1 to 64 characters.

        Raises ValidationFailed, NotFound, and CapabilityNotActive when yield is to be enabled.
        """
        if strategy is not None and not 1 <= len(strategy) <= MAX_STRATEGY:
            raise ValidationFailed.at("strategy", f"must have 1 to {MAX_STRATEGY} characters")
        now = self._clock.now()

        def decide(tx: Transaction, draw: Draw) -> Decision[VaultYield]:
            vault = held_vault(tx, account_id, vault_id)
            if enabled:  # no adapter exists that could do it
                raise CapabilityNotActive("yield")
            stored = tx.get(YieldSettings, vault.id, for_update=True)
            settings = attrs.evolve(
                stored or _unset(vault), enabled=enabled, strategy=strategy, updated_at=now
            )
            if stored is None:
                return Decision(VaultYield(vault, settings), inserts=(settings,))
            return Decision(VaultYield(vault, settings), replaces=(settings,))

        return self._ledger.commit(authority, decide, idempotent=idempotent)


def _unset(vault: Vault) -> YieldSettings:
    return YieldSettings(id=vault.id, created_at=vault.created_at, updated_at=vault.created_at)
