"""`payments admin keys`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from payments_core.clock import to_datetime
from payments_core.credentials.secrets import SecretKind
from payments_core.service import PaymentsService
from payments_core.tenants.queries import load_key_uses
from payments_core.tenants.record import SCOPE_PRODUCT, Key
from payments_core_http.cli.admin.service_command import (
    CommandResult,
    environment_argument,
    find_environment,
    format_time,
    with_service,
)


@click.group()
def command() -> None:
    """Create, list and revoke an environment's keys."""


@command.command()
@environment_argument
@click.option("--name", required=True, help="A name, which the list of keys shows.")
@click.option("--publishable", is_flag=True, help="Make a pk_ key for browsers; it is not secret.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(tuple(SCOPE_PRODUCT)),
    help="Make a restricted key with this scope. May be repeated.",
)
@click.option(
    "--expires-in-days",
    type=click.IntRange(1, 3_650),
    help="Days until the key expires; default: never.",
)
@with_service
def create(
    service: PaymentsService,
    mode: str,
    environment: str,
    name: str,
    publishable: bool,
    scopes: tuple[str, ...],
    expires_in_days: int | None,
) -> CommandResult:
    """Create a key. Its secret is shown once, here."""
    if publishable and scopes:
        raise click.UsageError("A publishable key has no scopes.")
    kind: SecretKind = "publishable" if publishable else "restricted" if scopes else "standard"
    found = find_environment(service, mode, environment)
    now = to_datetime(service.parts.ports.clock.now())
    expires_at = None if expires_in_days is None else now + timedelta(days=expires_in_days)
    key, secret = service.tenants.create_key(
        found.id, kind, name, scopes=scopes, expires_at=expires_at
    )
    return {"appId": found.app_id, "environmentId": found.id, "keyId": key.id, "secret": secret}


@command.command(name="list")
@environment_argument
@with_service
def list_(service: PaymentsService, mode: str, environment: str) -> CommandResult:
    """List the keys, including revoked ones."""
    found = find_environment(service, mode, environment)
    uses = load_key_uses(service.parts.ports.storage, found)
    return [_render_key(key, uses.get(key.id)) for key in found.keys]


@command.command()
@environment_argument
@click.argument("key_id")
@with_service
def revoke(service: PaymentsService, mode: str, environment: str, key_id: str) -> CommandResult:
    """Revoke a key and the client sessions that it created, immediately."""
    found = find_environment(service, mode, environment)
    revoked = service.tenants.revoke_key(found.id, key_id)
    uses = load_key_uses(service.parts.ports.storage, revoked)
    return next(_render_key(key, uses.get(key.id)) for key in revoked.keys if key.id == key_id)


def _render_key(key: Key, last_used_at: int | None) -> dict[str, Any]:
    return {
        "keyId": key.id,
        "kind": key.kind,
        "name": key.name,
        "scopes": list(key.scopes),
        "createdAt": format_time(key.created_at_ms),
        "lastUsedAt": format_time(last_used_at),
        "expiresAt": format_time(key.expires_at_ms),
        "revokedAt": format_time(key.revoked_at_ms),
    }
