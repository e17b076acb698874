"""Fixtures of payouts."""

from __future__ import annotations

import pytest

from tests.service.payments.payouts.desk import Desk
from tests.service.world import World


@pytest.fixture
def desk(world: World) -> Desk:
    """A payer with a bank account, on every storage."""
    return Desk(world)


@pytest.fixture
def memory_desk(memory_world: World) -> Desk:
    """The same on memory alone."""
    return Desk(memory_world)
