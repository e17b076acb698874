"""Fixtures of the tests of the dashboard."""

from __future__ import annotations

import pytest

from tests.http.console import Console


@pytest.fixture
def console() -> Console:
    """A shop on memory, whose webhooks go to a receiver of ours."""
    return Console()
