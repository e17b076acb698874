"""kill -9 of a worker inside a handler of events: the next life gives it the event again."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from payments_core.credentials.keyring import KeyRing
from payments_core_http.cli.child_processes import ChildProcess
from tests.webhooks.kill_victim import service_over

ROOT = Path(__file__).resolve().parents[2]
EVENTS = 12
WAIT_S = 60.0


def test_kill_9_inside_a_handler_loses_no_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)  # where the children find themselves as modules
    (tmp_path / "keys").write_text(KeyRing.generate())
    service = service_over(tmp_path)
    app = service.tenants.create_app("Acme", "acme")
    (tmp_path / "environment").write_text(app.environments["sandbox"])
    service.close()

    killed = [live_and_die(tmp_path, fatal) for fatal in (1, 4)]
    live_to_the_end(tmp_path)

    events = [row["id"] for row in rows(tmp_path, "events")]
    begun, ended = (lines(tmp_path / name) for name in ("begun", "ended"))
    assert len(events) == EVENTS
    assert set(ended) == set(events)
    for event in killed:
        assert begun.count(event) > ended.count(event)  # it was inside, and came again
    deliveries = rows(tmp_path, "webhook_deliveries")
    assert sorted(row["event_id"] for row in deliveries) == sorted(events)
    assert {row["status"] for row in deliveries} == {"delivered"}
    assert [job for job in rows(tmp_path, "jobs") if job["queue"] == "sandbox.webhooks"] == []


def live_and_die(folder: Path, fatal: int) -> str:
    """A life that is killed inside the handler of its so-many-th event; the event's id."""
    victim = start(folder, fatal)
    try:
        victim.wait_until_ready()
        assert victim.wait_for(lambda reported: any("inside" in line for line in reported), WAIT_S)
        victim.kill()
    finally:
        victim.end()
    return next(str(line["inside"]) for line in victim.read_messages() if "inside" in line)


def live_to_the_end(folder: Path) -> None:
    """The last life, whose handler always returns."""
    victim = start(folder, fatal=0)
    try:
        victim.wait_until_ready()
        assert victim.wait_for(
            lambda reported: len(set(lines(folder / "ended"))) == EVENTS, WAIT_S
        ), victim.read_errors()
    finally:
        code = victim.end()
    assert code == 0, victim.read_errors()


def start(folder: Path, fatal: int) -> ChildProcess:
    arguments = [str(folder), str(EVENTS), str(fatal)]
    return ChildProcess("victim", "tests.webhooks.handler_victim", arguments)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """What a table holds, read without any of the service's own code."""
    with closing(sqlite3.connect(folder / "data.db")) as connection:
        found = connection.execute(f"SELECT body FROM {table}").fetchall()
    return [json.loads(body) for (body,) in found]
