"""Settlement harnesses in worlds whose payers have funds."""

from __future__ import annotations

import pytest

from tests.service.legacy.settlements.settlement_harness import SettlementHarness
from tests.service.world import World


@pytest.fixture
def harness(world: World) -> SettlementHarness:
    return SettlementHarness(world, funds="")


@pytest.fixture
def memory_harness(memory_world: World) -> SettlementHarness:
    return SettlementHarness(memory_world, funds="")
