"""The owners of screened transfers: how each is requested, and what shows how far it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.deposits.record import Deposit
from payments_core.misdirected.record import SentBack
from payments_core.onramps.record import BankTransaction
from payments_core.payments.destinations import ToWallet
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.payments.sends import NewSend
from payments_core.screening.record import HeldTransfer
from payments_core.storage.port import Storage
from tests.service.conftest import funded
from tests.service.deposits.test_misdirected_deposits import AT_BASE, deposit_wrongly, only_deposit
from tests.service.onramps.setting import OnrampSetting
from tests.service.payments.payouts.payout_harness import PayoutHarness
from tests.service.payments.receipts.test_misdirected import receipts_of
from tests.service.payments.receipts.test_misdirected import send as send_wrongly
from tests.service.screening.desk import CLEAR_FOR_MS, Desk
from tests.service.world import OTHER_WALLET, WALLET, World

RELEASED = "0x00000000000000000000000000000000000A11cE"
"""A recipient outside."""


@attrs.frozen
class Look:
    """How far the owner of a transfer is: its status, and the transfer that it names."""

    status: str
    in_review: bool
    transfer_id: str | None


@attrs.frozen
class Case:
    """A transfer that was requested and is not signed; `subject` is whom it concerns.

    `waits_as` is its owner's status until it is signed, and `blocked_as` the one that a blocked
    subject leaves. `again` requests it once more after that.
    """

    world: World
    desk: Desk
    subject: str
    resource: str
    waits_as: str
    blocked_as: str
    read: Callable[[], Look]
    again: Callable[[], object] | None

    @property
    def status(self) -> str:
        return self.read().status

    @property
    def in_review(self) -> bool:
        return self.read().in_review

    @property
    def is_signed(self) -> bool:
        """Whether the newest transfer has bytes."""
        id = self.read().transfer_id
        return id is not None and self.world.get(OutboundTransfer, id).raw is not None

    def held(self, status: Any = "in_review") -> list[HeldTransfer]:
        return list_held(self.world, status)

    def decide(self, outcome: Any, status: Any = "in_review") -> None:
        """An operator's decision of the one transfer of that status."""
        [held] = self.held(status)
        shop = self.world.service.environment(self.world.environment_id)
        shop.screening.decide(held.id, outcome, operator="ann")


def screened(storage: Storage) -> tuple[World, Desk]:
    """A world that screens with a desk."""
    world = funded(storage)
    desk = Desk(world.clock)
    world.service = world.restarted(screening=desk)
    return world, desk


def list_held(world: World, status: Any = "in_review") -> list[HeldTransfer]:
    shop = world.service.environment(world.environment_id)
    return list(shop.screening.list_held(status).records)


def _look_at_payment(world: World, id: str) -> Look:
    paid = world.get(Payment, id)
    return Look(paid.status, "in_review" in paid.labels, paid.release_id)


def _payment_case(world: World, desk: Desk, subject: str, id: str, waits_as: str) -> Case:
    return Case(
        world, desk, subject, id, waits_as, "action_required",
        lambda: _look_at_payment(world, id),
        lambda: world.resources.payments.reconcile(id, "retry_execution"),
    )  # fmt: skip


def begin_release(world: World, desk: Desk) -> Case:
    """A Payment to a wallet, covered a moment ago."""
    payment = world.payment("25.00", destination=ToWallet(address=RELEASED))
    world.pay(payment, "25.00")
    return _payment_case(world, desk, RELEASED, payment.payment.id, "accepted")


def begin_release_of_sender(world: World, desk: Desk) -> Case:
    """The same, of which the sender is the subject."""
    return attrs.evolve(begin_release(world, desk), subject=WALLET)


def begin_send(world: World, desk: Desk) -> Case:
    return _payment_case(world, desk, RELEASED, send(world, "25.00"), "processing")


def send(world: World, amount: str) -> str:
    """The id of a send to a wallet outside, just requested."""
    to = ToWallet(address=RELEASED)
    new = NewSend(amount=amount, account_id=world.payer.id, destination=to)
    return world.resources.payments.send(new).payment.id


def begin_payout(world: World, desk: Desk) -> Case:
    harness = PayoutHarness(world)
    made = harness.send().payment
    return _payment_case(world, desk, harness.account.id, made.id, "processing")


def begin_refund(world: World, desk: Desk) -> Case:
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    world.finish()
    world.advance(CLEAR_FOR_MS // 1_000)  # its sender was cleared for the release
    ids = [world.refund(payment, "10.00").id]

    def read() -> Look:
        refund = world.get(Refund, ids[-1])
        return Look(refund.status, refund.in_review, refund.outgoing_id)

    def again() -> None:
        ids.append(world.refund(payment, "10.00").id)

    return Case(world, desk, WALLET, payment.payment.id, "created", "failed", read, again)


def _look_back(sent_back: SentBack | None) -> Look:
    assert sent_back is not None
    return Look(sent_back.status, sent_back.in_review, sent_back.outgoing_id)


def begin_receipt_return(world: World, desk: Desk) -> Case:
    payment = world.payment("25.00")
    send_wrongly(world, payment, AT_BASE, 1_000)
    world.finish()
    [receipt] = receipts_of(world, payment)

    def again() -> None:
        world.reconcile(payment, "return_misdirected", receipt_id=receipt.id)

    again()
    return Case(
        world, desk, WALLET, payment.payment.id, "created", "failed",
        lambda: _look_back(world.get(Receipt, receipt.id).sent_back), again,
    )  # fmt: skip


def begin_deposit_return(world: World, desk: Desk) -> Case:
    deposit_wrongly(world, AT_BASE)
    world.finish()
    deposit = only_deposit(world)

    def again() -> None:
        world.resources.deposits.send_back(world.payer.id, deposit.id)

    again()
    return Case(
        world, desk, WALLET, deposit.id, "created", "failed",
        lambda: _look_back(world.get(Deposit, deposit.id).sent_back), again,
    )  # fmt: skip


def begin_credit(world: World, desk: Desk) -> Case:
    """A bank transfer whose stablecoins are in its escrow. It waits also if it is blocked."""
    setting = OnrampSetting(world, type="wallet", address=OTHER_WALLET)
    setting.deposit("100.00", "wire")
    world.run()

    def read() -> Look:
        found = world.get(BankTransaction, setting.transaction.id)
        in_review = found.status == "in_review" and found.reason == "screening_review"
        status = "received" if in_review else found.status
        return Look(status, in_review, found.credit_id)

    return Case(
        world, desk, OTHER_WALLET, setting.transaction.id, "received", "in_review", read, None
    )


OWNERS: Mapping[str, Callable[[World, Desk], Case]] = {
    "release": begin_release,
    "release of a sender's": begin_release_of_sender,
    "send": begin_send,
    "payout": begin_payout,
    "refund": begin_refund,
    "return of a receipt": begin_receipt_return,
    "return of a deposit": begin_deposit_return,
    "on-ramp credit": begin_credit,
}
