"""A Citus cluster of one's own: a coordinator, and nodes to be killed, added and emptied.

    from tests.servers.citus import CitusCluster

    with CitusCluster(nodes=2) as citus:
        ...                      # clients connect at `citus.url()`
        citus.nodes[0].kill()
        citus.nodes[0].start()
        citus.add_node()

Citus is found in the library folder of a PostgreSQL that the tests use; `.ci/run` builds it there
where its source lies beside the project. The nodes find one another by the folders of their
sockets, so nobody else can connect to one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import cache
from typing import Self

import psycopg
import pytest

from tests.servers.cluster import HASTY, Cluster
from tests.servers.programs import NoPostgres, Programs, postgres_by_major

SHARDS = "2"
"""For each table; by default there are 32, and a schema of all tables would take a minute."""

CITUS: Mapping[str, str] = {
    "shared_preload_libraries": "citus",
    "wal_level": "logical",  # shards are moved by replication while they are written to
    "max_prepared_transactions": "200",
    "max_connections": "300",
    "lock_timeout": "2s",  # what a client sets when it connects stays on the coordinator
    "citus.shard_count": SHARDS,
    "citus.max_adaptive_executor_pool_size": "1",
    "citus.enable_statistics_collection": "off",
    "citus.node_conninfo": "sslmode=prefer",
}


_NEW_IDENTITY = """
    UPDATE pg_dist_node_metadata
    SET metadata = jsonb_set(metadata, '{server_id}', to_jsonb(gen_random_uuid()::text))
"""
"""By it a coordinator notices that a node is itself; a copy has that of its source."""


class NoCitus(NoPostgres):
    """Why there is no Citus to test with."""


@cache
def citus_programs() -> Programs:
    """The PostgreSQL that has Citus. Raises NoCitus."""
    for programs in postgres_by_major().values():
        if any((programs.folder.parent / "lib").glob("**/citus.so")):
            return programs
    raise NoCitus(
        "no PostgreSQL here has Citus; `.ci/run` builds it where its source is beside the project"
    )


class CitusCluster:
    """A coordinator without shards, and nodes that have them; what cannot be is a `NoPostgres`."""

    def __init__(
        self, nodes: int = 2, *, settings: Mapping[str, str] = HASTY, tcp: bool = False
    ) -> None:
        self._major = citus_programs().major
        self._settings = {**CITUS, **settings}
        self._blank = self._new_server()
        """Stopped, and copied for each server: `initdb` takes longer."""
        self.coordinator = self._new_server(tcp=tcp)
        self.nodes: list[Cluster] = []
        self._first_nodes = nodes

    def url(self, *, tcp: bool = False) -> str:
        """Where clients connect."""
        return self.coordinator.url(tcp=tcp)

    def start(self) -> Self:
        """Start all of them, and make one cluster of them."""
        with _connected(self._blank.start()) as connection:
            connection.execute("CREATE EXTENSION citus")
        self._blank.stop()
        self.coordinator.copy(self._blank)
        with _connected(self.coordinator) as connection:
            place = _place(self.coordinator)
            connection.execute("SELECT citus_set_coordinator_host(%s, %s)", place)
        for _ in range(self._first_nodes):
            self.add_node()
        return self

    def add_node(self) -> Cluster:
        """One node more; it has shards of tables that are made later, or once they are moved."""
        node = self._new_server()
        node.copy(self._blank)
        self.nodes.append(node)
        with _connected(node) as connection:
            connection.execute(_NEW_IDENTITY)
        with _connected(self.coordinator) as connection:
            connection.execute("SELECT citus_add_node(%s, %s)", _place(node))
        return node

    def remove(self) -> None:
        """End all and remove their folders."""
        for server in (self.coordinator, *self.nodes, self._blank):
            server.remove()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _new_server(self, *, tcp: bool = False) -> Cluster:
        made = Cluster(self._major, settings=self._settings, tcp=tcp)
        made.settings["citus.local_hostname"] = str(made.folder)  # where it connects to itself
        return made


def _place(server: Cluster) -> tuple[str, int]:
    """Where the servers find one another."""
    return str(server.folder), server.port


@cache
def shared_citus() -> CitusCluster:
    """The cluster that tests share, started when first asked for. Raises NoCitus."""
    return CitusCluster().start()


def citus_or_skip() -> CitusCluster:
    """The cluster that tests share, started when first asked for; skips where there is no Citus."""
    try:
        return shared_citus()
    except NoCitus as reason:
        pytest.skip(str(reason))


def _connected(server: Cluster) -> contextlib.AbstractContextManager[psycopg.Connection]:
    return psycopg.connect(server.url(), autocommit=True)
