"""`payments admin key-ring`."""

from __future__ import annotations

from typing import Any

import attrs
import click

from payments_core.credentials.keyring import KeyRing
from payments_core.maintenance.reseal import KeyOnOldDigest, MasterKeyUsage, Resealer
from payments_core.service import PaymentsService
from payments_core.tenants import master_keys
from payments_core_http.cli.admin.service_command import (
    CommandResult,
    FailingResult,
    format_time,
    print_result,
    with_service,
)
from payments_core_http.cli.progress import show_progress


@click.group()
def command() -> None:
    """Create master keys, and reseal with the current one (docs/how-to/rotate-keys.md)."""


@command.command()
@click.argument("name")
@print_result
def new(name: str) -> CommandResult:
    """Create a master key with this name, such as k2. Put it first in the ring; keep the others.

    It is shown only here and is not stored: save it yourself.
    """
    return {"key": KeyRing.generate(name=name)}


@command.command()
@with_service
def show(service: PaymentsService, mode: str) -> CommandResult | FailingResult:
    """Show how much data each master key seals, so that you know when to remove an old key.

    The exit code is 1 if no key of the ring opens some sealed data.
    """
    seals = _scan_seals(service)
    return _fail_if_broken(seals, _render_key_usage(seals))


@command.command()
@with_service
def reseal(service: PaymentsService, mode: str) -> CommandResult | FailingResult:
    """Reseal data of older keys with the first key of the ring.

    You can interrupt it and run it again; the service may run meanwhile. The exit code is 1 if no
    key of the ring opens some sealed data.
    """
    with show_progress("Resealing") as progress:
        done = Resealer(service.parts.ports).run(progress=progress)
    return _fail_if_broken(
        done.usage, {"resealed": dict(done.changed), **_render_key_usage(done.usage)}
    )


@command.command()
@click.argument("name")
@click.option(
    "--force",
    is_flag=True,
    help="Forget it even if data is still sealed with it; that data is lost.",
)
@with_service
def forget(service: PaymentsService, mode: str, name: str, force: bool) -> CommandResult:
    """Forget a key that you removed from the ring, when no data is sealed with it.

    Until then `payments doctor` reports the missing key as a fault.
    """
    if name in service.parts.ports.key_ring.names:
        raise click.ClickException(f"{name} is in the key ring: remove it first.")
    if not force and _scan_seals(service).is_needed(name):
        raise click.ClickException(
            f"Data is still sealed with {name}: restore the key; see payments admin key-ring show. "
            "--force abandons that data."
        )
    return {"forgotten": master_keys.forget_key(service.parts.ports, name)}


def _fail_if_broken(
    seals: MasterKeyUsage, document: CommandResult
) -> CommandResult | FailingResult:
    return FailingResult(document) if seals.broken_count else document


def _scan_seals(service: PaymentsService) -> MasterKeyUsage:
    with show_progress("Looking at sealed data") as progress:
        return Resealer(service.parts.ports).report(progress=progress)


def _render_key_usage(seals: MasterKeyUsage) -> dict[str, Any]:
    return {
        "currentKey": seals.current,
        "sealed": {key: dict(counts) for key, counts in seals.counts.items()},
        "serverKeysOnOlderOnes": [_render_dependent_key(key) for key in seals.keys],
        "broken": [attrs.asdict(broken) for broken in seals.broken],
    }


def _render_dependent_key(key: KeyOnOldDigest) -> dict[str, Any]:
    return {
        "environmentId": key.environment_id,
        "keyId": key.key_id,
        "name": key.name,
        "kind": key.kind,
        "masterKey": key.master_key,
        "lastUsedAt": format_time(key.last_used_at_ms),
    }
