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


@click.group()
def command() -> None:
    """Make master keys, and seal anew under the current one (docs/how-to/rotate-keys.md)."""


@command.command()
@click.argument("name")
@print_result
def new(name: str) -> CommandResult:
    """Make a master key of that name, such as k2. Put it in front of the ring, and keep the others.

    It is told here alone: nothing stores it but what you put it into.
    """
    return {"key": KeyRing.generate(name=name)}


@command.command()
@with_service
def show(service: PaymentsService, mode: str) -> CommandResult | FailingResult:
    """Tell what rests on which master key, so that you know when an old one may go.

    It ends with 1 where something is sealed that no key of the ring opens.
    """
    seals = _make_resealing(service).report(progress=_print_progress)
    return _fail_if_broken(seals, _render_key_usage(seals))


@command.command()
@with_service
def reseal(service: PaymentsService, mode: str) -> CommandResult | FailingResult:
    """Seal anew, under the first key of the ring, what older ones have sealed.

    It may be broken off and run again, and the service goes on meanwhile. It ends with 1 where
    something is sealed that no key of the ring opens.
    """
    done = _make_resealing(service).run(progress=_print_progress)
    return _fail_if_broken(
        done.usage, {"resealed": dict(done.changed), **_render_key_usage(done.usage)}
    )


@command.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Give up what still rests on it.")
@with_service
def forget(service: PaymentsService, mode: str, name: str, force: bool) -> CommandResult:
    """Expect no more a key that was taken out of the ring, once nothing rests on it.

    Until then the doctor calls its absence a fault.
    """
    if name in service.ports.key_ring.names:
        raise click.ClickException(f"{name} is in the ring: take it out first.")
    if not force and _make_resealing(service).report(progress=_print_progress).is_needed(name):
        raise click.ClickException(
            f"Something still rests on {name}: put it back, and see payments admin key-ring show. "
            "--force gives it up."
        )
    return {"forgotten": master_keys.forget_key(service.ports.committer, name)}


def _fail_if_broken(
    seals: MasterKeyUsage, document: CommandResult
) -> CommandResult | FailingResult:
    return FailingResult(document) if seals.broken_count else document


def _make_resealing(service: PaymentsService) -> Resealer:
    return Resealer(service.ports)


def _print_progress(collection: str, count: int) -> None:
    if count and count % 10_000 == 0:
        click.echo(f"{collection}: {count}", err=True)


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
        "lastUsedAt": format_time(key.last_used_at),
    }
