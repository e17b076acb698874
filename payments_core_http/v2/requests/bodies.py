"""The request log."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from payments_core_http.wire.classes import frozen_body
from payments_core_http.wire.query import PageQuery

StatusFilter = Annotated[
    str,
    Meta(pattern=r"^[1-5](xx|[0-9]{2})$", extra={"rule": "a status such as 404, or 4xx"}),
]


@frozen_body
class ListRequests(PageQuery):
    """With a `status`, only requests whose response has that status, or a status of that class;
    with a `path`, only those whose path contains it."""

    status: StatusFilter | None = None
    """Only those with this status."""
    path: Annotated[str, Meta(max_length=200)] | None = None
    """Only those whose path contains this text, such as the id of a Payment."""
