"""What v2's lists take in their query strings."""

from __future__ import annotations

from typing import Annotated, Literal

import attrs
from msgspec import Meta

from payments_core_http.query import PageQuery
from payments_core_http.v2.bodies.types import AccountId, EventName, ExternalUserId, Moment
from payments_core_http.v2.statuses import PaymentStatus


@attrs.frozen(kw_only=True)
class Accounts(PageQuery):
    """Accounts, all or the one of an external user."""

    externalUserId: ExternalUserId | None = None


@attrs.frozen(kw_only=True)
class Events(PageQuery):
    """Events that fit every filter given; the times are ISO 8601 with a zone."""

    name: EventName | None = None
    accountId: AccountId | None = None
    createdAfter: Moment | None = None
    createdBefore: Moment | None = None


@attrs.frozen(kw_only=True)
class Payments(PageQuery):
    """Payments that fit every filter given; the times are ISO 8601 with a zone."""

    status: PaymentStatus | None = None
    intent: Literal["receive", "send", "collect"] | None = None
    accountId: AccountId | None = None
    reference: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    createdAfter: Moment | None = None
    createdBefore: Moment | None = None
