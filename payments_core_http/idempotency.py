"""The header `Idempotency-Key`: whose key it is, and for which request (contract §4)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec

from payments_core.engine.idempotency.record import (
    PUBLIC_RETENTION_MS,
    RETENTION_MS,
    IdempotentRequest,
    Response,
    ResponseLookup,
    response_id,
)
from payments_core.errors import IdempotencyKeyRequired, PaymentsError, ValidationFailed
from payments_core.tenants.authorization import Authority
from payments_core_http.routing import Route
from payments_core_http.wire.json_text import canonicalize

KEY_PATTERN = "^[ -~]{1,256}$"

_KEY = re.compile(KEY_PATTERN, re.ASCII)


def read_key(route: Route, environ: Mapping[str, Any]) -> str | None:
    """The key, opaque to us, quotes and all. Raises IdempotencyKeyRequired, ValidationFailed."""
    if route.idempotency == "ignored":
        return None
    key: str | None = environ.get("HTTP_IDEMPOTENCY_KEY")
    if key is None:
        if route.idempotency == "required":
            raise IdempotencyKeyRequired()
        return None
    return check_key(key)


def foretell_lookup(route: Route, environ: Mapping[str, Any]) -> ResponseLookup | None:
    """What to look up with the credential, before the key is checked."""
    key = environ.get("HTTP_IDEMPOTENCY_KEY")
    if route.idempotency == "ignored" or key is None or not _KEY.fullmatch(key):
        return None
    return ResponseLookup(key)


def check_key(key: str) -> str:
    """The key, where it is one. Raises ValidationFailed."""
    if not _KEY.fullmatch(key):
        raise ValidationFailed.at(
            "Idempotency-Key", "must have 1 to 256 printable ASCII characters"
        )
    return key


def build_idempotent(
    route: Route,
    authority: Authority,
    key: str,
    path_ids: Mapping[str, str],
    document: Any,
    retention_ms: int = RETENTION_MS,
) -> IdempotentRequest:
    """What makes this request answerable once; `Call.once` adds how its answer is rendered."""
    if authority.requirement.caller == "public":
        retention_ms = min(retention_ms, PUBLIC_RETENTION_MS)
    return IdempotentRequest(
        id=response_id(authority.partition, authority.principal, key),
        fingerprint=_compute_fingerprint(route, path_ids, document),
        render=_fail_unrendered,
        retention_ms=retention_ms,
    )


def answer_once(
    replay: Callable[[ResponseLookup | None], None],
    known: ResponseLookup | None,
    handle: Callable[[], Response],
) -> Response:
    """The answer of the handler, unless the request was answered before: then `replay` raises.

    `known` is older than this call, and another may have been answered since. The commit looks
    again; and so does a refusal, which may rest on what the other has left.
    """
    replay(known)
    try:
        return handle()
    except PaymentsError:
        replay(None)
        raise


def _compute_fingerprint(route: Route, path_ids: Mapping[str, str], document: Any) -> str:
    """The request without its version and its headers; the leading 1 is the recipe's number."""
    ids = [path_ids[name] for name in route.path_names]
    body = None if document is None else canonicalize(document)
    text = msgspec.json.encode((route.method, route.path, ids, body))
    return "1:" + hashlib.sha256(text).hexdigest()


def _fail_unrendered(result: Any) -> NoReturn:
    raise AssertionError("an operation runs through Call.once, which sets how to render")
