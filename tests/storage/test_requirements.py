"""Each minimum of the table is checked where the thing is opened, and is on the pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from payments_core import open_storage, requirements
from payments_core.clock import MINUTE
from payments_core.limiters.loader import open_limiter
from payments_core.limiters.port import LimiterUnavailable, PolicyCheck
from payments_core.requirements import MINIMUM_VERSIONS, find_version_fault, split_number
from payments_core.storage.port import StorageError
from payments_core.webhooks.transports.curl import CurlTransport
from tests.deployment.deployed import Deployed
from tests.limiters.servers import redis_or_skip
from tests.servers.postgres import postgres_or_skip

ROOT = Path(__file__).parents[2]


def _open_postgres() -> None:
    storage = open_storage(postgres_or_skip())
    try:
        storage.migrate()
    finally:
        storage.close()


def _ask_redis() -> None:
    limiter = open_limiter(redis_or_skip())
    try:
        limiter.check([PolicyCheck("version", 1, MINUTE)], 0)
    finally:
        limiter.close()


OPENED: dict[str, tuple[type[Exception], Callable[[], object]]] = {
    "Python": (ImportError, requirements.require_python),
    "SQLite": (StorageError, lambda: open_storage("sqlite:///never-made.db")),
    "PostgreSQL": (StorageError, _open_postgres),
    "libpq": (StorageError, lambda: open_storage("postgresql://localhost/never-asked")),
    "Redis": (LimiterUnavailable, _ask_redis),
    "libcurl": (ImportError, CurlTransport),
}


@pytest.mark.parametrize("name", MINIMUM_VERSIONS)
def test_what_is_older_than_the_table_is_refused_where_it_is_opened(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(requirements, "MINIMUM_VERSIONS", {**MINIMUM_VERSIONS, name: (999, 1)})
    refusal, open_it = OPENED[name]
    with pytest.raises(refusal, match=rf"{name} 999\.1 or newer is needed, and this is {name} \d"):
        open_it()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", MINIMUM_VERSIONS)
def test_the_deployment_guide_states_each_minimum(name: str) -> None:
    shown = ".".join(map(str, MINIMUM_VERSIONS[name]))
    assert f"| {name} | {shown} |" in (ROOT / "docs/how-to/deploy.md").read_text()


def test_the_distribution_states_the_same_python() -> None:
    stated = re.search(r'requires-python = ">=(.+)"', (ROOT / "pyproject.toml").read_text())
    assert stated and stated[1] == ".".join(map(str, MINIMUM_VERSIONS["Python"]))


@pytest.mark.parametrize(
    ("name", "found", "is_refused"),
    [
        ("SQLite", (3, 37, 2), True),
        ("SQLite", (3, 38, 0), False),
        ("SQLite", (4, 0, 0), False),
        ("PostgreSQL", split_number(90624), True),
        ("PostgreSQL", split_number(140012), True),
        ("PostgreSQL", split_number(150000), False),
        ("libpq", split_number(130022), True),
        ("Redis", (6, 0, 16), True),
        ("Redis", (7,), False),
        ("Python", (3, 10, 14), True),
    ],
)
def test_versions_are_compared_by_number(
    name: str, found: tuple[int, ...], is_refused: bool
) -> None:
    assert (find_version_fault(name, found) is not None) is is_refused


def test_doctor_says_that_a_version_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed = Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")
    deployed.run("admin", "migrate")
    monkeypatch.setattr(requirements, "MINIMUM_VERSIONS", {**MINIMUM_VERSIONS, "SQLite": (999,)})
    assert "SQLite 999 or newer is needed" in deployed.run("doctor", fails=True)
