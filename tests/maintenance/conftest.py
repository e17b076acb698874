"""Fixtures of the upkeep's tests."""

from __future__ import annotations

import pytest

from payments_core.storage.port import Storage
from tests.maintenance.shop import Shop


@pytest.fixture
def shop(storage: Storage) -> Shop:
    """An app with a merchant and a payer, on every storage."""
    shop = Shop(storage).open()
    shop.fund("100.00")
    return shop
