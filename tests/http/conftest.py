"""Fixtures of the HTTP tests."""

from __future__ import annotations

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.checkout import Checkout
from tests.http.door import Door


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.fixture
def checkout() -> Checkout:
    """A door with a merchant and a payer, on memory."""
    return Checkout(MemoryStorage())
