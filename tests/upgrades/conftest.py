"""What tests of upgrades share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.one_database import leave_one_database


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Two releases side by side take two of the processes of one, for as long."""
    leave_one_database(Path(__file__).parent, config, items)
