"""What hangs outside holds few requests, whichever operation asks it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from payments_core.accounts.verification.simulated import SimulatedKyc
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.errors import DependencyFailed
from payments_core.payments.destinations import ToAccount
from payments_core.pricing.table import TablePricing
from payments_core.quotes.request import NewQuote
from payments_core.routers.simulated.router import SimulatedRouter
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from tests.service.world import BASE, WALLET, World

POLYGON, OPTIMISM = 137, 10
REQUESTS = 8
MAY_HANG = 2
"""Of the four that may wait for one of them at the same time, an environment has two."""


class Hanging:
    """A remote service whose methods of these names answer once it is released."""

    def __init__(self, inner: Any, *names: str) -> None:
        self._inner = inner
        self._names = names
        self.released = threading.Event()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        return partial(self._call, method) if name in self._names else method

    def _call(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        assert self.released.wait(30)
        return method(*args, **named)


Scene = tuple[PaymentsService, Hanging, Callable[[], object]]


def _serve(world: World, chains: Any = None, **providers: Any) -> PaymentsService:
    settings = Settings(max_remote_calls=5)
    return world.restarted(chains=chains, settings=settings, **providers)


def _quote(world: World, service: PaymentsService, chain_id: int) -> object:
    destination = ToAccount(account_id=world.merchant.id)
    new = NewQuote(
        amount="25.00",
        source_address=WALLET,
        destination=destination,
        destination_chain_id=chain_id,
    )
    return service.acting_as(world.server).legacy.create_quote(new)


def kyc(world: World) -> Scene:
    hanging = Hanging(SimulatedKyc(), "start")
    service = _serve(world, kyc=hanging)
    accounts = [world.account(f"user-{n}").id for n in range(REQUESTS)]
    return (
        service,
        hanging,
        lambda: service.acting_as(world.server).verifications.start(accounts.pop()),
    )


def pricing(world: World) -> Scene:
    hanging = Hanging(TablePricing(), "estimate", "usd_prices")
    service = _serve(world, pricing=hanging)
    return service, hanging, lambda: _quote(world, service, BASE)


def prices_of_balances(world: World) -> Scene:
    hanging = Hanging(TablePricing(), "usd_prices")
    service = _serve(world, pricing=hanging)
    return (
        service,
        hanging,
        lambda: service.acting_as(world.server).legacy.read_balances(WALLET),
    )


def router(world: World) -> Scene:
    hanging = Hanging(
        SimulatedRouter(world.service.parts.ports, dict(world.service.chains)), "open"
    )
    service = _serve(world, router=hanging)
    return service, hanging, lambda: _quote(world, service, 137)


def deposit_check(world: World) -> Scene:
    hanging = Hanging(SimulatedChain(BASE, world.service.parts.ports), "heads")
    service = _serve(world, chains={BASE: hanging}, router=None)
    world.resources.deposits.issue_address(world.payer.id, BASE)
    return (
        service,
        hanging,
        lambda: service.acting_as(world.server).deposits.check(world.payer.id, BASE),
    )


@pytest.mark.parametrize("scene", [kyc, pricing, prices_of_balances, router, deposit_check])
def test_what_hangs_holds_few_requests_and_the_others_are_refused(
    light_world: World, scene: Callable[[World], Scene]
) -> None:
    _, hanging, ask = scene(light_world)
    with ThreadPoolExecutor(REQUESTS) as pool:
        asked = [pool.submit(ask) for _ in range(REQUESTS)]
        until = time.monotonic() + 5
        while sum(one.done() for one in asked) < REQUESTS - MAY_HANG and time.monotonic() < until:
            threading.Event().wait(0.01)
        ended = [one for one in asked if one.done()]
        hanging.released.set()
        assert len(ended) == REQUESTS - MAY_HANG
    assert all(isinstance(one.exception(), DependencyFailed) for one in ended)
    for one in set(asked) - set(ended):
        assert one.result()


def test_two_environments_at_hanging_nodes_leave_a_place_to_a_third(light_world: World) -> None:
    ports = light_world.service.parts.ports
    hanging = {n: Hanging(SimulatedChain(n, ports), "heads") for n in (BASE, POLYGON)}
    chains: dict[int, Any] = {**hanging, OPTIMISM: SimulatedChain(OPTIMISM, ports)}
    service = _serve(light_world, chains=chains)
    worlds = [light_world, *(World(light_world.storage).open(name) for name in ("two", "three"))]
    asks = []
    for world, chain_id in zip(worlds, chains, strict=True):
        server, account = world.server, world.payer.id
        deposits = service.acting_as(server).deposits
        deposits.issue_address(account, chain_id)
        asks.append(partial(deposits.check, account, chain_id))
    with ThreadPoolExecutor(2 * REQUESTS) as pool:
        first = [pool.submit(asks[0]) for _ in range(REQUESTS)]
        _wait_until(lambda: sum(one.done() for one in first) == REQUESTS - MAY_HANG)
        second = [pool.submit(asks[1]) for _ in range(REQUESTS)]
        _wait_until(lambda: sum(one.done() for one in second) == REQUESTS - 1)
        try:
            assert asks[2]().account_id == worlds[2].payer.id
        finally:
            for node in hanging.values():
                node.released.set()


def _wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until
        threading.Event().wait(0.01)
