"""Tills in worlds whose payers have funds."""

from __future__ import annotations

import pytest

from tests.service.legacy.settlements.till import Till
from tests.service.world import World


@pytest.fixture
def till(world: World) -> Till:
    return Till(world, funds="")


@pytest.fixture
def memory_till(memory_world: World) -> Till:
    return Till(memory_world, funds="")
