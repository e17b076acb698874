"""Where webhooks may go, row by row, and that nothing slips through between the rows."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.errors import ValidationFailed, WebhookUrlNotAllowed
from payments_core.webhooks.destinations import (
    REFUSED_PREFIXES,
    DestinationForbidden,
    RefusedPrefix,
    ResolutionFailed,
    parse_url,
    refusal_reason,
    require_public_addresses,
    unwrap_ipv4,
)

PUBLIC = ("8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:80e::200e")
GAPS = (
    "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b:1::1", "fec0::1", "168.63.129.16",
    "192.0.0.192", "2002:7f00:1::", "2002:a9fe:a9fe::1", "224.0.0.1", "239.255.255.250",
    "ff02::1", "ff0e::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1",
    "::127.0.0.1", "::", "0.0.0.0", "255.255.255.255", "100.100.100.200", "fd00:ec2::254",
    "169.254.170.2", "2001:0:1::1", "2001:db8::1", "3fff::1", "5f00::1", "100::1", "4000::1",
)  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_pass(address: str) -> None:
    assert require_public_addresses([address]) == (address,)


@pytest.mark.parametrize("address", GAPS)
def test_the_known_gaps_are_closed(address: str) -> None:
    with pytest.raises(DestinationForbidden):
        require_public_addresses([address])
    with pytest.raises(DestinationForbidden):
        require_public_addresses([*PUBLIC, address])


@pytest.mark.parametrize("row", REFUSED_PREFIXES, ids=lambda row: str(row.network))
def test_each_row_is_refused_from_its_first_address_to_its_last(row: RefusedPrefix) -> None:
    for address in (row.network[0], row.network[-1]):
        assert refusal_reason(address) is not None


def test_a_mapped_or_translated_public_address_is_used_as_ipv4() -> None:
    assert require_public_addresses(["::ffff:8.8.8.8", "64:ff9b::808:808"]) == ("8.8.8.8",)


@pytest.mark.parametrize("text", ["fe80::1%eth0", "2606:4700::1%1", "localhost", "1.2.3"])
def test_what_is_not_a_plain_address_is_refused(text: str) -> None:
    with pytest.raises(DestinationForbidden):
        require_public_addresses([text])


def test_no_address_at_all_is_a_failed_resolution() -> None:
    with pytest.raises(ResolutionFailed):
        require_public_addresses([])


@given(st.ip_addresses())
def test_nothing_passes_that_is_not_global(address: IPv4Address | IPv6Address) -> None:
    plain = unwrap_ipv4(address)
    if refusal_reason(plain) is None:
        assert plain.is_global
        assert not plain.is_multicast


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:0:0", "64:ff9b::"]))
def test_a_wrapped_address_is_judged_as_what_it_wraps(inner: IPv4Address, wrapper: str) -> None:
    wrapped = IPv6Address(int(IPv6Address(wrapper)) | int(inner))
    assert refusal_reason(unwrap_ipv4(wrapped)) == refusal_reason(inner)


def test_the_sandbox_lets_loopback_through_and_nothing_else_private() -> None:
    assert require_public_addresses(["127.0.0.1", "::1", "127.8.8.8"], local_allowed=True)
    for address in GAPS:
        if not unwrap_ipv4(ip_address(address)).is_loopback:
            with pytest.raises(DestinationForbidden):
                require_public_addresses([address], local_allowed=True)
    with pytest.raises(DestinationForbidden):
        require_public_addresses(["192.168.1.1"], local_allowed=True)


def test_an_operators_prefix_holds_in_a_local_sandbox_too() -> None:
    extra = (RefusedPrefix.of("127.0.0.53/32", "the resolver"),)
    assert require_public_addresses(["127.0.0.1"], local_allowed=True, extra=extra)
    for address in ("127.0.0.53", "::ffff:127.0.0.53"):
        with pytest.raises(DestinationForbidden, match="the resolver"):
            require_public_addresses([address], local_allowed=True, extra=extra)


def test_operators_add_prefixes() -> None:
    extra = (RefusedPrefix.of("8.8.0.0/16", "ours"),)
    with pytest.raises(DestinationForbidden, match="ours"):
        require_public_addresses(["8.8.8.8"], extra=extra)
    with pytest.raises(ValueError):
        RefusedPrefix.of("8.8.8.8/16", "has host bits")


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://a.example", "https://a.example/"),
        ("HTTPS://A.Example:443/", "https://a.example/"),
        ("https://a.example.:8443/x?", "https://a.example:8443/x"),
        ("https://a.example/x#y", "https://a.example/x"),
        ("https://a.example/%7euser/%2f?q=%3d", "https://a.example/~user/%2F?q=%3D"),
        ("https://a.example/a/./b/../c/..", "https://a.example/a/"),
        ("https://a.example/../../x", "https://a.example/x"),
        ("https://a.example/a/%2e%2e/%2E/b%2f..", "https://a.example/b%2F.."),
        ("https://a.example//x", "https://a.example//x"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        ("https://[2606:4700:4700:0::1111]/", "https://[2606:4700:4700::1111]/"),
        ("https://my_host.example/", "https://my_host.example/"),
    ],
)
def test_urls_of_one_destination_have_one_normal_form(url: str, normal: str) -> None:
    assert parse_url(url).normalized_url == normal
    assert parse_url(normal).normalized_url == normal


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/", "ftp://a.example/", "https://user:pw@a.example/",
        "https://user@a.example/", "https://@a.example/", "javascript://a.example/",
    ],
)  # fmt: skip
def test_a_url_that_breaks_a_rule_is_not_allowed(url: str) -> None:
    with pytest.raises(WebhookUrlNotAllowed):
        parse_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "", "a.example", "//a.example/", "https://", "https:///x", "https://a.example:0/",
        "https://a.example:99999/", "https://a.example:x/", "https://a b.example/",
        "https://a.example/\r\nHost: b", "https://a..example/", "https://-a.example/",
        "https://a%2eexample/", "https://[fe80::1%25eth0]/", "https://[::1", "https://a\\b.example/",
        "https://" + "a" * 64 + ".example/", "https://a.example/" + "x" * 2048, "https://.../",
    ],
)  # fmt: skip
def test_what_is_not_a_url_is_named_as_a_wrong_field(url: str) -> None:
    with pytest.raises(ValidationFailed) as raised:
        parse_url(url)
    assert raised.value.fields[0].path == "url"


@pytest.mark.parametrize(
    "host",
    [
        "stra\xdfe.example", "STRA\u1e9eE.example", "\u03b2\u03cc\u03bb\u03bf\u03c2.example",
        "a\u200cb.example", "a\u200db.example", "a\u00adb.example", "a\u200bb.example",
        "a\u2060b.example", "a\ufeffb.example", "a\ufe0fb.example", "a\u034fb.example",
        "a\u061cb.example", "a\u115fb.example", "\u3164.example", "a\u180eb.example",
        "a\u202eb.example", "a\U000e0100b.example", "a\U000e0041b.example", "a.exam\u00adple",
    ],
    ids=ascii,
)  # fmt: skip
def test_a_host_that_standards_read_in_two_ways_is_refused(host: str) -> None:
    """IDNA 2003 reads \xdf as ss and drops what is ignorable; IDNA 2008 and browsers do not."""
    with pytest.raises(ValidationFailed) as raised:
        parse_url(f"https://{host}/hook")
    (field,) = raised.value.fields
    assert (field.path, "xn--" in field.message) == ("url", True)


def test_the_ascii_form_of_such_a_host_is_another_destination() -> None:
    target = parse_url("https://xn--strae-oqa.example/hook")
    assert target.host == "xn--strae-oqa.example" != parse_url("https://strasse.example/hook").host


def test_http_passes_in_a_local_sandbox() -> None:
    target = parse_url("http://localhost:8080/hook", local_allowed=True)
    assert (target.scheme, target.host_header) == ("http", "localhost:8080")
    with pytest.raises(WebhookUrlNotAllowed):
        parse_url("ftp://localhost/", local_allowed=True)


@given(st.text(max_size=50))
def test_no_text_breaks_the_parser(text: str) -> None:
    for url in (text, "https://" + text):
        try:
            target = parse_url(url)
        except (ValidationFailed, WebhookUrlNotAllowed):
            continue
        assert parse_url(target.normalized_url).normalized_url == target.normalized_url
        assert target.path.isascii()
