"""Recorded requests as the API returns them, without queries and bodies."""

from __future__ import annotations

from payments_core.clock import format_iso
from payments_core.tenants.request_log import LoggedRequest
from payments_core_http.wire.classes import frozen_view


@frozen_view
class LoggedRequestView:
    """A request that was made with a credential of the environment, and how it ended."""

    id: str
    method: str
    path: str
    credential: str
    status: int
    errorCode: str | None
    durationMs: int
    createdAt: str


def request(record: LoggedRequest) -> LoggedRequestView:
    """A recorded request."""
    return LoggedRequestView(
        id=record.id,
        method=record.method,
        path=record.path,
        credential=record.credential,
        status=record.status,
        errorCode=record.error_code,
        durationMs=record.duration_ms,
        createdAt=format_iso(record.at),
    )
