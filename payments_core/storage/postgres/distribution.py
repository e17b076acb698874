"""Tables that Citus distributes over machines: by partition, all in the same way.

The first migration decides for a database: if Citus is installed then, each table is
distributed with `storage_hints`, so that all rows of a partition are on one machine and one
transaction there writes them. Distributing only some tables would be the worst of both: a
commit to both is not atomic. Only `storage_schema` stays on the coordinator, where migrations run.
"""

from __future__ import annotations

from typing import Any

import psycopg

from payments_core.storage.postgres.hints import HINTS

Connection = psycopg.Connection[tuple[Any, ...]]

_HAS_CITUS = b"SELECT 1 FROM pg_extension WHERE extname = 'citus'"
_IS_DISTRIBUTED = b"SELECT 1 FROM pg_dist_partition WHERE logicalrelid = to_regclass(%s)"
_DISTRIBUTE = b"SELECT create_distributed_table(%s, 'partition', colocate_with => %s)"


def has_citus(connection: Connection) -> bool:
    """Whether the database has the extension."""
    return connection.execute(_HAS_CITUS).fetchone() is not None


def is_distributed(connection: Connection) -> bool:
    """Whether the tables are distributed; False if there are none yet."""
    return (
        has_citus(connection)
        and connection.execute(_IS_DISTRIBUTED, (HINTS,)).fetchone() is not None
    )


def distribute(connection: Connection, table: str) -> None:
    """Distribute a table by partition, in the transaction that makes it; the hints come first."""
    beside = "none" if table == HINTS else HINTS
    connection.execute(_DISTRIBUTE, (f'"{table}"', beside))
