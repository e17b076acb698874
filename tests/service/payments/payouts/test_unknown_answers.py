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
from tests.service.payments.payouts.payout_harness import PayoutHarness
from tests.service.world import RING, NoTransport, atomic

HELD = {"payer": -2_500, "offramp": 2_500}


@pytest.mark.parametrize("call", ["submit", "find_payout", "lost_answer", "any"])
def test_a_bank_that_does_not_answer_is_asked_again_under_the_same_key(
    harness: PayoutHarness, call: str
) -> None:
    created = harness.send()
    key = harness.payout(created).key
    harness.fail(call, 1 if call == "lost_answer" else 3)
    harness.world.run()
    harness.world.advance(60)
    assert harness.payout(created).status == "submitted"
    assert harness.world.resources.sandbox.read().failures == ()
    assert (harness.payout(created).key, harness.bank.count_payouts([key])) == (key, 1)
    assert harness.causes(created) == ["send", "payout_submitted"]


def test_the_funds_wait_at_the_offramp_while_the_bank_is_down(
    memory_harness: PayoutHarness,
) -> None:
    harness = memory_harness
    created = harness.send()
    harness.fail("any", 4)
    harness.world.run()
    harness.world.advance(10)
    assert (harness.payment(created).status, harness.payout(created).status) == (
        "executing",
        "created",
    )
    assert harness.books(created) == HELD
    with pytest.raises(InvalidState):  # nobody knows whether the bank has it
        harness.world.reconcile(created, "refund")
    harness.world.advance(60)
    assert harness.payout(created).status == "submitted"


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
def bank(memory_harness: PayoutHarness) -> OtherBank:
    """The bank of this service, from now on."""
    world = memory_harness.world
    bank = OtherBank(world.service.parts.ports)
    world.service = PaymentsService(
        world.storage, KeyRing.parse(RING), clock=world.clock, transport=NoTransport(), bank=bank
    )
    return bank


def test_a_refused_payout_asks_for_a_decision_and_another_key_tries_again(
    memory_harness: PayoutHarness, bank: OtherBank
) -> None:
    def refuse(submit: Any, order: PayoutOrder) -> BankPayout:
        raise BankRefused("limit_exceeded", "not so much in a day")

    bank.on_submit = refuse
    harness = memory_harness
    created = harness.send()
    first = harness.payout(created)
    harness.world.run()
    harness.world.advance(60)
    payment = harness.payment(created)
    assert (payment.status, payment.labels) == ("action_required", ("execution_failed",))
    assert (payment.failure, payment.reconciliation.status) == ("limit_exceeded", "open")
    assert (harness.payout(created).status, harness.payout(created).failure) == (
        "failed", "limit_exceeded",
    )  # fmt: skip
    assert harness.books(created) == HELD
    assert bank.asked == 1
    for action in ("accept", "refund_excess"):
        with pytest.raises(ReconciliationActionNotAllowed):
            harness.world.reconcile(created, action)

    bank.on_submit = None
    retried = harness.world.reconcile(created, "retry_execution")
    assert (retried.status, retried.failure) == ("executing", None)
    second = harness.payout(created)
    assert (second.status, second.attempt, second.funded_at_ms) == (
        "created", 2, harness.world.clock.now(),
    )  # fmt: skip
    assert second.key != first.key
    harness.world.run()
    harness.pass_days(5)
    assert (harness.payment(created).status, harness.payout(created).status) == (
        "succeeded",
        "settled",
    )
    assert harness.bank.count_payouts([first.key, second.key]) == 1
    assert (harness.world.sent(), harness.offramp) == (1, 2_500)


@pytest.mark.parametrize("change", [{"amount_cents": 2_501}, {"rail": "wire"}, {"key": "k"}])
def test_another_payout_under_our_key_is_an_alarm_and_not_believed(
    memory_harness: PayoutHarness,
    bank: OtherBank,
    caplog: pytest.LogCaptureFixture,
    change: dict[str, Any],
) -> None:
    bank.on_submit = lambda submit, order: attrs.evolve(submit(order), **change)
    bank.on_find = lambda seen: attrs.evolve(seen, **change) if seen else None
    created = memory_harness.send()
    memory_harness.world.run()
    memory_harness.world.advance(30)
    assert memory_harness.payout(created).status == "created"
    assert "ALARM: the bank has another order with the key" in caplog.text
    bank.on_submit = bank.on_find = None
    memory_harness.world.advance(60)
    assert memory_harness.payout(created).status == "submitted"


def test_a_payout_that_the_bank_no_longer_knows_is_never_made_again(
    memory_harness: PayoutHarness, bank: OtherBank, caplog: pytest.LogCaptureFixture
) -> None:
    created = memory_harness.submitted()
    assert bank.asked == 1
    bank.on_find = lambda seen: None
    memory_harness.pass_days(1)
    assert "the bank does not know the payout" in caplog.text
    assert (memory_harness.payout(created).status, bank.asked) == ("submitted", 1)
    assert not memory_harness.look(created, "env_x/payment_x/1")
    jobs = PayoutJobs(memory_harness.world.service.parts.ports, {"sandbox": bank})
    assert jobs.look_at_payout("sandbox", memory_harness.payout(created).key)
    bank.on_find = None
    memory_harness.pass_days(4)
    assert memory_harness.payout(created).status == "settled"


def test_a_transfer_that_fails_gives_the_vault_its_funds_and_a_retry_begins_with_it(
    harness: PayoutHarness,
) -> None:
    created = harness.send()
    first = harness.payout(created)
    harness.world.fail("transfer")
    harness.world.finish()
    failed = harness.payment(created)
    assert (failed.status, failed.labels) == ("action_required", ("execution_failed",))
    assert (harness.payout(created).status, harness.payout(created).failure) == (
        "failed", "transaction_failed",
    )  # fmt: skip
    assert harness.books(created) == {}
    assert harness.world.held() == (atomic("100"), 0, atomic("100"))
    with pytest.raises(ReconciliationActionNotAllowed, match="no funds are held"):
        harness.world.reconcile(created, "refund")
    harness.world.reconcile(created, "retry_execution")
    assert harness.world.held() == (atomic("100"), atomic("25"), atomic("75"))
    assert (harness.payout(created).attempt, harness.payout(created).funded_at_ms) == (2, None)
    harness.world.finish()
    assert harness.payout(created).status == "submitted"
    assert harness.bank.count_payouts([first.key, harness.payout(created).key]) == 1
    assert harness.offramp == 2_500


def test_without_a_bank_a_payout_waits(memory_harness: PayoutHarness) -> None:
    created = memory_harness.send()
    jobs = PayoutJobs(memory_harness.world.service.parts.ports, {})
    memory_harness.world.run()
    memory_harness.world.advance(2)
    with pytest.raises(BankUnavailable):
        jobs.look_at_payout("sandbox", memory_harness.payout(created).key)
