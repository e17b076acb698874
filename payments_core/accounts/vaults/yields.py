"""Yield settings of vaults: stored, without effect until a yield adapter exists (contract §5)."""

from __future__ import annotations

from typing import Annotated

import attrs
from msgspec import Meta

from payments_core.accounts.vaults.provisioning import load_vault, lock_vault
from payments_core.accounts.vaults.record import Vault, YieldSettings
from payments_core.brief_repr import brief_repr
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import CapabilityNotActive
from payments_core.evolve import evolve
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import Flag

YieldStrategy = Annotated[str, Meta(min_length=1, max_length=64)]


@attrs.frozen
class VaultYield:
    """A vault and its yield settings.

    >>> shop.vaults.read_yield_settings(eve.id, vault.id).settings.enabled
    False
    """

    __repr__ = brief_repr

    vault: Vault
    settings: YieldSettings


class VaultYields:
    """Reads and replaces vaults' yield settings."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock

    def read(self, authority: Authority, account_id: str, vault_id: str) -> VaultYield:
        """The settings; without any, yield is off. Raises NotFound."""

        def load(snapshot: Snapshot) -> VaultYield:
            vault = load_vault(snapshot, account_id, vault_id)
            stored = snapshot.get(YieldSettings, vault.id)
            return VaultYield(vault, stored or _default_settings(vault))

        return self._storage.read(authority.partition, load)

    @once_per_key
    def replace(
        self,
        authority: Authority,
        account_id: str,
        vault_id: str,
        *,
        enabled: Flag,
        strategy: YieldStrategy | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> VaultYield:
        """The new settings; `strategy` has 1 to 64 characters.

        Raises ValidationFailed, NotFound, and CapabilityNotActive when yield is to be enabled.
        """
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[VaultYield]:
            vault = lock_vault(tx, account_id, vault_id)
            if enabled:  # no adapter exists that could do it
                raise CapabilityNotActive("yield")
            stored = tx.get(YieldSettings, vault.id, for_update=True)
            settings = evolve(
                stored or _default_settings(vault),
                enabled=enabled,
                strategy=strategy,
                updated_at_ms=now,
            )
            if stored is None:
                return Decision(VaultYield(vault, settings), inserts=(settings,))
            return Decision(VaultYield(vault, settings), replaces=(settings,))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)


def _default_settings(vault: Vault) -> YieldSettings:
    return YieldSettings(
        id=vault.id, created_at_ms=vault.created_at_ms, updated_at_ms=vault.created_at_ms
    )
