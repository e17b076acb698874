"""What a recipient sends back to the address that paid it: seen, shown, and given to the vault."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.deposits.record import Deposit
from payments_core.payments.destinations import ToWallet
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.payments.sends import NewSend
from payments_core.storage.maintenance import scan_all
from tests.chains.backups import Backup, Unsigned, look_through
from tests.chains.scenes import Scene
from tests.service.world import atomic


def send(world: Scene, amount: str = "25.00") -> Payment:
    """A send to the wallet outside."""
    to = ToWallet(address=world.wallet)
    new = NewSend(amount=amount, account_id=world.payer.id, destination=to)
    payment: Payment = world.resources.payments.send(new).payment
    return payment


def sender_of(world: Scene, hash: str | None) -> str:
    """Whom the wallet takes for the sender of a transaction."""
    view = world.chain.transaction(hash)
    [sender] = [log.sender for log in view.logs if log.recipient == world.wallet]
    return str(sender)


def deposits(world: Scene) -> list[Deposit]:
    return [one.record for one in scan_all(world.storage, Deposit)]


def late(world: Scene, payment_id: str) -> list[Any]:
    """What events report of funds that came back."""
    events = [event for event in world.events(payment_id) if event.name == "payment.late"]
    return [(event.payload["returnedAmountAtomic"], event.payload["labels"]) for event in events]


class TestASend:
    def test_what_comes_back_goes_to_the_vault_and_the_payment_shows_it(self, world: Scene) -> None:
        payment = send(world)
        world.finish()
        assert world.paid(payment.id).status == "succeeded"
        sender = sender_of(world, world.paid(payment.id).release_hash)
        assert sender != world.vault_address()
        assert deposits(world) == []
        world.spend("25.00", sender)
        world.look()
        [seen] = deposits(world)
        assert (seen.status, seen.account_id, seen.amount_atomic, seen.sender) == (
            "detected", world.payer.id, atomic("25"), world.wallet,
        )  # fmt: skip
        assert world.paid(payment.id).returned_atomic == 0
        world.finish()
        [settled] = deposits(world)
        assert settled.status == "settled"
        assert world.newest(sender) == 0
        assert world.held() == (atomic("100"), 0, atomic("100"))
        shown = world.paid(payment.id)
        assert (shown.status, shown.returned_atomic, shown.labels) == (
            "succeeded", atomic("25"), ("returned",),
        )  # fmt: skip
        assert shown.reconciliation.status == "none"
        assert shown.timeline[-1].reason == "funds_returned"
        assert late(world, payment.id) == [("25000000", ["returned"])]
        reported = [event.name for event in world.events() if event.name.startswith("deposit.")]
        assert sorted(reported) == ["deposit.confirmed", "deposit.detected", "deposit.settled"]

    def test_parts_add_up_and_the_address_can_be_used_again(self, world: Scene) -> None:
        payment = send(world)
        world.finish()
        sender = sender_of(world, world.paid(payment.id).release_hash)
        for amount in ("5.00", "7.00"):
            world.spend(amount, sender)
            world.finish()
        assert world.paid(payment.id).returned_atomic == atomic("12")
        assert [amount for amount, _ in late(world, payment.id)] == ["5000000", "12000000"]
        assert world.held() == (atomic("87"), 0, atomic("87"))

    def test_what_comes_back_before_the_send_is_final_counts_too(self, world: Scene) -> None:
        payment = send(world)
        world.run()
        world.chain.mine(1)
        assert world.paid(payment.id).status == "executing"
        world.spend("25.00", sender_of(world, world.paid(payment.id).release_hash))
        world.finish()
        shown = world.paid(payment.id)
        assert (shown.status, shown.returned_atomic) == ("succeeded", atomic("25"))
        assert world.held() == (atomic("100"), 0, atomic("100"))

    def test_what_a_reorg_undid_does_not_count(self, world: Scene) -> None:
        payment = send(world)
        world.finish()
        world.spend("25.00", sender_of(world, world.paid(payment.id).release_hash))
        world.look()
        assert [it.status for it in deposits(world)] == ["detected"]
        world.spend_otherwise(1, "1.00", world.vault_address(world.merchant))
        world.finish()
        assert [it.status for it in deposits(world)] == ["failed"]
        assert world.paid(payment.id).returned_atomic == 0
        assert late(world, payment.id) == []

    def test_a_send_that_was_found_after_a_restore_is_watched_too(self, world: Scene) -> None:
        send(world, "1.00")
        world.finish()
        look_through(world, Unsigned(world.chain))
        payment = send(world)
        world.run()
        backup = Backup(world)
        world.service = world.restarted()
        world.finish()
        backup.restore(world)
        world.finish()
        assert deposits(world) == []
        world.spend("25.00", sender_of(world, world.paid(payment.id).release_hash))
        world.finish()
        assert world.paid(payment.id).returned_atomic == atomic("25")


class TestARefund:
    def test_from_a_vault_comes_back_to_that_vault(self, world: Scene) -> None:
        payment = world.payment("25.00")
        world.spend("25.00", str(payment.payment.escrow_address))
        world.finish()
        refund = world.refund(payment, "10.00")
        world.finish()
        done = world.get(Refund, refund.id)
        assert (done.status, world.held(world.merchant)[0]) == ("succeeded", atomic("15"))
        world.spend("10.00", sender_of(world, done.transaction_hash))
        world.finish()
        assert world.held(world.merchant) == (atomic("25"), 0, atomic("25"))
        shown = world.paid(payment.payment.id)
        assert (shown.status, shown.returned_atomic, shown.refunded_atomic) == (
            "partially_refunded", atomic("10"), atomic("10"),
        )  # fmt: skip
        assert shown.labels == ("returned",)

    def test_from_an_escrow_comes_back_as_a_late_receipt(self, world: Scene) -> None:
        """The recipient of a refund or release from escrow sees the Payment's own escrow."""
        payment = world.payment("25.00")
        world.spend("30.00", str(payment.payment.escrow_address))
        world.finish()
        world.reconcile(payment, "refund_excess")
        world.finish()
        [refund] = [one.record for one in scan_all(world.storage, Refund)]
        sender = sender_of(world, refund.transaction_hash)
        assert sender == payment.payment.escrow_address
        world.spend("5.00", sender)
        world.finish()
        assert world.paid(payment.payment.id).excess_atomic == atomic("5")


@pytest.mark.parametrize("amount", ["0.000001", "1000.00"])
def test_strangers_may_send_there_what_they_like(world: Scene, amount: str) -> None:
    payment = send(world)
    world.finish()
    world.spend(amount, sender_of(world, world.paid(payment.id).release_hash))
    world.finish()
    assert world.paid(payment.id).returned_atomic == atomic(amount)
    assert world.held()[2] == atomic("75") + atomic(amount)
    sweeps = [
        one.record
        for one in scan_all(world.storage, OutboundTransfer)
        if one.record.purpose == "sweep"
    ]
    assert [it.source.kind for it in sweeps] == ["escrow"]
