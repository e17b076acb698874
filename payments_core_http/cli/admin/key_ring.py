"""`payments admin key-ring`."""

from __future__ import annotations

from typing import Any

import attrs
import click

from payments_core.credentials.keyring import KeyRing
from payments_core.maintenance.resealing import Resealing, RestingKey, Seals
from payments_core.service import PaymentsService
from payments_core.tenants import master_keys
from payments_core_http.cli.admin.administering import (
    Document,
    Faulty,
    administered,
    time_of,
    told,
)


@click.group()
def command() -> None:
    """Make master keys, and seal anew under the current one (docs/how-to/rotate-keys.md)."""


@command.command()
@click.argument("name")
@told
def new(name: str) -> Document:
    """Make a master key of that name, such as k2. Put it in front of the ring, and keep the others.

    It is told here alone: nothing stores it but what you put it into.
    """
    return {"key": KeyRing.generate(name=name)}


@command.command()
@administered
def show(service: PaymentsService, mode: str) -> Document | Faulty:
    """Tell what rests on which master key, so that you know when an old one may go.

    It ends with 1 where something is sealed that no key of the ring opens.
    """
    seals = _resealing(service).report(progress=_progress)
    return _judged(seals, _seals(seals))


@command.command()
@administered
def reseal(service: PaymentsService, mode: str) -> Document | Faulty:
    """Seal anew, under the first key of the ring, what older ones have sealed.

    It may be broken off and run again, and the service goes on meanwhile. It ends with 1 where
    something is sealed that no key of the ring opens.
    """
    done = _resealing(service).run(progress=_progress)
    return _judged(done.left, {"resealed": dict(done.changed), **_seals(done.left)})


@command.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Give up what still rests on it.")
@administered
def forget(service: PaymentsService, mode: str, name: str, force: bool) -> Document:
    """Expect no more a key that was taken out of the ring, once nothing rests on it.

    Until then the doctor calls its absence a fault.
    """
    if name in service.ports.key_ring.names:
        raise click.ClickException(f"{name} is in the ring: take it out first.")
    if not force and _resealing(service).report(progress=_progress).rests_on(name):
        raise click.ClickException(
            f"Something still rests on {name}: put it back, and see payments admin key-ring show. "
            "--force gives it up."
        )
    return {"forgotten": master_keys.forget(service.ports.committer, name)}


def _judged(seals: Seals, document: Document) -> Document | Faulty:
    return Faulty(document) if seals.broken_count else document


def _resealing(service: PaymentsService) -> Resealing:
    return Resealing(service.ports)


def _progress(collection: str, count: int) -> None:
    if count and count % 10_000 == 0:
        click.echo(f"{collection}: {count}", err=True)


def _seals(seals: Seals) -> dict[str, Any]:
    return {
        "currentKey": seals.current,
        "sealed": {key: dict(counts) for key, counts in seals.counts.items()},
        "serverKeysOnOlderOnes": [_resting(key) for key in seals.keys],
        "broken": [attrs.asdict(broken) for broken in seals.broken],
    }


def _resting(key: RestingKey) -> dict[str, Any]:
    return {
        "environmentId": key.environment_id,
        "keyId": key.key_id,
        "name": key.name,
        "kind": key.kind,
        "masterKey": key.master_key,
        "lastUsedAt": time_of(key.last_used_at),
    }
