"""Rows of the request log."""

from __future__ import annotations

from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.requests import bodies, handlers, views
from payments_core_http.v2.requirements import CONSOLE_KEY

LIST_PATH = "/v2/console/requests"
"""Requests to it are not recorded: a client that follows the log would fill it."""

REQUESTS = (
    Route(
        "GET", LIST_PATH, handlers.list_requests, needs=CONSOLE_KEY, query=bodies.ListRequests,
        response=ListOf(views.LoggedRequestView), operation="listRequests",
        summary="List the newest API requests of the environment, newest first.",
    ),
)  # fmt: skip
