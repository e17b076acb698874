"""A provider's verdict of a subject as it is stored, by environment, and an operator's."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.screening.port import Outcome
from payments_core.storage.records import Collection, Lookup, Record


@attrs.frozen(kw_only=True, slots=False)
class ScreeningVerdict(Record):
    """The newest verdict of a subject, whose key is the id; it is never used after its time.

    An operator's verdict has the name of the operator in `decided_by`. It is for one resource and
    one direction, which its id names too (`decision_id`), and it does not end.
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
