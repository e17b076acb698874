"""The PostgreSQL of the deployment: a primary, and a standby that has all that was answered."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import urlsplit

from tests.servers import Cluster

SAFE: Mapping[str, str] = MappingProxyType({
    "fsync": "on",
    "synchronous_commit": "on",
    # A standby that lost its primary looks for it this often; meanwhile no commit is answered.
    "wal_retrieve_retry_interval": "500ms",
})  # fmt: skip
"""What an acknowledged commit rests on, stated though most of it is PostgreSQL's default."""
BEHIND_S = 3.0
"""So much of the past a careless standby lacks when it takes over."""


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
