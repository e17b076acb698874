"""Data of sandboxes, for tests of commands that need one."""

from __future__ import annotations

from pathlib import Path

import pytest

from payments_core_http.cli.child_processes import SandboxChild


@pytest.fixture(scope="session")
def started_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a sandbox that was started once and has ended, for tests to copy.

    A first start makes tables and keys, which takes a third of it.
    """
    data = tmp_path_factory.mktemp("started") / "sandbox-data"
    assert SandboxChild(data).end() == 0
    return data
