"""What a URL does not say is read where libpq reads it: PG* variables, and service files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from payments_core.conformance.storage.records import RECORD_TYPES
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.url import DEFAULTS, ConnectionSettings, parse_url
from tests.servers.postgres import drop_schema, fresh_schema

VARIABLES = {
    option.keyword.decode(): option.envvar.decode()
    for option in psycopg.pq.Conninfo.get_defaults()
    if option.envvar
}
"""libpq's parameters that have a variable, and its name."""

HIDDEN = (*DEFAULTS, "options")
VALUES: Mapping[str, str] = {
    "application_name": "mine", "target_session_attrs": "any", "options": "-c search_path=money",
}  # fmt: skip
"""A value that differs from ours; else 7."""


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)


def parameters(url: str) -> Mapping[str, Any]:
    return parse_url(url, ConnectionSettings()).parameters


def service_file(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    file = folder / "services"
    file.write_text("\n".join(("[shop]", "host=127.0.0.1", *lines, "")))
    monkeypatch.setenv("PGSERVICEFILE", str(file))


def test_without_surroundings_our_defaults_hold() -> None:
    found = parameters("postgresql://localhost/shop")
    assert {name: found[name] for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize("name", [name for name in HIDDEN if name in VARIABLES])
def test_a_variable_comes_before_our_default_and_after_the_url(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = VALUES.get(name, "7")
    monkeypatch.setenv(VARIABLES[name], value)
    assert value in parameters("postgresql://localhost/shop")[name]
    other = parameters(f"postgresql://localhost/shop?{name}=3")[name]
    assert value not in str(other) and "3" in str(other)


@pytest.mark.parametrize("named_by", ["the URL", "PGSERVICE"])
@pytest.mark.parametrize("name", [name for name in HIDDEN if name != "target_session_attrs"])
def test_a_service_file_comes_before_our_default_and_after_the_url(
    name: str, named_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = VALUES.get(name, "7")
    service_file(tmp_path, monkeypatch, f"{name}={value}")
    url = "postgresql:///?service=shop"
    if named_by == "PGSERVICE":
        url = "postgresql:///?connect_timeout=9" if name != "connect_timeout" else "postgresql:///"
        monkeypatch.setenv("PGSERVICE", "shop")
    found = parameters(url)
    assert value in found[name]
    sign = "&" if "?" in url else "?"
    assert "3" in str(parameters(f"{url}{sign}{name}=3")[name])


def test_a_service_that_requires_another_kind_of_server_is_obeyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service_file(tmp_path, monkeypatch, "target_session_attrs=primary")
    assert parameters("postgresql:///?service=shop")["target_session_attrs"] == "primary"


def test_options_of_the_surroundings_come_after_our_defaults_and_before_fields_of_the_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=1 -c lock_timeout=2")
    options = parameters("postgresql://localhost/shop?lock_timeout_ms=3")["options"]
    last = dict(part.split("=") for part in options.removeprefix("-c ").split(" -c "))
    assert (last["statement_timeout"], last["lock_timeout"], last["jit"]) == ("1", "3", "off")


@pytest.fixture
def schema(postgres_server: str) -> Iterator[tuple[str, str]]:
    """The URL of a database, without options, and a schema in it."""
    url = fresh_schema(postgres_server)
    place, _, options = url.partition("options=")
    yield place.rstrip("?&"), options.rpartition("%3D")[2]
    drop_schema(url)


@pytest.mark.postgres
def test_tables_are_made_in_the_schema_that_pgoptions_names(
    schema: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, name = schema
    monkeypatch.setenv("PGOPTIONS", f"-c search_path={name}")
    storage = PostgresStorage(url, RECORD_TYPES)
    storage.migrate()
    storage.close()
    monkeypatch.delenv("PGOPTIONS")
    with psycopg.connect(url) as connection:
        counted = "SELECT count(*) FROM pg_tables WHERE schemaname = %s"
        assert connection.execute(counted, (name,)).fetchone() > (5,)  # type: ignore[operator]
