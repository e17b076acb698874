"""Fixtures of the HTTP tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.api_harness import ApiHarness
from tests.http.checkout import Checkout
from tests.http.pages.browser import open_chromium


@pytest.fixture
def api() -> ApiHarness:
    return ApiHarness()


@pytest.fixture
def checkout() -> Checkout:
    """The API with a merchant and a payer, on memory."""
    return Checkout(MemoryStorage())


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for each module: while it is open, asyncio is not to be had in its thread."""
    with open_chromium() as browser:
        yield browser
