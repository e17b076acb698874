"""Web origins and URLs, as partners write them down and browsers send them.

An origin is compared byte by byte with the header `Origin`, so only the one text that browsers
send for it is accepted (RFC 6454): lower case, no path, and no port that the scheme has anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv6Address

MAX_ORIGIN_CHARACTERS = 300
MAX_URL_CHARACTERS = 2_048
DEFAULT_PORTS = {"https": "443", "http": "80"}

_ORIGIN = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([1-9][0-9]{0,4}))?", re.ASCII)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
# No top-level domain is a number, but browsers read such names as IPv4 addresses.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
# Printable ASCII without the characters that browsers repair or drop: a backslash becomes a slash.
_URL = re.compile(r"(https?)://([^/?#]*)(?:[/?#][!#-;=?-\[\]_a-z~]*)?", re.ASCII | re.IGNORECASE)


def find_origin_fault(text: str, *, local_allowed: bool) -> str | None:
    """The error of an origin, as a sentence that follows its path; None if it is valid.

    It is https, or with `local_allowed` http on the machine's own addresses.
    """
    if len(text) > MAX_ORIGIN_CHARACTERS:
        return f"must have at most {MAX_ORIGIN_CHARACTERS} characters"
    match = _ORIGIN.fullmatch(text)
    if match is None:
        return (
            "must be scheme://host or scheme://host:port as browsers send it: in lower case, "
            "without path, slash or wildcard"
        )
    scheme, host, port = match.groups()
    if not _is_host(host):
        return "must name a host as browsers send it"
    if port is not None and int(port) > 65_535:
        return "must have a port up to 65535"
    if port == DEFAULT_PORTS[scheme]:
        return "must leave out the default port of its scheme, as browsers do"
    if scheme == "http" and not (local_allowed and _is_local(host)):
        return "must be https" + (", or http on this machine" if local_allowed else "")
    return None


def find_url_fault(text: str, *, local_allowed: bool) -> str | None:
    """The error of a URL that a payer is sent to; None if it is valid.

    It is https, or http as an origin may be, and holds no credentials.
    """
    if len(text) > MAX_URL_CHARACTERS:
        return f"must have at most {MAX_URL_CHARACTERS} characters"
    match = _URL.fullmatch(text)
    if match is None:
        return "must be an absolute https URL of printable ASCII, without quotes or backslashes"
    scheme, authority = match[1].lower(), match[2].lower()
    if "@" in authority:
        return "must not contain credentials"
    host = authority.removesuffix(":" + DEFAULT_PORTS[scheme])
    return find_origin_fault(f"{scheme}://{host}", local_allowed=local_allowed)


def is_under_origin(url: str, origins: Iterable[str]) -> bool:
    """Whether a valid URL begins exactly with one of these origins.

    The rest begins with `/`, `?` or `#`: so the URL's authority is exactly the origin's.
    """
    return any(
        url == origin or url.startswith((f"{origin}/", f"{origin}?", f"{origin}#"))
        for origin in origins
    )


def _is_host(host: str) -> bool:
    if host.startswith("["):
        try:
            return IPv6Address(host[1:-1]).compressed == host[1:-1]
        except AddressValueError:
            return False
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _is_ipv4(host)
    return len(host) <= 253 and all(map(_LABEL.fullmatch, labels))


def _is_ipv4(host: str) -> bool:
    try:
        return str(IPv4Address(host)) == host
    except AddressValueError:
        return False


def _is_local(host: str) -> bool:
    if host == "[::1]" or host == "localhost" or host.endswith(".localhost"):
        return True
    return _is_ipv4(host) and IPv4Address(host).is_loopback
