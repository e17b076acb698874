"""The same Payment paid twice: the second payment is excess, and a transfer counts once."""

from __future__ import annotations

from tests.service.world import BASE, OTHER_WALLET, WALLET, World, atomic


def test_a_whole_second_payment_is_distinguished_from_a_little_too_much(world: World) -> None:
    payment = world.payment("25.00")
    world.pay(payment, "25.00", source=OTHER_WALLET)
    world.finish()
    world.pay(payment, "25.00")
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.labels) == ("succeeded", ("duplicate",))
    assert (done.received_atomic, done.settled_atomic, done.excess_atomic) == (
        atomic("50"),
        atomic("25"),
        atomic("25"),
    )
    assert done.reconciliation.status == "open"
    assert world.reported_events(done.id)[-1] == ("payment.overpaid", "succeeded", 6)
    reported = world.last_payload(done.id, "payment.overpaid")
    assert (reported["labels"], reported["excessAmountAtomic"]) == (
        ["duplicate"],
        str(atomic("25")),
    )
    assert world.journal(done.id)[-1] == (
        "receipt", {"payer": -atomic("25"), "excess": atomic("25")},
    )  # fmt: skip

    world.reconcile(payment, "refund_excess")
    world.finish()
    done = world.paid(done.id)
    assert (done.status, done.excess_atomic, done.reconciliation.status) == (
        "succeeded",
        0,
        "resolved",
    )
    assert (world.on_chain(WALLET), world.on_chain(OTHER_WALLET)) == (atomic("25"), 0)
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")


def test_a_vault_and_a_wallet_that_pay_at_once_are_both_counted(world: World) -> None:
    option = world.authorized("25.00")
    payment = world.resources.payments.read(option.payment.id)
    world.pay(payment, "25.00")
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.labels) == ("succeeded", ("duplicate",))
    assert (done.settled_atomic, done.excess_atomic) == (atomic("25"), atomic("25"))
    assert world.operation_now(option).status == "confirmed"
    assert world.option_now(option).status == "succeeded"
    assert world.held() == (atomic("75"), 0, atomic("75"))
    assert not done.is_pending

    last = done.paid_by[-1].address
    world.reconcile(payment, "refund_excess")
    world.finish()
    assert world.paid(done.id).excess_atomic == 0
    back = {WALLET: world.on_chain(WALLET), world.vault_address(): world.held()[0] - atomic("75")}
    assert back.pop(last) == atomic("25")
    assert list(back.values()) == [0]


def test_a_vaults_transfer_that_comes_when_all_is_over_is_excess(world: World) -> None:
    option = world.authorized("25.00")
    world.fail("broadcast", times=5)
    payment = world.resources.payments.read(option.payment.id)
    world.pay(payment, "25.00")
    world.advance(5)
    assert world.paid(payment.payment.id).status in ("accepted", "executing")
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.labels, done.excess_atomic) == (
        "succeeded",
        ("duplicate",),
        atomic("25"),
    )
    world.reconcile(payment, "refund_excess")
    world.finish()
    assert world.held() == (atomic("100"), 0, atomic("100"))
    assert world.on_chain(str(done.escrow_address)) == 0


def test_each_further_payment_is_reported_and_labels_are_not_repeated(world: World) -> None:
    payment = world.payment("25.00")
    for amount in ("25.00", "25.00", "25.00", "1.00"):
        world.pay(payment, amount)
        world.finish()
    done = world.paid(payment.payment.id)
    assert done.labels == ("duplicate", "overpaid")
    assert done.excess_atomic == atomic("51")
    assert world.event_names(done.id)["payment.overpaid"] == 3
    assert world.event_names(done.id)["payment.succeeded"] == 1


def test_a_transfer_that_is_found_again_counts_once(world: World) -> None:
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    world.finish()
    before = world.paid(payment.payment.id)
    for _ in range(2):
        world.service.parts.scanner("sandbox").scan_addresses(BASE, [str(before.escrow_address)])
        world.finish()
    assert world.paid(before.id) == before
    assert len(world.resources.payments.list_receipts(before.id).receipts.records) == 1
