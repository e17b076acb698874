"""Webhooks of a bank: the payout, the review or the transfer that each names is looked at."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator

import pytest

from examples.custom_bank.adapter import ExampleBank
from examples.custom_bank.service import Bank
from payments_core.accounts.bank_accounts.record import BankAccount
from payments_core.banks.port import UNNAMED
from payments_core.banks.reviews import BankCapability
from payments_core.clock import HOUR, SECOND
from payments_core.notices.operations import ProviderNotices
from payments_core.onramps.fields import NewOnrampAccount, NewOnrampDestination
from payments_core.onramps.record import BankTransaction, OnrampAccount
from payments_core.payments.destinations import ToBankAccount
from payments_core.payments.record import Payment, Payout
from payments_core.payments.sends import NewSend
from tests.service.payments.payouts.payout_harness import NEW_ACCOUNT
from tests.service.world import BASE, World

HOUR_S = HOUR // SECOND


class Desk:
    """A payer whose bank reports by webhook."""

    def __init__(self, world: World, bank: Bank) -> None:
        self.world, self.bank = world, bank
        self.adapter = ExampleBank(f"http://127.0.0.1:{bank.server_port}", "key", b"secret")
        world.service = world.restarted(bank=self.adapter)
        world.resources.sandbox.decide_kyc(world.payer.id, "approved")
        world.advance(8 * HOUR_S)  # from now on the lists of notices are read once an hour

    def tell(self, about: str, id: str = "") -> None:
        """A webhook of the bank, signed now."""
        notice = {"id": id or f"of {about} {time.monotonic_ns()}", "about": about}
        self.door.receive("sandbox", "bank", "example", *self.bank.sign(notice, time.time()))
        self.world.run()

    @property
    def door(self) -> ProviderNotices:
        return self.world.service.parts.provider_notices

    def statuses(self) -> dict[str, int]:
        words = ("received", "routed", "unknown")
        return {word: len(self.door.list("sandbox", word).records) for word in words}

    def activated(self, capability: BankCapability) -> str:
        """A capability that the bank has approved by webhook; its key."""
        known = set(self.bank.rows["capabilities"])
        self.world.resources.bank_accounts.activate(self.world.payer.id, capability)
        self.world.run()
        [key] = set(self.bank.rows["capabilities"]) - known
        self.bank.move("capabilities", key, state="approved")
        assert not self.is_active(capability)
        self.tell(key)
        return key

    def is_active(self, capability: BankCapability) -> bool:
        found = self.world.resources.accounts.read_capabilities(self.world.payer.id)
        return (capability, "active") in {(it.name, it.status) for it in found}

    def bank_account(self) -> BankAccount:
        """A bank account that the bank has not decided on."""
        self.activated("us_bank_payout")
        made = self.world.resources.bank_accounts.add(self.world.payer.id, NEW_ACCOUNT)
        self.world.run()
        return made

    def submitted(self) -> Payout:
        """A payout that the bank has."""
        account = self.bank_account()
        self.bank.move("recipients", account.id, state="approved")
        self.tell(account.id)
        to = ToBankAccount(bank_account_id=account.id, rail="ach")
        new = NewSend(amount="25.00", account_id=self.world.payer.id, destination=to)
        self.payment_id = self.world.resources.payments.send(new).payment.id
        self.world.run()
        self.world.advance(30)
        assert self.payout().status == "submitted"
        return self.payout()

    def payout(self) -> Payout:
        payout = self.world.get(Payment, self.payment_id).payout
        assert payout is not None
        return payout

    def onramp(self) -> OnrampAccount:
        """An on-ramp whose number the bank has made."""
        self.activated("us_bank_funding")
        to = NewOnrampDestination(type="vault", chain_id=BASE, asset_symbol="USDC")
        new = NewOnrampAccount(currency="usd", destination=to)
        made = self.world.resources.onramps.add(self.world.payer.id, new)
        self.world.run()
        return self.world.get(OnrampAccount, made.id)

    def transfer(self, account_key: str | None) -> str:
        """A transfer that somebody sends; the bank's id of it."""
        id = f"transfer-{time.monotonic_ns()}"
        made = {"id": id, "account": account_key, "rail": "ach_push", "cents": 100_00}
        self.bank.rows["transfers"][id] = made
        self.bank.move("transfers", id, state="received", receivedAt=1)
        return id

    def transactions(self, onramp: OnrampAccount) -> list[BankTransaction]:
        resources = self.world.resources
        return list(resources.onramps.list_transactions(self.world.payer.id, onramp.id).records)


@pytest.fixture
def bank() -> Iterator[Bank]:
    bank = Bank(0, "key", "secret")
    thread = threading.Thread(target=bank.serve_forever, args=(0.01,))
    thread.start()
    yield bank
    bank.shutdown()
    bank.server_close()
    thread.join()


@pytest.fixture
def desk(memory_world: World, bank: Bank) -> Desk:
    return Desk(memory_world, bank)


def test_webhooks_have_reviews_stored(world: World, bank: Bank) -> None:
    desk = Desk(world, bank)
    account = desk.bank_account()
    assert desk.is_active("us_bank_payout")
    assert desk.statuses() == {"received": 0, "routed": 1, "unknown": 0}
    desk.bank.move("recipients", account.id, state="declined", why="no such account")
    desk.tell(account.id)
    found = desk.world.get(BankAccount, account.id)
    assert (found.status, found.reason) == ("rejected", "no such account")


def test_a_review_that_is_still_open_is_looked_at_by_its_own_job_as_before(desk: Desk) -> None:
    account = desk.bank_account()
    for _ in range(3):
        desk.tell(account.id)
    assert desk.world.get(BankAccount, account.id).status == "pending"
    desk.bank.move("recipients", account.id, state="approved")
    desk.world.advance(3 * 60)
    assert desk.world.get(BankAccount, account.id).status == "active"


def test_webhooks_have_a_payouts_settlement_and_its_return_stored(desk: Desk) -> None:
    key = desk.submitted().key
    desk.bank.move("payouts", key, state="settled", settledAt=1)
    desk.bank.events.clear()
    desk.tell(key)
    assert desk.payout().status == "settled"
    desk.bank.move("payouts", key, state="returned", returnedAt=2, code="R03")
    desk.tell(key)
    assert (desk.payout().status, desk.payout().return_code) == ("returned", "R03")


def test_repeats_and_webhooks_out_of_order_change_nothing(desk: Desk) -> None:
    key = desk.submitted().key
    desk.bank.move("payouts", key, state="settled", settledAt=1)
    for id in ("2", "1", "2", "1"):
        desk.tell(key, id)
    names = desk.world.event_names(desk.payment_id)
    assert names["payment.succeeded"] == 1
    assert desk.statuses()["unknown"] == 0


def test_a_webhook_has_a_transfer_followed_that_was_never_listed(desk: Desk) -> None:
    onramp = desk.onramp()
    id = desk.transfer(onramp.bank_key)
    desk.bank.events.clear()
    desk.tell(id)
    [transaction] = desk.transactions(onramp)
    assert (transaction.incoming_id, transaction.status) == (id, "received")
    desk.tell(id)
    assert len(desk.transactions(onramp)) == 1


def test_a_webhook_of_a_transfer_for_nobody_has_it_sent_back(desk: Desk) -> None:
    id = desk.transfer(None)
    desk.tell(id)
    assert desk.bank.rows["transfers"][id]["state"] == "returned"


def test_a_webhook_that_names_nothing_has_the_lists_read(desk: Desk) -> None:
    key = desk.submitted().key
    desk.world.advance(8 * HOUR_S)
    desk.bank.move("payouts", key, state="settled", settledAt=1)
    desk.tell(UNNAMED)
    assert desk.payout().status == "settled"
    assert desk.bank.events == {}


def test_without_webhooks_the_bank_is_polled(desk: Desk) -> None:
    key = desk.submitted().key
    desk.bank.move("payouts", key, state="settled", settledAt=1)
    desk.world.advance(2 * HOUR_S)
    assert desk.payout().status == "settled"


@pytest.mark.parametrize(
    "about", ["nothing", "a/b/1", "capability_activation_1/1", "bank_account_1", "sandbox/x/y/z"]
)
def test_what_nobody_knows_is_kept_with_an_alarm(
    desk: Desk, about: str, caplog: pytest.LogCaptureFixture
) -> None:
    desk.tell(about)
    assert desk.statuses()["received"] == 1
    with caplog.at_level(logging.ERROR):
        desk.world.advance(20 * 60)
    assert desk.statuses() == {"received": 0, "routed": 0, "unknown": 1}
    assert any("ALARM: a notice of bank/example" in line for line in caplog.messages)


def test_a_bank_that_is_away_is_asked_for_the_transfer_again(desk: Desk) -> None:
    onramp = desk.onramp()
    id = desk.transfer(onramp.bank_key)
    desk.bank.events.clear()
    desk.bank.faults["is_down"] = True
    desk.tell(id)
    desk.world.advance(60)
    assert desk.transactions(onramp) == []
    desk.bank.faults["is_down"] = False
    desk.world.advance(120)
    assert len(desk.transactions(onramp)) == 1
