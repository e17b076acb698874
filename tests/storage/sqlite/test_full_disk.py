"""A disk without room is noticed before writes fail: by `/readyz`, and by `payments doctor`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from falcon import testing

from payments_core.credentials.keyring import KeyRing
from payments_core.public_url import LOCAL_URL
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.capabilities import ChecksWritability
from payments_core.storage.port import StorageUnavailable
from payments_core.storage.sqlite.adapter import MIN_FREE_BYTES, SqliteStorage
from payments_core_http.app import create_app
from payments_core_http.deployment.doctor import check_writability

DISK_BYTES = 2 * MIN_FREE_BYTES


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def make_service(storage: SqliteStorage) -> PaymentsService:
    storage.migrate()
    return PaymentsService(
        storage, KeyRing.parse(KeyRing.generate()), settings=Settings(public_url=LOCAL_URL)
    )


def read_status(service: PaymentsService) -> int:
    app = create_app(service, mode="sandbox")
    return int(testing.simulate_get(app, "/readyz").status_code)


def test_a_process_on_a_full_disk_is_not_ready(disk: Path) -> None:
    with closing(make_service(SqliteStorage(disk / "data.db", RECORD_TYPES))) as service:
        assert read_status(service) == 200
        rest = disk / "rest"
        with suppress(OSError):
            rest.write_bytes(bytes(DISK_BYTES))
        assert read_status(service) == 503
        rest.unlink()
        assert read_status(service) == 200


def test_a_read_only_disk_is_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system reports it: only root could mount one."""
    storage = SqliteStorage(tmp_path / "data.db", RECORD_TYPES, min_free_bytes=0)
    storage.require_writable()
    real = os.statvfs(tmp_path)
    read_only = os.statvfs_result((*real[:8], real.f_flag | os.ST_RDONLY, real.f_namemax))
    monkeypatch.setattr(os, "statvfs", lambda path: read_only)
    with pytest.raises(StorageUnavailable, match="read-only"):
        storage.require_writable()


def test_too_little_room_is_reported_with_its_size(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "data.db", RECORD_TYPES, min_free_bytes=2**62)
    with closing(make_service(storage)) as service:
        assert isinstance(storage, ChecksWritability)
        with pytest.raises(StorageUnavailable, match=f"is full: [0-9]+ bytes .* {2**62}"):
            service.check_ready()
        assert read_status(service) == 503
    (finding,) = check_writability(storage)
    assert (finding.level, "full" in finding.says) == ("fault", True)


def test_a_folder_that_is_gone_is_not_writable(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "gone" / "data.db", RECORD_TYPES)
    with pytest.raises(StorageUnavailable, match="No such file"):
        storage.require_writable()
