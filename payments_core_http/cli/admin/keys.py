"""`payments admin keys`."""

from __future__ import annotations

from typing import Any

import click

from payments_core.clock import DAY
from payments_core.credentials.secrets import SecretKind
from payments_core.service import PaymentsService
from payments_core.tenants.listing import key_uses
from payments_core.tenants.record import SCOPE_PRODUCT, Key
from payments_core_http.cli.admin.administering import (
    Document,
    administered,
    environment_argument,
    environment_of,
    time_of,
)


@click.group()
def command() -> None:
    """Make, list and revoke an environment's keys."""


@command.command()
@environment_argument
@click.option("--name", required=True, help="What it is for, as it will be listed.")
@click.option("--publishable", is_flag=True, help="A pk_ key, which is no secret, for browsers.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(tuple(SCOPE_PRODUCT)),
    help="Make a restricted key of these scopes. May be repeated.",
)
@click.option("--expires-in-days", type=click.IntRange(1, 3_650), help="Never, unless given.")
@administered
def create(
    service: PaymentsService,
    mode: str,
    environment: str,
    name: str,
    publishable: bool,
    scopes: tuple[str, ...],
    expires_in_days: int | None,
) -> Document:
    """Make a key. Its secret is told here, and never again."""
    if publishable and scopes:
        raise click.UsageError("A publishable key has no scopes.")
    kind: SecretKind = "publishable" if publishable else "restricted" if scopes else "standard"
    found = environment_of(service, mode, environment)
    now = service.ports.clock.now()
    expires_at = None if expires_in_days is None else now + expires_in_days * DAY
    key, secret = service.tenants.create_key(
        found.id, kind, name, scopes=scopes, expires_at=expires_at
    )
    return {"appId": found.app_id, "environmentId": found.id, "keyId": key.id, "secret": secret}


@command.command(name="list")
@environment_argument
@administered
def list_(service: PaymentsService, mode: str, environment: str) -> Document:
    """List the keys, revoked ones too."""
    found = environment_of(service, mode, environment)
    uses = key_uses(service.ports.storage, found)
    return [_shown(key, uses.get(key.id)) for key in found.keys]


@command.command()
@environment_argument
@click.argument("key_id")
@administered
def revoke(service: PaymentsService, mode: str, environment: str, key_id: str) -> Document:
    """End a key, and the client sessions that it made, at once."""
    found = environment_of(service, mode, environment)
    revoked = service.tenants.revoke_key(found.id, key_id)
    uses = key_uses(service.ports.storage, revoked)
    return next(_shown(key, uses.get(key.id)) for key in revoked.keys if key.id == key_id)


def _shown(key: Key, last_used_at: int | None) -> dict[str, Any]:
    return {
        "keyId": key.id,
        "kind": key.kind,
        "name": key.name,
        "scopes": list(key.scopes),
        "createdAt": time_of(key.created_at),
        "lastUsedAt": time_of(last_used_at),
        "expiresAt": time_of(key.expires_at),
        "revokedAt": time_of(key.revoked_at),
    }
