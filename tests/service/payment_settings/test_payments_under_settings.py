"""What a Payment keeps of the settings: its fee, its tolerance and its confirmations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from payments_core.clock import DAY, SECOND
from payments_core.payments.collects import NewCollect
from payments_core.payments.destinations import ToAccount
from payments_core.payments.mandates.operations import NewMandate
from payments_core.payments.sends import NewSend
from tests.service.settings import POLYGON, put
from tests.service.world import BASE, OTHER_WALLET, WALLET, World, atomic


class TestAPayment:
    def test_keeps_what_the_settings_said_when_it_was_created(self, world: World) -> None:
        before = world.payment().payment
        put(
            world, fee_bps=25, tolerance_bps=100, confirmations={BASE: 9, POLYGON: 30},
            expires_in_s=600, monitoring_s=7_200, allowed_methods=("direct", "vault"),
            success_url="https://shop.example/ok", cancel_url="https://shop.example/no",
        )  # fmt: skip
        payment = world.payment().payment
        assert (payment.fee_bps, payment.tolerance_bps, payment.confirmations) == (25, 100, 9)
        assert payment.expires_at_ms - payment.created_at_ms == 600 * SECOND
        assert payment.monitoring_expires_at_ms - payment.expires_at_ms == 7_200 * SECOND
        assert payment.allowed_methods == ("direct", "vault")
        assert payment.success_url == "https://shop.example/ok"
        assert payment.cancel_url == "https://shop.example/no"
        assert world.payment(chain_id=1).payment.confirmations == 0
        put(world, fee_bps=9_999)
        for kept in (before, payment):
            known = world.paid(kept.id)
            assert (known.fee_bps, known.tolerance_bps) == (kept.fee_bps, kept.tolerance_bps)
            assert known.monitoring_expires_at_ms == kept.monitoring_expires_at_ms
        assert (before.fee_bps, before.confirmations) == (0, 0)
        assert before.monitoring_expires_at_ms - before.expires_at_ms == DAY

    def test_says_itself_what_the_settings_have_only_for_want_of_that(self, world: World) -> None:
        put(world, expires_in_s=600, allowed_methods=("vault",), success_url="https://a.example/")
        payment = world.payment(
            expires_in_s=900, allowed_methods=("direct",), success_url="https://b.example/"
        ).payment
        assert payment.expires_at_ms - payment.created_at_ms == 900 * SECOND
        assert payment.allowed_methods == ("direct",)
        assert (payment.success_url, payment.cancel_url) == ("https://b.example/", None)

    def test_of_a_backend_is_not_bound_by_what_is_for_strangers(self, world: World) -> None:
        put(world, chains=(POLYGON,), assets=("USDT",), min_amount="1000", max_amount="2000")
        payment = world.payment("5.00").payment
        assert (payment.chain_id, payment.asset_symbol) == (BASE, "USDC")

    def test_of_a_collect_keeps_them_too(self, world: World) -> None:
        put(world, fee_bps=100, confirmations={BASE: 5}, expires_in_s=600, monitoring_s=3_600)
        vault_id = world.vault_of().id
        new = NewMandate(vault_id=vault_id, amount_per_period="40.00", period="month")
        under = world.resources.mandates.create(world.payer.id, new).mandate
        to = ToAccount(account_id=world.merchant.id)
        payment = world.resources.payments.collect(
            NewCollect(amount="25.00", mandate_id=under.id, destination=to)
        ).payment
        assert (payment.fee_bps, payment.confirmations) == (100, 5)
        assert payment.expires_at_ms - payment.created_at_ms == 600 * SECOND
        world.finish()
        done = world.paid(payment.id)
        assert (done.status, done.settled_atomic) == ("succeeded", atomic("24.75"))

    def test_that_sends_has_no_fee(self, world: World) -> None:
        put(world, fee_bps=100)
        new = NewSend(
            amount="5.00", account_id=world.payer.id,
            destination=ToAccount(account_id=world.merchant.id),
        )  # fmt: skip
        payment = world.resources.payments.send(new).payment
        world.finish()
        assert (world.paid(payment.id).settled_atomic, payment.fee_bps) == (atomic("5"), 0)


class TestTheFee:
    @pytest.mark.parametrize(("bps", "net"), [(0, 25_000_000), (1, 24_997_500), (9_999, 2_500)])
    def test_stays_behind_when_the_rest_is_released(self, world: World, bps: int, net: int) -> None:
        put(world, fee_bps=bps)
        payment = world.payment("25.00")
        world.pay(payment, "25.00")
        world.finish()
        done = world.paid(payment.payment.id)
        assert (done.status, done.settled_atomic, done.fee_atomic) == (
            "succeeded",
            net,
            25_000_000 - net,
        )
        assert world.on_chain(world.vault_address(world.merchant)) == net
        assert world.on_chain(str(done.escrow_address)) == 25_000_000 - net

    def test_of_the_least_amount_leaves_something_to_release(self, world: World) -> None:
        put(world, fee_bps=9_999)
        payment = world.payment("0.000001")
        world.pay(payment, "0.000001")
        world.finish()
        assert world.paid(payment.payment.id).settled_atomic == 1


class TestTheTolerance:
    def paid(self, world: World, *amounts: str) -> Any:
        """A Payment of 100.00 with a tolerance of 5 %, after these transfers, each final."""
        put(world, tolerance_bps=500)
        payment = world.payment("100.00")
        for amount in amounts:
            world.pay(payment, amount, source=WALLET if amount == amounts[0] else OTHER_WALLET)
            world.finish()
        return world.paid(payment.payment.id)

    def test_releases_what_arrived(self, world: World) -> None:
        done = self.paid(world, "95.00")
        assert (done.status, done.labels) == ("succeeded", ())
        assert (done.settled_atomic, done.excess_atomic) == (atomic("95"), 0)

    def test_ends_where_it_ends(self, world: World) -> None:
        short = self.paid(world, "94.999999")
        assert (short.status, short.labels) == ("awaiting_payment", ("underpaid",))

    def test_makes_nobody_overpaid_who_sends_the_rest_too_late(self, world: World) -> None:
        done = self.paid(world, "96.00", "4.00")
        assert (done.status, done.labels) == ("succeeded", ("late",))
        assert (done.received_atomic, done.settled_atomic) == (atomic("100"), atomic("96"))
        assert world.event_names(done.id)["payment.late"] == 1
        assert world.event_names(done.id)["payment.overpaid"] == 0
        assert done.reconciliation.status == "open"
        # It was too late for the release, and there is never a second one: it can go back.
        world.resources.payments.reconcile(done.id, "refund_excess")
        world.finish()
        back = world.paid(done.id)
        assert (back.refunded_atomic, back.excess_atomic, back.reconciliation.status) == (
            atomic("4"), 0, "resolved",
        )  # fmt: skip
        assert world.on_chain(OTHER_WALLET) == atomic("4")

    def test_is_not_added_to_the_amount(self, world: World) -> None:
        done = self.paid(world, "96.00", "4.00", "0.000001")
        assert (done.labels, done.settled_atomic) == (("late", "overpaid"), atomic("96"))
        assert done.excess_atomic == atomic("4.000001")

    def test_leaves_what_is_too_much_what_it_was(self, world: World) -> None:
        done = self.paid(world, "101.00")
        assert (done.labels, done.settled_atomic, done.excess_atomic) == (
            ("overpaid",), atomic("100"), atomic("1"),
        )  # fmt: skip


class TestConfirmations:
    def seen(self, world: World, confirmations: Mapping[int, int]) -> Any:
        """A Payment whose transfer is in a block."""
        put(world, confirmations=confirmations)
        payment = world.payment("25.00")
        world.pay(payment, "25.00")
        return payment

    def status(self, world: World, payment: Any, blocks: int) -> str:
        """The Payment's status so many blocks later; each second adds one."""
        world.advance(blocks)
        return world.paid(payment.payment.id).status

    def test_put_finality_off(self, world: World) -> None:
        payment = self.seen(world, {BASE: 30})
        assert self.status(world, payment, 20) == "processing"
        assert world.paid(payment.payment.id).received_atomic == 0
        assert self.status(world, payment, 13) in ("accepted", "executing")

    def test_put_off_the_end_of_the_release_too(self, world: World) -> None:
        payment = self.seen(world, {BASE: 30})
        self.status(world, payment, 33)
        assert self.status(world, payment, 20) == "executing"
        assert self.status(world, payment, 15) == "succeeded"

    def test_never_undercut_the_chain(self, world: World) -> None:
        payment = self.seen(world, {BASE: 1})
        world.run()
        world.advance(1)
        assert world.paid(payment.payment.id).status == "processing"
        world.finish()
        assert world.paid(payment.payment.id).status == "succeeded"

    def test_of_one_chain_are_not_anothers(self, world: World) -> None:
        payment = self.seen(world, {POLYGON: 900})
        world.finish()
        assert world.paid(payment.payment.id).status == "succeeded"

    def test_are_not_for_a_vaults_own_transfer(self, world: World) -> None:
        """Its balance is less from the chain's own finality on, and so is what is reserved."""
        put(world, confirmations={BASE: 1_000})
        option = world.authorized("25.00")
        world.run()
        world.advance(20)
        assert world.operation_now(option).status == "confirmed"
        assert world.balance_now().reserved_atomic == 0
        world.advance(1_100)
        assert world.paid(option.payment.id).status == "succeeded"

    def test_see_a_reorg_that_the_chain_calls_final_too_soon(self, world: World) -> None:
        payment = self.seen(world, {BASE: 30})
        world.advance(10)
        world.reorg(11)
        world.finish()
        gone = world.paid(payment.payment.id)
        assert (gone.status, gone.received_atomic, gone.labels) == ("awaiting_payment", 0, ())
