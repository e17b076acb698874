"""Apps, environments and keys: made by an operator, never with a key of the API (contract §2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from payments_core.clock import MINUTE, Instant
from payments_core.credentials.secrets import (
    Mode,
    SecretKind,
    looks_like_secret,
    mode_of,
)
from payments_core.engine.audit import Trace
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.hourly_purge import purge_job
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import (
    NotFound,
    ResourceConflict,
    Unauthorized,
    Unavailable,
    UnsupportedVersion,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.limiters.policies import ENVIRONMENT_RULES, require_valid_limits
from payments_core.storage.port import DIRECTORY, Transaction
from payments_core.storage.reads import Get
from payments_core.tenants.authorization import (
    SYSTEM_REQUIREMENT,
    Authority,
    key_is_live,
)
from payments_core.tenants.credential_index import CredentialIndex
from payments_core.tenants.keys import EnvironmentKeys, lock_environment
from payments_core.tenants.record import (
    PRODUCTS,
    App,
    Environment,
    Key,
    KeyUse,
    PartnerName,
)
from payments_core.validation.fields import Credential

_PARTNER_ID = re.compile(r"[a-z0-9][a-z0-9-]{1,38}[a-z0-9]")

APP_NAME_CHARACTERS = 128


class Tenants:
    """Creates tenants, and authenticates server credentials.

    >>> key, secret = service.tenants.create_key(app.environments["sandbox"], "standard", "api")
    >>> environment, key = service.tenants.authenticate(app.id, secret, mode="sandbox")
    >>> environment.mode, key.name
    ('sandbox', 'api')
    """

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._identifiers = ports.identifiers
        self._versions = ports.versions
        self._host = ports.host
        self._addresses = CredentialIndex(ports)
        self._keys = EnvironmentKeys(ports)
        self._uses: dict[str, Instant] = {}

    def create_app(
        self,
        name: str,
        partner_id: str,
        *,
        products: Sequence[str] = PRODUCTS,
        modes: Sequence[Mode] = ("sandbox", "production"),
    ) -> App:
        """An app with one environment per mode, pinned to the current version.

        `partner_id` is a slug; it is also the resolver of the app's payment addresses. Raises
        ValidationFailed, and ResourceConflict if the partner id is taken.
        """
        if not 1 <= len(name) <= APP_NAME_CHARACTERS:
            raise ValidationFailed.at("name", f"must have 1 to {APP_NAME_CHARACTERS} characters")
        if not _PARTNER_ID.fullmatch(partner_id):
            raise ValidationFailed.at("partner_id", "must be 3 to 40 of a-z, 0-9 and -")
        _require_known_names("products", products, PRODUCTS)
        taken = ResourceConflict(f"The partner id {partner_id} is taken.")
        if self._storage.read(DIRECTORY, lambda snapshot: snapshot.get(PartnerName, partner_id)):
            raise taken
        now = self._clock.now()
        app_id = self._identifiers.new("app")
        environments = tuple(
            Environment(
                id=self._identifiers.new("env"),
                app_id=app_id,
                partner_id=partner_id,
                app_name=name,
                mode=mode,
                api_version=self._versions.current,
                products=tuple(sorted(products)),
                created_at_ms=now,
                updated_at_ms=now,
            )
            for mode in modes
        )
        app = App(
            id=app_id,
            name=name,
            partner_id=partner_id,
            environments={e.mode: e.id for e in environments},
            created_at_ms=now,
        )
        # The environments first: until the directory names them, nobody can reach them.
        for environment in environments:
            self._create_environment(environment)
        self._committer.commit(
            WorkerAuthority(DIRECTORY, "directory"),
            lambda tx, id_sequence: Decision(
                app,
                inserts=(PartnerName(id=partner_id, app_id=app_id), app),
                refusals={"id": taken},
            ),
        )
        return app

    def create_key(
        self,
        environment_id: str,
        kind: SecretKind,
        name: str,
        *,
        scopes: Sequence[str] = (),
        expires_at: datetime | None = None,
    ) -> tuple[Key, str]:
        """A new key and its secret, which is shown only here.

        Raises NotFound, ValidationFailed, and ResourceConflict if there are MAX_KEYS.
        """
        key_id = self._identifiers.new("key")
        return self._keys.add(
            self._acting(environment_id, "keys.create", key_id),
            self.get_environment(environment_id),
            kind,
            name,
            key_id=key_id,
            scopes=scopes,
            expires_at=expires_at,
        )

    def revoke_key(self, environment_id: str, key_id: str) -> Environment:
        """Revoke a key, and the client sessions that it made, at once. Raises NotFound."""
        authority = self._acting(environment_id, "keys.revoke", key_id)
        return self._keys.revoke(authority, key_id)[0]

    def set_products(self, environment_id: str, products: Sequence[str]) -> Environment:
        """Replace the environment's entitlements. Raises NotFound, ValidationFailed."""
        _require_known_names("products", products, PRODUCTS)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Environment]:
            environment = lock_environment(tx, environment_id)
            return _replace(environment, now, products=tuple(sorted(products)))

        return self._committer.commit(
            self._acting(environment_id, "environment.set_products"), decide
        )

    def set_rate_limits(self, environment_id: str, limits: Mapping[str, int]) -> Environment:
        """Replace the environment's own limits, by the rules of rate policies; `{}` removes them.

        Raises NotFound, and ValueError for a rule that no environment may set.
        """
        require_valid_limits(limits, ENVIRONMENT_RULES)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Environment]:
            return _replace(lock_environment(tx, environment_id), now, rate_limits=dict(limits))

        return self._committer.commit(
            self._acting(environment_id, "environment.set_rate_limits"), decide
        )

    def set_storage_limit(self, environment_id: str, limit_bytes: int | None) -> Environment:
        """Set how many bytes the environment may store; None restores the default.

        It counts at once, against the bytes that were counted last. Raises NotFound,
        ValidationFailed.
        """
        if limit_bytes is not None and limit_bytes < 0:
            raise ValidationFailed.at("limit_bytes", "must be a number of bytes")
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Environment]:
            environment = lock_environment(tx, environment_id)
            return _replace(environment, now, storage_limit_bytes=limit_bytes)

        return self._committer.commit(
            self._acting(environment_id, "environment.set_storage_limit"), decide
        )

    def set_api_version(self, environment_id: str, version: str) -> Environment:
        """Pin the environment to another API version that is served here.

        Sessions, Payments and their secrets, and events made under the old version stay
        bound to it. Raises NotFound, UnsupportedVersion.
        """
        if version not in self._versions.supported:
            raise UnsupportedVersion(self._versions.supported)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Environment]:
            return _replace(lock_environment(tx, environment_id), now, api_version=version)

        return self._committer.commit(
            self._acting(environment_id, "environment.set_api_version"), decide
        )

    def get_app(self, app_id: str) -> App:
        """The app of that id. Raises NotFound."""
        app = self._storage.read(DIRECTORY, lambda snapshot: snapshot.get(App, app_id))
        if app is None:
            raise NotFound("app")
        return app

    def find_app_by_partner(self, partner_id: str) -> App | None:
        """The app that a partner id belongs to, or None."""
        name = self._storage.read(DIRECTORY, lambda snapshot: snapshot.get(PartnerName, partner_id))
        return self.get_app(name.app_id) if name else None

    def get_environment(self, environment_id: str) -> Environment:
        """The environment of that id. Raises NotFound."""
        environment = self._storage.read(
            environment_id, lambda snapshot: snapshot.get(Environment, environment_id)
        )
        if environment is None:
            raise NotFound("environment")
        return environment

    def system_authority(self, environment_id: str) -> Authority:
        """The authority of an embedding program: everything, in one environment."""
        environment = self.get_environment(environment_id)
        return Authority(
            requirement=SYSTEM_REQUIREMENT,
            environment=environment,
            api_version=environment.api_version,
            host=self._host,
        )

    def identify_app(self, app_id: Credential, *, mode: str) -> Environment:
        """The environment of an app id alone, in this mode. Raises Unauthorized.

        It proves nothing: an app id is not a secret.
        """
        app = self._storage.read(DIRECTORY, lambda snapshot: snapshot.get(App, app_id))
        environment_id = app.environments.get(mode) if app else None
        if environment_id is None:
            raise Unauthorized()
        return self.get_environment(environment_id)

    def authenticate(
        self, app_id: Credential, secret: Credential, *, mode: str
    ) -> tuple[Environment, Key]:
        """The environment and the live key of a server credential. Raises Unauthorized."""
        return self._resolve_secret(secret, mode, app_id)

    def authenticate_bearer(self, secret: Credential, *, mode: str) -> tuple[Environment, Key]:
        """As `authenticate`, for a secret without an app id: a directory row names its owner.

        Raises Unauthorized, also for a publishable key, which is not a secret.
        """
        environment, key = self._resolve_secret(secret, mode, None)
        if key.kind == "publishable":
            raise Unauthorized()
        return environment, key

    def authenticate_publishable(self, key: Credential, *, mode: str) -> tuple[Environment, Key]:
        """The environment and the live key that a browser names. Raises Unauthorized.

        It is not a secret, and proves nothing; a secret in its place is refused, and not used.
        """
        environment, found = self._resolve_secret(key, mode, None)
        if found.kind != "publishable":
            raise Unauthorized()
        return environment, found

    def _resolve_secret(
        self, secret: str, mode: str, app_id: str | None
    ) -> tuple[Environment, Key]:
        """What a secret opens, in this mode and, if an app is given, for this app.

        Secrets that open nothing are searched in the directory and refused there, all alike: the
        duration reveals no more than the answer.
        """
        wanted = looks_like_secret(secret) and mode_of(secret) == mode
        now = self._clock.now()
        address = self._addresses.find(secret, app_id, now) if wanted else None
        if address is None:
            raise Unauthorized()
        read = Get(Environment, address.environment_id)
        [environment] = self._storage.fetch(address.environment_id, read)
        if environment is None or environment.mode != mode:
            raise Unauthorized()
        if app_id is not None and environment.app_id != app_id:
            raise Unauthorized()
        key = environment.key(address.key_id)
        if key is None or key.digest != address.proven_digest or not key_is_live(key, now):
            self._addresses.evict(app_id, address)
            raise Unauthorized()
        self._addresses.add_current_digest(secret, address)
        self._record_use(environment.id, key.id, now)
        return environment, key

    def _record_use(self, environment_id: str, key_id: str, now: Instant) -> None:
        """Record a key's use, at most once per minute and process."""
        if now - self._uses.get(key_id, 0) < MINUTE:
            return
        self._uses[key_id] = now

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            known = tx.get(KeyUse, key_id, for_update=True)
            if known is None:
                return Decision(None, inserts=(KeyUse(id=key_id, last_used_at_ms=now),))
            return Decision(None, replaces=(evolve(known, last_used_at_ms=now),))

        try:
            self._committer.commit(WorkerAuthority(environment_id, "admin"), decide)
        except Unavailable:
            self._uses.pop(key_id, None)  # the call itself continues; the next one records it

    def _create_environment(self, environment: Environment) -> None:
        purge = purge_job(environment.id, environment.created_at_ms)
        acting = self._acting(environment.id, "apps.create", environment.app_id)
        self._committer.commit(
            evolve(acting, mode=environment.mode),  # whose workers run the purge
            lambda tx, id_sequence: Decision(None, inserts=(environment,), jobs=(purge,)),
        )

    def _acting(self, environment_id: str, operation: str, *ids: str) -> WorkerAuthority:
        """The authority of a change that the program's host makes, with its audit entry."""
        trace = Trace(self._host, operation, ids or (environment_id,))
        return WorkerAuthority(environment_id, "admin", trace)


def _replace(environment: Environment, now: Instant, **changes: object) -> Decision[Environment]:
    changed = evolve(environment, updated_at_ms=now, **changes)  # type: ignore[arg-type]
    return Decision(changed, replaces=(changed,))


def _require_known_names(path: str, names: Sequence[str], known: Sequence[str]) -> None:
    if unknown := sorted(set(names) - set(known)):
        raise ValidationFailed.at(path, f"has unknown names: {', '.join(unknown)}")
