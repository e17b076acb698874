"""A row that cannot be read costs a list that row and nothing else; what moves money refuses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from payments_core.accounts.capabilities.record import CapabilityActivation
from payments_core.accounts.record import Account
from payments_core.banks.reviews import BankCapability
from payments_core.engine.events import Event
from payments_core.maintenance.damaged_rows import DamagedRow, DamagedRows
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.damaged_records import MAX_ALARMS
from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.port import DIRECTORY, Page
from payments_core.storage.records import Record
from payments_core.tenants.queries import iterate_apps, load_key_uses
from payments_core.tenants.record import KeyUse
from payments_core.webhooks.record import Endpoint
from tests.service.corruption import corrupt
from tests.service.world import BASE, World


def alarms(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.CRITICAL]


def read_all(find: Callable[..., Page[Any]]) -> list[Any]:
    """Every record of a list, two at a time."""
    found: list[Any] = []
    after = None
    while True:
        page = find(after=after, limit=2)
        found += page.records
        after = page.next
        if after is None:
            return found


def test_the_lists_of_an_environment_pass_over_a_damaged_row(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    shop = world.resources
    for _ in range(3):
        world.payment()
    for number in range(3):
        shop.webhooks.create(url=f"https://shop.example/{number}")
    lists: tuple[tuple[type[Record], Callable[..., Page[Any]], Callable[[Any], str]], ...] = (
        (Payment, shop.payments.list, lambda found: found.payment.id),
        (Account, shop.accounts.list, lambda found: found.account.id),
        (Endpoint, shop.webhooks.list, lambda found: found.id),
        (Event, shop.events.list, lambda found: found.id),
    )
    for kind, find, id_of in lists:
        before = [id_of(found) for found in read_all(find)]
        assert len(before) >= 2
        where = corrupt(world.storage, world.environment_id, world.get(kind, before[0]))
        caplog.clear()
        found = read_all(find)
        assert [id_of(one) for one in found] == before[1:], kind
        assert alarms(caplog) == [f"ALARM: {where} cannot be read and is skipped"]


def test_the_lists_of_an_account_pass_over_a_damaged_row(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    shop, account = world.resources, world.payer.id
    shop.deposits.issue_address(account, BASE)
    shop.deposits.issue_address(account, 137)
    for find in (shop.vaults.list, shop.deposits.list_addresses):
        before = find(account).records
        assert len(before) >= 2
        where = corrupt(world.storage, world.environment_id, before[0])
        caplog.clear()
        assert find(account).records == before[1:]
        assert alarms(caplog) == [f"ALARM: {where} cannot be read and is skipped"]


def activate(world: World, *capabilities: BankCapability) -> list[CapabilityActivation]:
    """Active capabilities of the payer."""
    service, server, account = world.service, world.server, world.payer.id
    service.acting_as(server).sandbox.decide_kyc(account, "approved")
    ids = [
        service.acting_as(server).bank_accounts.activate(account, name).activation.id
        for name in capabilities
    ]
    world.finish()
    return [world.get(CapabilityActivation, id) for id in ids]


def test_the_list_of_capabilities_passes_over_one_whose_activation_is_damaged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not shown as one that nobody has asked for."""
    payout, funding = activate(world, "us_bank_payout", "us_bank_funding")
    service, server, account = world.service, world.server, world.payer.id
    before = service.acting_as(server).accounts.read_capabilities(account)
    assert {(one.name, one.status) for one in before} == {
        ("us_bank_payout", "active"),
        ("us_bank_funding", "active"),
    }
    where = corrupt(world.storage, world.environment_id, payout)
    caplog.clear()
    assert service.acting_as(server).accounts.read_capabilities(account) == before[1:]
    assert alarms(caplog) == [f"ALARM: {where} cannot be read and is skipped"]
    again = service.acting_as(server).bank_accounts.activate(account, "us_bank_funding")
    assert again.activation.id == funding.id
    with pytest.raises(UnreadableDocument):
        service.acting_as(server).bank_accounts.activate(account, "us_bank_payout")
    assert service.acting_as(server).accounts.read_capabilities(world.merchant.id) != ()


def test_requirements_pass_over_a_damaged_activation_and_a_damaged_vault(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    payout, _ = activate(world, "us_bank_payout", "us_bank_funding")
    service, server, account = world.service, world.server, world.payer.id
    before = service.acting_as(server).onramps.read_requirements(account)
    places = [
        corrupt(world.storage, world.environment_id, record)
        for record in (payout, before.vaults[0])
    ]
    caplog.clear()
    assert service.acting_as(server).onramps.read_requirements(account).vaults == before.vaults[1:]
    found = service.acting_as(server).bank_accounts.read_requirements(account)
    assert (found.eligible, found.reasons) == (False, ("capability_not_active",))
    assert sorted(alarms(caplog)) == sorted(
        f"ALARM: {where} cannot be read and is skipped" for where in places
    )


def test_the_list_of_refunds_passes_over_a_damaged_row(world: World) -> None:
    option = world.authorized("25.00")
    world.finish()
    refunds = [world.refund(option, "1.00") for _ in range(3)]
    corrupt(world.storage, world.environment_id, world.get(Refund, refunds[1].id))
    found = world.resources.payments.list_refunds(option.payment.id).records
    assert {refund.id for refund in found} == {refunds[0].id, refunds[2].id}


def test_a_payment_with_a_damaged_option_is_shown_as_a_whole_or_not_at_all(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    option, other = world.option(world.payment()), world.payment()
    corrupt(world.storage, world.environment_id, world.get(PaymentOption, option.option.id))
    found = world.resources.payments.list().records
    assert [details.payment.id for details in found] == [other.payment.id]
    assert alarms(caplog) == [
        f"ALARM: {option.payment.id} of {world.environment_id} in payments is not listed: "
        "a row that belongs to it is damaged"
    ]
    with pytest.raises(UnreadableDocument):
        world.resources.payments.read(option.payment.id)


def test_the_list_of_receipts_passes_over_a_damaged_receipt_and_entry(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    paid = world.authorized("25.00")
    world.finish()
    before = world.resources.payments.list_receipts(paid.payment.id)
    receipt, entry = before.receipts.records[0], before.entries[0]
    places = [corrupt(world.storage, world.environment_id, record) for record in (receipt, entry)]
    caplog.clear()
    found = world.resources.payments.list_receipts(paid.payment.id)
    assert found.receipts.records == before.receipts.records[1:]
    assert found.entries == before.entries[1:]
    assert found.payment.books == before.payment.books
    assert alarms(caplog) == [f"ALARM: {where} cannot be read and is skipped" for where in places]


def test_the_list_of_options_passes_over_a_damaged_one(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    payment = world.payment()
    options = [world.option(payment) for _ in range(2)]
    service, payer, payment_id = world.service, world.client, payment.payment.id
    corrupt(world.storage, world.environment_id, world.get(PaymentOption, options[0].option.id))
    caplog.clear()
    found = service.acting_as(payer).options.list(payment_id)
    assert [item.option.id for item in found] == [options[1].option.id]
    assert alarms(caplog) == [
        f"ALARM: {options[0].option.id} of {world.environment_id} in payment_options "
        "is not listed: a row that belongs to it is damaged"
    ]
    assert service.acting_as(payer).options.read(payment_id, options[1].option.id) == found[0]
    with pytest.raises(UnreadableDocument):
        service.acting_as(payer).options.read(payment_id, options[0].option.id)


def test_a_removed_option_costs_a_list_its_payment_only(world: World) -> None:
    option, other = world.option(world.payment()), world.payment()
    where = world.environment_id
    corrupt(world.storage, where, world.get(PaymentOption, option.option.id))
    rows = DamagedRows(world.service.parts.ports, RECORD_TYPES)
    rows.remove(DamagedRow("payment_options", where, option.option.id))
    found = world.resources.payments.list().records
    assert [details.payment.id for details in found] == [other.payment.id]


def test_the_lists_of_an_operator_pass_over_a_damaged_row(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    service, storage = world.service, world.storage
    app = service.tenants.create_app("Second", "second-shop")
    places = [corrupt(storage, DIRECTORY, app)]
    caplog.clear()
    assert app.id not in [found.id for found in iterate_apps(storage)]
    environment = world.environment
    key = environment.keys[0]
    assert key.id in load_key_uses(storage, environment)
    corrupt(storage, environment.id, world.get(KeyUse, key.id))
    assert key.id not in load_key_uses(storage, environment)
    first, *_ = alarms(caplog)
    assert first == f"ALARM: {places[0]} cannot be read and is skipped"


def test_a_page_of_damaged_rows_gives_a_bounded_number_of_alarms(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    options = [world.option(world.payment()) for _ in range(MAX_ALARMS + 2)]
    for option in options:
        corrupt(world.storage, world.environment_id, world.get(PaymentOption, option.option.id))
    caplog.clear()
    assert world.resources.payments.list().records == ()
    assert len(alarms(caplog)) == MAX_ALARMS + 1
    for option in options:
        corrupt(world.storage, world.environment_id, world.paid(option.payment.id))
    caplog.clear()
    assert world.resources.payments.list().records == ()
    assert len(alarms(caplog)) == MAX_ALARMS + 1
    assert alarms(caplog)[-1] == (
        "ALARM: more rows of the same list cannot be read and are skipped"
    )


def test_what_decides_about_money_refuses_a_damaged_row(world: World) -> None:
    paid = world.authorized("25.00")
    world.finish()
    corrupt(world.storage, world.environment_id, world.paid(paid.payment.id))
    for operation in (
        lambda: world.refund(paid, "1.00"),
        lambda: world.resources.payments.read(paid.payment.id),
        lambda: world.resources.payments.list_receipts(paid.payment.id),
        lambda: world.resources.payments.cancel(paid.payment.id),
    ):
        with pytest.raises(UnreadableDocument):
            operation()
