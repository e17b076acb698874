"""A purge takes the Payments that expired with nothing received, and none that has to do with
money."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_core.chains.port import Block, ScannedTransfer
from payments_core.clock import DAY
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.idempotency.record import AlreadyResponded, StoredResponse
from payments_core.errors import DestinationNotAllowed, NotFound
from payments_core.maintenance import retention as purging
from payments_core.maintenance.retention import Retention, RetentionPurge
from payments_core.payments import purge as deciding
from payments_core.payments.destinations import ToAccount, ToWallet
from payments_core.payments.details import PaymentDetails
from payments_core.payments.expiry import EXPIRE_PAYMENT
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.operations import NewPayment
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.options.submissions import SUBMISSION_LOCK_MS
from payments_core.payments.purged import PurgedPayment
from payments_core.payments.receipts.discovery import ReceiptDiscovery
from payments_core.payments.receipts.record import TrackedTransaction
from payments_core.payments.record import Payment, PaymentLink
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.jobs import Job
from payments_core.storage.maintenance import scan_all
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import CommitUnknown, Transaction
from payments_core.storage.records import R
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.maintenance.shop import Shop
from tests.service.faults import Crashed, Fault, FaultyStorage, commit_failed, commit_lost, crash
from tests.service.payer import Payer, authority_of
from tests.service.world import BASE, USDC, WALLET, World, once, write

DAY_S = DAY // 1_000
OWN = {Payment, PaymentLink, PaymentOption, FundingOperation, TrackedTransaction}
"""What goes with a Payment."""


@pytest.fixture
def memory_shop() -> Shop:
    """On memory alone, for rules that no storage can bend."""
    shop = Shop(MemoryStorage()).open()
    shop.fund("100.00")
    return shop


def purge(shop: World, **more: Any) -> dict[str, int]:
    return dict(RetentionPurge(shop.service.parts.ports).run(Retention(), **more).records)


def stored(shop: World, kind: type[R]) -> dict[str, R]:
    return {one.record.id: one.record for one in scan_all(shop.storage, kind)}


def expire(shop: World) -> None:
    """Everything that waits expires, and what follows is done."""
    shop.advance(3_600)
    shop.finish()


def grow_old(shop: World, days: int = 92) -> None:
    """So much time that an expired Payment goes; nobody works meanwhile."""
    shop.system.advance(days * DAY_S)


def abandoned(shop: World) -> Payer:
    """A Payment with options of each kind and a submission, all of which failed."""
    payer = Payer(shop)
    shop.option(payer.payment)
    payer.submit(payer.select(payer.option()))
    shop.system.advance(SUBMISSION_LOCK_MS / 1_000)  # until then the selection is locked
    payer.another()
    return payer


def test_a_payment_goes_with_all_that_is_its_own(shop: Shop) -> None:
    kept = Payer(shop, expires_in_s=86_400)
    payer = abandoned(shop)
    expire(shop)
    assert payer.paid().status == "expired"
    others = {
        kind: stored(shop, kind) for kind in RECORD_TYPES if kind not in {*OWN, PurgedPayment}
    }
    counts = {kind.collection.name: len(stored(shop, kind)) for kind in OWN}
    grow_old(shop, 91)  # so that a day of monitoring and ninety of keeping are over
    gone = purge(shop)
    assert {name: gone[name] for name in counts} == {
        **counts, "payments": 1, "payment_links": 1,
    }  # fmt: skip
    assert set(stored(shop, Payment)) == {kept.id}
    assert [link.payment_id for link in stored(shop, PaymentLink).values()] == [kept.id]
    purged = stored(shop, PurgedPayment)[payer.id]
    assert purged.escrow_address == payer.payment.payment.escrow_address
    for kind, before in others.items():
        if kind.collection.name not in gone:
            assert stored(shop, kind) == before
    assert "payments" not in purge(shop)


def test_what_is_gone_is_not_found(memory_shop: Shop) -> None:
    shop = memory_shop
    payer = Payer(shop)
    url = shop.service.parts.links.build_url(payer.payment.payment)
    assert url is not None
    expire(shop)
    grow_old(shop)
    purge(shop)
    with pytest.raises(NotFound):
        shop.resources.payments.read(payer.id)
    with pytest.raises(NotFound):
        shop.service.checkout.exchange_link(url.rpartition("/")[2], mode="sandbox")
    with pytest.raises(NotFound):
        shop.service.acting_as(authority_of(shop, payer.secret)).public_payments.read(payer.id)
    assert shop.resources.payments.list().records == ()


def test_a_stored_answer_stays_as_it_is(memory_shop: Shop) -> None:
    shop = memory_shop
    new = NewPayment(amount="1.00", destination=ToAccount(account_id=shop.merchant.id))
    keys = [attrs.evolve(once("k"), retention_ms=400 * DAY) for _ in range(2)]
    shop.resources.payments.receive(new, idempotency_key=keys[0])
    expire(shop)
    grow_old(shop)
    before = stored(shop, StoredResponse)
    assert purge(shop)["payments"] == 1
    assert stored(shop, StoredResponse) == before
    with pytest.raises(AlreadyResponded):
        shop.resources.payments.receive(new, idempotency_key=keys[1])


def paid_late(shop: World, payment: PaymentDetails) -> None:
    expire(shop)
    shop.pay(payment, "25.00")


def given_another_token(shop: World, payment: PaymentDetails) -> None:
    to, sandbox = str(payment.payment.escrow_address), shop.resources.sandbox
    sandbox.transfer(1, "USDT", "1.00", to=WALLET)
    sandbox.transfer(1, "USDT", "1.00", to=to, from_=WALLET)


def given_nothing(shop: World, payment: PaymentDetails) -> None:
    shop.chain.transfer(USDC.address, WALLET, str(payment.payment.escrow_address), 0, "nothing")


def authorized_and_failed(shop: World, payment: PaymentDetails) -> None:
    shop.authorize(shop.option(payment))
    shop.fail("transfer", 100)


def authorized_and_withdrawn(shop: World, payment: PaymentDetails) -> None:
    """An authorization that nothing else refers to any more."""
    option = shop.option(payment)

    def work(tx: Transaction) -> None:
        operation = tx.get(FundingOperation, option.operation.id, for_update=True)
        assert operation is not None
        tx.replace(attrs.evolve(operation, authorized_at_ms=shop.clock.now()))

    write(shop.storage, shop.environment_id, work)


STAYS: dict[str, Callable[[World, PaymentDetails], Any]] = {
    "paid": lambda shop, payment: shop.pay(payment, "25.00"),
    "paid in part": lambda shop, payment: shop.pay(payment, "10.00"),
    "paid late": paid_late,
    "given another token": given_another_token,
    "given nothing": given_nothing,
    "authorized in vain": authorized_and_failed,
    "authorized and withdrawn": authorized_and_withdrawn,
    "cancelled": lambda shop, payment: shop.resources.payments.cancel(payment.payment.id),
}


@pytest.mark.parametrize("what", STAYS)
def test_what_has_to_do_with_money_stays(memory_shop: Shop, what: str) -> None:
    shop = memory_shop
    payment = shop.payment()
    STAYS[what](shop, payment)
    shop.finish()
    expire(shop)
    shop.finish()
    status = shop.paid(payment.payment.id).status
    assert status == {
        "paid": "succeeded", "paid in part": "action_required", "paid late": "action_required",
        "cancelled": "cancelled",
    }.get(what, "expired")  # fmt: skip
    before = {kind: stored(shop, kind) for kind in OWN}
    grow_old(shop, 400)
    purge(shop)
    assert {kind: stored(shop, kind) for kind in OWN} == before
    assert stored(shop, PurgedPayment) == {}


def test_a_payment_whose_monitoring_has_just_ended_stays(memory_shop: Shop) -> None:
    shop = memory_shop
    payer = Payer(shop)
    expire(shop)
    end = payer.paid().monitoring_expires_at_ms + 90 * DAY
    shop.system.advance((end - shop.clock.now()) // 1_000)
    assert "payments" not in purge(shop)
    shop.system.advance(1)
    assert purge(shop)["payments"] == 1


def test_a_payment_with_more_evidence_than_its_submissions_stays(
    memory_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deciding, "MAX_EVIDENCE", 1)
    payer = Payer(memory_shop)
    for hash in ("0x" + "a1" * 32, "0x" + "a2" * 32):
        payer.submit(payer.option(), hash)
    expire(memory_shop)
    grow_old(memory_shop)
    assert "payments" not in purge(memory_shop)
    monkeypatch.setattr(deciding, "MAX_EVIDENCE", 2)
    assert purge(memory_shop)["evidence"] == 2


def test_a_dry_run_counts_and_deletes_nothing(memory_shop: Shop) -> None:
    shop = memory_shop
    abandoned(shop)
    expire(shop)
    grow_old(shop)
    before = {kind: stored(shop, kind) for kind in RECORD_TYPES}
    dry = purge(shop, dry_run=True)
    assert {kind: stored(shop, kind) for kind in RECORD_TYPES} == before
    assert purge(shop) == dry
    assert dry["payments"] == 1


def test_batches_are_bounded_and_of_one_environment_each(
    memory_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = memory_shop
    other = World(shop.storage).open("other")
    monkeypatch.setattr(purging, "PAYMENTS_PER_BATCH", 2)
    for _ in range(5):
        shop.payment()
    for _ in range(3):
        other.payment()
    expire(shop)
    grow_old(shop)
    batches: list[tuple[str, int]] = []
    decide = purging.decide_purge

    def noted(tx: Any, candidates: Any, **more: Any) -> Any:
        decision = decide(tx, candidates, **more)
        partitions = {
            located.partition
            for located in scan_all(shop.storage, Payment)
            if located.record.id in {one.payment.id for one in candidates}
        }
        batches.append((*partitions, len(candidates)))
        return decision

    monkeypatch.setattr(purging, "decide_purge", noted)
    assert purge(shop)["payments"] == 8
    mine, theirs = shop.environment_id, other.environment_id
    assert sorted(batches) == sorted([(mine, 2), (mine, 2), (mine, 1), (theirs, 2), (theirs, 1)])
    assert len(stored(shop, PurgedPayment)) == 8


@pytest.mark.parametrize("fault", [crash, commit_lost, commit_failed])
def test_a_purge_that_is_cut_off_leaves_whole_payments_and_is_run_again(
    memory_shop: Shop, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    shop = memory_shop
    monkeypatch.setattr(purging, "PAYMENTS_PER_BATCH", 1)
    for _ in range(3):
        abandoned(shop)
    expire(shop)
    grow_old(shop)
    for at in range(1, 8):
        faulty = Scannable(shop.storage, at, fault, ("transact",))
        with suppress(Crashed, CommitUnknown):
            RetentionPurge(shop.restarted(faulty).parts.ports).run(Retention())
        left, gone = set(stored(shop, Payment)), set(stored(shop, PurgedPayment))
        assert len(left | gone) == 3 and not left & gone
        for kind in (PaymentLink, PaymentOption, FundingOperation, TrackedTransaction):
            assert {record.payment_id for record in stored(shop, kind).values()} == left
    assert left == set()


class Scannable(FaultyStorage):
    """A faulty storage that can be walked through."""

    def __init__(self, inner: Any, *more: Any) -> None:
        super().__init__(inner, *more)
        self.scan_page = inner.scan_page
        self.read_rows = inner.read_rows
        self.lock_exclusively = inner.lock_exclusively


def test_a_transfer_that_is_found_meanwhile_keeps_its_payment(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is noted between the look and the commit, and nobody has looked at it yet."""
    payment = shop.payment()
    expire(shop)
    grow_old(shop)
    load = purging.load_candidates

    def then_find(*given: Any) -> Any:
        candidates = load(*given)
        find(shop, payment)
        return candidates

    monkeypatch.setattr(purging, "load_candidates", then_find)
    assert "payments" not in purge(shop)
    assert len(stored(shop, TrackedTransaction)) == 1
    grow_old(shop)
    monkeypatch.setattr(purging, "load_candidates", load)
    assert "payments" not in purge(shop)  # its evidence says so, whatever the Payment does


def test_a_payment_that_is_purged_while_a_transfer_is_found_is_reported(
    memory_shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shop = memory_shop
    payment = shop.payment()
    expire(shop)
    grow_old(shop)
    locate = ReceiptDiscovery._find_escrows

    def then_purge(self: ReceiptDiscovery, addresses: Any) -> Any:
        located = list(locate(self, addresses))
        purge(shop)
        return located

    monkeypatch.setattr(ReceiptDiscovery, "_find_escrows", then_purge)
    hash = shop.pay(payment, "25.00")
    shop.run()
    shop.finish()
    assert stored(shop, TrackedTransaction) == {}
    assert any(hash in text and payment.payment.id in text for text in caplog.messages)


def find(shop: World, payment: PaymentDetails) -> None:
    """What the scanner does about a transfer to the Payment's escrow."""
    transfer = ScannedTransfer(
        transaction_hash="0x" + "f1" * 32,
        block=Block(1, "0xb1"),
        log_index=0,
        token_address=USDC.address,
        sender=WALLET,
        recipient=str(payment.payment.escrow_address),
        amount_atomic=1,
    )
    ReceiptDiscovery(shop.service.parts.ports, "sandbox").on_transfers(BASE, [transfer])


def test_a_transfer_to_a_purged_escrow_is_reported(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    payment = shop.payment()
    expire(shop)
    grow_old(shop)
    purge(shop)
    with caplog.at_level(logging.CRITICAL, "payments_core"):
        hash = shop.pay(payment, "25.00")
        shop.run()
        shop.finish()
    [reported] = [text for text in caplog.messages if hash in text]
    escrow = payment.payment.escrow_address
    assert reported == (
        f"ALARM: transaction {hash} on chain {BASE} paid to the escrow {escrow} of"
        f" {payment.payment.id} in {shop.environment_id}, which expired with nothing received"
        " and was purged"
    )
    assert stored(shop, TrackedTransaction) == {}


def test_a_purged_escrow_is_not_a_strangers_wallet(memory_shop: Shop) -> None:
    shop = memory_shop
    payment = shop.payment()
    expire(shop)
    grow_old(shop)
    purge(shop)
    with pytest.raises(DestinationNotAllowed):
        shop.payment(destination=ToWallet(address=str(payment.payment.escrow_address)))


def test_an_expiry_that_comes_after_the_purge_ends(memory_shop: Shop) -> None:
    shop = memory_shop
    payment = shop.payment()
    expire(shop)
    grow_old(shop)
    purge(shop)
    job = NewJob("timers", EXPIRE_PAYMENT, "expiry:late", shop.clock.now(), payment.payment.id)
    authority = WorkerAuthority(shop.environment_id, "sandbox")
    shop.service.parts.ports.committer.commit(authority, lambda *_: Decision(None, jobs=(job,)))
    shop.run()
    assert [j for j in stored(shop, Job).values() if j.kind == EXPIRE_PAYMENT] == []


def test_an_unreadable_option_keeps_its_payment_and_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage = SqliteStorage(tmp_path / "data.db", RECORD_TYPES)
    storage.migrate()
    shop = Shop(storage).open()
    shop.fund("100.00")
    damaged, whole = abandoned(shop), abandoned(shop)
    expire(shop)
    grow_old(shop)
    with closing(sqlite3.connect(tmp_path / "data.db")) as connection, connection:
        option_id = damaged.paid().option_ids[0]
        connection.execute("UPDATE payment_options SET body = '{' WHERE id = ?", (option_id,))
    with caplog.at_level(logging.CRITICAL, "payments_core"):
        assert purge(shop)["payments"] == 1
    assert set(stored(shop, Payment)) == {damaged.id}
    assert set(stored(shop, PurgedPayment)) == {whole.id}
    assert any(f"a record of {damaged.id}" in text for text in caplog.messages)
    storage.close()
