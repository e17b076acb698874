"""The storage on PostgreSQL is tested on the oldest and the newest version that it supports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers import majors_to_test, postgres_or_skip
from tests.storage.schemas import SuiteSchemas


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Asked here and not at import: other tests need not look what there is."""
    if "postgres_server" in metafunc.fixturenames:
        majors = majors_to_test()
        names = [f"postgres{major}" for major in majors]
        metafunc.parametrize("postgres_server", majors, ids=names, indirect=True)


@pytest.fixture
def postgres_server(request: pytest.FixtureRequest) -> str:
    """The URL of a database in each of the versions, in turn."""
    return postgres_or_skip(request.param)


@pytest.fixture(scope="module")
def suite_schemas() -> Iterator[SuiteSchemas]:
    """The schemas of the storage suite, on any server."""
    schemas = SuiteSchemas()
    yield schemas
    schemas.close()
