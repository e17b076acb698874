"""`payments admin`: what an operator does with a deployment; each group of commands has a file."""

from __future__ import annotations

from collections.abc import Mapping

import click

from payments_core_http.cli.lazy_group import LazyGroup

COMMANDS: Mapping[str, str] = {
    "migrate": "Bring the storage's tables up to date.",
    "apps": "Make apps, and list them with their environments.",
    "keys": "Make, list and revoke an environment's keys.",
    "products": "Say what an environment is entitled to.",
    "limits": "Give an environment rate limits of its own.",
    "versions": "Pin an environment to a dated contract.",
    "operators": "Make and remove logins of an environment's dashboard.",
    "key-ring": "Make master keys, and seal anew under the current one.",
    "jobs": "List the jobs that were parked, and put one back to work.",
    "purge": "Forget what is old and moves no money.",
    "backup": "Copy an SQLite database while it is in use, and put a copy back.",
    "restored": "Stop the senders of a restored storage, and ask the chains what it has forgotten.",
    "copy": "Move everything to another storage, and prove that it is all there.",
}


@click.command(cls=LazyGroup, package=__name__, commands=COMMANDS)
def command() -> None:
    """Make apps and keys, and look after a deployment.

    The settings are those of `payments serve`. Every command takes --json, and each secret is told
    once, when it is made. ENVIRONMENT is the id of one, or the partner id of its app.
    """
