"""Fixtures of the tests of what operators see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payments_core_http.observability.metrics import Metrics
from tests.http.api_harness import ApiHarness
from tests.observability.listening import Log, logging_as_before


@pytest.fixture(params=["json", "text"])
def log(request: pytest.FixtureRequest) -> Iterator[Log]:
    """The process's log in each format, everything in it; the tests' own comes back afterwards."""
    with logging_as_before():
        yield Log(request.param)


@pytest.fixture
def lines() -> Iterator[Log]:
    """The same in JSON alone."""
    with logging_as_before():
        yield Log("json")


@pytest.fixture
def api() -> ApiHarness:
    return ApiHarness()


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    made = Metrics("1.2.3", "sandbox")
    yield made
    made.close()
