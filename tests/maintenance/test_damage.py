"""One damaged row does not stop upkeep: the rest is done, and the row is reported by its place."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from payments_core.chains.outbox.record import Sender
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.clock import DAY
from payments_core.engine.events import Event
from payments_core.maintenance.after_restore import find_senders_behind_chain, stop_sending
from payments_core.maintenance.parked_jobs import list_parked_jobs
from payments_core.maintenance.retention import Retention, RetentionPurge
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.maintenance import scan_all
from payments_core.storage.port import LocatedRecord
from payments_core.storage.records import R
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.tenants.record import Environment
from tests.maintenance.shop import Shop
from tests.service.world import BASE

DAMAGED = "{sesame"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


@pytest.fixture
def shop(path: Path) -> Iterator[Shop]:
    storage = SqliteStorage(path, RECORD_TYPES)
    storage.migrate()
    shop = Shop(storage)
    shop.open()
    shop.fund("100.00")
    yield shop
    storage.close()


def damage(path: Path, one: LocatedRecord[R]) -> str:
    """Damage a row; what the alarm about it says."""
    name = type(one.record).collection.name
    with closing(sqlite3.connect(path)) as connection, connection:
        done = connection.execute(
            f'UPDATE "{name}" SET body = ? WHERE partition = ? AND id = ?',
            (DAMAGED, one.partition, one.record.id),
        )
        assert done.rowcount == 1
    return f"ALARM: {one.record.id} of {one.partition} in {name} cannot be read and is skipped"


def alarms(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert DAMAGED not in caplog.text
    return [record.getMessage() for record in caplog.records if record.levelno == logging.CRITICAL]


def test_senders_are_stopped_and_parked_jobs_are_listed_beside_a_damaged_job(
    shop: Shop, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for amount in ("5.00", "6.00", "7.00"):
        shop.authorized(amount)
    jobs = [one for one in scan_all(shop.storage, Job) if one.record.lane.startswith("sender:")]
    assert len(jobs) == 3
    reported = damage(path, jobs[1])
    stopped = stop_sending(shop.service.parts.ports, "sandbox")
    assert alarms(caplog) == [reported]
    left = {jobs[0].record.id, jobs[2].record.id}
    assert {one.job.id for one in stopped} == left
    assert {one.job.id for one in list_parked_jobs(shop.storage, "sandbox")} == left
    assert alarms(caplog) == [reported, reported]
    assert all(one.job.lease_until == NEVER for one in list_parked_jobs(shop.storage, "sandbox"))


def test_a_sender_whose_environment_is_damaged_is_reported_and_not_asked_for(
    shop: Shop, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shop.authorized("5.00")
    shop.run()
    assert len(list(scan_all(shop.storage, Sender))) == 1
    chain = SimulatedChain(BASE, shop.service.parts.ports)
    (place,) = [
        one for one in scan_all(shop.storage, Environment) if one.partition == shop.environment_id
    ]
    reported = damage(path, place)
    assert find_senders_behind_chain(shop.storage, {BASE: chain}, "sandbox") == ()
    assert alarms(caplog) == [reported]


def test_a_purge_ends_well_beside_a_damaged_event_and_says_what_stays(
    shop: Shop, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shop.authorized("5.00")
    shop.finish()
    damage(path, next(iter(scan_all(shop.storage, Event))))
    shop.system.advance(400 * DAY // 1_000)  # without a year of scans in between
    shop.run()
    caplog.clear()  # the worker's own purge says the same
    RetentionPurge(shop.service.parts.ports).run(Retention())
    assert alarms(caplog) == [
        f"ALARM: a record of {shop.environment_id} cannot be read; its events are not purged"
    ]
