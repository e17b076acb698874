"""A bank that is down, loses its answers, refuses, or shows another payout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_core.banks.payouts import BankPayout
from payments_core.banks.port import BankRefused, BankUnavailable, PayoutOrder
from payments_core.banks.simulated.bank import SimulatedBank
from payments_core.credentials.keyring import KeyRing
from payments_core.errors import InvalidState, ReconciliationActionNotAllowed
from payments_core.payments.payouts.jobs import PayoutJobs
from payments_core.service import PaymentsService
from tests.service.payments.payouts.desk import Desk
from tests.service.world import RING, NoTransport, atomic

HELD = {"payer": -2_500, "offramp": 2_500}


@pytest.mark.parametrize("call", ["submit", "find_payout", "lost_answer", "any"])
def test_a_bank_that_does_not_answer_is_asked_again_under_the_same_key(
    desk: Desk, call: str
) -> None:
    created = desk.send()
    key = desk.payout(created).key
    desk.fail(call, 1 if call == "lost_answer" else 3)
    desk.world.run()
    desk.world.advance(60)
    assert desk.payout(created).status == "submitted"
    assert desk.world.service.sandbox().list_failures() == ()
    assert (desk.payout(created).key, desk.bank.count_payouts([key])) == (key, 1)
    assert desk.causes(created) == ["send", "payout_submitted"]


def test_the_funds_wait_at_the_offramp_while_the_bank_is_down(memory_desk: Desk) -> None:
    desk = memory_desk
    created = desk.send()
    desk.fail("any", 4)
    desk.world.run()
    desk.world.advance(10)
    assert (desk.payment(created).status, desk.payout(created).status) == ("executing", "created")
    assert desk.books(created) == HELD
    with pytest.raises(InvalidState):  # nobody knows whether the bank has it
        desk.world.reconcile(created, "refund")
    desk.world.advance(60)
    assert desk.payout(created).status == "submitted"


class OtherBank(SimulatedBank):
    """The simulated bank, except what a test makes of one call."""

    on_submit: Callable[[Any, PayoutOrder], BankPayout] | None = None
    on_find: Callable[[BankPayout | None], BankPayout | None] | None = None
    asked = 0

    def submit(self, order: PayoutOrder) -> BankPayout:
        self.asked += 1
        if self.on_submit is not None:
            return self.on_submit(super().submit, order)
        return super().submit(order)

    def find_payout(self, key: str) -> BankPayout | None:
        seen = super().find_payout(key)
        return seen if self.on_find is None else self.on_find(seen)


@pytest.fixture
def bank(memory_desk: Desk) -> OtherBank:
    """The bank of this service, from now on."""
    world = memory_desk.world
    bank = OtherBank(world.service.parts.ports)
    world.service = PaymentsService(
        world.storage, KeyRing.parse(RING), clock=world.clock, transport=NoTransport(), bank=bank
    )
    return bank


def test_a_refused_payout_asks_for_a_decision_and_another_key_tries_again(
    memory_desk: Desk, bank: OtherBank
) -> None:
    def refuse(submit: Any, order: PayoutOrder) -> BankPayout:
        raise BankRefused("limit_exceeded", "not so much in a day")

    bank.on_submit = refuse
    desk = memory_desk
    created = desk.send()
    first = desk.payout(created)
    desk.world.run()
    desk.world.advance(60)
    payment = desk.payment(created)
    assert (payment.status, payment.labels) == ("action_required", ("execution_failed",))
    assert (payment.failure, payment.reconciliation.status) == ("limit_exceeded", "open")
    assert (desk.payout(created).status, desk.payout(created).failure) == (
        "failed", "limit_exceeded",
    )  # fmt: skip
    assert desk.books(created) == HELD
    assert bank.asked == 1
    for action in ("accept", "refund_excess"):
        with pytest.raises(ReconciliationActionNotAllowed):
            desk.world.reconcile(created, action)

    bank.on_submit = None
    retried = desk.world.reconcile(created, "retry_execution")
    assert (retried.status, retried.failure) == ("executing", None)
    second = desk.payout(created)
    assert (second.status, second.attempt, second.funded_at) == (
        "created", 2, desk.world.clock.now(),
    )  # fmt: skip
    assert second.key != first.key
    desk.world.run()
    desk.pass_days(5)
    assert (desk.payment(created).status, desk.payout(created).status) == ("succeeded", "settled")
    assert desk.bank.count_payouts([first.key, second.key]) == 1
    assert (desk.world.sent(), desk.offramp) == (1, 2_500)


@pytest.mark.parametrize("change", [{"amount_cents": 2_501}, {"rail": "wire"}, {"key": "k"}])
def test_another_payout_under_our_key_is_an_alarm_and_not_believed(
    memory_desk: Desk, bank: OtherBank, caplog: pytest.LogCaptureFixture, change: dict[str, Any]
) -> None:
    bank.on_submit = lambda submit, order: attrs.evolve(submit(order), **change)
    bank.on_find = lambda seen: attrs.evolve(seen, **change) if seen else None
    created = memory_desk.send()
    memory_desk.world.run()
    memory_desk.world.advance(30)
    assert memory_desk.payout(created).status == "created"
    assert "ALARM: the bank has another order with the key" in caplog.text
    bank.on_submit = bank.on_find = None
    memory_desk.world.advance(60)
    assert memory_desk.payout(created).status == "submitted"


def test_a_payout_that_the_bank_no_longer_knows_is_never_made_again(
    memory_desk: Desk, bank: OtherBank, caplog: pytest.LogCaptureFixture
) -> None:
    created = memory_desk.submitted()
    assert bank.asked == 1
    bank.on_find = lambda seen: None
    memory_desk.pass_days(1)
    assert "the bank does not know the payout" in caplog.text
    assert (memory_desk.payout(created).status, bank.asked) == ("submitted", 1)
    assert not memory_desk.look(created, "env_x/payment_x/1")
    jobs = PayoutJobs(memory_desk.world.service.parts.ports, {"sandbox": bank})
    assert jobs.look_at_payout("sandbox", memory_desk.payout(created).key)
    bank.on_find = None
    memory_desk.pass_days(4)
    assert memory_desk.payout(created).status == "settled"


def test_a_transfer_that_fails_gives_the_vault_its_funds_and_a_retry_begins_with_it(
    desk: Desk,
) -> None:
    created = desk.send()
    first = desk.payout(created)
    desk.world.fail("transfer")
    desk.world.finish()
    failed = desk.payment(created)
    assert (failed.status, failed.labels) == ("action_required", ("execution_failed",))
    assert (desk.payout(created).status, desk.payout(created).failure) == (
        "failed", "transaction_failed",
    )  # fmt: skip
    assert desk.books(created) == {}
    assert desk.world.held() == (atomic("100"), 0, atomic("100"))
    with pytest.raises(ReconciliationActionNotAllowed, match="no funds are held"):
        desk.world.reconcile(created, "refund")
    desk.world.reconcile(created, "retry_execution")
    assert desk.world.held() == (atomic("100"), atomic("25"), atomic("75"))
    assert (desk.payout(created).attempt, desk.payout(created).funded_at) == (2, None)
    desk.world.finish()
    assert desk.payout(created).status == "submitted"
    assert desk.bank.count_payouts([first.key, desk.payout(created).key]) == 1
    assert desk.offramp == 2_500


def test_without_a_bank_a_payout_waits(memory_desk: Desk) -> None:
    created = memory_desk.send()
    jobs = PayoutJobs(memory_desk.world.service.parts.ports, {})
    memory_desk.world.run()
    memory_desk.world.advance(2)
    with pytest.raises(BankUnavailable):
        jobs.look_at_payout("sandbox", memory_desk.payout(created).key)
