"""Vaults that paid under an earlier release are marked as deployed, and no others."""

from __future__ import annotations

import attrs
import pytest

from payments_core.accounts.vaults.record import Vault
from payments_core.engine.audit import PROGRAM
from payments_core.maintenance.paid_vaults import mark_paid_vaults
from payments_core.payments.destinations import ToWallet
from payments_core.payments.sends import NewSend
from payments_core.storage.port import Storage
from tests.service.world import BASE, OTHER_WALLET, World, write


@pytest.fixture
def world(storage: Storage) -> World:
    world = World(storage).open()
    world.fund("100.00")
    return world


def forget_deployment(world: World, vault: Vault) -> None:
    """Store a vault as the release before left it."""
    stored = attrs.evolve(world.get(Vault, vault.id), status="counterfactual")
    write(world.storage, world.environment_id, lambda tx: tx.replace(stored))


def statuses(world: World) -> list[str]:
    """Of the payer's and the merchant's vault on Base."""
    return [world.vault_of(account).status for account in (world.payer, world.merchant)]


def test_a_vault_that_paid_before_is_marked_once(world: World) -> None:
    world.authorized("25.00")
    world.finish()
    assert statuses(world) == ["deployed", "counterfactual"]
    forget_deployment(world, world.vault_of())
    world.system.advance(60)
    reported: dict[str, int] = {}
    assert mark_paid_vaults(world.service.parts.ports, progress=reported.__setitem__) == 1
    assert reported == {"funding_operations": 1, "payments": 1}
    assert statuses(world) == ["deployed", "counterfactual"]
    assert world.vault_of().updated_at_ms == world.clock.now()
    assert mark_paid_vaults(world.service.parts.ports) == 0
    [entry] = world.resources.audit.list(operation="vaults.mark_deployed").records
    assert (entry.object_id, entry.actor) == (world.vault_of().id, PROGRAM)


def test_a_vault_that_refunded_or_sent_has_paid_too(world: World) -> None:
    option = world.authorized("25.00")
    world.finish()
    world.refund(option, "5.00")
    send = NewSend(
        amount="1.00",
        account_id=world.merchant.id,
        destination=ToWallet(address=OTHER_WALLET),
        chain_id=BASE,
    )
    for pay in (lambda: None, lambda: world.resources.payments.send(send)):
        pay()
        world.finish()
        assert statuses(world) == ["deployed", "deployed"]
        forget_deployment(world, world.vault_of(world.merchant))
        assert mark_paid_vaults(world.service.parts.ports) == 1


def test_a_payment_that_has_not_moved_yet_deploys_nothing(world: World) -> None:
    world.authorized("25.00")
    assert mark_paid_vaults(world.service.parts.ports) == 0
    assert statuses(world) == ["counterfactual", "counterfactual"]
