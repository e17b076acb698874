"""One tenant's damaged row: what is done for all goes on, and nothing of that tenant is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from payments_core.chains.outbox.record import Sender
from payments_core.errors import InvalidState, NotFound
from payments_core.maintenance.damaged_rows import DamagedRow, DamagedRows
from payments_core.payments.details import PaymentDetails
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.receipts.record import TrackedTransaction
from payments_core.payments.record import Payment
from payments_core.record_types import RECORD_TYPES
from payments_core.storage import documents
from payments_core.storage.records import Record
from tests.service.corruption import corrupt
from tests.service.payer import Payer
from tests.service.test_damaged_rows import alarms
from tests.service.world import BASE, World


def finish(world: World) -> None:
    for _ in range(3):
        world.finish()


def find_one(world: World, kind: type[Record], lookup: str, *keys: tuple[object, ...]) -> Record:
    [found] = world.storage.locate(kind, lookup, keys)  # type: ignore[arg-type]
    return found.record


def damage_payment(world: World, of: PaymentDetails) -> str:
    """Of a Payment that is paid after that."""
    where = corrupt(world.storage, world.environment_id, of.payment)
    world.pay(of, "10.00")
    return where


def damage_address(world: World, of: PaymentDetails) -> str:
    """Of a deposit address to which money is sent after that."""
    issued = world.resources.deposits.issue_address(world.payer.id, BASE).address
    where = corrupt(world.storage, world.environment_id, issued)
    sandbox = world.resources.sandbox
    sandbox.transfer(BASE, "USDC", "5.00", to=issued.address)
    return where


def damage_evidence(world: World, of: PaymentDetails) -> str:
    """Of a transaction that a reorg undoes after that."""
    world.pay(of, "10.00")
    world.run()
    newest = world.chain.peek_heads().latest.number
    keys = [(BASE, height) for height in range(newest - 20, newest + 1)]
    where = corrupt(
        world.storage,
        world.environment_id,
        find_one(world, TrackedTransaction, "by_block", *keys),
    )
    world.reorg(2)
    return where


def damage_sender(world: World, of: PaymentDetails) -> str:
    """Of the sender of an environment, before a reorg has all of them checked."""
    world.authorized("1.00")
    finish(world)
    world.pay(of, "10.00")
    world.run()
    where = corrupt(
        world.storage, world.environment_id, find_one(world, Sender, "by_chain", (BASE,))
    )
    world.reorg(2)
    return where


@pytest.mark.parametrize("damage", [damage_payment, damage_address, damage_evidence, damage_sender])
def test_a_scan_goes_on_for_the_others(
    world: World,
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[World, PaymentDetails], str],
) -> None:
    """Every environment waited behind the one row, until the scan of the chain was given up."""
    damaged, other = world.payment("10.00"), world.payment("10.00")
    where = damage(world, damaged)
    world.pay(other, "10.00")
    finish(world)
    assert world.paid(other.payment.id).received_atomic == 10_000_000
    assert f"ALARM: {where} cannot be read and is skipped" in alarms(caplog)


def test_what_was_paid_to_a_damaged_payment_counts_after_its_repair(world: World) -> None:
    payment = world.payment("10.00")
    stored = world.get(Payment, payment.payment.id)
    damage_payment(world, payment)
    finish(world)
    rows = DamagedRows(world.service.parts.ports, RECORD_TYPES)
    place = DamagedRow("payments", world.environment_id, stored.id)
    rows.repair(place, documents.encode(stored))
    world.advance(3_600)
    assert world.paid(stored.id).received_atomic == 10_000_000
    assert world.paid(stored.id).status == "succeeded"


def test_an_endpoint_that_is_damaged_keeps_no_other_from_its_events(world: World) -> None:
    service, server = world.service, world.server
    damaged, other = (
        service.acting_as(server).webhooks.create(url=f"https://192.0.43.8/{number}")[0]
        for number in range(2)
    )
    corrupt(world.storage, world.environment_id, damaged)
    world.payment()
    world.run()
    _, deliveries = service.acting_as(server).webhooks.list_deliveries(other.id)
    assert "payment.created" in {one.event_name for one in deliveries.records}
    service.acting_as(server).webhooks.create(url="https://192.0.43.8/3")


def test_a_log_in_that_is_damaged_keeps_nobody_out(world: World) -> None:
    operators, sessions = world.service.operators, world.service.operator_sessions
    known = operators.create(world.environment_id, "maria")
    begun = sessions.begin("maria", known.password, mode="sandbox")
    corrupt(world.storage, world.environment_id, begun.session)
    again = sessions.begin("maria", known.password, mode="sandbox")
    _, found = sessions.authenticate(again.token, mode="sandbox")
    assert found.username == "maria"


@pytest.mark.parametrize("kind", [PaymentOption, FundingOperation])
def test_a_damaged_vault_option_keeps_no_payer_without_an_account_out(
    world: World, caplog: pytest.LogCaptureFixture, kind: type[Record]
) -> None:
    """Its transfer is credited and the Payment released, whichever row of the Vault's is torn."""
    payer = Payer(world)
    vaults = world.option(payer.payment)
    assert vaults.operation is not None
    direct = payer.option()
    id = vaults.option.id if kind is PaymentOption else vaults.operation.id
    stored = world.get(kind, id)
    where = corrupt(world.storage, world.environment_id, stored)
    payer.pay()
    finish(world)
    assert (payer.paid().status, payer.paid().received_atomic) == ("succeeded", 25_000_000)
    assert world.option_now(direct).status == "succeeded"
    assert f"ALARM: {where} cannot be read and is skipped" in alarms(caplog)
    rows = DamagedRows(world.service.parts.ports, RECORD_TYPES)
    place = DamagedRow(kind.collection.name, world.environment_id, id)
    rows.repair(place, documents.encode(stored))
    with pytest.raises(InvalidState):
        world.authorize(vaults)


def test_a_removed_vault_option_keeps_no_payer_without_an_account_out(world: World) -> None:
    payer = Payer(world)
    vaults, _ = world.option(payer.payment), payer.option()
    corrupt(world.storage, world.environment_id, vaults.option)
    rows = DamagedRows(world.service.parts.ports, RECORD_TYPES)
    rows.remove(DamagedRow("payment_options", world.environment_id, vaults.option.id))
    payer.pay()
    finish(world)
    assert (payer.paid().status, payer.paid().received_atomic) == ("succeeded", 25_000_000)


def test_a_damaged_public_option_keeps_no_vault_from_paying(world: World) -> None:
    payer = Payer(world)
    corrupt(world.storage, world.environment_id, payer.option().option)
    world.authorize(world.option(payer.payment))
    finish(world)
    assert (payer.paid().status, payer.paid().received_atomic) == ("succeeded", 25_000_000)


def test_a_damaged_vault_option_keeps_no_offer_from_a_payer_without_an_account(
    world: World,
) -> None:
    payer = Payer(world)
    vaults = world.option(payer.payment)
    payer.select(payer.another())
    corrupt(world.storage, world.environment_id, vaults.option)
    created = payer.option()
    assert payer.option().option.id == created.option.id


def test_an_option_of_others_is_unknown_before_anything_else_of_it_is_read(world: World) -> None:
    payer = Payer(world)
    vaults = world.option(payer.payment)
    assert vaults.operation is not None
    corrupt(world.storage, world.environment_id, vaults.operation)
    with pytest.raises(NotFound):
        payer.read(vaults)
    other = world.service.acting_as(world.client_of(world.merchant)).options
    with pytest.raises(NotFound):
        other.read(payer.id, vaults.option.id)
