"""The header `Idempotency-Key`: whose key it is, and for which request (contract §4)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

from payments_core.engine.idempotency.record import (
    PUBLIC_RETENTION_MS,
    RETENTION_MS,
    IdempotentRequest,
)
from payments_core.errors import IdempotencyKeyRequired, ValidationFailed
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
    """What makes this request answerable once; `Call.once` adds how its answer is rendered.

    Its id is made from environment, principal and key, never from a secret or token: a rotated
    key or a refreshed token must not break a retry.
    """
    scope = (authority.partition, authority.principal, key)
    if authority.requirement.caller == "public":
        retention_ms = min(retention_ms, PUBLIC_RETENTION_MS)
    return IdempotentRequest(
        id=hashlib.sha256(b"1" + msgspec.json.encode(scope)).hexdigest(),
        fingerprint=_compute_fingerprint(route, path_ids, document),
        render=_fail_unrendered,
        retention_ms=retention_ms,
    )


def _compute_fingerprint(route: Route, path_ids: Mapping[str, str], document: Any) -> str:
    """The request without its version and its headers; the leading 1 is the recipe's number."""
    ids = [path_ids[name] for name in route.path_names]
    body = None if document is None else canonicalize(document)
    text = msgspec.json.encode((route.method, route.path, ids, body))
    return "1:" + hashlib.sha256(text).hexdigest()


def _fail_unrendered(result: Any) -> NoReturn:
    raise AssertionError("an operation runs through Call.once, which sets how to render")
