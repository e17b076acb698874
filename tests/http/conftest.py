"""Fixtures of the HTTP tests."""

from __future__ import annotations

import pytest

from tests.http.door import Door


@pytest.fixture
def door() -> Door:
    return Door()
