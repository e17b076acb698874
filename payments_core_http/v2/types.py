"""The types of single fields that several bodies share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Moment = Annotated[
    str,
    Meta(
        min_length=10,
        max_length=40,
        extra={"format": "date-time", "rule": "an ISO 8601 time with a zone"},
    ),
]
