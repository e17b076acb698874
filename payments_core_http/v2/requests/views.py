"""Recorded requests as the API returns them, without queries and bodies."""

from __future__ import annotations

from payments_core.clock import format_iso
from payments_core.tenants.request_log import LoggedRequest
from payments_core_http.wire.classes import frozen_view


@frozen_view
class LoggedRequestView:
    """A request that was made with a credential of the environment, and how it ended."""

    id: str
    """The `x-request-id` of its response."""
    method: str
    """Its method."""
    path: str
    """Its path, without the query; text that looks like a secret is replaced."""
    credential: str
    """The kind of credential that its route takes."""
    status: int
    """The HTTP status of its response."""
    errorCode: str | None
    """The error's code; null if it succeeded."""
    durationMs: int
    """How long the response took, in milliseconds."""
    createdAt: str
    """When its response was sent."""


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
        createdAt=format_iso(record.at_ms),
    )
