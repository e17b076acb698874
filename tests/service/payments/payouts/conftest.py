"""Fixtures of payouts."""

from __future__ import annotations

import pytest

from tests.service.payments.payouts.payout_harness import PayoutHarness
from tests.service.world import World


@pytest.fixture
def harness(world: World) -> PayoutHarness:
    """A payer with a bank account, on every storage."""
    return PayoutHarness(world)


@pytest.fixture
def memory_harness(memory_world: World) -> PayoutHarness:
    """The same on memory alone."""
    return PayoutHarness(memory_world)
