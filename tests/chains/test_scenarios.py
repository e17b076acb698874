"""What payers do to a Payment, on the simulated chain and on a real node: one body for both."""

from __future__ import annotations

import pytest

from payments_core.errors import InvalidState, OptionLocked
from payments_core.payments.details import PaymentDetails
from tests.chains.scenes import ELSEWHERE, AnvilScene, Scene, SimulatedScene
from tests.service.payer import Payer
from tests.service.world import atomic


def escrow_of(payment: PaymentDetails) -> str:
    return str(payment.payment.escrow_address)


def causes(world: Scene, payment: PaymentDetails) -> list[str]:
    return [cause for cause, _ in world.journal(payment.payment.id)]


def test_a_vault_pays_exactly(world: Scene) -> None:
    option = world.authorized("25.00")
    assert world.held() == (atomic("100"), atomic("25"), atomic("75"))
    world.finish()
    done = world.paid(option.payment.id)
    assert (done.status, done.labels) == ("succeeded", ())
    assert (done.received_atomic, done.settled_atomic, done.excess_atomic) == (
        atomic("25"),
        atomic("25"),
        0,
    )
    assert world.operation_now(option).status == "confirmed"
    assert world.option_now(option).status == "succeeded"
    assert world.held() == (atomic("75"), 0, atomic("75"))
    assert world.held(world.merchant) == (atomic("25"), 0, atomic("25"))
    assert world.reported_events(done.id) == [
        ("payment.created", "awaiting_payment", 1),
        ("payment.processing", "processing", 2),
        ("payment.accepted", "accepted", 3),
        ("payment.executing", "executing", 4),
        ("payment.succeeded", "succeeded", 5),
    ]
    assert [cause for cause, _ in world.journal(done.id)] == ["receipt", "release"]
    assert world.sent() == 2


def test_a_vault_is_deployed_once_it_has_paid(world: Scene) -> None:
    before = world.vault_of()
    assert (before.status, before.updated_at_ms) == ("counterfactual", before.created_at_ms)
    option = world.authorized("25.00")
    world.run()
    assert world.vault_of().status == "counterfactual"  # the transfer is not final yet
    world.finish()
    payer, merchant = world.vault_of(), world.vault_of(world.merchant)
    assert (payer.status, merchant.status) == ("deployed", "counterfactual")
    assert payer.updated_at_ms > payer.created_at_ms
    payment = world.resources.payments.read(option.payment.id)
    world.refund(payment, "5.00")
    world.finish()
    assert world.vault_of() == payer  # once
    assert world.vault_of(world.merchant).status == "deployed"
    if isinstance(world, AnvilScene):
        for account, has_code in ((world.payer, True), (world.merchant, True), (None, False)):
            address = world.vault_address(account) if account else escrow_of(world.payment("1.00"))
            assert (world.node.ask("eth_getCode", address, "latest") != "0x") == has_code


def test_a_vault_whose_transfer_failed_is_not_deployed(simulated_world: SimulatedScene) -> None:
    world = simulated_world
    option = world.authorized("25.00")
    world.drain()
    world.finish()
    assert world.operation_now(option).status == "failed"
    assert world.vault_of().status == "counterfactual"


def test_a_wallet_pays_exactly(world: Scene) -> None:
    payer = Payer(world, "25.00")
    option = payer.select(payer.option())
    hash = world.spend("25.00", escrow_of(payer.payment))
    world.look()
    assert payer.status(option) == ("processing", "selected", 0)
    assert payer.paid().status == "processing"
    world.finish()
    done = payer.paid()
    assert (done.status, done.labels, done.settled_atomic) == ("succeeded", (), atomic("25"))
    assert payer.status(option) == ("succeeded", "selected", atomic("25"))
    [receipt] = payer.read(option).receipts
    view = world.chain.transaction(hash)
    assert (receipt.transaction_hash, receipt.sender) == (hash, world.wallet)
    assert (receipt.block_number, receipt.block_hash) == (view.block.number, view.block.hash)
    assert world.newest(world.vault_address(world.merchant)) == atomic("25")
    assert world.sent() == 1


def test_the_options_of_a_covered_payment_end_with_it(world: Scene) -> None:
    payer = Payer(world, "25.00")
    direct = payer.option()
    vault = world.option(payer.payment)
    world.spend("25.00", escrow_of(payer.payment))
    world.finish()
    assert payer.paid().status == "succeeded"
    now = world.option_now(vault)
    assert (now.status, now.action_id, now.action_expires_at_ms) == ("cancelled", None, None)
    assert world.operation_now(vault).status == "cancelled"
    assert payer.status(direct)[0] == "succeeded"  # the one by which it was paid
    for act in (
        lambda: world.service.acting_as(world.client).options.refresh(payer.id, vault.option.id),
        lambda: payer.refresh(direct),
        lambda: world.authorize(vault),
    ):
        with pytest.raises(InvalidState):
            act()


def test_an_option_that_a_vault_left_over_ends_and_still_takes_what_comes(world: Scene) -> None:
    payer = Payer(world, "25.00")
    direct = payer.option(payer_address=world.wallet)
    world.authorize(world.option(payer.payment))
    world.finish()
    assert payer.paid().status == "succeeded"
    assert payer.status(direct) == ("cancelled", None, 0)
    world.spend("3.00", escrow_of(payer.payment))
    world.finish()
    assert payer.status(direct) == ("cancelled", None, atomic("3"))
    assert payer.paid().excess_atomic == atomic("3")


def test_a_transaction_that_no_node_knows_locks_its_option_for_two_minutes(world: Scene) -> None:
    payer = Payer(world, "25.00")
    option = payer.select(payer.option())
    other = payer.option(payer_address=world.wallet)
    payer.submit(option)
    world.look()
    world.advance(60)
    choices = (payer.option, lambda: payer.select(other), lambda: world.option(payer.payment))
    for choose in choices:
        with pytest.raises(OptionLocked) as refused:
            choose()
        assert refused.value.option_id == option.option.id
    world.advance(60)
    assert payer.select(other).option.selection_status == "selected"
    assert world.option(payer.payment).option.selection_status == "selected"


def test_a_submission_that_was_answered_locks_its_option_no_more(world: Scene) -> None:
    payer = Payer(world, "25.00")
    option = payer.select(payer.option())
    other = payer.option(payer_address=world.wallet)
    payer.submit(option, world.spend("25.00", ELSEWHERE))
    world.look()
    assert payer.select(other).option.selection_status == "selected"
    payer.submit(other, world.spend("10.00", escrow_of(payer.payment)))
    world.look()
    with pytest.raises(OptionLocked):
        payer.option()
    world.finish()
    assert payer.paid().labels == ("underpaid",)
    rest = payer.select(payer.option(payer_address=ELSEWHERE))
    assert rest.option.required_atomic == atomic("15")


def test_a_short_payment_waits_for_the_rest(world: Scene) -> None:
    payment = world.payment("25.00")
    world.spend("10.00", escrow_of(payment))
    world.finish()
    short = world.paid(payment.payment.id)
    assert (short.status, short.labels) == ("awaiting_payment", ("underpaid",))
    assert (short.received_atomic, short.release_id) == (atomic("10"), None)
    option = world.option(payment)
    assert option.option.required_atomic == atomic("15")
    world.authorize(option)
    world.finish()
    done = world.paid(short.id)
    assert (done.status, done.labels) == ("succeeded", ("underpaid",))
    assert (done.received_atomic, done.settled_atomic) == (atomic("25"), atomic("25"))
    assert causes(world, payment) == ["receipt", "receipt", "release"]


def test_a_short_payment_that_expires_is_sent_back(world: Scene) -> None:
    payment = world.payment("25.00", expires_in_s=300)
    before = world.newest(world.wallet)
    world.spend("10.00", escrow_of(payment))
    world.advance(320)
    short = world.paid(payment.payment.id)
    assert (short.status, short.labels) == ("action_required", ("underpaid",))
    world.reconcile(payment, "refund")
    world.finish()
    done = world.paid(short.id)
    assert (done.status, done.refunded_atomic) == ("refunded", atomic("10"))
    assert done.reconciliation.status == "resolved"
    assert causes(world, payment) == ["receipt", "refund"]
    assert world.newest(world.wallet) == before


def test_what_is_over_stays_in_escrow_until_it_is_sent_back(world: Scene) -> None:
    payment = world.payment("25.00")
    before = world.newest(world.wallet)
    world.spend("30.00", escrow_of(payment))
    world.finish()
    over = world.paid(payment.payment.id)
    assert (over.status, over.labels) == ("succeeded", ("overpaid",))
    assert (over.settled_atomic, over.excess_atomic) == (atomic("25"), atomic("5"))
    assert world.newest(escrow_of(payment)) == atomic("5")
    world.reconcile(payment, "refund_excess")
    world.finish()
    done = world.paid(over.id)
    assert (done.status, done.excess_atomic, done.reconciliation.status) == (
        "succeeded",
        0,
        "resolved",
    )
    assert causes(world, payment) == ["receipt", "release", "refund"]
    assert world.newest(world.wallet) == before - atomic("25")


def test_a_late_payment_asks_for_a_decision(world: Scene) -> None:
    payment = world.payment("25.00", expires_in_s=300)
    world.advance(320)
    assert world.paid(payment.payment.id).status == "expired"
    world.spend("25.00", escrow_of(payment))
    world.finish()
    late = world.paid(payment.payment.id)
    assert (late.status, late.labels) == ("action_required", ("late",))
    assert (late.release_id, late.reconciliation.status) == (None, "open")
    world.reconcile(payment, "accept")
    world.finish()
    done = world.paid(late.id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("25"))
    assert done.reconciliation.resolution == "accept"
    assert world.newest(world.vault_address(world.merchant)) == atomic("25")


def test_after_the_window_late_funds_can_only_go_back(world: Scene) -> None:
    payment = world.payment("25.00", expires_in_s=300)
    before = world.newest(world.wallet)
    world.advance(320)
    world.system.advance(86_400)
    world.advance(10)
    world.spend("25.00", escrow_of(payment))
    world.finish()
    late = world.paid(payment.payment.id)
    assert (late.status, late.labels) == ("expired", ("late",))
    world.reconcile(payment, "refund")
    world.finish()
    done = world.paid(late.id)
    assert (done.status, done.refunded_atomic) == ("expired", atomic("25"))
    assert world.newest(world.wallet) == before


def test_a_duplicate_is_excess_and_goes_back(world: Scene) -> None:
    payment = world.payment("25.00")
    before = world.newest(world.wallet)
    world.spend("25.00", escrow_of(payment))
    world.finish()
    world.spend("25.00", escrow_of(payment))
    world.finish()
    twice = world.paid(payment.payment.id)
    assert (twice.status, twice.labels) == ("succeeded", ("duplicate",))
    assert (twice.received_atomic, twice.settled_atomic, twice.excess_atomic) == tuple(
        map(atomic, ("50", "25", "25"))
    )
    world.reconcile(payment, "refund_excess")
    world.finish()
    assert world.paid(twice.id).excess_atomic == 0
    assert causes(world, payment) == ["receipt", "release", "receipt", "refund"]
    assert world.newest(world.wallet) == before - atomic("25")
    assert world.newest(world.vault_address(world.merchant)) == atomic("25")


def test_a_vault_and_a_wallet_that_pay_at_once_are_both_counted(world: Scene) -> None:
    option = world.authorized("25.00")
    world.spend("25.00", str(option.payment.escrow_address))
    world.finish()
    done = world.paid(option.payment.id)
    assert (done.status, done.labels) == ("succeeded", ("duplicate",))
    assert (done.settled_atomic, done.excess_atomic) == (atomic("25"), atomic("25"))
    assert world.operation_now(option).status == "confirmed"
    assert world.held() == (atomic("75"), 0, atomic("75"))


def test_two_transfers_in_one_transaction_are_two_receipts(world: Scene) -> None:
    payment = world.payment("25.00")
    hash = world.in_one_transaction((escrow_of(payment), "10.00"), (escrow_of(payment), "15.00"))
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.settled_atomic, done.excess_atomic) == ("succeeded", atomic("25"), 0)
    evidenced = world.resources.payments.list_receipts(done.id).receipts.records
    by_position = sorted((it.position, it.amount_atomic, it.status) for it in evidenced)
    assert by_position == [(0, atomic("10"), "verified"), (1, atomic("15"), "verified")]
    assert {it.transaction_hash for it in evidenced} == {hash}


def test_one_transaction_can_pay_two_payments_and_each_counts_its_own(world: Scene) -> None:
    payments = [world.payment("25.00"), world.payment("7.00")]
    world.in_one_transaction((escrow_of(payments[0]), "25.00"), (escrow_of(payments[1]), "7.00"))
    world.finish()
    for payment, amount in zip(payments, ("25", "7"), strict=True):
        done = world.paid(payment.payment.id)
        assert (done.status, done.received_atomic, done.excess_atomic) == (
            "succeeded",
            atomic(amount),
            0,
        )
    assert world.newest(world.vault_address(world.merchant)) == atomic("32")
