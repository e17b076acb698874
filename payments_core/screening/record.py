"""What is stored of screening, by environment: verdicts, and the transfers that one stops."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.screening.port import Direction, Outcome, Subject
from payments_core.storage.records import Collection, Index, Lookup, Record

HoldStatus = Literal["in_review", "blocked"]


@attrs.frozen(kw_only=True, slots=False)
class ScreeningVerdict(Record):
    """The newest verdict of a subject, whose key is the id; it is never used after its time.

    An operator's verdict has the name of the operator in `decided_by`. It is for one resource and
    one direction, which its id names too (`judging.decision_id`), and it does not end.
    """

    collection: ClassVar[Collection] = Collection(
        "screening_verdicts",
        columns={"case": str},
        lookups=(Lookup("by_case", ("case",)),),
    )

    outcome: Outcome
    case: str | None = None
    reason: str | None = None
    valid_until_ms: Instant
    decided_by: str | None = None
    created_at_ms: Instant
    updated_at_ms: Instant

    valid_until: ClassVar[FieldView[datetime]] = instant_view("valid_until_ms")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class HeldTransfer(Record):
    """A transfer that is not signed, because of its `subject`.

    While a send job looks at it again, the id is that of the job. What is `blocked` and has no job
    any more has the id of the operator's verdict that it waits for: a transfer that was ended, or a
    request that was refused for its destination. So what is requested again has the same one.

    `in_review` it is looked at again. `blocked` it was stopped, by the operator of the name
    `decided_by` if there is one. It is deleted when the transfer may be signed, or one that was
    requested again; when its owner no longer needs it; and when an operator has cleared what is
    blocked. `resource` is for whom an operator decides: the Payment, the deposit or the bank
    transaction; `owner` is what named the transfer, and `transfer_id` the newest one. Without a
    `case` the provider did not answer. `cleared` are the keys of the transfer's other concerns
    (`judging.Concern.key`) that the provider has cleared so far, for this transfer.
    """

    collection: ClassVar[Collection] = Collection(
        "held_transfers",
        columns={"status": str, "subject_key": str, "created_at": int},
        indexes=(
            Index("by_status", key=("status",), order=("created_at",)),
            Index("by_subject", key=("subject_key",), order=("created_at",)),
        ),
        schema=3,
        oldest_reader=1,
    )

    status: HoldStatus
    subject_key: str
    subject: Subject
    direction: Direction
    resource: str
    owner: str
    transfer_id: str | None = None
    case: str | None = None
    reason: str | None = None
    decided_by: str | None = None
    cleared: tuple[str, ...] = ()
    created_at_ms: Instant
    updated_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")
