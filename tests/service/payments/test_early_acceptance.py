"""Payments of small amounts count before the chain's own finality, as the network's policy says.

The simulated chain adds a block each second, and a block is final with three on top.
"""

from __future__ import annotations

import attrs
import pytest

from payments_core.acceptance import Acceptance
from payments_core.chains import scanner
from payments_core.clock import format_iso
from payments_core.networks import Networks, shipped_networks
from payments_core.payment_settings.record import PaymentTerms
from payments_core.payments.details import PaymentDetails
from payments_core.payments.receipts.progress import ReceiptProgress
from payments_core.payments.record import Payment
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.world import BASE, World, atomic

ANY = Acceptance("finalized")
LATEST = Acceptance("latest", up_to="10.00")


def policy(*rows: Acceptance) -> Networks:
    base = shipped_networks()[BASE]
    return shipped_networks().merge(attrs.evolve(base, acceptance=rows))


class Shop(World):
    """A world whose Base accepts up to 10 USDC as soon as a block has it."""

    def __init__(self, *rows: Acceptance) -> None:
        self._networks = policy(*(rows or (LATEST, ANY)))
        super().__init__(MemoryStorage())
        self.service = self.restarted(networks=self._networks)
        self.open()

    def now(self, payment: PaymentDetails) -> Payment:
        return self.paid(payment.payment.id)

    def paid_early(self) -> PaymentDetails:
        """A Payment whose release was sent before its receipt was final."""
        payment = self.payment("5.00")
        self.pay(payment, "5.00")
        self.run()
        assert self.now(payment).status == "executing"
        return payment


def test_a_small_payment_is_released_while_a_large_one_waits() -> None:
    shop = Shop()
    small, large = shop.payment("10.00"), shop.payment("10.000001")
    shop.pay(small, "10.00")
    shop.pay(large, "10.000001")
    shop.run()
    assert (shop.now(small).status, shop.now(large).status) == ("executing", "processing")
    shop.advance(1)
    assert (shop.now(small).status, shop.now(large).status) == ("succeeded", "processing")
    shop.finish()
    assert shop.now(large).status == "succeeded"
    assert shop.held(shop.merchant)[0] == 20_000_001


def test_a_depth_counts_blocks_on_top() -> None:
    shop = Shop(Acceptance(depth=2, up_to="10.00"), ANY)
    payment = shop.payment("5.00")
    shop.pay(payment, "5.00")
    shop.advance(1)
    assert shop.now(payment).status == "processing"
    shop.advance(1)
    assert shop.now(payment).status == "executing"


def test_events_and_the_state_say_how_far_a_transfer_is() -> None:
    shop = Shop(Acceptance(depth=2, up_to="10.00"), ANY)
    payment = shop.payment("5.00")
    visitor = shop.service.acting_as(shop.system_authority)
    assert visitor.public_payments.read_state(payment.payment.id).progress is None
    shop.pay(payment, "5.00")
    shop.run()
    (receipt,) = visitor.payments.list_receipts(payment.payment.id).receipts.records
    said = shop.last_payload(payment.payment.id, "payment.processing")
    seen_ms = receipt.observed_at_ms
    assert {name: said[name] for name in ("receiptId", "confirmations", "required")} == {
        "receiptId": receipt.id,
        "confirmations": 0,
        "required": 2,
    }
    assert said["estimatedAt"] == format_iso(seen_ms + 2 * 2_000)
    shop.advance(1)
    progress = visitor.public_payments.read_state(payment.payment.id).progress
    assert progress == ReceiptProgress(receipt.id, 1, 2, seen_ms + 4_000)
    shop.finish()
    assert visitor.public_payments.read_state(payment.payment.id).progress is None


def test_an_authorized_transfer_has_no_progress_before_it_is_sent() -> None:
    shop = Shop()
    shop.fund("5.00")
    shop.authorized("5.00")
    event = next(one for one in shop.events() if one.name == "payment.processing")
    assert event.payload["receiptId"] is None
    assert event.payload["estimatedAt"] is None


def test_the_row_is_that_of_the_creation() -> None:
    shop = Shop()
    payment = shop.payment("5.00")
    assert payment.payment.early_acceptance == LATEST
    shop.service = shop.restarted()  # with the shipped policy
    shop.pay(payment, "5.00")
    shop.run()
    assert shop.now(payment).status == "executing"
    assert shop.payment("5.00").payment.early_acceptance is None


def test_payment_settings_ask_for_more_blocks() -> None:
    shop = Shop()
    shop.resources.payment_settings.replace(PaymentTerms(confirmations={BASE: 2}))
    payment = shop.payment("5.00")
    shop.pay(payment, "5.00")
    shop.advance(1)
    assert shop.now(payment).status == "processing"
    shop.advance(1)
    assert shop.now(payment).status == "executing"


def test_a_vaults_transfer_waits_for_the_chains_own_finality() -> None:
    """Its reservation ends with the balance at a final block, or it would count twice."""
    shop = Shop()
    shop.fund("5.00")
    option = shop.authorized("5.00")
    shop.run()
    assert shop.paid(option.payment.id).status == "processing"
    assert shop.held()[2] == 0
    shop.finish()
    assert shop.paid(option.payment.id).status == "succeeded"
    assert shop.held() == (0, 0, 0)


@pytest.mark.parametrize("seconds", [0, 1])
def test_what_was_released_early_is_undone_with_its_payment(seconds: int) -> None:
    shop = Shop()
    payment = shop.paid_early()
    shop.advance(seconds)
    shop.reorg(4)
    shop.finish()
    after = shop.now(payment)
    assert (after.status, "reorged" in after.labels) == ("action_required", True)
    assert after.books.held_atomic == 0
    assert shop.held(shop.merchant) == (0, 0, 0)


def test_what_comes_back_after_a_reorg_is_released_once() -> None:
    shop = Shop()
    payment = shop.paid_early()
    shop.reorg(4, reinclude=True)
    shop.finish()
    after = shop.now(payment)
    assert (after.status, after.settled_atomic) == ("succeeded", 5_000_000)
    assert shop.held(shop.merchant) == (5_000_000, 0, 5_000_000)


def test_a_failed_release_is_believed_when_it_is_final() -> None:
    """Whatever follows a failure would pay again, and a reorg might let the first succeed."""
    shop = Shop()
    payment = shop.paid_early()
    shop.reorg(4)  # the release is sent again, and fails: the escrow is empty
    shop.run()
    assert shop.now(payment).status == "executing"
    shop.finish()
    assert shop.now(payment).status == "action_required"


@pytest.mark.parametrize("dropped", [4, 1], ids=["both", "only the release"])
@pytest.mark.parametrize("reinclude", [False, True])
def test_a_reorg_that_no_scan_notices_is_noticed_before_it_is_final(
    monkeypatch: pytest.MonkeyPatch, dropped: int, reinclude: bool
) -> None:
    """Scans remember only the newest blocks, and may ask a node that saw others."""
    monkeypatch.setattr(scanner, "RING_BLOCKS", 1)
    shop = Shop()
    payment = shop.paid_early()
    shop.advance(1)
    assert shop.now(payment).status == "succeeded"
    shop.advance(1)  # all of it was scanned
    shop.reorg(dropped + 2, reinclude=reinclude)
    shop.finish()
    after = shop.now(payment)
    if dropped == 1 or reinclude:
        assert (after.status, after.books.recipient) == ("succeeded", atomic("5"))
        assert shop.held(shop.merchant)[0] == atomic("5")
    else:
        assert (after.status, after.books.recipient) == ("action_required", 0)
        assert shop.held(shop.merchant)[0] == 0


def test_the_journal_and_an_alarm_say_what_was_delivered_at_risk(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shop = Shop()
    payment = shop.paid_early()
    shop.advance(1)
    shop.reorg(5)
    shop.finish()
    entries = shop.resources.payments.list_receipts(payment.payment.id).entries
    notes = {entry.cause: entry.note for entry in entries}
    said = (
        f"A reorg of Base undid 5.00 USDC of {payment.payment.id} after it was accepted"
        " (succeeded): what was delivered for that is not paid"
    )
    assert notes == {
        "receipt": None, "release": None, "receipt_reorged": said, "release_reorged": None
    }  # fmt: skip
    assert [one.message for one in caplog.records if said in one.message] == [
        f"ALARM: {said} (docs/how-to/networks.md)"
    ]


def test_a_payment_that_was_not_accepted_has_no_such_note() -> None:
    shop = Shop()
    payment = shop.payment("5.00")
    shop.pay(payment, "2.00")
    shop.run()
    shop.reorg(3)
    shop.finish()
    entries = shop.resources.payments.list_receipts(payment.payment.id).entries
    assert [(entry.cause, entry.note) for entry in entries] == [
        ("receipt", None),
        ("receipt_reorged", None),
    ]
