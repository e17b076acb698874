"""Records the API requests of programs for the request log, outside the path of the requests.

A request leaves a few references in memory as it ends. A thread of the process writes them, every
FLUSH_S seconds: one commit for each environment that was called, of a bounded number of requests,
and of a bounded number of environments, which take turns. So no response waits for the log, one
environment's calls do not keep another's out of it, and a process that is killed loses only what it
had not written yet, on which nothing depends.

Headers are never recorded, and so no credential; text elsewhere that looks like one is redacted,
also in an encoding. Of a query with a credential nothing is kept. Of a body only the fields that
some route knows are shown: an account number under a misspelled name is still an account number.
"""

from __future__ import annotations

import json
import keyword
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, get_args, get_origin
from urllib.parse import unquote_plus

import attrs

from payments_core.clock import Clock, Instant
from payments_core.errors import BadInput
from payments_core.tenants.request_log import PAGE_REQUESTS, LoggedRequest, RequestLog
from payments_core.validation.metadata import Metadata
from payments_core_http.observability.requests import ObservedRequest, RequestObserver
from payments_core_http.redaction import REDACTED, redact, redact_value
from payments_core_http.routes import ROUTES
from payments_core_http.server.turns import Turns
from payments_core_http.throttling import APP_CREDENTIALS
from payments_core_http.v2.requests.routes import LIST_PATH
from payments_core_http.wire.body_bytes import declared_length
from payments_core_http.wire.query import has_credential

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

FLUSH_S = 2.0
FLUSHED_ENVIRONMENTS = 20
"""The maximum number of environments that are written in one turn; the others come first in the
next."""

MAX_ENVIRONMENTS = 500
"""The maximum number that wait; further requests are not recorded."""

MAX_BODY_BYTES = 2_000
MAX_QUERY_CHARACTERS = 1_000
MAX_PATH_CHARACTERS = 500
STOP_S = 5.0

_log = logging.getLogger(__name__)


@attrs.frozen
class _EndedRequest:
    """A request until it is written. Its body is not redacted yet."""

    request: ObservedRequest = attrs.field(repr=False)
    at: Instant
    duration_ms: int
    path: str = attrs.field(repr=False)
    query: str = attrs.field(repr=False)
    body_bytes: int | None
    has_payment_secret: bool
    has_idempotency_key: bool


class RequestRecorder:
    """Observes requests for another observer and for the log of each environment."""

    def __init__(self, log: RequestLog, clock: Clock, mode: str, inner: RequestObserver) -> None:
        self._request_log = log
        self._clock = clock
        self._mode = mode
        self._inner = inner
        self._lock = threading.Lock()
        self._waiting: Turns[_EndedRequest] = Turns(MAX_ENVIRONMENTS, PAGE_REQUESTS)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="request-log", daemon=True)
        self._is_failing = False

    @classmethod
    def over(cls, service: PaymentsService, mode: str, inner: RequestObserver) -> RequestRecorder:
        """The recorder of a service's requests."""
        return cls(service.parts.request_log, service.parts.ports.clock, mode, inner)

    # What requests meet.

    def observe_request(
        self, request: ObservedRequest, environ: Mapping[str, Any]
    ) -> AbstractContextManager[object]:
        """Observe it for the inner observer, and keep it if a program made it."""
        began = self._clock.real_now()
        observed = self._inner.observe_request(request, environ)
        return _Recorded(observed, lambda: self._keep(request, environ, began))

    def _keep(self, request: ObservedRequest, environ: Mapping[str, Any], began: Instant) -> None:
        is_programs = request.credential in APP_CREDENTIALS
        if request.environment_id is None or not is_programs or request.route == LIST_PATH:
            return
        body_bytes = _measure_body(request, environ)
        if body_bytes is None or body_bytes > MAX_BODY_BYTES:
            request.document = None
        ended = _EndedRequest(
            request,
            self._clock.now(),
            self._clock.real_now() - began,
            str(environ.get("PATH_INFO", "")),
            str(environ.get("QUERY_STRING", "")),
            body_bytes,
            "HTTP_X_SERVICE_PAYMENT_SECRET" in environ,
            "HTTP_IDEMPOTENCY_KEY" in environ,
        )
        with self._lock:
            self._waiting.append(str(request.environment_id), ended)

    # What the thread does.

    def start(self) -> None:
        """Write from now on, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, for at most STOP_S, and end."""
        self._stopping.set()
        self._thread.join(STOP_S)

    def _run(self) -> None:
        while not self._stopping.wait(FLUSH_S):
            self.flush()
        while self._waiting:
            self.flush()

    def flush(self) -> None:
        """Write the waiting requests of the environments whose turn it is. Raises nothing."""
        with self._lock:
            batches: list[tuple[str, deque[_EndedRequest]]] = []
            while self._waiting and len(batches) < FLUSHED_ENVIRONMENTS:
                batches.append(self._waiting.take_turn())
        for partition, ended in batches:
            try:
                self._request_log.append(partition, self._mode, [_describe(one) for one in ended])
                self._is_failing = False
            except Exception as error:  # the next ones may succeed; these are not worth a retry
                if not self._is_failing:
                    _log.warning("the request log cannot be written: %s", type(error).__name__)
                self._is_failing = True


class _Recorded:
    """Observes a request, and keeps it when it has ended without an exception."""

    __slots__ = ("_keep", "_observed")

    def __init__(self, observed: AbstractContextManager[object], keep: Callable[[], None]) -> None:
        self._observed = observed
        self._keep = keep

    def __enter__(self) -> object:
        return self._observed.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._observed.__exit__(kind, error, trace)
        if kind is None:
            self._keep()


def _describe(ended: _EndedRequest) -> LoggedRequest:
    """The request as it is stored, redacted and cut."""
    request = ended.request
    return LoggedRequest(
        id=request.id,
        at_ms=ended.at,
        method=request.method,
        # Redacted first: half of a secret that is cut in two would not be recognized.
        path=_cut(redact(_decode(ended.path)), MAX_PATH_CHARACTERS),
        query=_cut(_hide_query(ended.query), MAX_QUERY_CHARACTERS),
        credential=str(request.credential),
        has_payment_secret=ended.has_payment_secret,
        has_idempotency_key=ended.has_idempotency_key,
        body=_write_body(request.document),
        body_bytes=ended.body_bytes,
        status=request.status,
        error_code=request.error_code,
        duration_ms=max(0, ended.duration_ms),
    )


def _measure_body(request: ObservedRequest, environ: Mapping[str, Any]) -> int | None:
    """The length of the body; None if the request was refused before it was read, and there may be
    one. A copy without a body would be another request: it may refund everything."""
    if request.method in ("GET", "HEAD"):
        return 0
    if request.body_bytes is not None:
        return request.body_bytes
    try:
        return declared_length(environ)
    except BadInput:
        return None


def _write_body(document: Any) -> str | None:
    """The body as JSON, without secrets; None if there is none, or too much."""
    if document is None:
        return None
    safe = redact_value(_hide(document) if isinstance(document, dict) else REDACTED)
    body = json.dumps(safe, ensure_ascii=False).encode("utf-8", "replace")
    return body.decode() if len(body) <= MAX_BODY_BYTES else None


def _hide(value: Any) -> Any:
    """A value of a body, without hidden fields and fields that no route knows."""
    if isinstance(value, dict):
        return {name: _hide_field(name, one) for name, one in value.items()}
    return [_hide(one) for one in value] if isinstance(value, list) else _as_json(value)


def _hide_field(name: str, value: Any) -> Any:
    if name in list_hidden_names() or name not in _list_names():
        return REDACTED
    return _hide_names(value) if name in _list_free_names() else _hide(value)


def _hide_names(value: Any) -> Any:
    """A value in which partners choose the names, without hidden fields."""
    if isinstance(value, dict):
        return {
            name: REDACTED if name in list_hidden_names() else _hide_names(one)
            for name, one in value.items()
        }
    return [_hide_names(one) for one in value] if isinstance(value, list) else _as_json(value)


def _as_json(value: Any) -> Any:
    """A number with a fraction as a number, if it has no more digits than JSON's readers keep: as a
    text it would be another request."""
    if not isinstance(value, Decimal):
        return value
    number = float(value)
    return number if Decimal(repr(number)) == value else str(value)


def _hide_query(query_string: str) -> str:
    """A query without the values of hidden fields, in any style of writing. Nothing of one with a
    credential, in any encoding: it was refused, and a part of it helps nobody."""
    query = _decode(query_string)
    readings = (query, unquote_plus(query))
    if has_credential(query_string) or any(redact(text) != text for text in readings):
        return REDACTED
    hidden = {_fold(name) for name in list_hidden_names()}
    pairs = [pair.partition("=") for pair in query.split("&")]
    return "&".join(
        f"{name}{equals}{REDACTED if _fold(unquote_plus(name)) in hidden else value}"
        for name, equals, value in pairs
    )


def _fold(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


@cache
def list_hidden_names() -> frozenset[str]:
    """The fields of bodies that no log shows: those that are excluded from `repr`. A field whose
    name is a keyword of Python cannot be among them."""
    return frozenset(
        field.name
        for field in _list_fields()
        if not field.repr and not keyword.iskeyword(field.name)
    )


@cache
def _list_names() -> frozenset[str]:
    """The fields of all bodies."""
    return frozenset(field.name for field in _list_fields())


@cache
def _list_free_names() -> frozenset[str]:
    """The fields in which the caller chooses the names."""
    return frozenset(field.name for field in _list_fields() if _has_free_names(field.type))


def _has_free_names(kind: Any) -> bool:
    if kind is Metadata or get_origin(kind) is Mapping:
        return True
    return any(_has_free_names(part) for part in get_args(kind))


def _list_fields() -> Iterator[Any]:
    for route in ROUTES:
        for wire_class in _list_classes(route.body):
            yield from attrs.fields(wire_class)


def _list_classes(kind: Any, known: Sequence[Any] = ()) -> Iterator[Any]:
    """The wire classes in a type, and those inside them."""
    if isinstance(kind, type) and attrs.has(kind):
        if kind in known:
            return
        attrs.resolve_types(kind)
        yield kind
        for field in attrs.fields(kind):
            yield from _list_classes(field.type, (*known, kind))
    for part in get_args(kind):
        yield from _list_classes(part, known)


def _decode(text: str) -> str:
    """A text of WSGI, which carries bytes as latin-1 characters."""
    return text.encode("latin-1", "replace").decode("utf-8", "replace")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
