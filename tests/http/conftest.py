"""Fixtures of the HTTP tests."""

from __future__ import annotations

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.api_harness import ApiHarness
from tests.http.checkout import Checkout


@pytest.fixture
def api() -> ApiHarness:
    return ApiHarness()


@pytest.fixture
def checkout() -> Checkout:
    """The API with a merchant and a payer, on memory."""
    return Checkout(MemoryStorage())
