"""What the service itself sends, on the simulated chain and on a real node."""

from __future__ import annotations

from payments_core.payments.collects import NewCollect
from payments_core.payments.destinations import ToAccount, ToWallet
from payments_core.payments.mandates.operations import NewMandate
from payments_core.payments.mandates.record import Mandate
from payments_core.payments.refunds.record import Refund
from payments_core.payments.sends import NewSend
from tests.chains.scenes import ELSEWHERE, Scene
from tests.service.deposit_harness import STORY, DepositHarness
from tests.service.world import BASE, atomic


def test_a_refund_goes_from_the_merchants_vault(world: Scene) -> None:
    payment = world.payment("25.00")
    before = world.newest(world.wallet)
    world.spend("25.00", str(payment.payment.escrow_address))
    world.finish()
    refund = world.refund(payment, "10.00")
    assert (refund.status, refund.destination) == ("created", world.wallet)
    assert world.held(world.merchant) == (atomic("25"), atomic("10"), atomic("15"))
    world.finish()
    assert world.get(Refund, refund.id).status == "succeeded"
    assert world.paid(payment.payment.id).status == "partially_refunded"
    assert world.held(world.merchant) == (atomic("15"), 0, atomic("15"))
    world.refund(payment)
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.refunded_atomic) == ("refunded", atomic("25"))
    assert world.newest(world.wallet) == before
    assert world.sent() == 3


def test_a_refund_that_is_undone_is_sent_again_and_pays_once(world: Scene) -> None:
    payment = world.payment("25.00")
    before = world.newest(world.wallet)
    world.spend("25.00", str(payment.payment.escrow_address))
    world.finish()
    refund = world.refund(payment, "10.00")
    world.run()
    assert world.get(Refund, refund.id).status == "submitted"
    world.reorg(1)
    world.finish()
    assert world.get(Refund, refund.id).status == "succeeded"
    assert world.newest(world.wallet) == before - atomic("15")
    assert world.sent() == 2


def test_a_send_goes_from_the_vault_to_a_wallet(world: Scene) -> None:
    to = ToWallet(address=ELSEWHERE)
    new = NewSend(amount="25.00", account_id=world.payer.id, destination=to)
    created = world.resources.payments.send(new).payment
    assert (created.status, created.escrow_address) == ("processing", None)
    assert world.held() == (atomic("100"), atomic("25"), atomic("75"))
    world.run()
    assert world.paid(created.id).status == "executing"
    world.finish()
    done = world.paid(created.id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("25"))
    assert world.held() == (atomic("75"), 0, atomic("75"))
    assert world.journal(done.id) == [("send", {"payer": -atomic("25"), "recipient": atomic("25")})]
    assert world.newest(ELSEWHERE) == atomic("25")
    assert world.sent() == 1


def test_a_send_to_another_vault_makes_no_deposit(world: Scene) -> None:
    to = ToAccount(account_id=world.merchant.id)
    new = NewSend(amount="25.00", account_id=world.payer.id, destination=to)
    created = world.resources.payments.send(new).payment
    world.finish()
    assert world.paid(created.id).status == "succeeded"
    assert world.held(world.merchant) == (atomic("25"), 0, atomic("25"))
    assert not [name for name in world.event_names() if name.startswith("deposit.")]


def test_a_send_without_the_funds_gives_all_back_and_asks_for_a_decision(world: Scene) -> None:
    to = ToWallet(address=ELSEWHERE)
    new = NewSend(amount="25.00", account_id=world.payer.id, destination=to)
    created = world.resources.payments.send(new)
    world.stranger("100.00", to=world.wallet, source=world.vault_address())
    world.finish()
    failed = world.paid(created.payment.id)
    assert (failed.status, failed.labels) == ("action_required", ("execution_failed",))
    assert world.newest(ELSEWHERE) == 0
    world.fund("30.00")
    world.reconcile(created, "retry_execution")
    world.finish()
    assert world.paid(failed.id).status == "succeeded"
    assert world.newest(ELSEWHERE) == atomic("25")
    assert world.held() == (atomic("5"), 0, atomic("5"))


def test_a_collect_draws_on_a_mandate_through_escrow(world: Scene) -> None:
    approved = NewMandate(vault_id=world.vault_of().id, amount_per_period="40.00", period="month")
    under = world.resources.mandates.create(world.payer.id, approved).mandate
    to = ToAccount(account_id=world.merchant.id)
    new = NewCollect(amount="25.00", mandate_id=under.id, destination=to)
    created = world.resources.payments.collect(new)
    assert created.payment.status == "processing"
    world.finish()
    done = world.paid(created.payment.id)
    assert (done.status, done.received_atomic, done.settled_atomic) == (
        "succeeded",
        atomic("25"),
        atomic("25"),
    )
    assert [cause for cause, _ in world.journal(done.id)] == ["receipt", "release"]
    assert world.get(Mandate, under.id).drawn_atomic == atomic("25")
    assert world.held() == (atomic("75"), 0, atomic("75"))
    assert world.held(world.merchant) == (atomic("25"), 0, atomic("25"))
    assert world.sent() == 2


def test_deposits_are_swept_into_the_vault_each_by_itself(world: Scene) -> None:
    harness = DepositHarness(world)
    for amount in ("5.00", "0.000001"):
        world.spend(amount, harness.address)
    world.look()
    assert [status for status, _ in harness.story] == ["detected", "detected"]
    world.finish()
    assert harness.story == [("settled", None)] * 2
    for deposit in harness.all():
        reported = [event.name.removeprefix("deposit.") for event in harness.events(deposit.id)]
        assert reported == STORY
    assert world.held() == (atomic("105.000001"), 0, atomic("105.000001"))
    assert world.newest(harness.address) == 0
    assert world.sent() == 2


def test_a_deposit_that_is_undone_leaves_no_trace_in_the_vault(world: Scene) -> None:
    harness = DepositHarness(world)
    world.spend("5.00", harness.address)
    world.look()
    world.spend_otherwise(1, "5.00", ELSEWHERE)
    world.finish()
    assert harness.story == [("failed", "reorged")]
    assert world.held() == (atomic("100"), 0, atomic("100"))
    assert world.sent() == 0


def test_a_deposit_that_a_stranger_swept_settles_all_the_same(world: Scene) -> None:
    harness = DepositHarness(world)
    world.spend("5.00", harness.address)
    world.look()
    world.sweep_all(world.payer.id)
    world.finish()
    assert harness.story == [("settled", None)]
    assert harness.reported_events == STORY
    assert world.held() == (atomic("105"), 0, atomic("105"))
    assert world.newest(harness.address) == 0


def test_a_deposit_beside_one_that_a_stranger_swept_settles_after_a_check(world: Scene) -> None:
    """The first sweep takes what the second deposit brought, and leaves too little for it."""
    harness = DepositHarness(world)
    world.spend("5.00", harness.address)
    world.look()
    world.sweep_all(world.payer.id)
    world.spend("7.00", harness.address)
    world.finish()
    world.finish()
    assert sorted(harness.story) == [("failed", "transaction_failed"), ("settled", None)]
    assert world.newest(harness.address) == atomic("2")
    world.resources.deposits.check(harness.account.id, BASE)
    world.finish()
    assert harness.story == [("settled", None), ("settled", None)]
    assert world.held() == (atomic("112"), 0, atomic("112"))
    assert world.newest(harness.address) == 0
