"""What browsers on other origins may do (contract §3 "CORS"). Never with cookies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OPEN_PATHS: tuple[str, ...] = ("/v2/client/",)
"""Paths that a browser calls from any origin."""

ALLOWED_HEADERS = (
    "Authorization, X-Service-Payment-Secret, Idempotency-Key, Service-Version, Content-Type"
)
EXPOSED_HEADERS = (
    "Service-Version, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, "
    "ETag, X-Request-Id, Idempotent-Replayed"
)
_PREFLIGHT_LIVES_S = 600

_ANSWER = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": EXPOSED_HEADERS,
}
_NONE: Mapping[str, str] = {}


def headers_for(path: str) -> Mapping[str, str]:
    """The headers of every answer under an open path, errors included."""
    return _ANSWER if path.startswith(OPEN_PATHS) else _NONE


def preflight_headers(environ: Mapping[str, Any], path: str, allowed: str) -> Mapping[str, str]:
    """The headers that answer a preflight; none where it is not one, or the path is not open."""
    asks = "HTTP_ORIGIN" in environ and "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in environ
    if not asks or not path.startswith(OPEN_PATHS):
        return _NONE
    return {
        "Access-Control-Allow-Methods": allowed,
        "Access-Control-Allow-Headers": ALLOWED_HEADERS,
        "Access-Control-Max-Age": str(_PREFLIGHT_LIVES_S),
    }
