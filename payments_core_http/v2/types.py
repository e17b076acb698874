"""The types of single fields that several bodies share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from payments_core.engine.events import BY_NAME

EventName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        extra={
            "values": tuple(BY_NAME),
            "fault": "is not an event of the catalog",
            "rule": "an event of the catalog",
        },
    ),
]
Moment = Annotated[
    str,
    Meta(
        min_length=10,
        max_length=40,
        extra={"format": "date-time", "rule": "an ISO 8601 time with a zone"},
    ),
]
