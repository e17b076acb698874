"""Leaves each test one database of two, which its name decides: both take as long as two runs."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from zlib import crc32

import pytest

DATABASES = ("sqlite", "postgresql")
EVERY_STORAGE = "PAYMENTS_TEST_EVERY_STORAGE"


def leave_one_database(folder: Path, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests of the folder that differ from another in the parameter `storage` alone.

    The suite of storages holds each database to the port. PAYMENTS_TEST_EVERY_STORAGE=1 runs each
    test on both.
    """
    if os.environ.get(EVERY_STORAGE):
        return
    alike: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        database = _database_of(item)
        if database in DATABASES and folder in item.path.parents:
            alike[f"{item.path.name}::{item.name.replace(database, '')}"].append(item)
    left_out = {
        item
        for name, twins in alike.items()
        for item in twins
        if len(twins) > 1 and _database_of(item) != DATABASES[crc32(name.encode()) % 2]
    }
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _database_of(item: pytest.Item) -> str:
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("storage")) if callspec else ""
