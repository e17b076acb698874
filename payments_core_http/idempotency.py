"""The header `Idempotency-Key`: whose key it is, and for which request (contract §4)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

from payments_core.engine.idempotency.record import (
    KEY_PATTERN,
    KEY_RULE,
    RETENTION_MS,
    IdempotentRequest,
)
from payments_core.errors import IdempotencyKeyRequired, ValidationFailed
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import build_request
from payments_core_http.routing import Route, Row
from payments_core_http.wire.json_text import canonicalize

_is_key = re.compile(KEY_PATTERN, re.ASCII).fullmatch


def read_key(route: Route, environ: Mapping[str, Any]) -> str | None:
    """The key, opaque to us, with its quotes. Raises IdempotencyKeyRequired, ValidationFailed."""
    if route.idempotency == "ignored":
        return None
    key: str | None = environ.get("HTTP_IDEMPOTENCY_KEY")
    if key is None:
        if route.idempotency == "required":
            raise IdempotencyKeyRequired()
        return None
    return check_key(key)


def check_key(key: str) -> str:
    """The key, if it is valid. Raises ValidationFailed."""
    if not _is_key(key):
        raise ValidationFailed.at("Idempotency-Key", f"must be {KEY_RULE}")
    return key


def build_idempotent(
    route: Row,
    authority: Authority | None,
    key: str | None,
    path_ids: Mapping[str, str],
    document: Any,
    retention_ms: int = RETENTION_MS,
) -> IdempotentRequest | None:
    """What identifies this request for idempotency, if it has a principal and a key.

    `ApiCall.run_idempotent` adds how to render its response.
    """
    if authority is None or key is None:
        return None
    fingerprint = _compute_fingerprint(route, path_ids, document)
    return build_request(authority, key, fingerprint, retention_ms, _fail_unrendered)


def _compute_fingerprint(route: Row, path_ids: Mapping[str, str], document: Any) -> str:
    """The request without its version and its headers; the leading 1 is the recipe's number."""
    ids = [path_ids[name] for name in route.path_names]
    body = None if document is None else canonicalize(document)
    text = msgspec.json.encode((route.method, route.path, ids, body))
    return "1:" + hashlib.sha256(text).hexdigest()


def _fail_unrendered(result: Any) -> NoReturn:
    raise AssertionError("an operation runs through `run_idempotent`, which sets how to render")
