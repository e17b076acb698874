"""Destinations of webhooks: the rules for URLs and for addresses (contract §8, architecture
"Transport").

The address rules are a table of prefixes of our own, since `ipaddress.is_global` lets multicast,
wrapped metadata addresses and others through. They apply at creation and before every attempt;
the connection then goes to an address that was checked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import ClassVar, Protocol
from urllib.parse import SplitResult, urlsplit

import attrs

from payments_core.errors import ValidationFailed, WebhookUrlNotAllowed

MAX_URL_CHARACTERS = 2_048
DEFAULT_PORTS = {"https": 443, "http": 80}

IpAddress = IPv4Address | IPv6Address


@attrs.frozen
class RefusedPrefix:
    """Addresses that webhooks never go to, and why."""

    checked_by_class: ClassVar[bool] = True

    network: IPv4Network | IPv6Network
    reason: str

    @classmethod
    def of(cls, prefix: str, reason: str) -> RefusedPrefix:
        """From text such as `10.0.0.0/8`. Raises ValueError for a text that is not a prefix."""
        return cls(ip_network(prefix), reason)


def _parse_prefixes(*entries: tuple[str, str]) -> tuple[RefusedPrefix, ...]:
    return tuple(RefusedPrefix.of(prefix, reason) for prefix, reason in entries)


CLOUD_METADATA = _parse_prefixes(
    ("169.254.169.254/32", "cloud metadata"),
    ("169.254.170.2/32", "container credentials"),
    ("168.63.129.16/32", "Azure's host"),
    ("100.100.100.200/32", "Alibaba Cloud metadata"),
    ("192.0.0.192/32", "Oracle Cloud metadata"),
    ("fd00:ec2::254/128", "cloud metadata"),
)
LOOPBACK = _parse_prefixes(("127.0.0.0/8", "loopback"), ("::1/128", "loopback"))

REFUSED_PREFIXES = (
    *CLOUD_METADATA,
    *LOOPBACK,
    *_parse_prefixes(
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved or broadcast"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
        ("2001::/23", "protocol assignments, Teredo among them"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
    ),
)
"""The first matching row gives the reason."""

GLOBAL_UNICAST = IPv6Network("2000::/3")
"""All other IPv6 is refused, whether or not a row names it."""

NAT64 = IPv6Network("64:ff9b::/96")

_ISATAP = 0x5EFE
_ISATAP_MASK = 0xFCFF_FFFF  # its bits for "universal" and "group" may have any value


@attrs.frozen
class Destination:
    """A webhook URL that follows the URL rules, in the parts that a connection needs."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        """Host and port as a `Host` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def normalized_url(self) -> str:
        """The normalised form, equal for two URLs of one destination."""
        return f"{self.scheme}://{self.host_header}{self.path}"


class ResolutionFailed(Exception):
    """A name could not be resolved: an ordinary network failure for an attempt."""


class ResolverOverloaded(ResolutionFailed):
    """Too many other names are being looked up; this name is not at fault."""


class DestinationForbidden(Exception):
    """At least one address of a name is forbidden for webhooks."""


class Resolver(Protocol):
    """Resolves names to addresses."""

    def resolve(
        self, host: str, port: int, timeout_s: float, *, environment_id: str
    ) -> Sequence[str]:
        """Every address of a name, as texts, in the order to try.

        Raises ResolutionFailed, also when the answer takes longer than `timeout_s`, and
        ResolverOverloaded if the environment, or everybody, has too many look-ups in progress.
        """


def resolve_destination(
    resolver: Resolver, destination: Destination, timeout_s: float, *, environment_id: str
) -> Sequence[str]:
    """The addresses of a destination. A host that is an address itself is not looked up.

    Raises as `Resolver.resolve`.
    """
    if is_address(destination.host):
        return (destination.host,)
    return resolver.resolve(
        destination.host, destination.port, timeout_s, environment_id=environment_id
    )


@lru_cache(maxsize=1_024)
def is_address(host: str) -> bool:
    """Whether a host of a destination is an IP address, and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


# The URL.

_UNSAFE = re.compile(r"[\x00-\x20\x7f\\\ud800-\udfff]")
# `urlsplit` drops text outside the brackets, and accepts a name inside them.
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(:[0-9]*)?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# No top-level domain is a number, but resolvers read such names as IPv4 addresses.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# Characters that IDNA 2003, as in Python, reads differently from IDNA 2008 and browsers: the
# deviations of UTS 46, and the ignorable ones that it drops (Unicode's
# Default_Ignorable_Code_Point). The name that a partner sees would differ from the one that is
# called.
_READ_IN_TWO_WAYS = re.compile(
    "[\xdf\u1e9e\u03c2\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u1806\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@lru_cache(maxsize=1_024)
def parse_url(url: str, *, local_allowed: bool = False) -> Destination:
    """The destination that a URL names.

    Raises ValidationFailed for a text that is not a URL of at most 2,048 characters, and
    WebhookUrlNotAllowed for a URL that breaks a rule: https only, and no credentials.
    """
    if len(url) > MAX_URL_CHARACTERS:
        raise ValidationFailed.at("url", f"must have at most {MAX_URL_CHARACTERS} characters")
    if _UNSAFE.search(url):
        raise ValidationFailed.at("url", "must not contain spaces or control characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValidationFailed.at("url", "is not a valid URL") from None
    if not parts.scheme or not parts.hostname:
        raise ValidationFailed.at("url", "must be an absolute URL with a host")
    if parts.scheme != "https" and not (local_allowed and parts.scheme == "http"):
        raise WebhookUrlNotAllowed("it must begin with https://")
    if "@" in parts.netloc:
        raise WebhookUrlNotAllowed("it must not contain credentials")
    if not _AUTHORITY.fullmatch(parts.netloc):
        raise ValidationFailed.at("url", "has an invalid host name")
    if port == 0:
        raise ValidationFailed.at("url", "must not use port 0")
    return Destination(
        parts.scheme,
        _normalize_host(parts.hostname),
        DEFAULT_PORTS[parts.scheme] if port is None else port,
        _normalize_path(parts),
    )


def _normalize_host(host: str) -> str:
    wrong = ValidationFailed.at("url", "has an invalid host name")
    if "%" in host:  # an IPv6 zone, or an escape that hides the name
        raise wrong
    if _READ_IN_TWO_WAYS.search(host):
        raise ValidationFailed.at(
            "url",
            "must name its host in the ASCII form, xn--…: it contains a character that not all "
            "standards read alike",
        )
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    try:
        name = host.removesuffix(".").encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise wrong from None
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise wrong
    if _NUMBER.fullmatch(labels[-1]):  # 127.1, 0x7f.1, 2130706433, or a dotted form in disguise
        raise wrong
    return name


def _normalize_path(parts: SplitResult) -> str:
    query = f"?{_normalize_escapes(parts.query)}" if parts.query else ""
    return _remove_dot_segments(_normalize_escapes(parts.path)) + query  # an escaped dot is a dot


def _remove_dot_segments(path: str) -> str:
    """`.` and `..` resolved (RFC 3986 5.2.4); never empty."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments and segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)


def _normalize_escapes(text: str) -> str:
    """Escapes in upper case, without unnecessary ones (RFC 3986 6.2.2)."""

    def unescape(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if character in _UNRESERVED else match[0].upper()

    plain = re.sub(r"%([0-9A-Fa-f]{2})", unescape, text)
    return "".join(
        c if c.isascii() else "".join(f"%{byte:02X}" for byte in c.encode()) for c in plain
    )


# The addresses.


def refusal_reason(
    address: IpAddress, *, local_allowed: bool = False, extra: Iterable[RefusedPrefix] = ()
) -> str | None:
    """Why webhooks may not go to an address; None if they may. Unwrap it first."""
    local = local_allowed and _find_reason(address, LOOPBACK) is not None
    reason = _find_reason(address, extra if local else (*extra, *REFUSED_PREFIXES))
    if reason is not None or local or isinstance(address, IPv4Address):
        return reason
    if address not in GLOBAL_UNICAST:
        return "outside of global unicast"
    if (int(address) >> 32) & _ISATAP_MASK == _ISATAP:
        return "ISATAP, which leads to the IPv4 address inside"
    return None


def _find_reason(address: IpAddress, table: Iterable[RefusedPrefix]) -> str | None:
    # `in` returns False, without an error, between the two versions.
    return next((row.reason for row in table if address in row.network), None)


def unwrap_ipv4(address: IpAddress) -> IpAddress:
    """The IPv4 address inside a mapped or NAT64 address; others unchanged."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in NAT64:
            return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def require_public_addresses(
    addresses: Sequence[str],
    *,
    local_allowed: bool = False,
    extra: Iterable[RefusedPrefix] = (),
) -> tuple[str, ...]:
    """The addresses of a name that are allowed, in the same order.

    Raises DestinationForbidden if any of them is refused: a name with one public and one private
    address is an attack or a mistake, and we do not choose among them. Raises ResolutionFailed if
    there is none.
    """
    refused = tuple(extra)
    vetted = dict.fromkeys(
        _require_public_address(text, local_allowed, refused) for text in addresses
    )
    if not vetted:
        raise ResolutionFailed("the name has no address")
    return tuple(vetted)


@lru_cache(maxsize=4_096)
def _require_public_address(
    text: str, local_allowed: bool, extra: tuple[RefusedPrefix, ...]
) -> str:
    if "%" in text:  # before it is unwrapped, which would drop the zone
        raise DestinationForbidden(f"{text} has a zone id")
    try:
        address = unwrap_ipv4(ip_address(text))
    except ValueError:
        raise DestinationForbidden(f"{text} is not a plain IP address") from None
    reason = refusal_reason(address, local_allowed=local_allowed, extra=extra)
    if reason is not None:
        raise DestinationForbidden(f"{text} is refused ({reason})")
    return str(address)
