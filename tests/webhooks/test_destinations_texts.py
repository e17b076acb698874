"""What people write where a URL has its host: odd addresses, odd names, odd ports."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.errors import ValidationFailed, WebhookUrlNotAllowed
from payments_core.webhooks.destinations import (
    DestinationForbidden,
    parse_url,
    require_public_addresses,
)
from tests.webhooks.address_flood import HOSTS_REFUSED


@pytest.mark.parametrize("host", HOSTS_REFUSED, ids=ascii)
@pytest.mark.parametrize("local_allowed", [False, True])
def test_an_odd_host_is_refused_and_named_as_the_urls_fault(host: str, local_allowed: bool) -> None:
    for url in (f"https://{host}/hook", f"https://{host}"):
        with pytest.raises((ValidationFailed, WebhookUrlNotAllowed)) as raised:
            parse_url(url, local_allowed=local_allowed)
        if isinstance(raised.value, ValidationFailed):
            assert [fault.path for fault in raised.value.fields] == ["url"]


@pytest.mark.parametrize(
    "url",
    [
        "https:\\\\a.example/", "https:/a.example/", "https:a.example", "https:///a.example/",
        "///a.example/", "\thttps://a.example/", " https://a.example/", "https://a.example/ ",
        "https://a.example/\n", "https://a.example/\ud800", "https://a.example/?q=\udfff",
        "https ://a.example/", "hxxps://a.example/", "data:text/plain,x", "file:///etc/passwd",
        "gopher://a.example/", "https%3A//a.example/", "blob:https://a.example/",
    ],
    ids=ascii,
)  # fmt: skip
def test_what_is_not_an_https_url_is_refused(url: str) -> None:
    with pytest.raises((ValidationFailed, WebhookUrlNotAllowed)):
        parse_url(url)


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("https://a.example#@b.example/", "a.example", 443, "/"),
        ("https://a.example?@b.example/", "a.example", 443, "/?@b.example/"),
        ("https://a.example/@b.example", "a.example", 443, "/@b.example"),
        ("https://a.example/http://b.example", "a.example", 443, "/http://b.example"),
        ("https://a.example:/", "a.example", 443, "/"),
        ("https://a.example:00443/", "a.example", 443, "/"),
        ("https://a.example:65535/", "a.example", 65535, "/"),
        ("https://a.example.", "a.example", 443, "/"),
        ("https://a。example/", "a.example", 443, "/"),
        ("https://EXAMPLE。com/", "example.com", 443, "/"),
        ("https://1a.example/", "1a.example", 443, "/"),
        ("https://127.0.0.1.example/", "127.0.0.1.example", 443, "/"),
        ("https://0x7f.example/", "0x7f.example", 443, "/"),
        ("https://1.0x7g/", "1.0x7g", 443, "/"),
        ("https://xn--p1ai.xn--p1ai/", "xn--p1ai.xn--p1ai", 443, "/"),
        ("https://[2606:4700::1]:8443/", "2606:4700::1", 8443, "/"),
        ("https://[2606:4700::8.8.8.8]/", "2606:4700::808:808", 443, "/"),
        ("https://8.8.8.8:8443/", "8.8.8.8", 8443, "/"),
    ],
)
def test_an_honest_url_is_read_as_every_browser_reads_it(
    url: str, host: str, port: int, path: str
) -> None:
    target = parse_url(url)
    assert (target.host, target.port, target.path) == (host, port, path)
    assert parse_url(target.normalized_url) == target


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "8.8.8.8 ", " 8.8.8.8", "8.8.8.8\n", "8.8.8.8\0", "8.8.8", "8.8.8.8.", "8.8.8.08",
        "0x8.8.8.8", "134744072", "٨.8.8.8", "８.8.8.8", "8.8.8.8/32", "8.8.8.8:443", "[::1]",
        "2606:4700::1%eth0", "2606:4700::1%", "::ffff:8.8.8.8%1", "64:ff9b::808:808%eth0",
        "2606:4700::1/128", "2606:4700:::1", "2606:4700::1::2", "localhost", "a.example",
    ],
    ids=ascii,
)  # fmt: skip
def test_what_a_resolver_says_and_is_not_a_plain_address_is_forbidden(text: str) -> None:
    for addresses in ([text], ["8.8.8.8", text]):
        with pytest.raises(DestinationForbidden):
            require_public_addresses(addresses, local_allowed=True)


PIECES = st.sampled_from(
    ["127", "0", "1", "0x7f", "0177", ".", "。", "．", "[", "]", ":", "::", "@", "%", "%2e", "%00",
     "a", "A", "ß", "①", "-", "_", "/", "\\", "?", "#", "443", "xn--", "example", "v1.", "ffff",
     "\u00ad", "\u200d", "\ufeff", "\ud800", " ", "\t"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=9).map("".join))
def test_no_mixture_of_pieces_becomes_a_host_that_is_read_in_two_ways(host: str) -> None:
    try:
        target = parse_url(f"https://{host}/")
    except (ValidationFailed, WebhookUrlNotAllowed):
        return
    assert target.host.isascii()
    assert not set(target.host) & set("@%[]/\\?# \t")
    if ":" in target.host:
        assert str(ip_address(target.host)) == target.host
    elif target.host.rpartition(".")[2][:1].isdigit():
        last = target.host.rpartition(".")[2]
        # Either a whole IPv4 address, or a label that is not a number of any kind.
        assert last.isdigit() is _is_ipv4(target.host)
        assert not last.startswith("0x") or set(last[2:]) - set("0123456789abcdef")
    assert parse_url(target.normalized_url) == target


def _is_ipv4(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
