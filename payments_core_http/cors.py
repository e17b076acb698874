"""What browsers on other origins may do (contract §3 "CORS"). Never with cookies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OPEN_PATHS: tuple[str, ...] = (
    "/v2/client/",
    "/v2/public/payments/",
    "/v2/public/payment-links/",
    "/checkout/",  # the element: a module of another origin is fetched with CORS
)
"""Paths that a browser calls from any origin."""

ALLOWED_HEADERS = (
    "Authorization, X-Service-Payment-Secret, Idempotency-Key, Service-Version, Content-Type"
)
EXPOSED_HEADERS = (
    "Service-Version, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, "
    "ETag, X-Request-Id, Idempotent-Replayed"
)
_PREFLIGHT_MAX_AGE_S = 600

_OPEN_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": EXPOSED_HEADERS,
}
_NO_HEADERS: Mapping[str, str] = {}


def headers_for_origin(origin: str | None) -> Mapping[str, str]:
    """The headers of every response to an origin that a shop has admitted; none to any other."""
    if origin is None:
        return _NO_HEADERS
    return {**_OPEN_HEADERS, "Access-Control-Allow-Origin": origin, "Vary": "Origin"}


def headers_for(path: str) -> Mapping[str, str]:
    """The headers of every response under an open path, errors included."""
    return _OPEN_HEADERS if path.startswith(OPEN_PATHS) else _NO_HEADERS


def preflight_headers(
    environ: Mapping[str, Any], path: str, allowed: str, *, is_admitted: bool = False
) -> Mapping[str, str]:
    """The headers of the response to a preflight; none if it is not one, or if the path is not open
    and nobody admits the browser's origin to it (`is_admitted`)."""
    asks = "HTTP_ORIGIN" in environ and "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in environ
    if not asks or not (is_admitted or path.startswith(OPEN_PATHS)):
        return _NO_HEADERS
    return {
        "Access-Control-Allow-Methods": allowed,
        "Access-Control-Allow-Headers": ALLOWED_HEADERS,
        "Access-Control-Max-Age": str(_PREFLIGHT_MAX_AGE_S),
    }
