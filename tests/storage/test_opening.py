"""Storages by URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from payments_core.adapters import UnknownAdapter
from payments_core.conformance.storage.records import RECORD_TYPES
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import StorageError
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.storage_loader import open_storage


def test_the_scheme_chooses_the_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(open_storage("memory:", RECORD_TYPES), MemoryStorage)
    monkeypatch.chdir(tmp_path)
    for url, place in (
        ("sqlite:///relative.db", Path("relative.db")),
        (f"sqlite:///{tmp_path}/absolute.db", tmp_path / "absolute.db"),
    ):
        storage = open_storage(url, RECORD_TYPES)
        assert isinstance(storage, SqliteStorage)
        storage.migrate()
        storage.close()
        assert place.exists()


def test_an_unknown_scheme_names_the_installed_ones() -> None:
    with pytest.raises(
        UnknownAdapter, match="'mongo'; installed: memory, postgres, postgresql, sqlite"
    ):
        open_storage("mongo://somewhere", RECORD_TYPES)


@pytest.mark.parametrize("url", ["sqlite:", "sqlite:///", "sqlite:///a?b", "sqlite:///a#b"])
def test_an_sqlite_url_without_a_plain_path_is_refused(url: str) -> None:
    with pytest.raises(StorageError, match="expected sqlite:"):
        open_storage(url, RECORD_TYPES)
