"""Real servers for tests, with no set-up by hand, ended with the tests that started them."""

from __future__ import annotations

from tests.servers.cluster import HASTY, Cluster
from tests.servers.postgres import (
    OVERRIDE,
    drop_schema,
    fresh_database,
    fresh_schema,
    major_of,
    majors_to_test,
    postgres_or_skip,
    postgres_url,
)
from tests.servers.programs import MAJOR, NoPostgres, NoRedis

__all__ = [
    "Cluster",
    "HASTY",
    "MAJOR",
    "NoPostgres",
    "NoRedis",
    "OVERRIDE",
    "drop_schema",
    "fresh_database",
    "fresh_schema",
    "major_of",
    "majors_to_test",
    "postgres_or_skip",
    "postgres_url",
]
