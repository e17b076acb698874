"""A vault is deployed by its first transfer that succeeds, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from payments_core.accounts.record import Account
from payments_core.payments.destinations import ToWallet
from payments_core.payments.sends import NewSend
from tests.service.world import OTHER_WALLET, World


def pays_an_option(world: World) -> Account:
    world.authorized("25.00")
    return world.payer


def sends(world: World) -> Account:
    to = ToWallet(address=OTHER_WALLET)
    world.resources.payments.send(
        NewSend(amount="25.00", account_id=world.payer.id, destination=to)
    )
    return world.payer


def refunds(world: World) -> Account:
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    world.finish()
    world.refund(payment, "10.00")
    return world.merchant


TRANSFERS: tuple[Callable[[World], Account], ...] = (pays_an_option, sends, refunds)
"""What leaves a vault."""


@pytest.mark.parametrize("begin", TRANSFERS, ids=lambda begin: begin.__name__)
def test_a_failed_transfer_leaves_its_vault_as_it_was(
    memory_world: World, begin: Callable[[World], Account]
) -> None:
    world = memory_world
    account = begin(world)
    assert world.vault_of(account).status == "counterfactual"
    world.fail("transfer")
    world.finish()
    assert world.held(account)[1] == 0  # it has ended, and is reserved no more
    assert world.vault_of(account).status == "counterfactual"
    begin(world)
    world.finish()
    assert world.vault_of(account).status == "deployed"
