"""The installation of a role module as it is stored (contract §10)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import attrs

from payments_core.chains.port import ModuleIntent
from payments_core.clock import Instant
from payments_core.evolve import evolve
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.records import Collection, Record


@attrs.frozen(kw_only=True, slots=False)
class RoleModuleInstallation(Record):
    """A role module of a vault, from the owner's signature until the vault obeys it.

    The id is `<vault id>/<module address>`. `signature` is the owner's over the vault's `nonce`, in
    hex in the vault's form, and `request` the digest of the request. `outgoing_id` is the
    transaction of the present step, `enable_id` that of the second; `transaction_hash` is that of
    the newest one sent.
    """

    collection: ClassVar[Collection] = Collection("role_modules", schema=2)

    account_id: str
    vault_id: str
    chain_id: int
    vault_address: str
    module_address: str
    tokens: tuple[str, ...]
    nonce: int
    signature: str = attrs.field(repr=False)
    request: str
    status: str
    status_version: int = 0
    outgoing_id: str
    enable_id: str
    transaction_hash: str | None = None
    failure: str | None = None
    created_at_ms: Instant
    updated_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def deploy_step(self) -> ModuleIntent:
        """The transaction that deploys the module."""
        return ModuleIntent(self.vault_address, self.module_address, self.tokens)

    @property
    def enable_step(self) -> ModuleIntent:
        """The transaction that brings the owner's signature to the vault."""
        return evolve(self.deploy_step, nonce=self.nonce, signature=self.signature)


def installation_id(vault_id: str, module_address: str) -> str:
    """The id of the record of a vault's role module."""
    return f"{vault_id}/{module_address}"
