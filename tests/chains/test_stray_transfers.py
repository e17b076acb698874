"""What strangers send to addresses of ours that take nothing: an alarm, and nothing moves it."""

from __future__ import annotations

import logging

import pytest

from payments_core.chains.outbox.stray_transfers import MAX_ALARMS, StrayTransfers
from payments_core.chains.port import AddressSpec
from payments_core.errors import DestinationNotAllowed
from payments_core.payments.destinations import ToWallet
from tests.chains.scenes import AnvilScene, Scene
from tests.chains.test_returns import deposits, send, sender_of
from tests.service.world import BASE, USDC, atomic


def operator(world: Scene) -> str:
    address: str = world.chain.derive(AddressSpec(world.environment_id, "operator", "operator"))
    return address


def alarms(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [it.getMessage() for it in caplog.records if it.levelno == logging.CRITICAL]


def test_tokens_sent_to_an_operator_are_reported_with_all_that_finds_them(
    world: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """A recipient's explorer shows it as the sender of what was paid."""
    send(world)
    world.finish()
    to = operator(world)
    hash = world.spend("3.00", to)
    world.look()
    assert alarms(caplog) == [
        f"ALARM: transaction {hash} on chain {BASE} sent 3000000 of token {USDC.address} from "
        f"{world.wallet} to the operator of {world.environment_id} {to}, where nothing moves it"
    ]
    world.finish()
    assert len(alarms(caplog)) == 1
    assert (deposits(world), world.newest(to)) == ([], atomic("3"))


def test_transfers_of_nothing_raise_no_alarm_and_many_raise_a_bounded_number(
    simulated_world: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    world = simulated_world
    send(world)
    world.finish()
    world.spend("0", operator(world))
    world.look()
    assert alarms(caplog) == []
    for _ in range(MAX_ALARMS + 2):
        world.spend("0.01", operator(world))
    world.spend("9.00", operator(world))
    world.look()
    *named, last = alarms(caplog)
    assert len(named) == MAX_ALARMS
    assert "sent 9000000 of token" in named[0]  # dust hides nobody's money
    assert last.startswith(f"ALARM: 3 more transfers on chain {BASE}")


def test_an_environment_of_the_other_mode_is_not_reported(
    simulated_world: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    world = simulated_world
    send(world)
    world.finish()
    world.spend("3.00", operator(world))
    found = world.chain.scan(
        [USDC.address], [operator(world)], 0, world.chain.heads().latest.number
    )
    for mode, count in (("production", 0), ("sandbox", 1)):
        caplog.clear()
        StrayTransfers(world.service.parts.ports, {}, mode).on_transfers(BASE, found)
        assert len(alarms(caplog)) == count


def test_tokens_sent_to_our_contracts_are_reported(
    anvil_world: AnvilScene, caplog: pytest.LogCaptureFixture
) -> None:
    """The factory is what our transactions call."""
    world = anvil_world
    contracts = world.chain.contracts()
    assert len({*contracts.values()}) == 3
    for name, address in contracts.items():
        caplog.clear()
        hash = world.spend("1.00", address)
        world.look()
        [alarm] = alarms(caplog)
        assert f"transaction {hash} " in alarm
        assert f"to our {name} {address}, where nothing moves it" in alarm


def test_what_takes_nothing_is_not_a_destination(world: Scene) -> None:
    """A transfer of our own to one of them would be seen by nobody."""
    payment = send(world)
    world.finish()
    ours = [operator(world), sender_of(world, world.paid(payment.id).release_hash)]
    if isinstance(world, AnvilScene):
        ours += world.chain.contracts().values()
    for address in ours:
        for text in (address, address.lower()):
            with pytest.raises(DestinationNotAllowed, match="address of this service"):
                world.payment(destination=ToWallet(address=text))
