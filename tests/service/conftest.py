"""Fixtures of the service's tests."""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from tests.conftest import CHOSEN, Opener
from tests.service.chain_harness import ChainHarness
from tests.service.deposit_harness import DepositHarness
from tests.service.world import World

DATABASES = ("sqlite", "postgresql")
EVERY_STORAGE = "PAYMENTS_TEST_EVERY_STORAGE"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep each test on the weak storage, and on one database of two, which its name decides.

    The weak storage does all that the port allows, and the suite of storages holds each database
    to the port. PAYMENTS_TEST_EVERY_STORAGE=1 runs each test on both.
    """
    if os.environ.get(EVERY_STORAGE) or not {*DATABASES} <= {*CHOSEN}:
        return
    left_out = [item for item in items if _is_left_out(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


def _is_left_out(item: pytest.Item) -> bool:
    params = getattr(item, "callspec", None) and item.callspec.params  # type: ignore[attr-defined]
    database = (params or {}).get("storage")
    if database not in DATABASES or Path(__file__).parent not in item.path.parents:
        return False
    name = f"{item.path.name}::{item.name.replace(database, '')}"
    return bool(database != DATABASES[crc32(name.encode()) % len(DATABASES)])


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
