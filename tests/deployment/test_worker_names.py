"""The name of a worker: it outlives the process, and no two processes have it at a time."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import attrs
import pytest

from payments_core_http.deployment import worker_names
from payments_core_http.deployment.configuration import Configuration, StorageSettings
from payments_core_http.deployment.worker_names import hold_worker_name
from tests.deployment import settings


@pytest.fixture
def configured(tmp_path: Path) -> Configuration:
    made = settings.configured(settings.SANDBOX)
    worker = attrs.evolve(made.worker, state_folder=str(tmp_path))
    return attrs.evolve(made, worker=worker)


def name_of(configured: Configuration) -> str | None:
    with hold_worker_name(configured) as name:
        return name


def test_a_worker_that_starts_again_has_the_name_of_the_last_one(
    configured: Configuration,
) -> None:
    first = name_of(configured)
    assert first is not None
    assert len(first) == 32
    assert name_of(configured) == first


def test_no_two_workers_have_a_name_at_a_time(configured: Configuration) -> None:
    with ExitStack() as running:
        names = [running.enter_context(hold_worker_name(configured)) for _ in range(3)]
        assert len(set(names)) == 3
        assert None not in names
    with hold_worker_name(configured) as one, hold_worker_name(configured) as two:
        assert [one, two] == names[:2]


def test_workers_of_another_storage_or_mode_have_names_of_their_own(
    configured: Configuration,
) -> None:
    elsewhere = attrs.evolve(configured, storage=StorageSettings(url="sqlite:////other.db"))
    production = attrs.evolve(configured, mode="production")
    assert len({name_of(one) for one in (configured, elsewhere, production)}) == 3


def test_a_file_that_was_cut_off_gets_a_new_name(configured: Configuration, tmp_path: Path) -> None:
    first = name_of(configured)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"\xff cut off")
    again = name_of(configured)
    assert again not in (None, first)
    assert name_of(configured) == again


def test_a_worker_works_without_a_name_where_no_file_can_be_had(
    configured: Configuration, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    worker = attrs.evolve(configured.worker, state_folder=str(tmp_path / "missing"))
    assert name_of(attrs.evolve(configured, worker=worker)) is None
    assert "this worker has no name" in caplog.text
    monkeypatch.setattr(worker_names, "MAX_WORKERS", 1)
    with hold_worker_name(configured) as name:
        assert name is not None
        assert name_of(configured) is None


def test_unless_it_is_set_the_folder_is_systemds_or_a_temporary_one_of_this_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    configured = settings.configured(settings.SANDBOX)
    monkeypatch.setenv("STATE_DIRECTORY", f"{tmp_path}:/elsewhere")
    assert name_of(configured) is not None
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.delenv("STATE_DIRECTORY")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    first = name_of(configured)
    assert first is not None
    assert name_of(configured) == first
    (folder,) = temporary.iterdir()
    folder.chmod(0o777)
    assert name_of(configured) is None
    assert "another user created it, or can write to it" in caplog.text
