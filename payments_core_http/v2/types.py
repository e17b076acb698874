"""The types of single fields that several bodies share."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from payments_core.engine.events import BY_NAME

AccountId = Annotated[str, Meta(min_length=1, max_length=64)]
ExternalUserId = Annotated[str, Meta(min_length=1, max_length=128)]
Amount = Annotated[
    str,
    Meta(
        pattern=r"^(0|[1-9][0-9]*)(\.[0-9]+)?$",
        max_length=80,
        extra={"rule": "a decimal string such as 25.00, with no sign or exponent"},
    ),
]
ChainId = Annotated[int, Meta(ge=1)]
AssetSymbol = Annotated[str, Meta(min_length=1, max_length=16)]
Label = Annotated[str, Meta(min_length=1, max_length=128)]
Email = Annotated[
    str, Meta(pattern=r"^[^@\s]+@[^@\s]+$", max_length=254, extra={"rule": "an email address"})
]
Username = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_]{3,20}$",
        extra={"rule": "3 to 20 letters, digits or underscores"},
    ),
]
Url = Annotated[
    str, Meta(pattern=r"^https?://[^\s]+$", max_length=2_048, extra={"rule": "an http(s) URL"})
]
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
Method = Literal["vault", "direct", "routing", "hosted_onramp"]


Address = Annotated[str, Meta(min_length=1, max_length=128)]
