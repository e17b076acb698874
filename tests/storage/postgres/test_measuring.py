"""The pages of `measure` in PostgreSQL: each reads its own rows, whatever the planner knows."""

from __future__ import annotations

import psycopg

from payments_core.conformance.storage.records import Counter
from payments_core.storage import documents
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.queries import measure_statement

_FILL = b"""
    INSERT INTO suite_counters (partition, id, version, body)
    SELECT 'env_' || n %% 3, 'n' || lpad(n::text, 6, '0'), 1, %s
    FROM generate_series(%s::int, %s::int) AS n
"""


def test_a_page_is_read_by_the_primary_key(storage: PostgresStorage, url: str) -> None:
    """Else each page would sort all rows, and the count of many rows would never end."""
    body = documents.encode(documents.stamp(Counter(id="n"), 1)).decode()
    sql = measure_statement("suite_counters", True)
    run = b"EXPLAIN (ANALYZE) EXECUTE measured ('env_1', 50, 'n000900')"
    for known in (0, 100, 1_000):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("TRUNCATE suite_counters")
            connection.execute("SET plan_cache_mode = force_generic_plan")
            connection.execute(_FILL, (body, 1, known))
            connection.execute(f"PREPARE measured AS {sql}".encode())
            connection.execute(run)
            connection.execute(_FILL, (body, known + 1, 6_000))
            plan = "\n".join(line for (line,) in connection.execute(run).fetchall())
        assert "suite_counters_pkey" in plan, plan
        assert "Sort" not in plan, plan
        assert storage.measure("env_1", Counter, "n000900", 50).bytes == 50 * len(body)
