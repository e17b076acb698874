"""`payments admin`: commands for operators of a deployment; each group of commands has a file."""

from __future__ import annotations

from collections.abc import Mapping

import click

from payments_core_http.cli.lazy_group import LazyGroup

COMMANDS: Mapping[str, str] = {
    "migrate": "Update the tables of the storage.",
    "apps": "Create apps, and list them with their environments.",
    "keys": "Create, list and revoke an environment's keys.",
    "products": "Set the products of an environment.",
    "limits": "Set the rate limits and the storage limit of an environment; list what is stored.",
    "environment": "Pin an environment to a dated API version; list the versions.",
    "operators": "Create and remove the login to the dashboard of an environment, which has one.",
    "audit": "Print who changed what in an environment.",
    "signers": "Check the operators' keys, and list their addresses.",
    "key-ring": "Create master keys, and reseal with the current one.",
    "verification": "List the verifications that wait, and decide one by hand.",
    "screening": "List the transfers that screening holds or has stopped, and decide one.",
    "notices": "List the notices of providers that name unknown cases, and retry one.",
    "jobs": "List parked jobs, and retry one.",
    "damaged": "List damaged rows; show, repair or remove one.",
    "vaults": "Mark vaults that paid before as deployed.",
    "offramp": "Compare an off-ramp address with the books of its payouts.",
    "purge": "Delete old records that no payment needs.",
    "backup": "Back up an SQLite database while it is in use, and restore a backup.",
    "restored": "Stop the senders of a restored storage, and find transfers that it has lost.",
    "copy": "Copy all records to another storage, and verify the copy.",
}


@click.command(cls=LazyGroup, package=__name__, commands=COMMANDS)
def command() -> None:
    """Create apps and keys, and maintain a deployment.

    The settings are those of `payments serve`. Every command takes --json. A secret is shown only
    once, when it is created. ENVIRONMENT is the id of an environment, or its app's partner id.
    """
