"""What v2's lists take in their query strings."""

from __future__ import annotations

from typing import Annotated, Literal

import attrs
from msgspec import Meta

from payments_core.clock import Instant, parse_iso
from payments_core.errors import FieldError
from payments_core.events import BY_NAME
from payments_core_http.query import PageQuery
from payments_core_http.v2.bodies.types import AccountId, ExternalUserId

Moment = Annotated[str, Meta(min_length=10, max_length=40)]


@attrs.frozen(kw_only=True)
class Accounts(PageQuery):
    """Accounts, all or the one of an external user."""

    externalUserId: ExternalUserId | None = None


@attrs.frozen(kw_only=True)
class Events(PageQuery):
    """Events that fit every filter given; the times are ISO 8601 with a zone."""

    name: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    accountId: AccountId | None = None
    createdAfter: Moment | None = None
    createdBefore: Moment | None = None

    def faults(self) -> list[FieldError]:
        """A name that is not in the catalog, and times that are none."""
        found = [
            FieldError(name, "must be an ISO 8601 time with a zone")
            for name, text in (
                ("createdAfter", self.createdAfter),
                ("createdBefore", self.createdBefore),
            )
            if text is not None and moment(text) is None
        ]
        if self.name is not None and self.name not in BY_NAME:
            found.append(FieldError("name", "is no event of the catalog"))
        return found


def moment(text: str) -> Instant | None:
    """The instant of an ISO 8601 time with a zone; None where the text is none."""
    try:
        return parse_iso(text)
    except ValueError:
        return None


@attrs.frozen(kw_only=True)
class Payments(PageQuery):
    """Payments that fit every filter given; the times are ISO 8601 with a zone."""

    status: Annotated[str, Meta(min_length=1, max_length=32)] | None = None
    intent: Literal["receive", "send", "collect"] | None = None
    accountId: AccountId | None = None
    reference: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    createdAfter: Moment | None = None
    createdBefore: Moment | None = None
