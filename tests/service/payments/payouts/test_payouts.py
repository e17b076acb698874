"""Sends to a bank account: created, at the bank, settled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payments_core.errors import (
    AmountOutOfRange,
    CapabilityNotActive,
    DestinationNotAllowed,
    EntitlementRequired,
    InsufficientBalance,
    InvalidState,
    NotFound,
    PolicyDenied,
    UnsupportedAsset,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.payments.destinations import ToWallet
from payments_core.payments.payouts.creation import PayoutCreation
from payments_core.payments.sends import NewSend
from tests.service.payments.payouts.payout_harness import PayoutHarness
from tests.service.world import USDC, answer_of, atomic, once, write

AT_THE_BANK = {"payer": -2_500, "bank": 2_500}
PAID = {"payer": -2_500, "recipient": 2_500}


def test_a_payout_goes_through_the_offramp_and_the_bank_to_the_recipient(
    harness: PayoutHarness,
) -> None:
    world = harness.world
    created = harness.send(to={"ach_reference": "invoice 7"})
    payment, payout = harness.payment(created), harness.payout(created)
    assert (payment.intent, payment.status, payment.fee_atomic) == ("send", "processing", 0)
    assert (payout.status, payout.amount_cents, payout.attempt) == ("created", 2_500, 1)
    assert payout.statement_text == "invoice 7"
    assert harness.books(created) == {}
    assert world.held() == (atomic("100"), atomic("25"), atomic("75"))
    world.run()
    assert (harness.payment(created).status, harness.payout(created).status) == (
        "executing",
        "created",
    )
    assert harness.bank.find_payout(payout.key) is None  # not before the transfer is final
    world.advance(30)
    assert (harness.payment(created).status, harness.payout(created).status) == (
        "executing",
        "submitted",
    )
    assert harness.books(created) == AT_THE_BANK
    assert harness.offramp == 2_500
    assert world.held() == (atomic("75"), 0, atomic("75"))
    at_bank = harness.bank.find_payout(payout.key)
    assert at_bank is not None
    assert (at_bank.status, at_bank.amount_cents, at_bank.rail) == ("submitted", 2_500, "ach")
    assert harness.payout(created).settles_on == at_bank.settles_on.isoformat()
    harness.pass_days(4)  # over any weekend
    done = harness.payment(created)
    assert (done.status, done.settled_atomic, harness.payout(created).status) == (
        "succeeded", atomic("25"), "settled",
    )  # fmt: skip
    assert done.succeeded_at_ms is not None
    assert harness.books(created) == PAID
    assert harness.causes(created) == ["send", "payout_submitted", "payout_settled"]
    assert world.reported_events(done.id) == [
        ("payment.created", "processing", 1),
        ("payment.executing", "executing", 2),
        ("payment.succeeded", "succeeded", 3),
    ]
    assert (world.sent(), harness.offramp) == (1, 2_500)
    harness.pass_days(1, times=60)
    assert harness.payment(created) == done
    assert harness.is_followed(created)
    harness.pass_days(15)
    assert not harness.is_followed(created)


def test_a_wire_carries_its_message(harness: PayoutHarness) -> None:
    created = harness.send("30.00", to={"rail": "wire", "wire_message": "rent"})
    harness.world.finish()
    payout = harness.payout(created)
    assert payout.submitted_at_ms is not None
    assert (payout.rail, payout.amount_cents, payout.statement_text) == ("wire", 3_000, "rent")
    harness.pass_days(4)
    assert harness.payment(created).status == "succeeded"


def test_the_same_request_makes_one_payout(harness: PayoutHarness) -> None:
    request = once("payout-1")
    first = harness.send(idempotency_key=request)
    assert answer_of(lambda: harness.send(idempotency_key=request))
    harness.world.finish()
    assert harness.bank.count_payouts([harness.payout(first).key]) == 1
    assert harness.offramp == 2_500


def test_a_payout_can_be_cancelled_until_its_transfer_is_sent(harness: PayoutHarness) -> None:
    created = harness.send()
    cancelled = harness.world.resources.payments.cancel(created.payment.id).payment
    assert cancelled.payout is not None
    assert (cancelled.status, cancelled.payout.status) == ("cancelled", "cancelled")
    assert harness.payment(created).payout == cancelled.payout
    assert harness.world.held() == (atomic("100"), 0, atomic("100"))
    harness.world.finish()
    assert harness.bank.find_payout(cancelled.payout.key) is None
    assert harness.offramp == 0

    sent = harness.send()
    harness.world.run()
    with pytest.raises(InvalidState):
        harness.world.resources.payments.cancel(sent.payment.id)


class TestWhatIsRefused:
    """Nothing is reserved, or sent to anybody or to the bank."""

    @pytest.fixture(autouse=True)
    def _nothing_happens(self, memory_harness: PayoutHarness) -> Iterator[None]:
        yield
        assert memory_harness.world.held() == (atomic("100"), 0, atomic("100"))

    def test_without_the_product(self, memory_harness: PayoutHarness) -> None:
        world = memory_harness.world
        others = [name for name in world.environment.products if name != "bank_payouts"]
        world.service.tenants.set_products(world.environment_id, others)
        with pytest.raises(EntitlementRequired) as refusal:
            memory_harness.send()
        assert refusal.value.product == "bank_payouts"

    def test_without_the_capability(self, memory_harness: PayoutHarness) -> None:
        memory_harness.suspend()
        with pytest.raises(CapabilityNotActive) as refusal:
            memory_harness.send()
        assert refusal.value.capability == "us_bank_payout"

    def test_where_there_is_no_bank(self, memory_harness: PayoutHarness) -> None:
        ports = memory_harness.world.service.parts.ports
        account = memory_harness.account
        with pytest.raises(CapabilityNotActive):
            PayoutCreation(ports, {}).check(
                memory_harness.world.server, account.account_id, account.id, "ach", USDC, 10_000
            )

    def test_to_a_bank_account_that_is_not_active(self, memory_harness: PayoutHarness) -> None:
        rejected = memory_harness.add_account(account_number="99900099")
        with pytest.raises(DestinationNotAllowed, match="the bank account is rejected"):
            memory_harness.send(account=rejected)

    def test_to_a_bank_account_of_another(self, memory_harness: PayoutHarness) -> None:
        with pytest.raises(NotFound) as foreign:
            memory_harness.send(account_id=memory_harness.world.merchant.id)
        with pytest.raises(NotFound) as unknown:
            memory_harness.send(to={"bank_account_id": "bank_account_x"})
        assert str(foreign.value) == str(unknown.value) == "not_found: No such bank account."

    @pytest.mark.parametrize(
        ("amount", "rail"),
        [("0.001", "ach"), ("25.001", "wire"), ("100000000.00", "ach"), ("10000000000.00", "wire")],
    )
    def test_an_amount_that_the_rail_does_not_take(
        self, memory_harness: PayoutHarness, amount: str, rail: str
    ) -> None:
        with pytest.raises(AmountOutOfRange):
            memory_harness.send(amount, to={"rail": rail})

    def test_more_than_the_vault_has(self, memory_harness: PayoutHarness) -> None:
        with pytest.raises(InsufficientBalance):
            memory_harness.send("100.01")

    def test_another_asset_than_the_dollar_one(self, memory_harness: PayoutHarness) -> None:
        with pytest.raises(UnsupportedAsset):
            memory_harness.send(chain_id=1, asset_symbol="USDT")

    def test_the_text_of_the_other_rail(self, memory_harness: PayoutHarness) -> None:
        for rail, text in (("ach", "wire_message"), ("wire", "ach_reference")):
            with pytest.raises(ValidationFailed) as refusal:
                memory_harness.send(to={"rail": rail, text: "hello"})
            [fault] = refusal.value.fields
            assert fault.path == f"destination.{text}"

    @pytest.mark.parametrize(
        ("name", "refused"),
        [("José Núñez", ("ach", "wire")), ("A" * 23, ("ach",)), ("AT&T", ())],
    )
    def test_a_holder_of_an_earlier_release_whose_name_the_rail_does_not_carry(
        self, memory_harness: PayoutHarness, name: str, refused: tuple[str, ...]
    ) -> None:
        world = memory_harness.world
        stored = evolve(memory_harness.account, holder_name=name)
        write(world.storage, world.environment_id, lambda tx: tx.replace(stored))
        for rail in ("ach", "wire"):
            if rail in refused:
                with pytest.raises(ValidationFailed) as refusal:
                    memory_harness.send("1.00", to={"rail": rail})
                assert [f.path for f in refusal.value.fields] == ["destination.bank_account_id"]
            else:
                made = memory_harness.send("1.00", to={"rail": rail})
                world.resources.payments.cancel(made.payment.id)

    def test_a_policy_that_does_not_allow_the_account_itself(
        self, memory_harness: PayoutHarness
    ) -> None:
        world = memory_harness.world
        for allowed, is_allowed in ((world.merchant.id, False), (world.payer.id, True)):
            memory_harness.allow_only(allowed)
            if is_allowed:
                cancelled = memory_harness.send()
                world.resources.payments.cancel(cancelled.payment.id)
            else:
                with pytest.raises(PolicyDenied):
                    memory_harness.send()

    def test_the_offramp_address_is_not_a_destination_of_others(
        self, memory_harness: PayoutHarness
    ) -> None:
        created = memory_harness.send()
        world = memory_harness.world
        world.resources.payments.cancel(created.payment.id)
        to = ToWallet(address=created.payment.destination.address)
        with pytest.raises(DestinationNotAllowed):
            world.resources.payments.send(
                NewSend(amount="1.00", account_id=world.payer.id, destination=to)
            )
