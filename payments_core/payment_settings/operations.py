"""Payment settings: read, and replaced as a whole (contract §6 "Public checkout")."""

from __future__ import annotations

from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import ResourceConflict
from payments_core.evolve import evolve
from payments_core.payment_settings.record import (
    DEFAULT_SETTINGS,
    SETTINGS_ID,
    PaymentSettings,
    PaymentSettingsVersion,
    PaymentTerms,
)
from payments_core.payment_settings.validation import validate_terms
from payments_core.storage.port import Transaction
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key


class PartnerPaymentSettings:
    """Reads and replaces a partner's settings for all Payments of an environment."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock

    def read(self, authority: Authority) -> PaymentSettings:
        """The settings; the defaults, in version 0, if they were never set."""
        found = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(PaymentSettings, SETTINGS_ID)
        )
        return found or DEFAULT_SETTINGS

    @once_per_key
    def replace(
        self,
        authority: Authority,
        terms: PaymentTerms,
        *,
        settings_version: int | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> PaymentSettings:
        """The settings with new terms, in their next version: for Payments created from now on.

        `settings_version`, if given, is the version that the caller has read and wants to replace;
        0 for settings that were never set. Raises ValidationFailed with every error, and
        ResourceConflict if the settings have changed since that version.
        """
        terms = validate_terms(terms, authority.mode, self._networks)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[PaymentSettings]:
            found = tx.get(PaymentSettings, SETTINGS_ID, for_update=True)
            settings = found or DEFAULT_SETTINGS
            if settings_version not in (None, settings.settings_version):
                raise ResourceConflict(
                    f"The settings are at version {settings.settings_version} now; read them again."
                )
            changed = evolve(
                settings,
                settings_version=settings.settings_version + 1,
                terms=terms,
                created_at_ms=settings.created_at_ms or now,
                updated_at_ms=now,
            )
            # It stores the history, and distinguishes a lost COMMIT answer from a COMMIT never
            # made.
            kept = PaymentSettingsVersion(
                id=f"{SETTINGS_ID}/{changed.settings_version:08}", terms=terms, created_at_ms=now
            )
            if found is None:
                return Decision(changed, inserts=(kept, changed))
            return Decision(changed, inserts=(kept,), replaces=(changed,))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)
