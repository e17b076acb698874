"""The refusals that must take the same time, as kinds of request to one deployment on SQLite.

The first kind of a group is the one that the others are compared with. Every secret, code and id
is of the right shape: what anybody can see to be wrong may be refused as early as it is seen.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from pathlib import Path

import attrs

from payments_core.accounts.operations import NewAccount
from payments_core.clock import SECOND, FixedClock, to_datetime
from payments_core.credentials.keyring import KeyRing
from payments_core.credentials.secrets import Mode, new_secret
from payments_core.engine.identifiers import LENGTH
from payments_core.entropy import system_entropy
from payments_core.payments.destinations import ToAccount
from payments_core.payments.operations import NewPayment
from payments_core.public_url import LOCAL_URL
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage_loader import open_storage

MANY, FEW = 60, 3
"""Keys of the two apps: an environment with many takes longer to read."""
LINKS = 20
HOUR_S = 3_600


@attrs.frozen
class Request:
    """A request as it goes over the wire; none of them has a body."""

    method: str
    target: str
    headers: dict[str, str]


@attrs.frozen
class Group:
    """Requests that are all refused, with one status and one code."""

    name: str
    answer: tuple[int, str]
    kinds: dict[str, Callable[[], Request]]


class Deployment:
    """Two apps: one with many keys and links, and another with few."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.id_sequence = random.Random(seed)
        clock = FixedClock()
        storage = open_storage(f"sqlite:///{folder / 'timing.db'}", RECORD_TYPES)
        storage.migrate()
        self.service = PaymentsService(
            storage,
            KeyRing.parse(KeyRing.generate()),
            clock=clock,
            settings=Settings(public_url=LOCAL_URL),
        )
        tenants = self.service.tenants
        app = tenants.create_app("Large", "large")
        small = tenants.create_app("Small", "small")
        elsewhere = tenants.create_app("Live", "live", modes=("production",))
        self.app_id, self.elsewhere_id = app.id, elsewhere.id
        self.environment_id = app.environments["sandbox"]
        self.live_id = app.environments["production"]
        expiry = to_datetime(clock.now() + HOUR_S * SECOND)
        kept = [tenants.create_key(self.environment_id, "standard", f"{n}") for n in range(MANY)]
        ended = [tenants.create_key(self.environment_id, "standard", f"r{n}") for n in range(FEW)]
        over = [
            tenants.create_key(self.environment_id, "standard", f"e{n}", expires_at=expiry)
            for n in range(FEW)
        ]
        others = [
            tenants.create_key(small.environments["sandbox"], "standard", f"{n}")
            for n in range(FEW)
        ]
        # Each was used by its owner: what a process remembers of secrets must not show either.
        for _, secret in (*kept, *ended, *over):
            tenants.authenticate(app.id, secret, mode="sandbox")
        for _, secret in others:
            tenants.authenticate(small.id, secret, mode="sandbox")
        for key, _ in ended:
            tenants.revoke_key(self.environment_id, key.id)
        clock.advance(HOUR_S)
        self.small_id = small.id
        self.of_large = [secret for _, secret in kept]
        self.of_small = [secret for _, secret in others]
        self.revoked = [secret for _, secret in ended]
        self.expired = [secret for _, secret in over]
        _, self.live_secret = tenants.create_key(self.live_id, "standard", "live")
        tenants.authenticate(app.id, self.live_secret, mode="production")
        self.live_codes = self._codes(self.live_id)
        self._codes(self.environment_id)

    def groups(self) -> tuple[Group, ...]:
        """Everything that is measured."""
        return (
            Group("server credentials", (401, "unauthorized"), {
                "an app, a secret that never was": lambda: self._basic(self.app_id, unknown()),
                "no app, a secret that never was": lambda: self._basic(self._no_app(), unknown()),
                "an app, another's secret": self._anothers,
                "an app, the secret of one with many keys": self._of_many,
                "no app, a valid secret": lambda: self._basic(self._no_app(), self._one_of_large()),
                "an app, its revoked secret": lambda: self._basic(self.app_id, self._revoked()),
                "an app, its expired secret": lambda: self._basic(self.app_id, self._expired()),
            }),
            Group("server credentials of another mode", (401, "unauthorized"), {
                "a secret that never was": lambda: self._basic(self.app_id, unknown("production")),
                "the app's own": lambda: self._basic(self.app_id, self.live_secret),
            }),
            Group("payment links", (404, "not_found"), {
                "a code that never was": lambda: link(self.environment_id),
                "a code of no environment": lambda: link(self._new("env")),
                "of another mode, never was": lambda: link(self.live_id),
                "of another mode, real": lambda: exchange(self.id_sequence.choice(self.live_codes)),
            }),
            Group("public creation", (404, "not_found"), {
                "no app": lambda: creation(self._no_app()),
                "an app of another mode": lambda: creation(self.elsewhere_id),
                "an environment's id": lambda: creation("app_" + self.environment_id[-LENGTH:]),
            }),
        )  # fmt: skip

    def close(self) -> None:
        self.service.close()

    def _codes(self, environment_id: str) -> list[str]:
        """The codes of real links of that environment."""
        service, authority = self.service, self.service.tenants.system_authority(environment_id)
        account = (
            service.acting_as(authority)
            .accounts.create(NewAccount(external_user_id="payee", subject_type="individual"))
            .account
        )
        new = NewPayment(amount="1.00", destination=ToAccount(account_id=account.id))
        made = [service.acting_as(authority).payments.receive(new).payment for _ in range(LINKS)]
        return [str(service.parts.links.build_url(payment)).rpartition("/")[2] for payment in made]

    def _basic(self, app_id: str, secret: str) -> Request:
        pair = base64.b64encode(f"{app_id}:{secret}".encode()).decode()
        return Request("GET", "/v2/partners/config", {"Authorization": f"Basic {pair}"})

    def _anothers(self) -> Request:
        return self._basic(self.app_id, self.id_sequence.choice(self.of_small))

    def _of_many(self) -> Request:
        return self._basic(self.small_id, self._one_of_large())

    def _one_of_large(self) -> str:
        return self.id_sequence.choice(self.of_large)

    def _revoked(self) -> str:
        return self.id_sequence.choice(self.revoked)

    def _expired(self) -> str:
        return self.id_sequence.choice(self.expired)

    def _no_app(self) -> str:
        return self._new("app")

    def _new(self, prefix: str) -> str:
        return self.service.parts.ports.identifiers.new(prefix)


def unknown(mode: Mode = "sandbox") -> str:
    """A secret that nobody was given, with the right checksum."""
    return new_secret("standard", mode, system_entropy)


def link(environment_id: str) -> Request:
    """The exchange of a code that names that environment and is not one of its links."""
    random_bits = base64.urlsafe_b64encode(system_entropy(18)).decode()
    return exchange(environment_id[-LENGTH:] + random_bits)


def exchange(code: str) -> Request:
    return Request("POST", f"/v2/public/payment-links/{code}/exchange", {})


def creation(app_id: str) -> Request:
    headers = {"Origin": "https://shop.example", "Idempotency-Key": "k"}
    return Request("POST", f"/v2/public/apps/{app_id}/payments", headers)
