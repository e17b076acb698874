"""Fixtures of the upkeep's tests."""

from __future__ import annotations

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from tests.conftest import Opener
from tests.maintenance.shop import Shop
from tests.service.world import World


@pytest.fixture
def shop(storage: Storage) -> Shop:
    """An app with a merchant and a payer, on every storage."""
    shop = Shop(storage).open()
    shop.fund("100.00")
    return shop


@pytest.fixture
def memory_shop() -> Shop:
    """The same on memory alone."""
    shop = Shop(MemoryStorage()).open()
    shop.fund("100.00")
    return shop


@pytest.fixture
def light_world(opener: Opener) -> World:
    """A merchant and a payer with 100.00 USDC, on every storage without a server."""
    world = World(opener()).open()
    world.fund("100.00")
    return world


@pytest.fixture
def memory_world() -> World:
    """The same on memory alone."""
    world = World(MemoryStorage()).open()
    world.fund("100.00")
    return world
