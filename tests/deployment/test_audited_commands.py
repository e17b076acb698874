"""Each command of `payments admin` that changes something leaves an entry in the audit trail.

The tables name every command: a new one is in one of them, or the first test fails.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import pytest

from payments_core.credentials.keyring import KeyRing
from payments_core.engine.audit import SYSTEM
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage_loader import open_storage
from payments_core_http.cli.admin import command as admin
from tests.deployment.deployed import Deployed, shop

CHANGES: Mapping[str, str] = {
    "apps create": "apps.create",
    "damaged remove": "rows.remove",
    "damaged repair": "rows.repair",
    "environment pin": "environment.set_api_version",
    "jobs retry": "jobs.retry",
    "key-ring forget": "key_ring.forget",
    "key-ring reseal": "key_ring.reseal",
    "keys create": "keys.create",
    "keys revoke": "keys.revoke",
    "limits set": "environment.set_rate_limits",
    "limits storage": "environment.set_storage_limit",
    "notices retry": "notices.retry",
    "operators create": "operators.create",
    "operators remove": "operators.remove",
    "operators reset": "operators.reset",
    "operators reset-second-factor": "second_factor.reset",
    "products set": "environment.set_products",
    "purge": "records.purge",
    "restored fill": "senders.fill_nonces",
    "restored stop": "jobs.stop",
    "screening decide": "screening.decide",
    "vaults mark-deployed": "vaults.mark_deployed",
    "verification decide": "verifications.decide",
}
"""The operation of each command that changes something."""

UNRECORDED: Mapping[str, str] = {
    "backup restore": "The restored state has the audit trail of its own time.",
    "copy reinstate": "A storage that has moved takes no record, also not this one, before it.",
    "copy run": "A copy equals its source, and the source takes no record any more.",
    "migrate": "The tables of the audit trail may not exist yet.",
}
"""The commands that change something and can have no entry, each with the reason."""

READS = frozenset(
    {
        "apps list", "audit", "backup make", "copy verify", "damaged list", "damaged show",
        "environment versions", "jobs parked", "key-ring new", "key-ring show", "keys list",
        "limits stored", "notices list", "offramp", "operators list", "products show",
        "restored behind", "screening list", "signers check", "verification list",
    }
)  # fmt: skip

TESTS = Path(__file__).parents[1]
SEEN_ELSEWHERE: Mapping[str, str] = {
    "damaged remove": "deployment/test_damaged.py",
    "damaged repair": "deployment/test_damaged.py",
    "notices retry": "deployment/test_admin_verification.py",
    "operators reset-second-factor": "http/dashboard/test_security_pages.py",
    "restored fill": "chains/test_restores_with_another_key.py",
    "restored stop": "maintenance/test_restored.py",
    "screening decide": "deployment/test_admin_screening.py",
    "vaults mark-deployed": "maintenance/test_paid_vaults.py",
    "verification decide": "deployment/test_admin_verification.py",
}
"""The tests in which the entry of a command is seen that needs more than an empty shop."""


def list_commands(group: click.Group, above: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from list_commands(found, f"{above}{name} ")
        else:
            yield f"{above}{name}"


def test_every_command_is_known_to_change_something_or_not() -> None:
    assert sorted(list_commands(admin)) == sorted([*CHANGES, *UNRECORDED, *READS])
    for command, file in SEEN_ELSEWHERE.items():
        assert f'"{CHANGES[command]}"' in (TESTS / file).read_text(), (command, file)


@pytest.fixture
def deployed(tmp_path: Path) -> Deployed:
    deployed = Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")
    deployed.run("admin", "migrate")
    return deployed


def park_job(deployed: Deployed, environment_id: str) -> str:
    storage = open_storage(deployed.storage_url)
    job = Job(
        id="job_1", queue="sandbox.timers", lane="l", kind="none", subject="s", due_at=1,
        lease_until=NEVER,
    )  # fmt: skip
    storage.transact(environment_id, lambda tx: tx.write([job]))
    storage.close()
    return job.id


def test_what_a_command_changes_is_in_the_audit_trail(deployed: Deployed) -> None:
    environment_id = shop(deployed)[0]["sandboxEnvironmentId"]
    [key] = deployed.admin("keys", "list", "shop")
    [version] = deployed.admin("environment", "versions")
    ring = deployed.folder / "key-ring"
    for line in (
        ("keys", "revoke", "shop", key["keyId"]),
        ("products", "set", "shop", "accounts"),
        ("limits", "set", "shop", "general_minute=9"),
        ("limits", "storage", "shop", "5000"),
        ("environment", "pin", "shop", version["version"]),
        ("operators", "create", "shop", "ada"),
        ("operators", "reset", "ada"),
        ("operators", "remove", "ada"),
        ("jobs", "retry", environment_id, park_job(deployed, environment_id)),
        ("purge", "--expired-payments-days", "31"),
        ("purge", "--dry-run"),
        ("key-ring", "reseal"),
    ):
        deployed.admin(*line)
    first = ring.read_text()
    ring.write_text(f"{first} {KeyRing.generate(name='k2')}")
    deployed.run("admin", "apps", "list")  # the storage knows the key from now on
    ring.write_text(first)
    deployed.admin("key-ring", "forget", "k2")
    trail = [entry for entry in deployed.trail() if entry.actor != SYSTEM]
    assert {(entry.actor.type, entry.actor.id) for entry in trail} == {
        ("command_line", getpass.getuser())
    }
    found = [entry.operation for entry in trail]
    assert {*found} == {CHANGES[command] for command in CHANGES.keys() - SEEN_ELSEWHERE.keys()}
    assert found.count("records.purge") == 1, "a dry run changes nothing"
