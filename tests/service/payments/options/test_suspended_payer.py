"""What a suspended payer can no longer do with an option of before."""

from __future__ import annotations

import pytest

from payments_core.errors import AccountSuspended
from tests.service.world import World


@pytest.mark.parametrize("status", ["suspended", "closed"])
def test_a_payer_who_is_not_active_cannot_refresh_an_option(
    memory_world: World, status: str
) -> None:
    world = memory_world
    option = world.option(world.payment())
    before = world.option_now(option)
    world.resources.accounts.change(world.payer.id, status=status)
    with pytest.raises(AccountSuspended):
        world.service.acting_as(world.client).options.refresh(option.payment.id, option.option.id)
    assert world.option_now(option) == before


def test_a_payer_who_is_active_again_can_refresh_it(memory_world: World) -> None:
    world = memory_world
    option = world.option(world.payment())
    for status in ("suspended", "active"):
        world.resources.accounts.change(world.payer.id, status=status)
    refreshed = world.service.acting_as(world.client).options.refresh(
        option.payment.id, option.option.id
    )
    assert refreshed.option.action_id != option.option.action_id
