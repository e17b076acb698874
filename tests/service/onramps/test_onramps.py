"""Bank transfers to an on-ramp, from the bank's notice to the credit on chain."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.banks.incoming import Delivery, DeliveryOrder
from payments_core.banks.port import BankRefused
from payments_core.chains.port import SignedTransaction
from payments_core.clock import DAY, HOUR, SECOND, parse_iso
from payments_core.engine.decision import Decision
from payments_core.errors import DestinationNotAllowed, InvalidState, NotFound, ValidationFailed
from payments_core.evolve import evolve
from payments_core.onramps.credit import CreditOwner
from payments_core.onramps.record import BankTransaction, OnrampAccount, UnmatchedTransfer
from payments_core.storage.port import DIRECTORY
from tests.service.onramps.setting import OnrampSetting
from tests.service.world import BASE, USDC, WALLET, World


@pytest.fixture
def setting(world: World) -> OnrampSetting:
    return OnrampSetting(world)


@pytest.fixture
def memory_setting(memory_world: World) -> OnrampSetting:
    return OnrampSetting(memory_world)


def change_account(setting: OnrampSetting, status: Any) -> None:
    world = setting.world
    world.resources.accounts.change(world.payer.id, status=status)


class TestCredit:
    def test_a_wire_is_credited_to_the_vault(self, setting: OnrampSetting) -> None:
        before = setting.balance()
        setting.deposit("100.00", "wire")
        setting.world.run()
        assert setting.transaction.status == "received"
        setting.world.advance(60)
        transaction = setting.transaction
        assert transaction.status == "settled"
        assert setting.balance() == before + 100_000_000
        assert setting.reported_events() == [
            "bank_funding.received",
            "bank_funding.submitted",
            "bank_funding.settled",
        ]
        assert setting.postings(transaction) == [
            ("arrival", {"sender": -100_000_000, "bank": 100_000_000}),
            ("delivery", {"bank": -100_000_000, "escrow": 100_000_000}),
            ("credit", {"escrow": -100_000_000, "recipient": 100_000_000}),
        ]

    def test_a_wallet_is_credited_too(self, memory_world: World) -> None:
        setting = OnrampSetting(memory_world, type="wallet", address=WALLET)
        setting.deposit("12.34")
        memory_world.finish()
        assert setting.transaction.status == "settled"
        assert setting.balance() == 12_340_000

    def test_an_ach_push_is_scheduled_until_the_next_banking_day(
        self, memory_setting: OnrampSetting
    ) -> None:
        setting, world = memory_setting, memory_setting.world
        made = setting.deposit("250.00", "ach_push")
        assert made.expected_at_ms == parse_iso("2026-09-22T12:30:00.000Z")  # Tuesday, 8:30
        world.run()
        assert setting.transaction.status == "scheduled"
        before_it = (made.expected_at_ms - world.clock.now()) // SECOND - 1
        world.advance(before_it)
        assert setting.transaction.status == "scheduled"
        world.advance(2)
        assert setting.transaction.status == "received"
        world.advance(60)
        assert setting.transaction.status == "settled"
        assert setting.reported_events()[0] == "bank_funding.scheduled"

    def test_each_transfer_to_the_same_number_is_credited(
        self, memory_setting: OnrampSetting
    ) -> None:
        setting = memory_setting
        before = setting.balance()
        for cents in range(1, 6):
            setting.deposit(f"{cents}.00")
        setting.world.finish()
        assert {one.status for one in setting.transactions()} == {"settled"}
        assert setting.balance() == before + 15_000_000

    def test_a_credit_that_fails_is_made_again(self, memory_setting: OnrampSetting) -> None:
        setting, world = memory_setting, memory_setting.world
        before = setting.balance()
        setting.deposit("100.00")
        world.fail("transfer")
        world.advance(30)
        assert (setting.transaction.status, setting.transaction.reason) == (
            "in_review",
            "credit_failed",
        )
        world.advance(310)
        assert setting.transaction.status == "settled"
        assert setting.transaction.credits == 2
        assert setting.balance() == before + 100_000_000
        assert [cause for cause, _ in setting.postings(setting.transaction)] == [
            "arrival",
            "delivery",
            "credit",
        ]

    def test_a_credit_that_is_undone_and_fails_is_made_again(
        self, memory_setting: OnrampSetting
    ) -> None:
        setting, world = memory_setting, memory_setting.world
        setting.deposit("100.00")
        world.advance(10)
        assert setting.transaction.status == "settled"
        empty = setting.balance() - 100_000_000
        world.reorg(8)
        world.fail("transfer")
        world.advance(600)
        assert setting.reported_events()[2:] == [
            "bank_funding.settled",
            "bank_funding.in_review",
            "bank_funding.received",
            "bank_funding.submitted",
            "bank_funding.settled",
        ]
        assert [cause for cause, _ in setting.postings(setting.transaction)] == [
            "arrival",
            "delivery",
            "credit",
            "credit_reorged",
            "credit",
        ]
        assert setting.balance() == empty + 100_000_000


class TestReview:
    def test_the_bank_holds_a_transfer_and_lets_it_go(self, memory_setting: OnrampSetting) -> None:
        setting, world = memory_setting, memory_setting.world
        setting.deposit(outcome="review")
        world.run()
        assert setting.transaction.status == "in_review"
        assert not setting.postings(setting.transaction)
        world.advance(2 * HOUR // SECOND)
        assert setting.transaction.status == "settled"

    def test_the_bank_sends_back_what_it_held(self, memory_setting: OnrampSetting) -> None:
        setting, world = memory_setting, memory_setting.world
        setting.deposit(outcome="return")
        world.run()
        world.advance(3 * HOUR // SECOND)
        transaction = setting.transaction
        assert (transaction.status, transaction.reason) == ("refunded", "rejected_by_bank")
        assert setting.reported_events() == ["bank_funding.in_review", "bank_funding.refunded"]

    def test_a_transfer_that_is_called_off_fails(self, memory_setting: OnrampSetting) -> None:
        setting, world = memory_setting, memory_setting.world
        setting.deposit(rail="ach_push", outcome="cancel")
        world.run()
        world.advance(2 * DAY // SECOND)
        assert setting.transaction.status == "failed"
        assert setting.reported_events() == ["bank_funding.scheduled", "bank_funding.failed"]

    def test_a_micro_deposit_is_never_credited(self, memory_setting: OnrampSetting) -> None:
        setting, world = memory_setting, memory_setting.world
        before = setting.balance()
        setting.deposit("0.32", "ach_push")
        world.run()
        world.advance(30 * DAY // SECOND)
        transaction = setting.transaction
        assert (transaction.type, transaction.status) == ("micro_deposit", "received")
        assert transaction.credit_id is None
        assert setting.balance() == before
        assert setting.bank.count_deliveries([transaction.incoming_id]) == 0

    def test_a_suspended_account_is_credited_when_it_is_active_again(
        self, memory_setting: OnrampSetting
    ) -> None:
        setting, world = memory_setting, memory_setting.world
        change_account(setting, "suspended")
        setting.deposit()
        world.finish()
        transaction = setting.transaction
        assert (transaction.status, transaction.reason) == ("in_review", "account_suspended")
        change_account(setting, "active")
        world.advance(2 * HOUR // SECOND)
        assert setting.transaction.status == "settled"

    def test_what_is_held_for_ten_days_is_sent_back(self, memory_setting: OnrampSetting) -> None:
        setting, world = memory_setting, memory_setting.world
        change_account(setting, "suspended")
        setting.deposit()
        world.finish()
        world.advance(10 * DAY // SECOND)
        transaction = setting.transaction
        assert (transaction.status, transaction.reason) == ("refunded", "account_suspended")
        assert [cause for cause, _ in setting.postings(transaction)] == ["arrival", "refund"]

    def test_money_for_a_closed_account_is_sent_back(self, memory_setting: OnrampSetting) -> None:
        setting, world = memory_setting, memory_setting.world
        change_account(setting, "closed")
        made = setting.deposit()
        world.finish()
        assert setting.transaction.status == "refunded"
        found = setting.bank.find_incoming(made.id)
        assert found is not None
        assert (found.status, found.reason) == ("returned", "account_closed")

    def test_what_matches_no_on_ramp_is_sent_back(
        self, setting: OnrampSetting, caplog: pytest.LogCaptureFixture
    ) -> None:
        world = setting.world
        made = setting.deposit(outcome="unmatched")
        world.finish()
        assert setting.transactions() == ()
        found = setting.bank.find_incoming(made.id)
        assert found is not None
        assert (found.status, found.reason) == ("returned", "unmatched")
        row = world.storage.read(
            DIRECTORY, lambda snapshot: snapshot.get(UnmatchedTransfer, f"sandbox:{made.id}")
        )
        assert row is not None
        assert row.status == "returned"
        lines = [line for line in caplog.messages if "matches no on-ramp" in line]
        assert lines == [f"bank transfer {made.id} matches no on-ramp and was sent back"]


class TestTrouble:
    def test_a_bank_that_is_down_delays_and_loses_nothing(
        self, memory_setting: OnrampSetting
    ) -> None:
        setting, world = memory_setting, memory_setting.world
        sandbox = world.resources.sandbox
        for call in ("list_incoming_notices", "acknowledge", "find_incoming", "deliver"):
            sandbox.fail_dependency("bank", call, 3)
        sandbox.fail_dependency("bank", "lost_answer", 2)
        setting.deposit()
        world.advance(600)
        assert setting.transaction.status == "settled"

    def test_the_bank_refuses_to_send_back_what_it_delivered(
        self, memory_setting: OnrampSetting
    ) -> None:
        setting, world = memory_setting, memory_setting.world
        made = setting.deposit()
        world.finish()
        with pytest.raises(BankRefused):
            setting.bank.return_incoming(made.id, "too late")
        order = DeliveryOrder(
            key="another",
            incoming_id=made.id,
            chain_id=BASE,
            token_address=USDC.address,
            address=WALLET,
            amount_atomic=1,
        )
        with pytest.raises(BankRefused):
            setting.bank.deliver(order)

    def test_a_delivery_that_does_not_come_is_looked_for_and_reported_after_a_day(
        self,
        memory_setting: OnrampSetting,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """So it is, too, where a restored storage has lost the credit of what has come."""
        setting, world = memory_setting, memory_setting.world
        asked: list[str] = []

        def say_delivered(order: DeliveryOrder) -> Delivery:
            asked.append(order.key)
            return Delivery(key=order.key, status="delivered")

        with monkeypatch.context() as patch:
            patch.setattr(setting.bank, "deliver", say_delivered)
            setting.deposit()
            world.advance(60)
            world.system.advance(DAY // SECOND - 120)
            world.run()
            assert setting.transaction.status == "received"
            assert "ALARM" not in caplog.text
            for _ in range(3):  # the second and the third time within an hour
                world.system.advance(20 * 60)
                world.run()
        reported = f"ALARM: the stablecoins of {setting.transaction.id} did not arrive in 24 hours"
        assert caplog.text.count(reported) in (1, 2)  # a late notice of the bank brings it forward
        assert set(asked) == {setting.transaction.id}
        for _ in range(2):
            world.system.advance(3_600)
            world.run()
        world.finish()
        assert setting.transaction.status == "settled"

    def test_notices_that_come_again_change_nothing(self, memory_setting: OnrampSetting) -> None:
        setting, world = memory_setting, memory_setting.world
        setting.deposit()
        world.finish()
        before, reported = setting.transaction, setting.reported_events()
        world.advance(3 * HOUR // SECOND)  # the second notice of each change
        assert setting.transaction == before
        assert setting.reported_events() == reported
        assert not setting.bank.list_incoming_notices().notices


class TestOnrampAccounts:
    def test_the_number_is_only_in_the_instructions(self, setting: OnrampSetting) -> None:
        world, onramp = setting.world, setting.onramp
        opened = world.resources.onramps.read_instructions(world.payer.id, onramp.id)
        assert onramp.instructions is not None
        assert opened.account_number.endswith(onramp.instructions.last4)
        assert opened.account_number not in repr(onramp) + repr(opened)

    def test_there_are_no_instructions_before_the_bank_has_answered(
        self, memory_setting: OnrampSetting
    ) -> None:
        setting, world = memory_setting, memory_setting.world
        world.resources.sandbox.fail_dependency("bank", "open_virtual_account", 2)
        onramp = setting.add()
        assert onramp.status == "pending"
        with pytest.raises(InvalidState):
            world.resources.onramps.read_instructions(world.payer.id, onramp.id)
        world.advance(60)
        assert setting.reload(onramp).status == "active"

    def test_a_bank_that_refuses_rejects_it(
        self, memory_setting: OnrampSetting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(request: Any) -> Any:
            raise BankRefused("not_served", "The bank does not serve this account.")

        monkeypatch.setattr(memory_setting.bank, "open_virtual_account", refuse)
        onramp: OnrampAccount = memory_setting.add()
        assert (onramp.status, onramp.reason) == (
            "rejected",
            "The bank does not serve this account.",
        )

    @pytest.mark.parametrize(
        ("destination", "path"),
        [
            ({"type": "wallet"}, "destination.address"),
            ({"type": "wallet", "address": "0x12"}, "destination.address"),
            ({"address": WALLET}, "destination.address"),
            ({"type": "bank"}, "destination.type"),
            ({"chain_id": "8453"}, "destination.chain_id"),
            ({"asset_symbol": ""}, "destination.asset_symbol"),
        ],
    )
    def test_a_wrong_field_is_named(
        self, memory_setting: OnrampSetting, destination: dict[str, Any], path: str
    ) -> None:
        with pytest.raises(ValidationFailed) as refused:
            memory_setting.add(**destination)
        assert [fault.path for fault in refused.value.fields] == [path]

    def test_an_address_of_the_service_is_not_a_destination(
        self, memory_setting: OnrampSetting
    ) -> None:
        payment = memory_setting.world.payment()
        escrow = payment.payment.escrow_address
        with pytest.raises(DestinationNotAllowed):
            memory_setting.add(type="wallet", address=escrow)

    def test_another_accounts_on_ramp_is_not_found(self, memory_setting: OnrampSetting) -> None:
        world = memory_setting.world
        onramps = world.resources.onramps
        for read in (onramps.read_instructions, onramps.list_transactions):
            with pytest.raises(NotFound):
                read(world.merchant.id, memory_setting.onramp.id)


@pytest.mark.parametrize("credit_id", ["outgoing_before", None])
def test_a_worker_that_sends_a_credit_that_was_replaced_does_not_submit_the_new_one(
    memory_setting: OnrampSetting, credit_id: str | None
) -> None:
    """Two workers on one transaction: one of them read it before its credit had failed."""
    setting, world = memory_setting, memory_setting.world
    setting.deposit("100.00", "wire")
    world.run()
    transaction = evolve(setting.transaction, status="received", credit_id="outgoing_now")
    world.storage.transact(world.environment_id, lambda tx: tx.replace(transaction))
    signed = SignedTransaction(hash="0x" + "11" * 32, raw=b"signed")

    def sent(record: BankTransaction) -> Decision[None]:
        return world.storage.transact(
            world.environment_id,
            lambda tx: CreditOwner().on_sent(tx, record, signed, now=world.clock.now()),
        )

    assert sent(evolve(transaction, credit_id=credit_id)) == Decision(None)
    assert sent(transaction).replaces
