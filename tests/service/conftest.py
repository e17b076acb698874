"""Fixtures of the service's tests."""

from __future__ import annotations

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from tests.conftest import Opener
from tests.service.stage import Stage
from tests.service.till import Till
from tests.service.world import World


@pytest.fixture
def world(storage: Storage) -> World:
    """A merchant and a payer with 100.00 USDC, on every storage."""
    return funded(storage)


@pytest.fixture
def light_world(opener: Opener) -> World:
    """The same on every storage without a server, for what takes hundreds of commits."""
    return funded(opener())


@pytest.fixture
def memory_world() -> World:
    """The same on memory alone, for rules that no storage can bend."""
    return funded(MemoryStorage())


@pytest.fixture
def till(world: World) -> Till:
    """The payer's deposit address, on every storage."""
    return Till(world)


@pytest.fixture
def memory_till(memory_world: World) -> Till:
    """The same on memory alone."""
    return Till(memory_world)


@pytest.fixture
def stage(storage: Storage) -> Stage:
    """One simulated chain, on every storage."""
    return Stage(storage)


@pytest.fixture
def memory_stage() -> Stage:
    """The same on memory alone."""
    return Stage(MemoryStorage())


def funded(storage: Storage) -> World:
    world = World(storage).open()
    world.fund("100.00")
    return world
