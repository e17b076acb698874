"""Rows of sessions and their disputes."""

from __future__ import annotations

from payments_core.errors import InvalidState, NotFound
from payments_core_http.routing import Route
from payments_core_http.v2.disputes import bodies, views
from payments_core_http.v2.disputes import handlers as disputes
from payments_core_http.v2.requirements import PAYMENTS_KEY

SESSIONS = (
    Route(
        "GET", "/v2/sessions/{sessionId}", disputes.read, needs=PAYMENTS_KEY, errors=(NotFound,),
        response=views.SessionView, operation="readSession",
        summary="Read a session: a receive Payment in the older vocabulary, with its dispute.",
    ),
    Route(
        "POST", "/v2/sessions/{sessionId}/dispute", disputes.flag, needs=PAYMENTS_KEY,
        credential="bearer_key", body=bodies.FlagDispute, errors=(NotFound, InvalidState),
        response=views.FlaggedSessionView,
        summary="Flag a dispute about a settled session, once.",
    ),
    Route(
        "POST", "/v2/sessions/{sessionId}/dispute/resolve", disputes.resolve, needs=PAYMENTS_KEY,
        body=bodies.ResolveDispute, errors=(NotFound, InvalidState),
        response=views.SessionView,
        summary="Record how a dispute ended.",
    ),
)  # fmt: skip
