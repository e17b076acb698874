"""One Payment from its creation to `succeeded`, with everything in step."""

from __future__ import annotations

import pytest

from payments_core.accounts.record import Settlement
from payments_core.clock import HOUR
from payments_core.engine.events import Event
from payments_core.errors import (
    AmountOutOfRange,
    DestinationNotAllowed,
    NotFound,
    PaymentsError,
    UnsupportedAsset,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.payments.destinations import ToAccount, ToPaymentAddress, ToWallet
from payments_core.payments.operations import NewPayment
from payments_core.payments.receipts.record import Receipt
from tests.service.world import World, atomic
from tests.shipped import CHAINS

WALLET = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"


def test_a_payment_goes_from_creation_to_succeeded(world: World) -> None:
    payment = world.payment("25.00").payment
    assert (payment.status, payment.status_version) == ("awaiting_payment", 1)
    option = world.option(world.resources.payments.read(payment.id))
    assert option.option.status == "pending"
    assert option.operation.status == "awaiting_authorization"
    assert option.operation.status_version == 1

    authorized = world.authorize(option)
    assert authorized.payment.status == "processing"
    assert authorized.option.status == "processing"
    assert authorized.option.action_id is None
    assert authorized.operation.status == "authorized"
    assert authorized.operation.status_version == 2
    assert authorized.operation.policy_version == 1
    assert world.held() == (atomic("100"), atomic("25"), atomic("75"))

    world.finish()
    done = world.paid(payment.id)
    assert done.status == "succeeded"
    assert [entry.status for entry in done.timeline] == [
        "awaiting_payment", "processing", "accepted", "executing", "succeeded",
    ]  # fmt: skip
    assert done.status_version == 5
    assert done.received_atomic == done.settled_atomic == done.amount_atomic == atomic("25")
    assert not done.is_pending
    assert done.succeeded_at_ms == done.timeline[-1].at_ms
    assert world.option_now(option).status == "succeeded"
    assert world.option_now(option).paid_atomic == atomic("25")
    assert world.operation_now(option).status == "confirmed"
    assert world.operation_now(option).status_version == 4
    assert world.held() == (atomic("75"), 0, atomic("75"))
    assert world.on_chain(done.escrow_address) == 0
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")
    assert world.sent() == 2


def test_each_change_has_exactly_its_event_and_versions_rise_by_one(world: World) -> None:
    option = world.authorized()
    world.finish()
    events = world.events(option.payment.id)
    reported = [event for event in events if event.name.startswith("payment.")]
    reported.sort(key=lambda event: event.payload["statusVersion"])
    assert [(event.name, event.payload["statusVersion"]) for event in reported] == [
        ("payment.created", 1),
        ("payment.processing", 2),
        ("payment.accepted", 3),
        ("payment.executing", 4),
        ("payment.succeeded", 5),
    ]
    funding = [event for event in events if event.name.startswith("vault_funding.")]
    funding.sort(key=lambda event: event.payload["statusVersion"])
    assert [(event.name, event.payload["statusVersion"]) for event in funding] == [
        ("vault_funding.authorized", 2),
        ("vault_funding.broadcast", 3),
        ("vault_funding.confirmed", 4),
    ]
    assert reported[2].payload["receivedAmountAtomic"] == str(atomic("25"))
    assert reported[4].payload["settledAmountAtomic"] == str(atomic("25"))
    for event in reported:
        assert event.payload["status"] == event.name.removeprefix("payment.").replace(
            "created", "awaiting_payment"
        )
        assert event.account_id == world.merchant.id
        assert event.external_user_id == "merchant"


def test_what_changes_together_is_stamped_together(world: World) -> None:
    option = world.authorized()
    world.finish()
    payment, operation = world.paid(option.payment.id), world.operation_now(option)
    at = {entry.status: entry.at_ms for entry in payment.timeline}
    assert operation.authorized_at_ms == at["processing"]
    assert operation.confirmed_at_ms == at["accepted"]
    [receipt_id] = world.receipt_ids(option)
    receipt = world.get(Receipt, receipt_id)
    assert receipt.status == "verified"
    assert receipt.verified_at_ms == at["accepted"]
    assert receipt.recipient == payment.escrow_address
    assert receipt.sender == world.vault_address()
    assert receipt.amount_atomic == atomic("25")
    assert receipt.observed_at_ms <= at["accepted"]


def test_a_receipt_is_seen_before_it_is_final_and_counts_for_nothing_then(world: World) -> None:
    option = world.authorized()
    world.run()
    world.advance(1)
    operation = world.operation_now(option)
    assert operation.status == "broadcast"
    [receipt_id] = world.receipt_ids(option)
    assert world.get(Receipt, receipt_id).status == "observed"
    assert world.paid(option.payment.id).received_atomic == 0
    assert world.paid(option.payment.id).status == "processing"


def test_reading_shows_options_and_receipts_and_no_secret(world: World) -> None:
    created = world.payment()
    assert created.client_secret is not None
    assert created.client_secret.startswith(created.payment.id + "_secret_")
    assert created.client_secret not in repr(created)
    option = world.authorize(world.option(created))
    world.finish()
    details = world.resources.payments.read(created.payment.id)
    assert details.client_secret is None
    [shown] = details.options
    assert shown.option.id == option.option.id
    assert [receipt.status for receipt in details.receipts] == ["verified"]
    assert shown.receipts == details.receipts
    claims = world.service.parts.ports.tokens.read_payment_secret(created.client_secret)
    assert (claims.environment_id, claims.subject) == (world.environment_id, created.payment.id)


def test_a_payment_to_a_wallet_arrives_there(world: World) -> None:
    created = world.payment("1.50", destination=ToWallet(address=WALLET.lower()))
    assert created.payment.destination.address == WALLET
    assert created.payment.account_id is None
    world.authorize(world.option(created))
    world.finish()
    assert world.paid(created.payment.id).status == "succeeded"
    assert world.on_chain(WALLET) == atomic("1.50")


def test_a_payment_address_is_found_whatever_the_case_of_its_name(world: World) -> None:
    to = ToPaymentAddress(payment_address="MERCHANT@acme")
    destination = world.payment(destination=to).payment.destination
    assert destination.account_id == world.merchant.id
    assert destination.payment_address == "merchant@acme"


def test_the_recipients_settlement_preference_is_the_default(world: World) -> None:
    settlement = Settlement(chain_id=1, asset_symbol="USDT")
    account = world.account("settler", settlement=settlement)
    payment = world.payment("2.000001", destination=ToAccount(external_user_id="settler")).payment
    assert (payment.chain_id, payment.asset_symbol) == (1, "USDT")
    assert payment.account_id == account.id
    assert world.payment().payment.asset.id == "8453/USDC"
    other = world.payment(destination=ToAccount(account_id=account.id), asset_symbol="USDC").payment
    assert other.asset.id == "1/USDC"


def test_a_payment_lives_as_long_as_asked_and_is_watched_a_day_longer(world: World) -> None:
    payment = world.payment(expires_in_s=300).payment
    assert payment.expires_at_ms == payment.created_at_ms + 300_000
    assert payment.monitoring_expires_at_ms == payment.expires_at_ms + 24 * HOUR


@pytest.mark.parametrize(
    ("error", "change"),
    [
        (ValidationFailed, {"amount": "1e3"}),
        (ValidationFailed, {"amount": "-1"}),
        (ValidationFailed, {"amount": "0.0000001"}),
        (AmountOutOfRange, {"amount": "0.00"}),
        (UnsupportedChain, {"chain_id": 2}),
        (UnsupportedAsset, {"asset_symbol": "DOGE"}),
        (ValidationFailed, {"expires_in_s": 299}),
        (ValidationFailed, {"expires_in_s": 86_401}),
        (NotFound, {"destination": ToAccount(account_id="acct_none")}),
        (NotFound, {"destination": ToAccount(external_user_id="nobody")}),
        (NotFound, {"destination": ToPaymentAddress(payment_address="nobody@acme")}),
        (NotFound, {"destination": ToPaymentAddress(payment_address="merchant@other")}),
        (ValidationFailed, {"destination": ToPaymentAddress(payment_address="merchant")}),
        (ValidationFailed, {"destination": ToPaymentAddress(payment_address="@acme")}),
        (ValidationFailed, {"destination": ToAccount()}),
        (ValidationFailed, {"destination": ToAccount(account_id="a", external_user_id="b")}),
        (ValidationFailed, {"destination": ToWallet(address="0x00")}),
        (ValidationFailed, {"destination": ToWallet(address="0x" + "0" * 40)}),
    ],
)
def test_a_payment_that_cannot_be_is_refused_and_leaves_nothing(
    memory_world: World, error: type[PaymentsError], change: dict[str, object]
) -> None:
    before = len(memory_world.events())
    with pytest.raises(error):
        memory_world.payment(**change)
    assert len(memory_world.events()) == before
    assert not memory_world.resources.payments.list().records


def test_a_suspended_account_is_not_paid(world: World) -> None:
    world.resources.accounts.change(world.merchant.id, status="suspended")
    with pytest.raises(DestinationNotAllowed):
        world.payment()
    world.resources.accounts.change(world.merchant.id, status="active")
    assert world.payment().payment.status == "awaiting_payment"


def test_payments_are_listed_newest_first_and_by_account(world: World) -> None:
    ids = []
    for _ in range(5):
        ids.append(world.payment().payment.id)
        world.system.advance(1)
    world.payment(destination=ToWallet(address=WALLET))
    server = world.server
    first = world.service.acting_as(server).payments.list(account_id=world.merchant.id, limit=3)
    assert [item.payment.id for item in first.records] == ids[:1:-1]
    rest = world.service.acting_as(server).payments.list(
        account_id=world.merchant.id, limit=3, after=first.next
    )
    assert [item.payment.id for item in rest.records] == ids[1::-1]
    assert len(world.service.acting_as(server).payments.list().records) == 6


def test_payments_are_listed_by_status(world: World) -> None:
    cancelled = world.payment().payment
    world.payment()
    world.resources.payments.cancel(cancelled.id)
    found, after = [], None
    while True:
        page = world.resources.payments.list(status="cancelled", after=after)
        found += page.records
        after = page.next
        if after is None:
            break
    assert [item.payment.id for item in found] == [cancelled.id]


def test_another_environment_sees_nothing_of_it(world: World) -> None:
    payment = world.payment().payment
    production = world.app.environments["production"]
    stranger = world.service.tenants.system_authority(production)
    with pytest.raises(NotFound):
        world.service.acting_as(stranger).payments.read(payment.id)
    with pytest.raises(NotFound):
        world.service.acting_as(stranger).payments.cancel(payment.id)
    new = NewPayment(amount="1", destination=ToAccount(account_id=world.merchant.id))
    with pytest.raises(NotFound):
        world.service.acting_as(stranger).payments.receive(new)
    assert not world.service.acting_as(stranger).payments.list().records


def test_every_account_has_a_vault_on_every_chain_with_one_address(world: World) -> None:
    details = world.resources.accounts.read(world.payer.id)
    assert {vault.chain_id for vault in details.vaults} == set(CHAINS)
    assert {vault.address for vault in details.vaults} == {world.vault_address()}
    assert world.vault_address() != world.vault_address(world.merchant)


def test_an_event_row_is_written_for_every_account(world: World) -> None:
    created = [event for event in world.events() if event.name == "account.created"]
    assert {event.external_user_id for event in created} == {"merchant", "payer"}
    assert all(isinstance(event, Event) for event in created)
