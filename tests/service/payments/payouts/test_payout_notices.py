"""A payout's notices: stored as a job that looks, and acknowledged only after that commit."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest

from payments_core.accounts.bank_accounts.operations import open_details
from payments_core.accounts.bank_accounts.record import BankAccount
from payments_core.banks.notice_reader import NoticeReader
from payments_core.banks.port import BankNotice, PayoutOrder
from payments_core.clock import MINUTE
from payments_core.payments.details import PaymentDetails
from payments_core.payments.payouts.jobs import LOOK_AT_PAYOUT
from payments_core.payments.payouts.notices import MAX_LISTED, PayoutNotices
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from tests.service.onramps.test_notices import Refusing
from tests.service.payments.payouts.payout_harness import DAY_S, PayoutHarness

pytestmark = pytest.mark.usefixtures("memory_world")


def notices(harness: PayoutHarness, mode: str = "sandbox") -> PayoutNotices:
    return PayoutNotices(harness.world.service.parts.ports, harness.bank, mode)


def listed(harness: PayoutHarness) -> list[str]:
    return [notice.id for notice in harness.bank.list_notices()]


def returned_late(harness: PayoutHarness) -> PaymentDetails:
    """A payout that comes back after its own job has ended; no notice of it has been read."""
    created = harness.settled()
    harness.pass_days(80)
    assert not harness.is_followed(created)
    harness.bank.return_payout(harness.payout(created).key, "R06")
    assert harness.payout(created).status == "settled"
    return created


def look_job(harness: PayoutHarness, created: PaymentDetails) -> Job | None:
    id = f"sandbox:{LOOK_AT_PAYOUT}:{harness.payout(created).key}"
    world = harness.world
    return world.storage.read(world.environment_id, lambda snapshot: snapshot.get(Job, id))


def test_a_payout_that_a_restored_storage_has_lost_is_reported_and_not_made_again(
    memory_harness: PayoutHarness, caplog: pytest.LogCaptureFixture
) -> None:
    """The backup is of before the retry: the bank has a payout that the Payment does not know."""
    harness = memory_harness
    created = harness.submitted()
    first = harness.payout(created)
    harness.bank.return_payout(first.key, "R03")
    harness.pass_days(1)
    assert harness.payment(created).status == "action_required"
    lost = first.key.removesuffix("1") + "2"
    account = harness.world.get(BankAccount, first.bank_account_id)
    order = PayoutOrder(
        key=lost, rail=first.rail, amount_cents=first.amount_cents,
        recipient=open_details(harness.world.service.parts.ports.key_ring, account),
    )  # fmt: skip
    harness.bank.submit(order)
    assert "ALARM" not in caplog.text
    harness.pass_days(5)  # it settles, and the bank reports that
    assert f"ALARM: the bank has the payout {lost}, which belongs to no Payment" in caplog.text
    assert not harness.look(created, lost.replace("payment_", "payment_x"))
    harness.world.reconcile(created, "retry_execution")
    harness.pass_days(1)
    assert (harness.payout(created).key, harness.payout(created).status) == (lost, "settled")
    assert harness.bank.count_payouts([first.key, lost, f"{lost}1"]) == 2


class Repeating:
    """A bank that lists these notices until they are acknowledged."""

    def __init__(self, *listed: BankNotice) -> None:
        self.listed = list(listed)

    def list_notices(self, limit: int = 100) -> Sequence[BankNotice]:
        return self.listed[:limit]

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        self.listed = [notice for notice in self.listed if notice.id not in notice_ids]


def test_a_notice_announces_a_return_that_no_job_looks_for(memory_harness: PayoutHarness) -> None:
    created = returned_late(memory_harness)
    memory_harness.world.system.advance(DAY_S)
    memory_harness.world.run()
    assert memory_harness.payout(created).status == "returned"
    assert memory_harness.payment(created).status == "action_required"
    assert memory_harness.books(created) == {"payer": -2500, "offramp": 2500}
    assert memory_harness.causes(created).count("payout_returned") == 1
    assert listed(memory_harness) == []
    assert look_job(memory_harness, created) is None


def test_a_notice_is_stored_before_it_is_acknowledged(memory_harness: PayoutHarness) -> None:
    harness = memory_harness
    created = returned_late(harness)
    harness.world.system.advance(15 * 60)
    for _ in range(2):  # a crash between the two: it is read again
        page = notices(harness).store_page(None)
        assert [id.rpartition("/")[0] for id in page.stored] == [
            f"{harness.payout(created).key}/returned"
        ]
        assert not page.has_left
        assert listed(harness)
        found = look_job(harness, created)
        assert found is not None
        assert found.version == 1


def test_a_notice_that_cannot_be_stored_is_not_acknowledged(
    memory_harness: PayoutHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = memory_harness
    created = returned_late(harness)
    harness.world.system.advance(15 * 60)
    kind = notices(harness)
    ports = harness.world.service.parts.ports
    monkeypatch.setattr(kind, "_committer", Refusing(ports.committer, harness.world.environment_id))
    page = kind.store_page(None)
    assert (list(page.stored), page.has_left) == ([], True)
    assert look_job(harness, created) is None
    assert listed(harness)


def test_a_payout_that_is_looked_at_now_is_looked_at_again(memory_harness: PayoutHarness) -> None:
    harness = memory_harness
    created = returned_late(harness)
    harness.world.system.advance(15 * 60)
    notices(harness).store_page(None)

    def lease(tx: Transaction) -> None:
        job = look_job(harness, created)
        assert job is not None
        locked = tx.get(Job, job.id, for_update=True)
        assert locked is not None
        tx.replace(attrs.evolve(locked, lease_until=harness.world.clock.now() + MINUTE))

    harness.world.storage.transact(harness.world.environment_id, lease)
    page = notices(harness).store_page(None)
    assert (list(page.stored), page.has_left) == ([], True)


def test_a_silent_bank_is_asked_again(memory_harness: PayoutHarness) -> None:
    harness = memory_harness
    created = returned_late(harness)
    harness.fail("find_payout", 2)
    harness.fail("list_notices")
    harness.fail("acknowledge")
    harness.world.system.advance(DAY_S)
    harness.world.run()
    assert harness.payout(created).status == "settled"
    for _ in range(4):
        harness.world.advance(120)
    assert harness.payout(created).status == "returned"
    assert listed(harness) == []


def test_a_notice_of_nobody_is_ended_and_one_of_the_other_mode_is_left(
    memory_harness: PayoutHarness,
) -> None:
    harness = memory_harness
    created = harness.submitted()
    key = harness.payout(created).key
    now = harness.world.clock.now()
    bank = Repeating(
        *(
            BankNotice(id=id, payout_key=payout_key, status="settled", occurred_at_ms=now)
            for id, payout_key in (("1", key), ("2", "env_unknown/payment_x/1"), ("3", "nonsense"))
        )
    )
    ports = harness.world.service.parts.ports
    page = PayoutNotices(ports, bank, "production").store_page(None)  # type: ignore[arg-type]
    assert (list(page.stored), page.has_left) == (["2", "3"], False)
    assert look_job(harness, created) is None
    kind = PayoutNotices(ports, bank, "sandbox")  # type: ignore[arg-type]
    kind.acknowledge(kind.store_page(None).stored)
    assert bank.listed == []
    assert look_job(harness, created) is not None


class Idle:
    """A kind that has nothing, and may be asked so seldom."""

    def __init__(self, max_pause_ms: int) -> None:
        self.max_pause_ms = max_pause_ms


def test_the_kind_that_waits_least_sets_the_pace(memory_harness: PayoutHarness) -> None:
    reader = NoticeReader(
        memory_harness.world.service.parts.ports,
        "sandbox",
        {"slow": Idle(60 * MINUTE), "fast": Idle(MINUTE)},  # type: ignore[dict-item]
    )
    assert reader.max_pause_ms == MINUTE


def test_a_list_full_of_notices_that_stay_is_asked_for_in_a_longer_one(
    memory_harness: PayoutHarness, caplog: pytest.LogCaptureFixture
) -> None:
    """With one bank for both modes, those of the other mode stay, however many they are."""
    harness = memory_harness
    key, now = harness.payout(harness.submitted()).key, harness.world.clock.now()

    def bank(count: int) -> Repeating:
        of_others = (
            BankNotice(id=str(number), payout_key=key, status="settled", occurred_at_ms=now)
            for number in range(count)
        )
        ended = BankNotice(id="last", payout_key="nonsense", status="settled", occurred_at_ms=now)
        return Repeating(*of_others, ended)

    def read(count: int) -> list[str]:
        kind = PayoutNotices(harness.world.service.parts.ports, bank(count), "production")  # type: ignore[arg-type]
        after: str | None = None
        while True:
            page = kind.store_page(after)
            if page.next is None:
                return list(page.stored)
            after = page.next

    assert read(350) == ["last"]
    assert "ALARM: 6400" not in caplog.text
    assert read(MAX_LISTED) == []
    assert "ALARM: 6400 notices of the bank are left" in caplog.text
