"""`payments doctor` names damaged rows, and `payments admin damaged` repairs or removes one."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from payments_core_http.cli import payments
from payments_core_http.deployment import doctor
from tests.deployment.deployed import Deployed, shop

TORN = '{"half'


@pytest.fixture
def deployed(tmp_path: Path) -> Deployed:
    deployed = Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")
    deployed.run("admin", "migrate")
    shop(deployed)
    return deployed


def damage(deployed: Deployed, table: str, body: str | bytes = TORN) -> tuple[list[str], str]:
    """Damage the one row of a table; its place, and its document before."""
    with closing(sqlite3.connect(deployed.folder / "payments.db")) as connection, connection:
        ((partition, id, before),) = connection.execute(f"SELECT partition, id, body FROM {table}")
        connection.execute(f"UPDATE {table} SET body = ?", (body,))
    return [table, partition, id], before


def rows_found(deployed: Deployed, *, faulty: bool) -> list[dict[str, str]]:
    lines = deployed.run("doctor", "--json", fails=faulty).splitlines()
    return [finding for finding in map(json.loads, lines) if finding["check"] == "rows"]


def run(deployed: Deployed, *arguments: str, given: str) -> Any:
    """A command of `payments admin damaged` with something typed into it."""
    line = ["admin", "damaged", *arguments, "--config", str(deployed.config)]
    return CliRunner().invoke(payments, line, input=given, catch_exceptions=False)


@pytest.mark.parametrize("table", ["apps", "key_uses", "master_key_marks"])
@pytest.mark.parametrize("body", [TORN, b"\xff\x00{"], ids=["half", "bytes"])
def test_a_damaged_row_is_named_and_repaired(
    deployed: Deployed, table: str, body: str | bytes
) -> None:
    if table == "key_uses":
        with closing(sqlite3.connect(deployed.folder / "payments.db")) as connection, connection:
            document = '{"id": "key_1", "version": 1, "schema": 1, "last_used_at": 1}'
            connection.execute(
                "INSERT INTO key_uses (partition, id, version, body) VALUES (?, ?, ?, ?)",
                ("env_1", "key_1", 1, document),
            )
    (sound,) = rows_found(deployed, faulty=False)
    assert sound["level"] == "ok" and sound["says"].startswith("all ")
    place, before = damage(deployed, table, body)
    (fault,) = rows_found(deployed, faulty=True)
    assert fault["says"] == f"{place[2]} of {place[1]} in {table} cannot be read"
    assert "payments admin damaged" in fault["remedy"]
    (listed,) = deployed.admin("damaged", "list")
    assert [listed["collection"], listed["partition"], listed["id"]] == place
    shown = deployed.admin("damaged", "show", *place)
    assert shown["document"] == (TORN if body == TORN else "\\xff\x00{")
    file = deployed.folder / "document.json"
    file.write_text(before)
    reported = deployed.admin("damaged", "repair", *place, str(file), "--confirm", place[2])
    assert reported["action"] == "repaired" and reported["document"] == shown["document"]
    assert deployed.trail()[-1].operation == "rows.repair"
    assert deployed.admin("damaged", "list") == []
    assert rows_found(deployed, faulty=False)[0]["level"] == "ok"
    assert deployed.admin("apps", "list")


def test_a_change_is_confirmed_by_the_id(deployed: Deployed) -> None:
    place, before = damage(deployed, "apps")
    file = deployed.folder / "document.json"
    file.write_text(before)
    for arguments in (["remove", *place], ["repair", *place, str(file)]):
        for given in ("y\n", "apps\n", ""):
            assert run(deployed, *arguments, given=given).exit_code == 1
        assert (
            "not the id of the row" in run(deployed, *arguments, "--confirm", "x", given="").stderr
        )
    assert len(deployed.admin("damaged", "list")) == 1
    done = run(deployed, "remove", *place, "--json", given=f"{place[2]}\n")
    assert done.exit_code == 0 and json.loads(done.stdout)["action"] == "removed"
    assert deployed.trail()[-1].operation == "rows.remove"
    assert deployed.admin("damaged", "list") == []
    assert deployed.admin("apps", "list") == []


def test_a_document_that_does_not_fit_is_refused_in_a_line(deployed: Deployed) -> None:
    place, _ = damage(deployed, "apps")
    file = deployed.folder / "document.json"
    file.write_text('{"id": "app_other"}')
    said = deployed.run(
        "admin", "damaged", "repair", *place, str(file), "--confirm", place[2], fails=True
    )
    assert "document cannot be read" in said and "Traceback" not in said
    assert "No such row" in deployed.run(
        "admin", "damaged", "show", place[0], place[1], "app_none", fails=True
    )
    assert "collection must be one of" in deployed.run(
        "admin", "damaged", "show", "app", place[1], place[2], fails=True
    )


def test_doctor_reads_so_many_rows_and_names_so_many(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(deployed.folder / "payments.db")) as connection, connection:
        connection.executemany(
            "INSERT INTO key_uses (partition, id, version, body) VALUES ('env_1', ?, 1, '')",
            [(f"key_{number:04d}",) for number in range(doctor.MAX_NAMED_ROWS + 7)],
        )
    *named, more = rows_found(deployed, faulty=True)
    assert len(named) == doctor.MAX_NAMED_ROWS
    assert more["says"] == "7 more rows cannot be read"
    monkeypatch.setattr(doctor, "MAX_CHECKED_ROWS", 1)
    (sound,) = rows_found(deployed, faulty=False)
    assert sound["says"] == "the first 1 rows can be read"
