"""Hundreds of thousands of addresses against the address rules; run by test_destinations_flood.

It is a program of its own, so that other Pythons can run it: `ipaddress` differs between them.
The rules are written down here a second time, as plain ranges that have nothing of the table's.
Usage: python -m tests.webhooks.address_flood SEED COUNT; it prints JSON.
"""

from __future__ import annotations

import json
import random
import sys
from bisect import bisect_right
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from payments_core.errors import ValidationFailed, WebhookUrlNotAllowed
from payments_core.webhooks.destinations import (
    DestinationForbidden,
    parse_url,
    refusal_reason,
    require_public_addresses,
    unwrap_ipv4,
)

Address = IPv4Address | IPv6Address

FORBIDDEN_4 = (
    ("0.0.0.0", "0.255.255.255"),
    ("10.0.0.0", "10.255.255.255"),
    ("100.64.0.0", "100.127.255.255"),
    ("127.0.0.0", "127.255.255.255"),
    ("168.63.129.16", "168.63.129.16"),
    ("169.254.0.0", "169.254.255.255"),
    ("172.16.0.0", "172.31.255.255"),
    ("192.0.0.0", "192.0.0.255"),
    ("192.0.2.0", "192.0.2.255"),
    ("192.88.99.0", "192.88.99.255"),
    ("192.168.0.0", "192.168.255.255"),
    ("198.18.0.0", "198.19.255.255"),
    ("198.51.100.0", "198.51.100.255"),
    ("203.0.113.0", "203.0.113.255"),
    ("224.0.0.0", "255.255.255.255"),
)
FORBIDDEN_6 = (
    ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
)
"""Sorted and apart from each other. What wraps an IPv4 address is dealt with before them."""

PREFIXES = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "100.100.100.200/32", "127.0.0.0/8"),
    *("168.63.129.16/32", "169.254.0.0/16", "169.254.169.254/32", "169.254.170.2/32"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32"),
    *("192.0.0.10/32", "192.0.0.170/31", "192.0.0.192/32", "192.0.2.0/24", "192.31.196.0/24"),
    *("192.52.193.0/24", "192.88.99.0/24", "192.88.99.2/32", "192.168.0.0/16", "192.175.48.0/24"),
    *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "233.252.0.0/24"),
    *("239.0.0.0/8", "240.0.0.0/4", "255.255.255.255/32", "8.8.8.0/24", "93.184.216.0/24"),
    *("::/128", "::1/128", "::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"),
    *("64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2000::/3", "2001::/23", "2001::/32"),
    *("2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32"),
    *("2001:4:112::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32"),
    *("2002::/16", "2002:7f00::/24", "2002:a9fe::/32", "2002:c0a8::/32", "2606:4700::/32"),
    *("2620:4f:8000::/48", "2a00:1450::/32", "3ffe::/16", "3fff::/20", "4000::/3", "5f00::/16"),
    *("fc00::/7", "fd00::/8", "fd00:ec2::254/128", "fd20:ce::254/128", "fe80::/10", "fec0::/10"),
    *("ff00::/8", "ff02::/16", "ff0e::/16"),
)
"""Those of IANA's registries, of our rules and of a few public networks, overlaps included."""

INNER_4 = (
    *("127.0.0.1", "10.0.0.1", "169.254.169.254", "168.63.129.16", "192.168.1.1", "0.0.0.0"),
    *("100.100.100.200", "224.0.0.1", "255.255.255.255", "8.8.8.8", "93.184.216.34"),
)
WRAPPERS = (
    *("::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::", "64:ff9b:1:ffff::"),
    *("2606:4700::5efe:0:0", "2606:4700::200:5efe:0:0", "2606:4700::300:5efe:0:0"),
    *("fe80::5efe:0:0", "2001:db8::5efe:0:0", "2606:4700::", "2606:4700::ffff:0:0"),
)


HOSTS_REFUSED = (
    # IPv4 addresses as resolvers and browsers read them, and `ipaddress` does not.
    *("2130706433", "017700000001", "0x7f000001", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0.0.1"),
    *("0x7f.1", "0X7F.1", "127.0.0.0x1", "0", "0x", "1.2.3.4.5", "256.256.256.256", "127.0.0.01"),
    *("4294967297", "example.1", "example.0x1f", "a.b.09"),
    # The same with dots and digits that IDNA makes plain.
    *("127.0.0.1.", "8.8.8.8.", "127。0。0。1", "127．0．0．1", "127｡0｡0｡1", "①②⑦.0.0.1"),
    *("１２７.0.0.1", "²¹³.1", "127.0.0.1。", "0ｘ7f.1"),
    # Escapes, zones, and what stands beside or instead of an IPv6 address.
    *("127%2e0%2e0%2e1", "%31%32%37.0.0.1", "a%00.example", "a%2f.example", "％31.example"),
    *("[fe80::1%25eth0]", "[fe80::1%eth0]", "[::1]x.example", "x.example[::1]", "[::1][::2]"),
    *("[v1.x.example]", "[vf.1]", "[127.0.0.1]", "[x.example]", "[]", "[::1", "::1]", "[[::1]]"),
    *("[::127.1]", "[::1].", "[::ffff:0x7f000001]", "::1", "a::b", "1::"),
    # Invalid names.
    *(".", "..", "a..example", ".example", "a.example..", "-a.example", "a-.example"),
    *("a!b.example", "a*.example", "*", "a,b", "a;b", "a'b", "a(b", "a+b", "a=b", "a&b", "$a"),
    *("~a", '"a"', "<a>"),
    *("a|b", "a^b", "a`b", "{a}", "a" * 64, ".".join(["a" * 60] * 5), "\u00ad", "\ud800.example"),
    *("a\\b", "\\", "a b", "a\tb", "a\nb", "a\r.example", "\x00", "a\x7f", "a\u2028.example"),
    *("a／b.example", "a？b.example", "a＃b.example", "a＠b.example", "a：80", "℀.example"),
    # Credentials, and what only looks like a host.
    *("@", "u@", "@a.example", "u@a.example", "u:p@a.example", "u@127.0.0.1", "a@b@c.example"),
    *("8.8.8.8@127.0.0.1", "a.example%40b.example", "a.example:443@b.example", "a.example\\@b"),
    # Ports.
    *("a.example:0", "a.example:65536", "a.example:-1", "a.example:+1", "a.example:x"),
    *("a.example:1:2", "a.example:٣", "a.example:１", "a.example: 1", "a.example:1.5", ":443", ":"),
    *("[::1]:x", "[::1]:0", "[::1]443"),
)
"""What may not stand where a URL has its host, whatever `urlsplit` of this Python makes of it."""


def main() -> None:
    """Flood the rules, and print what was found."""
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    accepted = [ascii(host) for host in HOSTS_REFUSED if accepts(f"https://{host}/hook")]
    about = {"python": sys.version.split()[0], "accepted": accepted}
    print(json.dumps({**about, **flooded(seed, count)}))


def accepts(url: str) -> bool:
    """Whether an endpoint may have the URL, as far as its text goes."""
    try:
        parse_url(url)
    except (ValidationFailed, WebhookUrlNotAllowed):
        return False
    return True


def flooded(seed: int, count: int) -> dict[str, object]:
    """How many addresses were tried and how many passed, and every fault, up to a few."""
    faults: list[str] = []
    tried = passed = 0
    for address in stream(random.Random(seed), count):
        tried += 1
        plain = unwrap_ipv4(address)
        reason = refusal_reason(plain)
        wrong = fault_of(address, plain, reason)
        # As a resolver gives it: text. Slower, so not each of those far from every border.
        if not wrong and (tried < 20_000 or tried % 16 == 0):
            wrong = fault_of_text(address, plain, reason)
        if wrong:
            faults.append(f"{address}: {wrong}")
        passed += reason is None
    return {"tried": tried, "passed": passed, "faults": faults[:20]}


def fault_of(address: Address, plain: Address, reason: str | None) -> str | None:
    """What is wrong with the answer to an address; None if it is right."""
    if reason is None and not plain.is_global:
        return "passes, and `ipaddress` says that it is not global"
    if reason is None and (plain.is_multicast or plain.is_private or plain.is_reserved):
        return "passes, and is multicast, private or reserved"
    forbidden = is_forbidden(address)
    if forbidden == (reason is None):
        return f"should be {'refused' if forbidden else 'let through'}, and was not ({reason})"
    return None


def fault_of_text(address: Address, plain: Address, reason: str | None) -> str | None:
    try:
        vetted = require_public_addresses([str(address)])
    except DestinationForbidden:
        return None if reason is not None else "as text it is refused"
    return None if reason is None and vetted == (str(plain),) else f"as text it becomes {vetted}"


def is_forbidden(address: Address) -> bool:
    """The rules once more."""
    number = int(address)
    if isinstance(address, IPv4Address):
        return _within(number, _STARTS_4, _ENDS_4)
    if number >> 32 in (0xFFFF, 0x64FF9B << 64):  # v4-mapped, NAT64
        return _within(number & 0xFFFF_FFFF, _STARTS_4, _ENDS_4)
    isatap = number >> 32 & 0xFFFF_FFFF in (0x5EFE, 0x100_5EFE, 0x200_5EFE, 0x300_5EFE)
    return isatap or _within(number, _STARTS_6, _ENDS_6)


def _within(number: int, starts: list[int], ends: list[int]) -> bool:
    at = bisect_right(starts, number) - 1
    return at >= 0 and number <= ends[at]


_STARTS_4 = [int(IPv4Address(first)) for first, _ in FORBIDDEN_4]
_ENDS_4 = [int(IPv4Address(last)) for _, last in FORBIDDEN_4]
_STARTS_6 = [int(IPv6Address(first)) for first, _ in FORBIDDEN_6]
_ENDS_6 = [int(IPv6Address(last)) for _, last in FORBIDDEN_6]


# What is tried.


def stream(chance: random.Random, count: int) -> Iterator[Address]:
    """`count` addresses: every border first, then random ones, most of them near something."""
    made = 0
    for address in borders():
        made += 1
        yield address
    blocks = [_block(prefix) for prefix in PREFIXES]
    wrappers = [int(IPv6Address(wrapper)) for wrapper in WRAPPERS]
    while made < count:
        made += 1
        kind = chance.random()
        if kind < 0.25:
            yield IPv4Address(chance.getrandbits(32))
        elif kind < 0.40:
            yield IPv6Address(0x2 << 124 | chance.getrandbits(125))
        elif kind < 0.50:
            yield IPv6Address(chance.getrandbits(128))
        elif kind < 0.65:
            yield IPv6Address(chance.choice(wrappers) | chance.getrandbits(32))
        else:
            version, start, size = chance.choice(blocks)
            # Inside, or as far before or after it as it is long.
            yield _address(version, start + chance.randrange(-size, 2 * size))


def borders() -> Iterator[Address]:
    """Each prefix's first and last address, and their neighbours; each wrapped address."""
    for prefix in PREFIXES:
        version, start, size = _block(prefix)
        for number in (start - 1, start, start + 1, start + size - 2, start + size - 1):
            yield _address(version, number)
        yield _address(version, start + size)
    for wrapper in WRAPPERS:
        for inner in INNER_4:
            yield IPv6Address(int(IPv6Address(wrapper)) | int(IPv4Address(inner)))
    for version, start, size in map(_block, PREFIXES):
        if version == 4:  # each of their borders in a wrapping of either kind
            for number in (start - 1, start, start + size - 1, start + size):
                inside = number % 2**32
                yield IPv6Address(0xFFFF << 32 | inside)
                yield IPv6Address(0x64FF9B << 96 | inside)


def _block(prefix: str) -> tuple[int, int, int]:
    text, _, length = prefix.partition("/")
    if ":" in text:
        return 6, int(IPv6Address(text)), 1 << (128 - int(length))
    return 4, int(IPv4Address(text)), 1 << (32 - int(length))


def _address(version: int, number: int) -> Address:
    return IPv4Address(number % 2**32) if version == 4 else IPv6Address(number % 2**128)


if __name__ == "__main__":
    main()
