"""Web origins and URLs, as partners write them down and browsers send them.

An origin is compared byte by byte with the header `Origin`, so only the one text that browsers
send for it is accepted (RFC 6454): lower case, no path, and no port that the scheme has anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from payments_core.validation.urls import find_url_form_fault

MAX_ORIGIN_CHARACTERS = 300
MAX_URL_CHARACTERS = 2_048
DEFAULT_PORTS = {"https": "443", "http": "80"}
_MUST_BE_HTTPS = {False: "must be https", True: "must be https, or http on this machine"}

_ORIGIN = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([1-9][0-9]{0,4}))?", re.ASCII)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
# No top-level domain is a number, but browsers read such names as IPv4 addresses.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)


def find_origin_fault(text: str, *, local_allowed: bool) -> str | None:
    """The error of an origin, as a sentence that follows its path; None if it is valid.

    It is https, or with `local_allowed` http on the machine's own addresses.
    """
    if len(text) > MAX_ORIGIN_CHARACTERS:
        return f"must have at most {MAX_ORIGIN_CHARACTERS} characters"
    match = _ORIGIN.fullmatch(text)
    if match is None:
        return (
            "must be scheme://host or scheme://host:port as browsers send it: in lower case, with "
            "an international name in Punycode (xn--…), without path, slash or wildcard"
        )
    scheme, host, port = match.groups()
    if not _is_host(host):
        return "must name a host as browsers send it"
    if port is not None and int(port) > 65_535:
        return "must have a port up to 65535"
    if port == DEFAULT_PORTS[scheme]:
        return "must leave out the default port of its scheme, as browsers do"
    if scheme == "http" and not (local_allowed and _is_local(host)):
        return _MUST_BE_HTTPS[local_allowed]
    return None


def find_url_fault(text: str, *, local_allowed: bool) -> str | None:
    """The error of a URL that a payer is sent to; None if it is valid.

    It is https, or http as an origin may be, and holds no credentials.
    """
    if len(text) > MAX_URL_CHARACTERS:
        return f"must have at most {MAX_URL_CHARACTERS} characters"
    if fault := find_url_form_fault(text):
        return fault
    scheme, _, rest = text.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0].lower()
    if "@" in authority:
        return "must not contain credentials"
    host, colon, port = authority.partition("]:" if authority.startswith("[") else ":")
    host += "]" if colon == "]:" else ""
    if not _is_host(host):
        return "must name a valid host: a domain name, or an address as browsers write it"
    if colon and not (_PORT.fullmatch(port) and int(port) <= 65_535):
        return "must have a port from 1 to 65535, or none"
    if scheme == "http" and not (local_allowed and _is_local(host)):
        return _MUST_BE_HTTPS[local_allowed]
    return None


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
            return host.endswith("]") and IPv6Address(host[1:-1]).compressed == host[1:-1]
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
