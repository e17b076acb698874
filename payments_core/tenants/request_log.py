"""An environment's recent requests to the API, for the dashboard and `GET /v2/console/requests` to
show.

It is bounded, redacted before it comes here, and not exact: requests are added in batches, outside
their own path, so that a killed process loses those of its last seconds. No decision depends
on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import NotFound
from payments_core.evolve import evolve
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.port import Page, Position, Snapshot, Transaction
from payments_core.storage.query_semantics import validate_position
from payments_core.storage.records import Collection, Index, Record
from payments_core.tenants.authorization import Authority
from payments_core.validation.fields import PageLimit

PAGE_REQUESTS = 20
"""The number of requests in one record."""

MAX_PAGES = 25
"""The number of records that an environment keeps: its newest 500 requests, at most 2 MB."""


@attrs.frozen(kw_only=True)
class LoggedRequest:
    """One request and how it ended. No credential is part of it.

    `path` has its ids in it, and `body` is JSON; `body` is None if there was none or it was not
    kept, and `body_bytes` then has the length of the body that was not kept, or None if it is not
    known whether there was one. `credential` is the kind that the route takes.
    """

    id: str
    at_ms: Instant
    method: str
    path: str
    query: str = ""
    credential: str
    has_payment_secret: bool = False
    has_idempotency_key: bool = False
    body: str | None = None
    body_bytes: int | None = 0
    status: int
    error_code: str | None = None
    duration_ms: int = 0

    at: ClassVar[FieldView[datetime]] = instant_view("at_ms")


@attrs.frozen(kw_only=True, slots=False)
class RequestLogPage(Record):
    """Requests of an environment, in the order in which they were added."""

    collection: ClassVar[Collection] = Collection(
        "request_log",
        columns={"created_at": int},
        indexes=(Index("newest", order=("created_at",), descending=True),),
        schema=2,
    )

    created_at_ms: Instant
    requests: tuple[LoggedRequest, ...]

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")


class RequestLog:
    """Stores and reads the request log of each environment."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock

    def append(self, partition: str, mode: str, requests: Sequence[LoggedRequest]) -> None:
        """Add up to PAGE_REQUESTS requests, and drop the oldest. One commit. Raises Unavailable."""
        known = self._storage.read(partition, _find_pages)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            newest = tx.get(RequestLogPage, known[0].id, for_update=True) if known else None
            joined = None if newest is None else (*newest.requests, *requests)
            if newest is not None and joined is not None and len(joined) <= PAGE_REQUESTS:
                return Decision(None, replaces=(evolve(newest, requests=joined),))
            page = RequestLogPage(
                id=id_sequence.issue("request_log"), created_at_ms=now, requests=tuple(requests)
            )
            excess = sorted(one.id for one in known[MAX_PAGES - 1 :])
            dropped = (tx.get(RequestLogPage, id, for_update=True) for id in excess)
            return Decision(
                None,
                inserts=(page,),
                deletes=tuple(one for one in dropped if one is not None),
            )

        self._committer.commit(WorkerAuthority(partition, mode), decide)

    def list(self, authority: Authority) -> Sequence[LoggedRequest]:
        """All kept requests, newest first."""
        pages = self._storage.read(authority.partition, _find_pages)
        requests = [request for page in pages for request in page.requests]
        return sorted(requests, key=_position, reverse=True)

    def list_page(
        self,
        authority: Authority,
        is_wanted: Callable[[LoggedRequest], bool],
        *,
        limit: PageLimit,
        after: Position | None = None,
    ) -> Page[LoggedRequest]:
        """The matching requests, newest first, after a position."""
        if after is not None:
            validate_position(after, int, str)
        found = [
            request
            for request in self.list(authority)
            if (after is None or _position(request) < after) and is_wanted(request)
        ]
        shown = tuple(found[:limit])
        return Page(shown, _position(shown[-1]) if found[limit:] else None)

    def get(self, authority: Authority, request_id: str) -> LoggedRequest:
        """One request, by the id in its answer. Raises NotFound, also after it was dropped."""
        for request in self.list(authority):
            if request.id == request_id:
                return request
        raise NotFound("request")


def _position(request: LoggedRequest) -> Position:
    return request.at_ms, request.id


def _find_pages(snapshot: Snapshot) -> Sequence[RequestLogPage]:
    """The pages, newest first; a few more than MAX_PAGES if processes added at the same time."""
    return snapshot.find(RequestLogPage, "newest", limit=2 * MAX_PAGES, skip_damaged=True).records
