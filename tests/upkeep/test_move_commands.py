"""A file that was moved comes back through no command that is not told what that means."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deployment.deployed import Deployed, shop


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
    assert "the copy is not as the source is" in refused
    assert "moved" in moved.run(
        "admin", "apps", "create", "Other", "--partner-id", "other", fails=True
    )
    assert moved.admin("copy", "reinstate", "--force") == {"reinstated": True}
    moved.admin("apps", "create", "Other", "--partner-id", "other")


def test_a_backup_from_before_the_move_is_put_back_only_when_told(moved: Deployed) -> None:
    back = ("backup", "restore", str(moved.folder / "backup.db"), "--overwrite")
    assert "is retired" in moved.run("admin", *back, fails=True)
    assert moved.admin(*back, "--retired-too")["current"] is True
    moved.admin("apps", "create", "Late", "--partner-id", "late")
