"""The PostgreSQL of the deployment: a primary, and a standby that has all that was answered.

Or Citus: a coordinator, and nodes that have the rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, Protocol
from urllib.parse import urlsplit

from tests.servers import Cluster
from tests.servers.citus import CitusCluster

SAFE: Mapping[str, str] = MappingProxyType({
    "fsync": "on",
    "synchronous_commit": "on",
    # A standby that lost its primary looks for it this often; meanwhile no commit is answered.
    "wal_retrieve_retry_interval": "500ms",
})  # fmt: skip
"""What an acknowledged commit rests on, stated though most of it is PostgreSQL's default."""
BEHIND_S = 3.0
"""So much of the past a careless standby lacks when it takes over."""

NODE_DOWN_S = 2.0

Outage = Literal["restart", "failover", "rejoin", "node 1 dies", "node 2 dies"]
OutagePlan = tuple[tuple[float, Outage], ...]
"""What happens to the database when so much of the storm is over."""
REPLICATED: OutagePlan = (
    (0.2, "restart"),
    (0.45, "failover"),
    (0.6, "rejoin"),
    (0.8, "restart"),
)
ALONE: OutagePlan = ((0.5, "restart"),)
DISTRIBUTED: OutagePlan = (
    (0.15, "node 1 dies"),
    (0.35, "node 2 dies"),
    (0.55, "restart"),
    (0.75, "node 1 dies"),
    (0.85, "node 2 dies"),
)


class Database(Protocol):
    """What a storm is over."""

    url: str
    version: str
    plan: OutagePlan

    def do(self, outage: Outage) -> float:
        """Let it happen, and return when the database was down."""
        ...

    def remove(self) -> None:
        """End its servers."""
        ...


class Databases:
    """One cluster, or two of which either may be the primary.

    If `careless`, no commit waits for the standby, which follows no more for a while before it
    takes over: what was answered meanwhile is lost, and a run on this must fail.
    """

    def __init__(self, *, replicated: bool, careless: bool = False) -> None:
        self._careless = careless
        self.primary = Cluster(settings=SAFE, tcp=True).start()
        self.standby = (
            Cluster.standby_of(self.primary, synchronous=not careless) if replicated else None
        )
        self.version = self.primary.programs.version
        self.url = self._url()
        self.plan = REPLICATED if replicated else ALONE

    def do(self, outage: Outage) -> float:
        """Let it happen, and return when the database was down."""
        acts = {"restart": self.restart, "failover": self.fail_over, "rejoin": self.rejoin}
        return acts[outage]()

    def restart(self) -> float:
        """Stop the primary without a word to anyone, and start it again. When it was down."""
        self.primary.stop("immediate")
        down = time.monotonic()
        self.primary.start()
        return down

    def fail_over(self) -> float:
        """The primary dies with all its processes, and its standby takes its place. When it was
        dead."""
        assert self.standby is not None
        if self._careless:
            self.standby.configure(primary_conninfo="")
            time.sleep(BEHIND_S)
        self.primary.kill()
        down = time.monotonic()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary
        return down

    def rejoin(self) -> float:
        """The one that died comes back as the synchronous standby of the other, which goes on
        meanwhile. When it began."""
        assert self.standby is not None
        began = time.monotonic()
        self.standby.follow(self.primary, synchronous=not self._careless)
        return began

    def remove(self) -> None:
        """End both."""
        for cluster in (self.primary, self.standby):
            if cluster is not None:
                cluster.remove()

    def _url(self) -> str:
        """Where clients connect; libpq takes the one that can be written to."""
        parts = urlsplit(self.primary.url(tcp=True))
        hosts = [f"127.0.0.1:{self.primary.port}"]
        if self.standby is not None:
            hosts.append(f"127.0.0.1:{self.standby.port}")
        who = f"{parts.username}:{parts.password}@{','.join(hosts)}"
        return f"postgresql://{who}{parts.path}?target_session_attrs=read-write"


class CitusDatabases:
    """A coordinator and two nodes, each of which waits for its own disk."""

    plan = DISTRIBUTED

    def __init__(self) -> None:
        self._citus = CitusCluster(2, settings=SAFE, tcp=True).start()
        self.url = self._citus.url(tcp=True)
        self.version = f"{self._citus.coordinator.programs.version}, with Citus on two nodes"

    def do(self, outage: Outage) -> float:
        """Stop the coordinator without a word, or kill a node; and start it again."""
        if outage == "restart":
            self._citus.coordinator.stop("immediate")
            down = time.monotonic()
            self._citus.coordinator.start()
            return down
        node = self._citus.nodes[0 if outage == "node 1 dies" else 1]
        node.kill()
        down = time.monotonic()
        time.sleep(NODE_DOWN_S)
        node.start()
        return down

    def remove(self) -> None:
        """End all of them."""
        self._citus.remove()
