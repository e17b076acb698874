"""The URL at which payers and partners reach the service: which ones can be served."""

from __future__ import annotations

import re

LOCAL_URL = "http://127.0.0.1:8080"
"""What links begin with unless a deployment says where it is reached."""

_PUBLIC_URL = re.compile(
    r"https?://(?P<host>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
    r"|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\])"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?/?"
)

PUBLIC_URL_RULE = (
    "must be a URL with a scheme and a host only, such as https://pay.example.com: the pages do"
    " not work below a path"
)


def find_host(public_url: str) -> str | None:
    """The host of such a URL; None if it breaks PUBLIC_URL_RULE."""
    parts = _PUBLIC_URL.fullmatch(public_url)
    if parts is None or int(parts["port"] or 1) > 65_535:
        return None
    return parts["host"].strip("[]")


def require_public_url(public_url: object) -> str:
    """The URL without a slash at its end. Raises ValueError, without the URL: it may have a
    password."""
    if not isinstance(public_url, str) or find_host(public_url) is None:
        raise ValueError(f"public_url {PUBLIC_URL_RULE}")
    return public_url.rstrip("/")
