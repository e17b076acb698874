"""The reader of a bank's notices: where a run begins, and what keeps no others waiting."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest

from payments_core.banks.notice_reader import MAX_PAGES, NoticeReader, NoticesPage, store_jobs
from payments_core.banks.port import BankUnavailable
from payments_core.clock import MINUTE
from payments_core.storage.jobs import Job
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.faults import Fault, FaultyStorage, commit_failed, commit_lost, storage_away
from tests.service.world import World

PAGES = 2 * MAX_PAGES + 2


class Stuck:
    """A kind with so many pages; only the last has a notice that can be stored."""

    max_pause_ms = MINUTE

    def __init__(self) -> None:
        self.asked: list[str | None] = []
        self.acknowledged: list[str] = []
        self.forgets = False

    def store_page(self, after: str | None) -> NoticesPage:
        self.asked.append(after)
        if self.forgets and after is not None:
            raise BankUnavailable("no such page any more")
        number = 0 if after is None else int(after)
        is_last = number == PAGES - 1
        stored = ["stored"] if is_last else []
        return NoticesPage(stored, not is_last, None if is_last else str(number + 1))

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        self.acknowledged += notice_ids


@pytest.fixture
def world() -> World:
    return World(MemoryStorage()).open()


def run(world: World, kind: Stuck) -> None:
    """One run of the reader's job, as a worker makes it."""
    reader = NoticeReader(world.service.parts.ports, "sandbox", {"payouts": kind})
    reader.ensure_scheduled()
    world.system.advance(2 * 60)
    found = world.storage.claim(
        "sandbox.timers", world.clock.now(), lease_ms=30_000, limit=100, lane_concurrency=1
    )
    [claimed] = [item for item in found if item.job.kind == "banks.read_notices"]
    reader.read(claimed)


def test_notices_that_cannot_be_stored_keep_no_others_waiting(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    kind = Stuck()
    for done in range(3):
        assert kind.acknowledged == []
        run(world, kind)
        assert len(kind.asked) == min((done + 1) * MAX_PAGES, PAGES)
    assert kind.acknowledged == ["stored"]
    alarms = [record.getMessage() for record in caplog.records if "ALARM" in record.getMessage()]
    assert alarms == ["ALARM: 5 pages of notices of payouts could not be stored"] * 2
    run(world, kind)
    assert kind.asked[PAGES] is None  # the end was reached: it begins anew


def test_a_reader_begins_again_where_the_bank_has_forgotten_the_page(world: World) -> None:
    kind = Stuck()
    run(world, kind)
    kind.forgets = True
    run(world, kind)
    assert kind.asked[-1] == str(MAX_PAGES)
    kind.forgets = False
    run(world, kind)
    assert kind.asked[MAX_PAGES + 1] is None


def test_pages_that_hold_notices_of_the_other_mode_alone_give_no_alarm(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    class OfOthers(Stuck):
        def store_page(self, after: str | None) -> NoticesPage:
            return attrs.evolve(super().store_page(after), has_left=False)

    kind = OfOthers()
    run(world, kind)
    assert len(kind.asked) == MAX_PAGES
    assert [record for record in caplog.records if "ALARM" in record.getMessage()] == []


@pytest.mark.parametrize("fault", [storage_away, commit_lost, commit_failed])
def test_a_storage_that_is_away_for_a_moment_is_not_an_alarm(
    world: World, caplog: pytest.LogCaptureFixture, fault: Fault
) -> None:
    ports = world.restarted(FaultyStorage(world.storage, 1, fault, ("transact",))).parts.ports
    job = Job(
        id="sandbox:look:1", queue="sandbox.timers", lane="bank", kind="payouts.look", due_at=0,
        subject="1",
    )  # fmt: skip
    jobs = {world.environment_id: {job.id: (job, ["notice"])}}
    found = [store_jobs(ports.committer, ports.clock, "sandbox", jobs) for _ in range(2)]
    assert found[1] == (["notice"], False)
    assert found[0] in (found[1], ([], True))
    assert [record for record in caplog.records if "ALARM" in record.getMessage()] == []
