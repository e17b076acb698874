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
from tests.service.payments.payouts.desk import Desk
from tests.service.world import OTHER_WALLET, atomic

HELD = {"payer": -2_500, "offramp": 2_500}


def returned(desk: Desk) -> PaymentDetails:
    """A Payment whose payout came back after it had settled."""
    created = desk.settled()
    desk.bank.return_payout(desk.payout(created).key, "R03")
    desk.look(created)
    return created


def test_a_payout_that_comes_back_before_it_settles_has_failed(desk: Desk) -> None:
    created = desk.submitted()
    desk.bank.return_payout(desk.payout(created).key, "R03")
    desk.pass_days(1)
    payment, payout = desk.payment(created), desk.payout(created)
    assert (payment.status, payment.labels) == ("action_required", ("execution_failed",))
    assert (payment.failure, payment.settled) == ("payout_returned", 0)
    assert (payout.status, payout.return_code, payout.settled_at) == ("returned", "R03", None)
    assert payout.returned_at is not None
    assert desk.books(created) == HELD
    assert desk.causes(created) == ["send", "payout_submitted", "payout_returned"]
    assert not desk.is_followed(created)


def test_a_return_reopens_a_payment_that_has_succeeded(desk: Desk) -> None:
    created = desk.settled()
    succeeded = desk.payment(created)
    assert succeeded.succeeded_at is not None
    desk.bank.return_payout(desk.payout(created).key, "R02")
    desk.pass_days(1)
    payment = desk.payment(created)
    assert (payment.status, payment.labels) == ("action_required", ("returned",))
    assert (payment.failure, payment.settled, payment.succeeded_at) == ("payout_returned", 0, None)
    assert (desk.payout(created).status, desk.payout(created).return_code) == ("returned", "R02")
    assert desk.books(created) == HELD
    assert desk.world.reported_events(payment.id)[-2:] == [
        ("payment.succeeded", "succeeded", 3),
        ("payment.action_required", "action_required", 4),
    ]
    reported = desk.world.last_payload(payment.id, "payment.action_required")
    assert (reported["labels"], reported["settledAmountAtomic"]) == (["returned"], "0")


def test_a_return_weeks_after_settlement_is_found_without_any_notice(desk: Desk) -> None:
    account = desk.add_account(account_number="99900010")  # R10: up to sixty days
    created = desk.submitted(account=account)
    desk.pass_days(5)
    assert desk.payment(created).status == "succeeded"
    desk.pass_days(20, times=2)
    assert desk.payment(created).status == "succeeded"
    desk.pass_days(20)
    assert (desk.payment(created).status, desk.payout(created).return_code) == (
        "action_required", "R10",
    )  # fmt: skip
    assert desk.payout(created).settled_at is not None


def test_who_learns_of_settlement_and_return_at_once_reports_the_return(desk: Desk) -> None:
    account = desk.add_account(account_number="99900003")
    created = desk.submitted(account=account)
    desk.pass_days(10)
    payment = desk.payment(created)
    assert (payment.status, payment.labels) == ("action_required", ("execution_failed",))
    assert desk.payout(created).settled_at is not None
    assert "payment.succeeded" not in [
        name for name, _, _ in desk.world.reported_events(payment.id)
    ]
    assert desk.books(created) == HELD


def test_notices_may_come_again_late_and_for_keys_of_nobody(desk: Desk) -> None:
    created = desk.settled()
    key = desk.payout(created).key
    settled = desk.payment(created)
    assert desk.look(created)
    assert desk.payment(created) == settled
    desk.bank.return_payout(key, "R02")
    assert desk.look(created)
    reopened = desk.payment(created)
    assert reopened.status == "action_required"
    assert not desk.look(created)  # it has ended
    assert desk.payment(created) == reopened
    for unknown in ("/", "x", "a/b", f"{key}0", f"{desk.world.environment_id}/payment_x/1"):
        assert not desk.look(created, unknown)
    desk.world.reconcile(created, "retry_execution")
    assert not desk.look(created, key)  # the first payout's notice, once more
    desk.world.run()
    desk.pass_days(5)
    assert desk.payment(created).status == "succeeded"


def test_a_notice_may_come_before_the_answer_to_submit(desk: Desk) -> None:
    created = desk.send()
    desk.fail("lost_answer")
    desk.world.run()
    while desk.bank.find_payout(desk.payout(created).key) is None:
        desk.world.advance(1)
    assert desk.payout(created).status == "created"
    desk.look(created)
    assert desk.payout(created).status == "submitted"
    desk.world.advance(60)
    assert desk.causes(created) == ["send", "payout_submitted"]


class TestReconciliation:
    """What a partner may decide about a returned payout."""

    def test_a_retry_is_another_payout_from_the_same_funds(self, desk: Desk) -> None:
        created = desk.settled()
        first = desk.payout(created)
        desk.bank.return_payout(first.key, "R03")
        desk.look(created)
        retried = desk.world.reconcile(created, "retry_execution", note="asked the customer")
        assert (retried.status, retried.reconciliation.resolution) == (
            "executing", "retry_execution",
        )  # fmt: skip
        desk.world.run()
        second = desk.payout(created)
        assert (second.attempt, second.status) == (2, "submitted")
        assert second.key != first.key
        assert desk.books(created) == {"payer": -2_500, "bank": 2_500}
        desk.pass_days(5)
        done = desk.payment(created)
        assert (done.status, done.settled) == ("succeeded", atomic("25"))
        assert (desk.world.sent(), desk.offramp) == (1, 2_500)
        assert desk.bank.count_payouts([first.key, second.key]) == 2

        desk.bank.return_payout(second.key, "R10")  # it has sixty days
        desk.look(created)
        assert desk.payment(created).status == "action_required"

    def test_a_retry_needs_the_capability_again(self, desk: Desk) -> None:
        created = returned(desk)
        desk.suspend()
        before = desk.payment(created)
        with pytest.raises(CapabilityNotActive):
            desk.world.reconcile(created, "retry_execution")
        assert desk.payment(created) == before

    def test_a_refund_brings_the_funds_back_to_the_vault(self, desk: Desk) -> None:
        created = returned(desk)
        assert desk.world.held() == (atomic("75"), 0, atomic("75"))
        desk.world.reconcile(created, "refund", note="wrong account")
        for action in ("retry_execution", "refund", "write_off"):  # it is on its way
            with pytest.raises(ReconciliationActionNotAllowed):
                desk.world.reconcile(created, action)
        desk.world.finish()
        payment = desk.payment(created)
        assert (payment.status, payment.refunded) == ("refunded", atomic("25"))
        assert payment.reconciliation.resolution == "refund"
        assert desk.books(created) == {}
        assert desk.world.held() == (atomic("100"), 0, atomic("100"))
        assert desk.offramp == 0
        [refund] = desk.refunds(created)
        assert (refund.status, refund.amount, refund.from_offramp) == (
            "succeeded", atomic("25"), atomic("25"),
        )  # fmt: skip
        assert not [name for name in desk.world.event_names() if name.startswith("deposit.")]

    def test_a_refund_that_fails_can_be_asked_for_again(self, desk: Desk) -> None:
        created = returned(desk)
        desk.world.fail("transfer")
        desk.world.reconcile(created, "refund")
        desk.world.finish()
        assert desk.payment(created).status == "action_required"
        assert desk.books(created) == HELD
        desk.world.reconcile(created, "refund")
        desk.world.finish()
        assert desk.payment(created).status == "refunded"
        assert desk.world.held() == (atomic("100"), 0, atomic("100"))

    def test_what_was_written_off_can_still_go_back(self, desk: Desk) -> None:
        created = returned(desk)
        desk.world.reconcile(created, "write_off")
        assert desk.payment(created).status == "failed"
        assert desk.books(created) == HELD
        with pytest.raises(InvalidState):
            desk.world.reconcile(created, "retry_execution")
        desk.world.reconcile(created, "refund")
        desk.world.finish()
        assert desk.payment(created).status == "failed"
        assert desk.books(created) == {}
        assert desk.world.held() == (atomic("100"), 0, atomic("100"))

    def test_nobody_else_gets_what_came_back(self, desk: Desk) -> None:
        created = returned(desk)
        with pytest.raises(InvalidState):
            desk.world.refund(created, "25.00", to=OTHER_WALLET)

    def test_what_the_recipient_has_is_not_the_partners_to_refund(self, desk: Desk) -> None:
        created = desk.settled()
        for action in ("refund", "retry_execution", "write_off"):
            with pytest.raises((InvalidState, ReconciliationActionNotAllowed)):
                desk.world.reconcile(created, action)
        with pytest.raises(InvalidState):
            desk.world.refund(created, "25.00")


def test_a_transfer_that_two_reorgs_undo_is_taken_back_once(memory_desk: Desk) -> None:
    desk, world = memory_desk, memory_desk.world
    created = desk.submitted()
    ports = world.service.parts.ports
    owner = ReleaseOwner(Vaults(ports, world.service.chains))
    outgoing = world.get(OutboundTransfer, str(desk.payment(created).release_id))
    for _ in range(2):  # each reorg has a job of its own that follows the transfer
        ports.committer.commit(
            WorkerAuthority(world.environment_id, "sandbox"),
            lambda tx, ids: owner.on_reversed(tx, outgoing, "reverted", now=ports.clock.now()),
        )
    assert desk.causes(created) == ["send", "payout_submitted", "send_reorged"]
    assert desk.books(created) == {"offramp": -2_500, "bank": 2_500}
