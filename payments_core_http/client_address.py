"""Which client a request comes from, also behind proxies (contract §9).

A client may write anything into `X-Forwarded-For`. It is read only if the peer is a configured
proxy, and from the right: each trusted proxy has appended the address that called it, and the
first entry that is not a trusted proxy is the client.

The peer at a Unix socket has no address: servers leave it empty, or write a name or 0.0.0.0. Only
a program of this machine can be there, usually a proxy. Unless it is trusted, its clients are
unknown, and cannot be counted: as one client, they could block one another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

import attrs

from payments_core.limiters.policies import SITE_MULTIPLE

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Proxy = Network | Literal["unix"]
"""Trusted peers: those of a network, or of a Unix socket."""

UNIX: Literal["unix"] = "unix"
_SOCKET_NAMES = frozenset({UNIX, "unix:"})
"""How proxies call a Unix socket in `X-Forwarded-For`; nginx writes the second."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

MAX_FORWARDED_ENTRIES = 32
"""A longer chain of proxies than anyone has: entries further left are ignored."""

_MAX_KEPT, _MAX_KEPT_CHARACTERS = 4_096, 200
"""The maximum number of clients that are remembered, with the maximum length of their chains."""


@attrs.frozen
class CountedNetwork:
    """Addresses that are counted together, and how many times the limit of one client they have."""

    name: str
    multiple: int = 1


def parse_networks(texts: Iterable[str]) -> tuple[Proxy, ...]:
    """Trusted proxies as a deployment configures them: `10.0.0.0/8`, `::1`, or `unix` for the peers
    of a Unix socket. Raises ValueError."""
    return tuple(UNIX if text == UNIX else ipaddress.ip_network(text) for text in texts)


def is_trusted(environ: Mapping[str, Any], trusted: tuple[Proxy, ...]) -> bool:
    """Whether the peer of a request is a trusted proxy."""
    return _trusts(_parse_address(_read_peer(environ)), trusted)


def is_loopback_host(name: str) -> bool:
    """Whether a host is this machine: `localhost`, below it, 127.0.0.0/8 or `::1`."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def identify_client(
    environ: Mapping[str, Any], trusted: tuple[Proxy, ...]
) -> tuple[CountedNetwork, ...]:
    """What the client is counted by: its IPv4 address, or the /64 and the /48 of its IPv6 address.

    A subscriber has a whole /64 of IPv6, and could take a new address for every request; a site
    has a /48. Empty if the client's address is unknown.
    """
    client = _find_client(environ, trusted)
    return () if client is None else _list_networks(client)


def find_address(environ: Mapping[str, Any], trusted: tuple[Proxy, ...]) -> str | None:
    """The client's address as text, for people; None if it is unknown."""
    client = _find_client(environ, trusted)
    return None if client is None else str(client)


def _find_client(environ: Mapping[str, Any], trusted: tuple[Proxy, ...]) -> Address | None:
    peer = _read_peer(environ)
    forwarded = str(environ.get("HTTP_X_FORWARDED_FOR", ""))
    if len(forwarded) > _MAX_KEPT_CHARACTERS:
        return _identify(peer, forwarded, trusted)
    return _identify_often(peer, forwarded, trusted)


def _read_peer(environ: Mapping[str, Any]) -> str:
    peer = environ.get("REMOTE_ADDR") or ""
    return peer.decode("latin-1") if isinstance(peer, bytes) else str(peer)


def _identify(peer: str, forwarded: str, trusted: tuple[Proxy, ...]) -> Address | None:
    client = _parse_address(peer)
    entries = forwarded.split(",")
    for entry in reversed(entries[-MAX_FORWARDED_ENTRIES:]):
        if not _trusts(client, trusted):
            break
        before = _parse_address(entry.strip())
        if before is None and entry.strip() not in _SOCKET_NAMES:
            break  # the client behind this proxy is unknown
        client = before
    return client


def _trusts(peer: Address | None, trusted: tuple[Proxy, ...]) -> bool:
    """Whether this peer is a trusted proxy; None is one without an address."""
    if peer is None:
        return UNIX in trusted
    return any(proxy != UNIX and peer in proxy for proxy in trusted)


_identify_often = lru_cache(maxsize=_MAX_KEPT)(_identify)
"""Identify a client as `_identify` does, and remember those that return."""


def _parse_address(text: str) -> Address | None:
    """An address, perhaps with a port as some proxies append it; None for anything else."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if address.is_unspecified:  # uWSGI calls the peer at a Unix socket so
        return None
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:  # the IPv4 clients of a whole network would share one /64
            return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        return address.ipv4_mapped or address
    return address


@lru_cache(maxsize=_MAX_KEPT)
def _list_networks(address: Address) -> tuple[CountedNetwork, ...]:
    if isinstance(address, ipaddress.IPv4Address):
        return (CountedNetwork(str(address)),)
    return (
        CountedNetwork(_name_network(address, 64)),
        CountedNetwork(_name_network(address, 48), SITE_MULTIPLE),
    )


def _name_network(address: ipaddress.IPv6Address, length: int) -> str:
    host_bits = 128 - length
    return f"{ipaddress.IPv6Address(int(address) >> host_bits << host_bits)}/{length}"
