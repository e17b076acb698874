"""`payments doctor`: each fault is found, and what to do is said."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from payments_core.background_jobs import QUEUES
from payments_core.clock import HOUR, MAX_CLOCK_SKEW_MS, Instant, SystemClock, parse_iso
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.jobs.parking import Queue
from payments_core.evolve import evolve
from payments_core.limiters.port import LimiterUnavailable
from payments_core.service import PaymentsService
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import DIRECTORY, StorageUnavailable
from payments_core.storage_loader import open_storage
from payments_core_http.deployment.doctor import Finding, check_clock_skew, run_checks
from payments_core_http.deployment.loader import load_configuration
from tests.deployment.deployed import Deployed

NOW = 1_790_000_000_000


@pytest.fixture
def deployed(tmp_path: Path) -> Deployed:
    return Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")


def findings(deployed: Deployed, *, faulty: bool) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for line in deployed.run("doctor", "--json", fails=faulty).splitlines():
        finding = json.loads(line)
        found.setdefault(finding["check"], []).append(finding)
    return found


def test_a_sound_deployment_has_no_fault(deployed: Deployed) -> None:
    deployed.run("admin", "migrate")
    found = findings(deployed, faulty=False)
    assert {"settings", "keys", "storage", "limiter", "worker", "chain 8453"} <= set(found)
    assert found["storage"][0]["level"] == "ok"


def test_a_diagnosis_changes_nothing(deployed: Deployed) -> None:
    deployed.run("admin", "migrate")
    deployed.run("admin", "apps", "create", "Shop", "--partner-id", "shop")

    def dump() -> list[str]:
        with closing(sqlite3.connect(deployed.folder / "payments.db")) as database:
            return list(database.iterdump())

    before = dump()
    (chain,) = findings(deployed, faulty=False)["chain 8453"]
    assert (chain["level"], chain["says"]) == ("ok", "not scanned yet: no worker has read it")
    assert dump() == before


def test_the_clock_is_shown_also_if_the_storage_has_none(deployed: Deployed) -> None:
    deployed.run("admin", "migrate")
    before = SystemClock().now()
    (clock,) = findings(deployed, faulty=False)["clock"]
    reported = re.search(r"clock says (\S+Z);", clock["says"])
    assert clock["level"] == "ok"
    assert reported and before <= parse_iso(reported[1]) <= SystemClock().now()


def test_a_storage_without_an_app_is_reported_for_it_may_be_the_wrong_one(
    deployed: Deployed,
) -> None:
    deployed.run("admin", "migrate")
    _, warning = findings(deployed, faulty=False)["storage"]
    assert (warning["level"], warning["says"]) == ("warning", "has no app")
    deployed.run("admin", "apps", "create", "Shop", "--partner-id", "shop")
    assert [one["level"] for one in findings(deployed, faulty=False)["storage"]] == ["ok"]


def test_a_file_that_is_not_there_is_a_fault_and_is_not_made(deployed: Deployed) -> None:
    (fault,) = findings(deployed, faulty=True)["storage"]
    assert "payments admin migrate" in fault["remedy"]
    assert not (deployed.folder / "payments.db").exists()


def test_another_storages_key_ring_is_a_fault(deployed: Deployed) -> None:
    deployed.run("admin", "migrate")
    deployed.run("admin", "apps", "list")
    (deployed.folder / "key-ring").write_text(KeyRing.generate())
    (fault,) = findings(deployed, faulty=True)["keys"]
    assert "is not the k1 that" in fault["says"]
    (deployed.folder / "key-ring").write_text(KeyRing.generate(name="k9"))
    (fault,) = findings(deployed, faulty=True)["keys"]
    assert "sealed with: k1" in fault["says"]


def test_a_storage_that_was_never_migrated_is_a_fault(deployed: Deployed) -> None:
    (deployed.folder / "payments.db").touch()
    (fault,) = findings(deployed, faulty=True)["storage"]
    assert fault["level"] == "fault"
    assert "payments admin migrate" in fault["remedy"]


def test_a_limiter_that_is_down_is_a_fault(deployed: Deployed) -> None:
    deployed.run("admin", "migrate")
    deployed.configure(limiter={"url": "redis://:hidden@127.0.0.1:1"})
    (fault,) = findings(deployed, faulty=True)["limiter"]
    assert fault["level"] == "fault"
    assert "429" in fault["remedy"]
    assert "hidden" not in json.dumps(fault)


def test_weak_settings_are_faults_and_the_rest_is_looked_at_all_the_same(
    deployed: Deployed,
) -> None:
    deployed.run("admin", "migrate")
    deployed.configure(public_url="http://pay.example.com/v2")
    found = findings(deployed, faulty=True)
    assert (
        "public_url must not have a path that begins as the service's own routes do"
        in found["settings"][0]["says"]
    )
    assert found["storage"][0]["level"] == "ok"


def test_a_setting_that_opens_nothing_is_a_fault(deployed: Deployed) -> None:
    deployed.run("admin", "migrate")
    deployed.configure(keys={"ring_file": "/nowhere/at/all"})
    assert "keys.ring_file" in findings(deployed, faulty=True)["settings"][-1]["says"]


def worker_findings(deployed: Deployed, now: Instant) -> dict[str, Finding]:
    """The findings about each queue."""
    configuration = load_configuration(deployed.config, {})
    found = [one for one in run_checks(configuration, now=lambda _: now) if one.check == "worker"]
    return {queue.name: one for queue, one in zip(QUEUES, found, strict=True)}


def insert_jobs(deployed: Deployed, *jobs: Job) -> None:
    storage = open_storage(deployed.storage_url)
    storage.transact(DIRECTORY, lambda tx: tx.write(jobs))
    storage.close()


def late_job(queue: Queue, **changed: int) -> Job:
    return Job(
        id=f"job_{queue.name}", queue=f"sandbox.{queue.name}", lane="l", kind="none", subject="s",
        **{"due_at": NOW, **changed},
    )  # fmt: skip


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.name)
def test_work_that_is_late_by_more_than_its_queue_allows_is_a_fault(
    deployed: Deployed, queue: Queue
) -> None:
    deployed.run("admin", "migrate")
    insert_jobs(deployed, late_job(queue))
    allowed_ms = queue.run_limit_ms + queue.lease_ms
    for after_ms, faulty in ((-1, set()), (0, set()), (1, {queue.name})):
        found = worker_findings(deployed, NOW + allowed_ms + after_ms)
        assert {name for name, one in found.items() if one.level == "fault"} == faulty
    says = f"a job of the queue {queue.name} has been due for {allowed_ms // 1_000} s"
    remedy = "is a worker running? Is the job parked (`payments admin jobs parked`)?"
    assert (found[queue.name].says, found[queue.name].remedy) == (says, remedy)


def test_a_lease_that_a_clock_hours_ahead_wrote_is_a_fault(deployed: Deployed) -> None:
    """Its lane stands still until then, and the job does not seem to be due."""
    deployed.run("admin", "migrate")
    until = NOW + 3 * HOUR
    insert_jobs(deployed, *(late_job(queue, lease_until=until, claims=1) for queue in QUEUES))
    for queue in QUEUES:
        latest = until - queue.lease_ms - MAX_CLOCK_SKEW_MS
        for now, level in ((latest - 1, "fault"), (latest, "ok"), (latest + 1, "ok")):
            finding = worker_findings(deployed, now)[queue.name]
            assert finding.level == level
        finding = worker_findings(deployed, NOW)[queue.name]
        assert finding.says == f"1 jobs of the queue {queue.name} are leased for up to 10800 s"


def test_a_late_job_gives_the_command_an_exit_code(deployed: Deployed) -> None:
    deployed.run("admin", "migrate")
    findings(deployed, faulty=False)
    insert_jobs(deployed, late_job(QUEUES[0]))
    assert any(one["level"] == "fault" for one in findings(deployed, faulty=True)["worker"])


def test_parked_jobs_are_named_with_the_command_that_retries_them(deployed: Deployed) -> None:
    deployed.run("admin", "migrate")
    [fine] = findings(deployed, faulty=False)["jobs"]
    assert (fine["level"], fine["says"]) == ("ok", "no job is parked")
    insert_jobs(deployed, *(late_job(queue, lease_until=NEVER, claims=9) for queue in QUEUES))
    found = findings(deployed, faulty=False)["jobs"]
    assert {one["level"] for one in found} == {"warning"}
    assert {one["remedy"].partition(", then ")[2] for one in found} == {
        f"`payments admin jobs retry {DIRECTORY} job_{queue.name}`" for queue in QUEUES
    }
    many = (evolve(late_job(QUEUES[0], lease_until=NEVER), id=f"job_{n}") for n in range(20))
    insert_jobs(deployed, *many)
    last = findings(deployed, faulty=False)["jobs"][-1]
    assert last["says"] == f"{len(QUEUES)} more jobs are parked"
    assert "`payments admin jobs parked`" in last["remedy"]


def test_a_storage_that_fails_meanwhile_is_not_called_a_bug(deployed: Deployed) -> None:
    deployed.run("admin", "migrate")

    def lose_storage(service: PaymentsService) -> Instant:
        raise StorageUnavailable("the node is down")

    configuration = load_configuration(deployed.config, {})
    [found] = [one for one in run_checks(configuration, now=lose_storage) if one.level == "fault"]
    assert (found.check, found.remedy) == (
        "worker",
        "a server of the storage is unavailable: see docs/how-to/runbook.md",
    )


class Ahead:
    """A server whose clock is so far ahead."""

    def __init__(self, by_ms: int) -> None:
        self._by_ms = by_ms

    def server_time(self) -> int:
        return SystemClock().now() + self._by_ms


class Silent:
    """A server that may not be asked for its time."""

    def server_time(self) -> int:
        raise LimiterUnavailable("Redis: NoPermissionError")


def test_a_clock_that_cannot_be_asked_is_reported() -> None:
    (found,) = check_clock_skew("the limiter's", Silent(), SystemClock())
    assert found.level == "warning"


@pytest.mark.parametrize(
    ("by_ms", "level"), [(0, "ok"), (2_000, "warning"), (-2_000, "warning"), (60_000, "fault")]
)
def test_clocks_that_differ_are_reported(by_ms: int, level: str) -> None:
    (found,) = check_clock_skew("the storage's", Ahead(by_ms), SystemClock())
    assert found.level == level
    assert bool(found.remedy) is (level != "ok")
