"""The keys of an environment: added and revoked, by an operator's commands or on the dashboard.

The command line makes keys of every kind. The operator of one environment makes and revokes its
restricted keys, which can be given away and taken back without the programs of the partner.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Meta

from payments_core.clock import DAY, Instant, from_datetime
from payments_core.credentials.secrets import DIGEST_PURPOSE, SecretKind, new_secret
from payments_core.engine.decision import CommitAuthority, Decision
from payments_core.engine.idempotency.record import AlreadyResponded, IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import (
    NotFound,
    PaymentsError,
    ResourceConflict,
    Unavailable,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.storage.port import Transaction
from payments_core.tenants.authorization import Authority, AuthorityToChange
from payments_core.tenants.credential_index import CredentialIndex
from payments_core.tenants.idempotency import once_per_key
from payments_core.tenants.record import SCOPE_PRODUCT, Environment, Key

MAX_KEYS = 100
"""All keys of an environment live in its one record, which every call reads."""
KEY_NAME_CHARACTERS = 64
"""A hundred of them fit the record in any script, with room for every key's revocation."""
REVOKED_KEY_RETENTION_MS = 2 * DAY
"""Revoked keys are kept longer than any client session lives (a day), then removed."""

KeyName = Annotated[str, Meta(min_length=1, max_length=KEY_NAME_CHARACTERS)]


class EnvironmentKeys:
    """Adds keys to environments, and revokes them."""

    def __init__(self, ports: Ports) -> None:
        self._committer = ports.committer
        self._clock = ports.clock
        self._identifiers = ports.identifiers
        self._key_ring = ports.key_ring
        self._entropy = ports.entropy
        self._index = CredentialIndex(ports)

    @once_per_key
    def create_restricted(
        self,
        authority: Authority,
        name: KeyName,
        *,
        scopes: Sequence[str],
        expires_at: datetime | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> tuple[Key, str]:
        """A new restricted key and its secret, which is shown only here.

        Raises ValidationFailed, also without a scope and for an expiry that has passed, and
        ResourceConflict if there are MAX_KEYS.
        """
        if not scopes:
            raise ValidationFailed.at("scopes", "must have at least one")
        if expires_at is not None and from_datetime(expires_at) <= self._clock.now():
            raise ValidationFailed.at("expires_at", "must be in the future")
        key_id = self._identifiers.new("key")
        return self.add(
            AuthorityToChange(evolve(authority, named_ids=(key_id,))),
            authority.environment,
            "restricted",
            name,
            key_id=key_id,
            scopes=scopes,
            expires_at=expires_at,
            idempotent=idempotency_key,
        )

    @once_per_key
    def revoke_restricted(
        self, authority: Authority, key_id: str, *, idempotency_key: IdempotencyKey = None
    ) -> Key:
        """Revoke a restricted key at once; revoking it twice is not an error.

        Raises NotFound, and ResourceConflict for a key of another kind.
        """
        changer = AuthorityToChange(authority)
        return self.revoke(changer, key_id, only="restricted", idempotent=idempotency_key)[1]

    def add(
        self,
        authority: CommitAuthority,
        environment: Environment,
        kind: SecretKind,
        name: str,
        *,
        key_id: str,
        scopes: Sequence[str],
        expires_at: datetime | None,
        idempotent: IdempotencyKey = None,
    ) -> tuple[Key, str]:
        """A new key of any kind. Raises NotFound, ValidationFailed, ResourceConflict."""
        if len(name) > KEY_NAME_CHARACTERS:
            raise ValidationFailed.at("name", f"must have at most {KEY_NAME_CHARACTERS} characters")
        if unknown := sorted(set(scopes) - SCOPE_PRODUCT.keys()):
            raise ValidationFailed.at("scopes", f"has unknown names: {', '.join(unknown)}")
        if scopes and kind != "restricted":
            raise ValidationFailed.at("scopes", "only a restricted key can have scopes")
        secret = new_secret(kind, environment.mode, self._entropy)
        now = self._clock.now()
        key = Key(
            id=key_id,
            kind=kind,
            name=name,
            digest=self._key_ring.digest(DIGEST_PURPOSE, secret),
            scopes=tuple(sorted(scopes)),
            created_at_ms=now,
            expires_at_ms=None if expires_at is None else from_datetime(expires_at),
        )
        # First: a secret that was shown opens its key, also after a crash. A row without its key
        # opens nothing.
        self._index.add_key(environment, key)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[tuple[Key, str]]:
            return _decide_added(lock_environment(tx, environment.id), key, secret, now)

        try:
            return self._committer.commit(authority, decide, idempotent=idempotent)
        except Unavailable:
            raise  # it may have been committed, and a repeated request then shows the secret
        except (PaymentsError, AlreadyResponded):
            self._index.remove_key(key)
            raise

    def revoke(
        self,
        authority: CommitAuthority,
        key_id: str,
        *,
        only: SecretKind | None = None,
        idempotent: IdempotencyKey = None,
    ) -> tuple[Environment, Key]:
        """Revoke a key of any kind, or of one `only`, and the client sessions that it made.

        Raises NotFound, and ResourceConflict for a key of another kind.
        """
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[tuple[Environment, Key]]:
            environment = lock_environment(tx, authority.partition)
            key = environment.key(key_id)
            if key is None:
                raise NotFound("key")
            if only is not None and key.kind != only:
                raise ResourceConflict(
                    f"A {key.kind} key is revoked with the command `payments admin keys revoke`."
                )
            return _decide_revoked(environment, key, now)

        environment, key = self._committer.commit(authority, decide, idempotent=idempotent)
        self._index.remove_key(key)
        return environment, key


def lock_environment(tx: Transaction, environment_id: str) -> Environment:
    """The environment, to be changed. Raises NotFound."""
    environment = tx.get(Environment, environment_id, for_update=True)
    if environment is None:
        raise NotFound("environment")
    return environment


def _decide_added(
    environment: Environment, key: Key, secret: str, now: Instant
) -> Decision[tuple[Key, str]]:
    if environment.key(key.id) is not None:  # by a commit that was not answered
        return Decision((key, secret))
    kept = tuple(old for old in environment.keys if not _is_past_retention(old, now))
    if len(kept) >= MAX_KEYS:
        raise ResourceConflict(f"An environment has at most {MAX_KEYS} keys; revoke some.")
    changed = evolve(environment, updated_at_ms=now, keys=(*kept, key))
    return Decision((key, secret), replaces=(changed,))


def _decide_revoked(
    environment: Environment, key: Key, now: Instant
) -> Decision[tuple[Environment, Key]]:
    if key.revoked_at_ms is not None:
        return Decision((environment, key))
    revoked = evolve(key, revoked_at_ms=now)
    keys = tuple(revoked if one.id == key.id else one for one in environment.keys)
    changed = evolve(environment, updated_at_ms=now, keys=keys)
    return Decision((changed, revoked), replaces=(changed,))


def _is_past_retention(key: Key, now: Instant) -> bool:
    """Whether a key was revoked so long ago that none of its sessions can be valid."""
    return key.revoked_at_ms is not None and now - key.revoked_at_ms > REVOKED_KEY_RETENTION_MS
