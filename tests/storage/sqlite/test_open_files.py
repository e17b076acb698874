"""Files of a database in use that lose their names are noticed, and so is damage in a file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from falcon import testing

from payments_core.accounts.operations import NewAccount
from payments_core.credentials.keyring import KeyRing
from payments_core.public_url import LOCAL_URL
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.port import StorageUnavailable
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.storage.sqlite.backups import BackupFailed, backup
from payments_core.storage.sqlite.integrity import MAX_FAULTS, check_integrity
from payments_core_http.app import create_app


def _delete(path: Path) -> None:
    path.unlink()


def _replace(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    os.replace(path.with_name("copy"), path)


def make_service(file: Path) -> PaymentsService:
    storage = SqliteStorage(file, RECORD_TYPES, min_free_bytes=0)
    storage.migrate()
    return PaymentsService(
        storage, KeyRing.parse(KeyRing.generate()), settings=Settings(public_url=LOCAL_URL)
    )


def ready(service: PaymentsService) -> int:
    app = create_app(service, mode="sandbox")
    return int(testing.simulate_get(app, "/readyz").status_code)


@pytest.mark.parametrize("how", [_delete, _replace])
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_process_whose_file_lost_its_name_is_not_ready(
    suffix: str, how: Callable[[Path], None], tmp_path: Path
) -> None:
    file = tmp_path / "data.db"
    with closing(make_service(file)) as service:
        service.tenants.create_app("Shop", "shop")
        assert ready(service) == 200
        how(tmp_path / f"data.db{suffix}")
        assert ready(service) == 503
        with pytest.raises(StorageUnavailable, match="while it was open"):
            service.parts.ports.storage._connect()  # type: ignore[attr-defined]


def test_what_is_usual_is_no_loss_of_a_name(tmp_path: Path) -> None:
    """Other processes open, migrate and close the file, and the log is cut back."""
    file = tmp_path / "data.db"
    with closing(make_service(file)) as service:
        service.tenants.create_app("Shop", "shop")
        for _ in range(3):
            make_service(file).close()
            with closing(sqlite3.connect(file)) as other:
                other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            backup(file, tmp_path / "backup.db", RECORD_TYPES, overwrite=True)
            assert ready(service) == 200


def test_a_clean_stop_writes_a_deleted_log_into_the_file(tmp_path: Path) -> None:
    file = tmp_path / "data.db"
    service = make_service(file)
    app = service.tenants.create_app("Shop", "shop")
    me = service.tenants.system_authority(app.environments["sandbox"])
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"data.db{suffix}").unlink()
    account = NewAccount(external_user_id="zoe", subject_type="individual")
    service.acting_as(me).accounts.create(account)
    service.close()
    with closing(sqlite3.connect(file)) as other:
        assert other.execute("SELECT count(*) FROM accounts").fetchone() == (1,)


def damage(file: Path) -> None:
    """Overwrite a page of an index, as a failing disk does."""
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = database.execute("PRAGMA page_size").fetchone()[0]
        page = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name = 'accounts'"
        ).fetchone()[0]
    with file.open("r+b") as raw:
        raw.seek((page - 1) * size)
        raw.write(b"\xff" * 400)


def test_sqlites_own_checks_find_a_damaged_page(tmp_path: Path) -> None:
    file = tmp_path / "data.db"
    with closing(make_service(file)) as service:
        found = service.parts.ports.storage.check_integrity(60)  # type: ignore[attr-defined]
        assert (found.faults, found.is_complete) == ((), True)
    damage(file)
    with closing(SqliteStorage(file, RECORD_TYPES)) as storage:
        found = storage.check_integrity(60)
        assert found.faults and found.is_complete
    with pytest.raises(BackupFailed, match=r"damaged|malformed"):
        backup(file, tmp_path / "backup.db", RECORD_TYPES)


def test_a_row_that_names_a_missing_row_is_found(tmp_path: Path) -> None:
    file = tmp_path / "data.db"
    make_service(file).close()
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
        database.execute("CREATE TABLE children (of INTEGER REFERENCES parents)")
        database.execute("INSERT INTO children VALUES (7)")
        database.commit()
    with closing(SqliteStorage(file, RECORD_TYPES)) as storage:
        assert "row 1 of children names a row of parents" in storage.check_integrity(60).faults[0]
    with pytest.raises(BackupFailed, match="a row of children names a missing row"):
        backup(file, tmp_path / "backup.db", RECORD_TYPES)


def test_checks_end_when_their_time_is_up(tmp_path: Path) -> None:
    with closing(make_service(tmp_path / "data.db")) as service:
        found = service.parts.ports.storage.check_integrity(-1)  # type: ignore[attr-defined]
        assert not found.is_complete and not found.faults
        assert service.parts.ports.storage.check_integrity(60).is_complete  # type: ignore[attr-defined]


def test_sqlites_own_checks_find_rows_that_break_a_rule_of_their_table(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "rules.db")) as database:
        database.executescript(
            "CREATE TABLE parents (id INTEGER PRIMARY KEY);"
            "CREATE TABLE children (parent REFERENCES parents, amount CHECK (amount > 0));"
            "PRAGMA ignore_check_constraints = ON;"
            "INSERT INTO children VALUES (7, -1);"
            "PRAGMA ignore_check_constraints = OFF;"
        )
        found = check_integrity(database, limit_s=10)
        database.execute("DELETE FROM children")
        database.executemany("INSERT INTO children VALUES (?, 1)", [(7,)] * 1_000)
        many = check_integrity(database, limit_s=10)
        late = check_integrity(database, limit_s=-1)
    assert found.is_complete
    assert found.faults == (
        "CHECK constraint failed in children",
        "row 1 of children names a row of parents that is missing",
    )
    assert len(many.faults) == MAX_FAULTS, "they are enough"
    assert not late.is_complete


def test_a_file_that_is_no_database_is_a_fault_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "noise.db").write_bytes(b"noise" * 1_000)
    with closing(sqlite3.connect(tmp_path / "noise.db")) as database:
        found = check_integrity(database, limit_s=10)
    assert found.faults == ("file is not a database",)


def test_a_file_that_cannot_be_looked_at_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(make_service(tmp_path / "data.db")) as service:

        def refuse(path: object) -> os.stat_result:
            raise PermissionError(13, "Permission denied", str(path))

        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", refuse)
            with pytest.raises(StorageUnavailable, match="Permission denied"):
                service.parts.ports.storage.require_writable()
