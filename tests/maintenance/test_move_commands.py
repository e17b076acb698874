"""A file that was moved is restored only by a command with an option that allows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from payments_core.storage_loader import open_storage
from tests.deployment.deployed import Deployed, shop
from tests.servers import drop_schema, fresh_schema, postgres_or_skip


@pytest.fixture
def moved(tmp_path: Path) -> Deployed:
    """A deployment of which there is a backup, and which was then moved to another file."""
    deployed = Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")
    deployed.run("admin", "migrate")
    shop(deployed)
    deployed.admin("backup", "make", str(tmp_path / "backup.db"))
    assert deployed.admin("copy", "run", "--to", copy_of(deployed))["sourceRetired"] is True
    return deployed


def copy_of(deployed: Deployed) -> str:
    return f"sqlite:///{deployed.folder}/copy.db"


def work_on_the_copy(deployed: Deployed) -> None:
    there = Deployed(deployed.folder, copy_of(deployed))
    there.configure()
    there.admin("apps", "create", "Late", "--partner-id", "late")
    deployed.configure()


def test_it_is_reinstated_where_the_copy_says_the_same(moved: Deployed) -> None:
    assert "--to" in moved.run("admin", "copy", "reinstate", fails=True)
    assert moved.admin("copy", "reinstate", "--to", copy_of(moved)) == {"reinstated": True}
    moved.admin("apps", "create", "Late", "--partner-id", "late")


def test_it_stays_retired_where_the_copy_was_written_to_unless_forced(moved: Deployed) -> None:
    work_on_the_copy(moved)
    refused = moved.run("admin", "copy", "reinstate", "--to", copy_of(moved), fails=True)
    assert "the copy differs from the source" in refused
    assert "moved" in moved.run(
        "admin", "apps", "create", "Other", "--partner-id", "other", fails=True
    )
    assert moved.admin("copy", "reinstate", "--force") == {"reinstated": True}
    moved.admin("apps", "create", "Other", "--partner-id", "other")


def test_a_backup_from_before_the_move_is_restored_only_when_asked(moved: Deployed) -> None:
    back = ("backup", "restore", str(moved.folder / "backup.db"), "--overwrite")
    assert "is retired" in moved.run("admin", *back, fails=True)
    assert moved.admin(*back, "--retired-too")["current"] is True
    moved.admin("apps", "create", "Late", "--partner-id", "late")


def test_a_rehearsals_copy_does_not_vouch_for_the_one_that_is_at_work(tmp_path: Path) -> None:
    deployed = Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")
    deployed.run("admin", "migrate")
    shop(deployed)
    deployed.admin("backup", "make", str(tmp_path / "rehearsal.db"))
    rehearsal = Deployed(tmp_path, f"sqlite:///{tmp_path}/rehearsal.db")
    trial = f"sqlite:///{tmp_path}/trial.db"
    rehearsal.configure()
    rehearsal.admin("copy", "run", "--to", trial)
    deployed.configure()
    deployed.admin("copy", "run", "--to", copy_of(deployed))
    refused = deployed.run("admin", "copy", "reinstate", "--to", trial, fails=True)
    assert "the copy differs from the source" in refused
    assert deployed.admin("copy", "reinstate", "--to", copy_of(deployed)) == {"reinstated": True}


def test_a_file_that_a_process_has_open_is_not_moved(tmp_path: Path) -> None:
    deployed = Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")
    deployed.run("admin", "migrate")
    storage = open_storage(deployed.storage_url)
    assert storage.next_due("sandbox.webhooks") is None
    said = deployed.run("admin", "copy", "run", "--to", copy_of(deployed), fails=True)
    assert "a process uses" in said
    storage.close()
    deployed.admin("copy", "run", "--to", copy_of(deployed))


def test_a_difference_is_reported_by_the_exit_code(moved: Deployed) -> None:
    assert moved.admin("copy", "verify", "--to", copy_of(moved))["differences"] == 0
    work_on_the_copy(moved)
    said = moved.run("admin", "copy", "verify", "--to", copy_of(moved), "--json", fails=True)
    assert json.loads(said)["differences"] > 0


def test_a_storage_is_not_compared_with_itself(moved: Deployed) -> None:
    for command in ("run", "verify"):
        said = moved.run("admin", "copy", command, "--to", moved.storage_url, fails=True)
        assert "--to is the configured storage itself" in said


def test_the_doctor_knows_a_file_that_was_moved(moved: Deployed) -> None:
    assert "its records were moved" in moved.run("doctor", "--json", fails=True)


@pytest.mark.postgres
def test_what_cannot_be_retired_is_moved_only_when_asked(tmp_path: Path) -> None:
    url = fresh_schema(postgres_or_skip())
    deployed = Deployed.made(tmp_path, url)
    deployed.run("admin", "migrate")
    shop(deployed)
    run = ("copy", "run", "--to", copy_of(deployed))
    assert "see --not-retired" in deployed.run("admin", *run, fails=True)
    done = deployed.admin(*run, "--not-retired")
    assert (done["sourceRetired"], done["rows"]["apps"]) == (False, 1)
    drop_schema(url)
