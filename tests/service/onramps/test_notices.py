"""The reader of notices: bounded, fair between environments, acknowledged after the commit."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from payments_core.banks.notice_reader import MAX_PAGES
from payments_core.banks.port import MAX_NOTICES
from payments_core.clock import MINUTE
from payments_core.engine.committer import Committer
from payments_core.engine.decision import WorkerAuthority
from payments_core.errors import Unavailable
from payments_core.maintenance.damaged_rows import DamagedRow, DamagedRows
from payments_core.onramps.credit import FOLLOW_TRANSFER
from payments_core.onramps.notices import IncomingNotices
from payments_core.onramps.record import OnrampAccount
from payments_core.record_types import RECORD_TYPES
from payments_core.storage import documents
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Transaction
from tests.service.corruption import corrupt
from tests.service.onramps.setting import OnrampSetting
from tests.service.world import World


@pytest.fixture
def setting() -> OnrampSetting:
    return OnrampSetting(World(MemoryStorage()).open())


def notices(setting: OnrampSetting, mode: str = "sandbox") -> IncomingNotices:
    return IncomingNotices(setting.world.service.parts.ports, setting.bank, mode)


def deposit(setting: OnrampSetting, count: int = 1) -> list[str]:
    """Transfers whose notices nobody has read; the ids of their jobs."""
    made = [setting.deposit("5.00") for _ in range(count)]
    return [f"sandbox:{FOLLOW_TRANSFER}:{one.id}" for one in made]


def job(setting: OnrampSetting, id: str) -> Job | None:
    world = setting.world
    return world.storage.read(world.environment_id, lambda snapshot: snapshot.get(Job, id))


def change_job(setting: OnrampSetting, id: str, **changes: int) -> None:
    def work(tx: Transaction) -> None:
        found = tx.get(Job, id, for_update=True)
        assert found is not None
        tx.replace(attrs.evolve(found, **changes))

    setting.world.storage.transact(setting.world.environment_id, work)


class Refusing:
    """A committer that cannot write one partition."""

    def __init__(self, inner: Committer, partition: str) -> None:
        self._inner = inner
        self._partition = partition

    def commit(self, authority: WorkerAuthority, decide: Any) -> Any:
        if authority.partition == self._partition:
            raise Unavailable()
        return self._inner.commit(authority, decide)


def test_a_page_is_bounded_and_the_next_goes_on(setting: OnrampSetting) -> None:
    count = MAX_NOTICES + 20
    ids = deposit(setting, count)
    first = notices(setting).store_page(None)
    assert len(first.stored) == MAX_NOTICES
    second = notices(setting).store_page(first.next)
    assert (len(second.stored), second.next) == (20, None)
    assert all(job(setting, id) is not None for id in ids)
    assert MAX_PAGES * MAX_NOTICES < 1_000  # a run ends within its lease


def test_the_same_notice_makes_one_job(setting: OnrampSetting) -> None:
    [id] = deposit(setting)
    for _ in range(2):
        page = notices(setting).store_page(None)
        assert len(page.stored) == 1
    found = job(setting, id)
    assert found is not None
    assert found.version == 1


def test_a_notice_of_a_transfer_that_is_looked_at_now_is_left(setting: OnrampSetting) -> None:
    [id] = deposit(setting)
    notices(setting).store_page(None)
    now = setting.world.clock.now()
    change_job(setting, id, lease_until=now + MINUTE)
    page = notices(setting).store_page(None)
    assert (page.stored, page.has_left) == ([], True)
    change_job(setting, id, lease_until=NEVER)
    assert len(notices(setting).store_page(None).stored) == 1  # parked: it looks when it goes on
    change_job(setting, id, lease_until=0, due_at=now + MINUTE)
    assert len(notices(setting).store_page(None).stored) == 1
    found = job(setting, id)
    assert found is not None
    assert found.due_at == now


def test_the_notices_of_the_other_mode_are_left_alone(setting: OnrampSetting) -> None:
    [id] = deposit(setting)
    page = notices(setting, "production").store_page(None)
    assert (page.stored, page.has_left) == ([], False)
    assert job(setting, id) is None


def test_an_environment_that_cannot_be_written_keeps_no_other_waiting(
    setting: OnrampSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    [id] = deposit(setting)
    unmatched = setting.deposit("7.00", outcome="unmatched")
    reader = notices(setting)
    refusing = Refusing(setting.world.service.parts.ports.committer, setting.world.environment_id)
    monkeypatch.setattr(reader, "_committer", refusing)
    page = reader.store_page(None)
    assert [id.partition("/")[0] for id in page.stored] == [unmatched.id]
    assert page.has_left
    assert job(setting, id) is None
    setting.world.finish()
    assert setting.transaction.status == "settled"


def test_notices_for_an_onramp_that_cannot_be_read_stay_at_the_bank(
    setting: OnrampSetting,
) -> None:
    """Taken for nobody's, the transfer would go back to its sender."""
    world = setting.world
    [id] = deposit(setting)
    stored = world.get(OnrampAccount, setting.onramp.id)
    corrupt(world.storage, world.environment_id, stored)
    page = notices(setting).store_page(None)
    assert (page.stored, page.has_left, job(setting, id)) == ([], True, None)
    rows = DamagedRows(world.service.parts.ports, RECORD_TYPES)
    place = DamagedRow("onramp_accounts", world.environment_id, stored.id)
    rows.repair(place, documents.encode(stored))
    assert len(notices(setting).store_page(None).stored) == 1
    assert job(setting, id) is not None
