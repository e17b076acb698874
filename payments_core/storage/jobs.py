"""A job: a row that commits with the change that needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.storage.records import Collection, Index, Record

NEVER: Instant = 2**53 - 1
"""A lease or a due time that never comes: how a job parks."""


def _upgrade_from_1(document: dict[str, Any]) -> dict[str, Any]:
    # SQLite writes the holder of a lease into a document without changing its schema.
    return {"holder": "", **document}


@attrs.frozen(kw_only=True, slots=False)
class Job(Record):
    """Work to do at `due_at`.

    `queue` begins with the mode, since a process claims only its own. Jobs of a `lane` must not
    run at the same time or starve others: a webhook endpoint, a Payment, a sender. `ordinal`
    orders jobs of a lane that fall due together. `claims` counts claims, and fences them.
    `holder` names the worker that has the lease, if it has a name that outlives its process.
    """

    collection: ClassVar[Collection] = Collection(
        "jobs",
        columns={
            "queue": str,
            "lane": str,
            "due_at": int,
            "ordinal": int,
            "lease_until": int,
            "claims": int,
        },
        indexes=(Index("by_queue_lane", key=("queue", "lane"), order=("due_at", "ordinal")),),
        schema=2,
        upgrades={1: _upgrade_from_1},
        oldest_reader=1,
    )

    queue: str
    lane: str
    kind: str
    due_at: Instant
    subject: str
    arguments: Mapping[str, str] = attrs.field(factory=dict)
    ordinal: int = 0
    lease_until: Instant = 0
    claims: int = 0
    failures: int = 0
    holder: str = ""


def require_holder(holder: str) -> None:
    """Raise ValueError for an empty name: most leases have it."""
    if not holder:
        raise ValueError("a holder of leases needs a name")
