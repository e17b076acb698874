"""Fixtures of the tests of quotes."""

from __future__ import annotations

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from tests.service.quotes.shop import QuoteShop


@pytest.fixture
def shop(storage: Storage) -> QuoteShop:
    """Quotes on every storage."""
    return QuoteShop(storage)


@pytest.fixture
def memory_shop() -> QuoteShop:
    """The same on memory alone."""
    return QuoteShop(MemoryStorage())
