"""Payouts that come back: before they settle, after it, weeks later, twice, out of order."""

from __future__ import annotations

import pytest

from payments_core.accounts.vaults.operations import Vaults
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.engine.decision import WorkerAuthority
from payments_core.errors import (
    CapabilityNotActive,
    InvalidState,
    ReconciliationActionNotAllowed,
)
from payments_core.payments.details import PaymentDetails
from payments_core.payments.release import ReleaseOwner
from tests.service.payments.payouts.payout_harness import PayoutHarness
from tests.service.world import OTHER_WALLET, atomic

HELD = {"payer": -2_500, "offramp": 2_500}


def returned(harness: PayoutHarness) -> PaymentDetails:
    """A Payment whose payout came back after it had settled."""
    created = harness.settled()
    harness.bank.return_payout(harness.payout(created).key, "R03")
    harness.look(created)
    return created


def test_a_payout_that_comes_back_before_it_settles_has_failed(harness: PayoutHarness) -> None:
    created = harness.submitted()
    harness.bank.return_payout(harness.payout(created).key, "R03")
    harness.pass_days(1)
    payment, payout = harness.payment(created), harness.payout(created)
    assert (payment.status, payment.labels) == ("action_required", ("execution_failed",))
    assert (payment.failure, payment.settled_atomic) == ("payout_returned", 0)
    assert (payout.status, payout.return_code, payout.settled_at_ms) == ("returned", "R03", None)
    assert payout.returned_at_ms is not None
    assert harness.books(created) == HELD
    assert harness.causes(created) == ["send", "payout_submitted", "payout_returned"]
    assert not harness.is_followed(created)


def test_a_return_reopens_a_payment_that_has_succeeded(harness: PayoutHarness) -> None:
    created = harness.settled()
    succeeded = harness.payment(created)
    assert succeeded.succeeded_at_ms is not None
    harness.bank.return_payout(harness.payout(created).key, "R02")
    harness.pass_days(1)
    payment = harness.payment(created)
    assert (payment.status, payment.labels) == ("action_required", ("returned",))
    assert (payment.failure, payment.settled_atomic, payment.succeeded_at_ms) == (
        "payout_returned",
        0,
        None,
    )
    assert (harness.payout(created).status, harness.payout(created).return_code) == (
        "returned",
        "R02",
    )
    assert harness.books(created) == HELD
    assert harness.world.reported_events(payment.id)[-2:] == [
        ("payment.succeeded", "succeeded", 3),
        ("payment.action_required", "action_required", 4),
    ]
    reported = harness.world.last_payload(payment.id, "payment.action_required")
    assert (reported["labels"], reported["settledAmountAtomic"]) == (["returned"], "0")


def test_a_return_weeks_after_settlement_is_found_without_any_notice(
    harness: PayoutHarness,
) -> None:
    account = harness.add_account(account_number="99900010")  # R10: up to sixty days
    created = harness.submitted(account=account)
    harness.pass_days(5)
    assert harness.payment(created).status == "succeeded"
    harness.pass_days(20, times=2)
    assert harness.payment(created).status == "succeeded"
    harness.pass_days(20)
    assert (harness.payment(created).status, harness.payout(created).return_code) == (
        "action_required", "R10",
    )  # fmt: skip
    assert harness.payout(created).settled_at_ms is not None


def test_who_learns_of_settlement_and_return_at_once_reports_the_return(
    harness: PayoutHarness,
) -> None:
    account = harness.add_account(account_number="99900003")
    created = harness.submitted(account=account)
    harness.pass_days(10)
    payment = harness.payment(created)
    assert (payment.status, payment.labels) == ("action_required", ("execution_failed",))
    assert harness.payout(created).settled_at_ms is not None
    assert "payment.succeeded" not in [
        name for name, _, _ in harness.world.reported_events(payment.id)
    ]
    assert harness.books(created) == HELD


def test_notices_may_come_again_late_and_for_keys_of_nobody(harness: PayoutHarness) -> None:
    created = harness.settled()
    key = harness.payout(created).key
    settled = harness.payment(created)
    assert harness.look(created)
    assert harness.payment(created) == settled
    harness.bank.return_payout(key, "R02")
    assert harness.look(created)
    reopened = harness.payment(created)
    assert reopened.status == "action_required"
    assert not harness.look(created)  # it has ended
    assert harness.payment(created) == reopened
    for unknown in ("/", "x", "a/b", f"{key}0", f"{harness.world.environment_id}/payment_x/1"):
        assert not harness.look(created, unknown)
    harness.world.reconcile(created, "retry_execution")
    assert not harness.look(created, key)  # the first payout's notice, once more
    harness.world.run()
    harness.pass_days(5)
    assert harness.payment(created).status == "succeeded"


def test_a_notice_may_come_before_the_answer_to_submit(harness: PayoutHarness) -> None:
    created = harness.send()
    harness.fail("lost_answer")
    harness.world.run()
    while harness.bank.find_payout(harness.payout(created).key) is None:
        harness.world.advance(1)
    assert harness.payout(created).status == "created"
    harness.look(created)
    assert harness.payout(created).status == "submitted"
    harness.world.advance(60)
    assert harness.causes(created) == ["send", "payout_submitted"]


class TestReconciliation:
    """What a partner may decide about a returned payout."""

    def test_a_retry_is_another_payout_from_the_same_funds(self, harness: PayoutHarness) -> None:
        created = harness.settled()
        first = harness.payout(created)
        harness.bank.return_payout(first.key, "R03")
        harness.look(created)
        retried = harness.world.reconcile(created, "retry_execution", note="asked the customer")
        assert (retried.status, retried.reconciliation.resolution) == (
            "executing", "retry_execution",
        )  # fmt: skip
        harness.world.run()
        second = harness.payout(created)
        assert (second.attempt, second.status) == (2, "submitted")
        assert second.key != first.key
        assert harness.books(created) == {"payer": -2_500, "bank": 2_500}
        harness.pass_days(5)
        done = harness.payment(created)
        assert (done.status, done.settled_atomic) == ("succeeded", atomic("25"))
        assert (harness.world.sent(), harness.offramp) == (1, 2_500)
        assert harness.bank.count_payouts([first.key, second.key]) == 2

        harness.bank.return_payout(second.key, "R10")  # it has sixty days
        harness.look(created)
        assert harness.payment(created).status == "action_required"

    def test_a_retry_needs_the_capability_again(self, harness: PayoutHarness) -> None:
        created = returned(harness)
        harness.suspend()
        before = harness.payment(created)
        with pytest.raises(CapabilityNotActive):
            harness.world.reconcile(created, "retry_execution")
        assert harness.payment(created) == before

    def test_a_refund_brings_the_funds_back_to_the_vault(self, harness: PayoutHarness) -> None:
        created = returned(harness)
        assert harness.world.held() == (atomic("75"), 0, atomic("75"))
        harness.world.reconcile(created, "refund", note="wrong account")
        for action in ("retry_execution", "refund", "write_off"):  # it is on its way
            with pytest.raises(ReconciliationActionNotAllowed):
                harness.world.reconcile(created, action)
        harness.world.finish()
        payment = harness.payment(created)
        assert (payment.status, payment.refunded_atomic) == ("refunded", atomic("25"))
        assert payment.reconciliation.resolution == "refund"
        assert harness.books(created) == {}
        assert harness.world.held() == (atomic("100"), 0, atomic("100"))
        assert harness.offramp == 0
        [refund] = harness.refunds(created)
        assert (refund.status, refund.amount_atomic, refund.from_offramp_atomic) == (
            "succeeded", atomic("25"), atomic("25"),
        )  # fmt: skip
        assert not [name for name in harness.world.event_names() if name.startswith("deposit.")]

    def test_a_refund_that_fails_can_be_asked_for_again(self, harness: PayoutHarness) -> None:
        created = returned(harness)
        harness.world.fail("transfer")
        harness.world.reconcile(created, "refund")
        harness.world.finish()
        assert harness.payment(created).status == "action_required"
        assert harness.books(created) == HELD
        harness.world.reconcile(created, "refund")
        harness.world.finish()
        assert harness.payment(created).status == "refunded"
        assert harness.world.held() == (atomic("100"), 0, atomic("100"))

    def test_what_was_written_off_can_still_go_back(self, harness: PayoutHarness) -> None:
        created = returned(harness)
        harness.world.reconcile(created, "write_off")
        assert harness.payment(created).status == "failed"
        assert harness.books(created) == HELD
        with pytest.raises(InvalidState):
            harness.world.reconcile(created, "retry_execution")
        harness.world.reconcile(created, "refund")
        harness.world.finish()
        assert harness.payment(created).status == "failed"
        assert harness.books(created) == {}
        assert harness.world.held() == (atomic("100"), 0, atomic("100"))

    def test_nobody_else_gets_what_came_back(self, harness: PayoutHarness) -> None:
        created = returned(harness)
        with pytest.raises(InvalidState):
            harness.world.refund(created, "25.00", to=OTHER_WALLET)

    def test_what_the_recipient_has_is_not_the_partners_to_refund(
        self, harness: PayoutHarness
    ) -> None:
        created = harness.settled()
        for action in ("refund", "retry_execution", "write_off"):
            with pytest.raises((InvalidState, ReconciliationActionNotAllowed)):
                harness.world.reconcile(created, action)
        with pytest.raises(InvalidState):
            harness.world.refund(created, "25.00")


def test_a_transfer_that_two_reorgs_undo_is_taken_back_once(memory_harness: PayoutHarness) -> None:
    harness, world = memory_harness, memory_harness.world
    created = harness.submitted()
    ports = world.service.parts.ports
    owner = ReleaseOwner(Vaults(ports, world.service.chains))
    outgoing = world.get(OutboundTransfer, str(harness.payment(created).release_id))
    for _ in range(2):  # each reorg has a job of its own that follows the transfer
        ports.committer.commit(
            WorkerAuthority(world.environment_id, "sandbox"),
            lambda tx, ids: owner.on_reversed(tx, outgoing, "reverted", now=ports.clock.now()),
        )
    assert harness.causes(created) == ["send", "payout_submitted", "send_reorged"]
    assert harness.books(created) == {"offramp": -2_500, "bank": 2_500}
