"""The address in a sandbox's folder: there while it runs, gone after, not believed after a kill."""

from __future__ import annotations

import shutil
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from payments_core_http.cli.address_file import FILE_NAME, publish_address, read_address
from payments_core_http.cli.child_processes import SandboxChild
from payments_core_http.cli.sandbox_client import URL_VARIABLE
from tests.cli.test_listen import payments

URL = "http://127.0.0.1:4321"


@pytest.fixture(autouse=True)
def no_address_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL_VARIABLE, raising=False)


@pytest.fixture
def sandbox(tmp_path: Path, started_data: Path) -> Iterator[SandboxChild]:
    child = SandboxChild(Path(shutil.copytree(started_data, tmp_path / "sandbox-data")))
    yield child
    child.end()


def test_the_folder_is_enough_to_find_a_sandbox_on_any_port(sandbox: SandboxChild) -> None:
    done = payments("events", "--data", str(sandbox.data))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert read_address(sandbox.data) == sandbox.base_url


def test_an_address_that_is_given_goes_before_the_folders(
    sandbox: SandboxChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        elsewhere = f"http://127.0.0.1:{unused.getsockname()[1]}"
        done = payments("events", "--data", str(sandbox.data), "--url", elsewhere)
        assert f"No sandbox answers at {elsewhere}" in done.stderr
        monkeypatch.setenv(URL_VARIABLE, elsewhere)
        done = payments("events", "--data", str(sandbox.data))
        assert f"No sandbox answers at {elsewhere}" in done.stderr


def test_a_sandbox_that_ends_takes_its_address_along(sandbox: SandboxChild) -> None:
    assert (sandbox.data / FILE_NAME).exists()
    assert sandbox.end() == 0
    assert not (sandbox.data / FILE_NAME).exists()


def test_the_address_of_a_killed_sandbox_gets_no_key(sandbox: SandboxChild) -> None:
    sandbox.kill()
    assert (sandbox.data / FILE_NAME).read_text().strip() == sandbox.base_url
    with socket.create_server(("127.0.0.1", sandbox.port)) as stranger:
        stranger.settimeout(0)
        assert read_address(sandbox.data) is None
        payments("events", "--data", str(sandbox.data))
        with pytest.raises(BlockingIOError):
            stranger.accept()
    again = SandboxChild(sandbox.data)
    try:
        assert read_address(again.data) == again.base_url
        assert payments("events", "--data", str(again.data)).returncode == 0
    finally:
        again.end()


def test_the_address_is_there_while_it_is_published_and_for_its_owner_alone(
    tmp_path: Path,
) -> None:
    with publish_address(tmp_path, URL):
        assert read_address(tmp_path) == URL
        assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    assert read_address(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_it_goes_also_where_the_sandbox_fails(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="trouble"), publish_address(tmp_path, URL):
        raise OSError("trouble")
    assert list(tmp_path.iterdir()) == []


def test_what_was_left_behind_gives_way_to_the_next(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("http://127.0.0.1:1\n")
    (tmp_path / f"{FILE_NAME}.new").write_text("http://127")
    assert read_address(tmp_path) is None
    with publish_address(tmp_path, URL):
        assert read_address(tmp_path) == URL
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_sandbox_has_no_address(tmp_path: Path) -> None:
    assert read_address(tmp_path / "absent") is None
    (tmp_path / FILE_NAME).mkdir()
    assert read_address(tmp_path) is None
