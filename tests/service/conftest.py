"""Fixtures of the service's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from tests.conftest import Opener
from tests.one_database import leave_one_database
from tests.service.chain_harness import ChainHarness
from tests.service.deposit_harness import DepositHarness
from tests.service.world import World


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep each test on the weak storage, which does all that the port allows, and on one more."""
    leave_one_database(Path(__file__).parent, config, items)


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
def harness(world: World) -> DepositHarness:
    """The payer's deposit address, on every storage."""
    return DepositHarness(world)


@pytest.fixture
def memory_harness(memory_world: World) -> DepositHarness:
    """The same on memory alone."""
    return DepositHarness(memory_world)


@pytest.fixture
def chain_harness(storage: Storage) -> ChainHarness:
    """One simulated chain, on every storage."""
    return ChainHarness(storage)


@pytest.fixture
def memory_chain_harness() -> ChainHarness:
    """The same on memory alone."""
    return ChainHarness(MemoryStorage())


def funded(storage: Storage) -> World:
    world = World(storage).open()
    world.fund("100.00")
    return world
