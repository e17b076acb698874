"""The URL at which payers and partners reach the service: which ones can be served."""

from __future__ import annotations

import re

LOCAL_URL = "http://127.0.0.1:8080"
"""Where a sandbox is reached unless it is started at another address."""

ROUTE_ROOTS = (
    "assets", "checkout", "dashboard", "docs", "healthz", "openapi", "pay", "providers", "readyz",
    "sdk", "v2"
)  # fmt: skip
"""What the paths of the service's own routes begin with."""

_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_PUBLIC_URL = re.compile(
    r"https?://(?P<host>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
    r"|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\])"
    rf"(?::(?P<port>[1-9][0-9]{{0,4}}))?(?P<path>(?:/{_SEGMENT})*)/?"
)

PUBLIC_URL_RULE = (
    "must be a URL with a scheme, a host and at most a path of letters, digits, `.`, `_` and `-`,"
    " such as https://pay.example.com or https://shop.example.com/payments"
)
PUBLIC_PATH_RULE = (
    "must not have a path that begins as the service's own routes do ("
    + ", ".join(f"/{root}" for root in ROUTE_ROOTS)
    + "): the service could not tell which part of a request's path is its own"
)


def find_host(public_url: str) -> str | None:
    """The host of such a URL; None if it breaks PUBLIC_URL_RULE."""
    parts = _PUBLIC_URL.fullmatch(public_url)
    if parts is None or int(parts["port"] or 1) > 65_535:
        return None
    return parts["host"].strip("[]")


def find_path(public_url: str) -> str:
    """The path below which the service is reached, such as `/payments`; empty without one."""
    parts = _PUBLIC_URL.fullmatch(public_url)
    return "" if parts is None else parts["path"]


def begins_as_a_route(public_url: str) -> bool:
    """Whether the URL breaks PUBLIC_PATH_RULE."""
    first = find_path(public_url)[1:].partition("/")[0]
    return first in ROUTE_ROOTS or first.startswith("openapi")


def require_public_url(public_url: object) -> str:
    """The URL without a slash at its end. Raises ValueError, without the URL: it may have a
    password."""
    if not isinstance(public_url, str) or find_host(public_url) is None:
        raise ValueError(f"public_url {PUBLIC_URL_RULE}")
    if begins_as_a_route(public_url):
        raise ValueError(f"public_url {PUBLIC_PATH_RULE}")
    return public_url.rstrip("/")
