"""An environment without the product `webhooks`: events happen, and nothing is delivered."""

from __future__ import annotations

import json

import pytest

from payments_core.credentials.keyring import KeyRing
from payments_core.service import PaymentsService
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.tenants.record import PRODUCTS
from tests.service.world import RING, World
from tests.webhooks.webhook_bench import HOOK, Names, Wire

WITHOUT = tuple(product for product in PRODUCTS if product != "webhooks")


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def world(wire: Wire) -> World:
    """An app with an endpoint that got everything so far."""
    world = World(MemoryStorage())
    world.service = PaymentsService(
        world.storage, KeyRing.parse(RING), clock=world.clock, transport=wire, resolver=Names()
    )
    world.open()
    world.run()
    world.resources.webhooks.create(url=HOOK)
    return world


def delivered(wire: Wire) -> list[str]:
    """Of which accounts the endpoint has heard."""
    return [
        json.loads(request.body)["payload"]["externalUserId"]
        for request, _ in wire.sent
        if request.headers["x-service-event"] == "account.created"
    ]


def happened(world: World) -> list[str]:
    return [e.payload["externalUserId"] for e in world.events() if e.name == "account.created"]


def test_with_the_product_off_nothing_is_delivered_and_the_event_stays(
    world: World, wire: Wire
) -> None:
    world.service.tenants.set_products(world.environment_id, WITHOUT)
    world.account("unheard")
    world.run()
    world.advance(7_200)
    assert delivered(wire) == []
    assert "unheard" in happened(world)
    [endpoint] = world.resources.webhooks.list().records
    assert world.resources.webhooks.list_deliveries(endpoint.id)[1].records == ()
    assert world.storage.next_due("sandbox.webhooks") is None  # and no job is left waiting


def test_with_the_product_on_again_new_events_are_delivered(world: World, wire: Wire) -> None:
    world.account("before")
    world.run()
    world.service.tenants.set_products(world.environment_id, WITHOUT)
    world.account("unheard")
    world.run()
    world.service.tenants.set_products(world.environment_id, PRODUCTS)
    world.account("after")
    world.run()
    assert delivered(wire) == ["before", "after"]
    assert {"before", "unheard", "after"} <= set(happened(world))
