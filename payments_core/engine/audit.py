"""The audit trail: who changed what, from where, with which outcome (contract §17).

The committer writes an entry in the transaction of the change itself, so that there is no change
without its entry and no entry without its change. What is done in many transactions, or on a chain,
has its entry before it begins. Reads leave none. An entry has names and ids,
and nothing of a body: no credential, amount or personal data, except the client's IP address.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Literal

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.records import Collection, Index, Record

ActorType = Literal[
    "key",
    "operator",
    "client_session",
    "payer",
    "public",
    "program",
    "command_line",
    "provider",
    "system",
    "unknown",
]
Outcome = Literal["succeeded", "refused"]

SERVICE_EVENTS = frozenset(
    {
        "account.updated",
        "account.capability_updated",
        "payment.executing",
        "refund.created",
        "webhook.failing",
    }
)
"""What the service changes by itself leaves an entry if it emits one of these events."""


@attrs.frozen
class Actor:
    """Who makes a change: a kind, the id of a credential or the name of a person, and a name for
    people, as it was at that moment.

    >>> shop.audit.list().records[-1].actor.type
    'program'
    """

    type: ActorType
    id: str | None = None
    name: str | None = None

    __repr__ = brief_repr


SYSTEM = Actor("system")
PROGRAM = Actor("program")


@attrs.frozen
class CallSource:
    """Where a call came from, as far as it is known: the client's IP address, and the id of the
    request.

    >>> CallSource(address="198.51.100.7")
    CallSource(address='198.51.100.7')
    """

    address: str | None = None
    request_id: str | None = None

    __repr__ = brief_repr


NO_SOURCE = CallSource()


@attrs.frozen
class Trace:
    """What an entry says about a commit beyond the records that it writes.

    Without an `operation` it is the service's own work, named by an event of SERVICE_EVENTS.
    `ids` are those that the call names, that of the object first. `environment_id` is for commits
    of the directory, whose entries belong to an environment. A refusal changes nothing, and has an
    entry all the same; `entry_id` is for one that is written once. `own_id` is that of an object
    of ours that has no public id, such as a job's. An announced change comes after the commit: that
    has its entry, and changes nothing.
    """

    actor: Actor
    operation: str | None = None
    ids: tuple[str, ...] = ()
    source: CallSource = NO_SOURCE
    environment_id: str | None = None
    outcome: Outcome = "succeeded"
    entry_id: str | None = None
    own_id: str | None = None
    is_announced: bool = False


SYSTEM_TRACE = Trace(SYSTEM)


_ACTIONS = {
    "update": "webhooks.change",
    "retry": "webhooks.retry_delivery",
    "resend": "events.resend",
}
"""The operations whose actions had other names."""


def _from_console_action(document: dict[str, Any]) -> dict[str, Any]:
    """An entry of a row that had no actor, in any schema: the first named the time `created_at`."""
    action = document["action"]
    return {
        "id": document["id"],
        "version": document["version"],
        "schema": 1,
        "created_at_ms": document.get("created_at_ms", document.get("created_at")),
        "actor_type": "unknown",
        "operation": _ACTIONS.get(action, f"webhooks.{action}"),
        "object_id": document["subject"],
    }


@attrs.frozen(kw_only=True, slots=False)
class AuditEntry(Record):
    """One change, by whom, from where, and its outcome. It is never changed.

    `operation` is the resource and the operation of the library, such as `payments.refund`, or
    for work of the service itself the name of the event. `object_id` is the object that the call
    names first, or what it made; `related_ids` are the others. An entry about an environment is in
    its partition, or in the directory with its `environment_id`.

    >>> entry = shop.audit.list(operation="payments.receive").records[0]
    >>> entry.object_id.startswith("payment_"), entry.outcome
    (True, 'succeeded')
    """

    collection: ClassVar[Collection] = Collection(
        "audit_entries",
        columns={
            "environment_id": str,
            "created_at": int,
            "object_id": str,
            "operation": str,
            "actor_type": str,
            "actor_id": str,
        },
        indexes=(
            Index("newest", key=("environment_id",), order=("created_at",), descending=True),
            Index("oldest", key=("environment_id",), order=("created_at",)),
            Index("of_object", key=("object_id",), order=("created_at",), descending=True),
        ),
        takes_over={"webhook_console_actions": _from_console_action},
    )

    environment_id: str | None = None
    created_at_ms: Instant
    actor_type: str
    actor_id: str | None = None
    actor_name: str | None = None
    operation: str
    object_id: str | None = None
    related_ids: tuple[str, ...] = ()
    address: str | None = None
    request_id: str | None = None
    outcome: str = "succeeded"

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")

    @property
    def actor(self) -> Actor:
        """Who made the change."""
        return Actor(self.actor_type, self.actor_id, self.actor_name)  # type: ignore[arg-type]
