"""URLs that people are sent to: each field refuses each fault with the sentence of that fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_type_hints
from urllib.parse import urlsplit

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.payment_settings.origins import find_url_fault
from payments_core.validation.fields import Url
from payments_core.validation.urls import find_url_form_fault
from payments_core_http.routes import ROUTES
from tests.http.api_harness import ApiHarness

OF_FORM: Mapping[str, str] = {
    "shop.example/ok": "begins with https:// or http://",
    "//shop.example/ok": "begins with https:// or http://",
    "/ok": "begins with https:// or http://",
    "javascript:alert(1)": "begins with https:// or http://",
    "ftp://shop.example/": "begins with https:// or http://",
    " https://shop.example/": "begins with https:// or http://",
    "HTTPS://shop.example/ok": "lower case: https://",
    "Https://shop.example/ok": "lower case: https://",
    "hTTp://shop.example/ok": "lower case: http://",
    "https://bücher.example/ok": "Punycode",
    "https://shop.example。/ok": "Punycode",
    "https://пример.рф": "Punycode",
    "https://shop.example/größe": "percent-encoded",
    "https://shop.example/?name=José": "percent-encoded",
    "https://shop.example/#\N{PARTY POPPER}": "percent-encoded",
    "https://shop.example/?id={CHECKOUT_SESSION_ID}": "{; it is written as %7B, and placeholders",
    "https://shop.example/}": "}; it is written as %7D, and placeholders",
    "https://{shop}.example/": "{; it is written as %7B, and placeholders",
    "https://shop.example/a|b": "|; it is written as %7C",
    "https://shop.example/a^b": "^; it is written as %5E",
    "https://shop.example/a`b": "`; it is written as %60",
    'https://shop.example/a"b': '"; it is written as %22',
    "https://shop.example/<b>": "<; it is written as %3C",
    "https://shop.example\\@evil.example/": "\\; it is written as %5C",
    "https://shop.example/a b": "spaces",
    "https://shop.example/ok ": "spaces",
    "https://shop.example/ok\n": "spaces or control",
    "https://shop.example/\u202eok": "spaces or control",
    "https://shop.example/\u00a0": "spaces or control",
    "https://": "must name a host",
    "https:///ok": "must name a host",
    "https://?a=1": "must name a host",
}
"""Faults of the text, in every URL field."""

OF_PAYERS: Mapping[str, str] = {
    "http://shop.example/ok": "must be https, or http on this machine",
    "https://user:password@shop.example/": "credentials",
    "https://user@shop.example/": "credentials",
    "https://shop.example:0/": "a port from 1 to 65535",
    "https://shop.example:65536/": "a port from 1 to 65535",
    "https://shop.example:0443/": "a port from 1 to 65535",
    "https://shop.example:/": "a port from 1 to 65535",
    "https://shop.example:x/": "a port from 1 to 65535",
    "https://[::1]:/": "a port from 1 to 65535",
    "https://-shop.example/": "a valid host",
    "https://*.example/": "a valid host",
    "https://shop..example/": "a valid host",
    "https://127.1/": "a valid host",
    "https://0x7f.1/": "a valid host",
    "https://[::1/": "a valid host",
    "https://[::1]x/": "a valid host",
    "https://[0:0::1]/": "a valid host",
    "https://shop%2eexample/": "a valid host",
}
"""Faults of the host, where a payer is sent to it."""

VALID = (
    "https://shop.example", "https://shop.example/", "https://SHOP.example/Ok?a=1&b=%7B#c",
    "https://xn--bcher-kva.example/gr%C3%B6%C3%9Fe?at=a@b", "https://shop.example:8443/ok",
    "https://shop.example:443/", "https://[::1]:8443/", "https://93.184.216.34/",
    "http://localhost:3000/ok", "http://127.0.0.1:80/", "https://shop.example/a[0]=1;(b)!*'~",
)  # fmt: skip

OTHER_RULES = {("CreateWebhook", "url"), ("UpdateWebhook", "url")}
"""URLs that we call ourselves: `webhooks/destinations.py`."""


def url_fields(annotation: Any) -> Iterator[tuple[str, str, Any]]:
    """The class, name and annotation of each URL within a body."""
    if attrs.has(annotation):
        hints = get_type_hints(annotation, include_extras=True)
        for field in attrs.fields(annotation):
            if field.name.lower().endswith("url"):
                yield annotation.__name__, field.name, hints[field.name]
            yield from url_fields(hints[field.name])
    for part in get_args(annotation):
        yield from url_fields(part)


def test_every_url_field_has_the_rule() -> None:
    found = {field[:2]: field[2] for row in ROUTES for field in url_fields(row.body)}
    assert {name for _, name in found} >= {"successUrl", "cancelUrl", "returnUrl", "logoUrl"}
    for field, annotation in found.items():
        assert field in OTHER_RULES or Url in (annotation, *get_args(annotation)), field


@pytest.mark.parametrize("text", [*OF_FORM, *OF_PAYERS])
def test_a_url_for_payers_is_refused_with_its_own_fault(text: str) -> None:
    fault = find_url_fault(text, local_allowed=True)
    assert fault is not None
    assert {**OF_FORM, **OF_PAYERS}[text] in fault


@pytest.mark.parametrize("text", VALID)
def test_a_valid_url_is_accepted(text: str) -> None:
    assert find_url_fault(text, local_allowed=True) is None


PATHS: Mapping[str, tuple[str, str, Any]] = {
    "successUrl": ("POST", "/v2/payments", lambda api, url: {
        "intent": "receive", "amount": "1.00", "successUrl": url,
        "destination": {"type": "account", "accountId": api.account_id},
    }),
    "cancelUrl": ("POST", "/v2/payments", lambda api, url: {
        "intent": "receive", "amount": "1.00", "cancelUrl": url,
        "destination": {"type": "account", "accountId": api.account_id},
    }),
    "branding.logoUrl": ("PUT", "/v2/partners/payment-settings", lambda api, url: {
        "version": 0, "enabled": False, "branding": {"logoUrl": url},
    }),
    "returnUrl": ("POST", "/v2/accounts/{}/verifications", lambda api, url: {"returnUrl": url}),
    "returnUrl of a capability": (
        "POST", "/v2/accounts/{}/capability-activations",
        lambda api, url: {"capability": "us_bank_payout", "returnUrl": url},
    ),
}  # fmt: skip


@pytest.mark.parametrize("field", PATHS)
def test_the_answer_names_the_field_and_the_fault(api: ApiHarness, field: str) -> None:
    method, path, body = PATHS[field]
    faults = OF_FORM if field.startswith("returnUrl") else {**OF_FORM, **OF_PAYERS}
    for text, words in faults.items():
        seen = api.call(method, path.format(api.account_id), body(api, text), key="k")
        assert seen.status == 400, (text, seen.body)
        assert seen.faults.keys() == {field.partition(" ")[0]}
        assert words in seen.faults[field.partition(" ")[0]], text


@given(st.text(st.characters(max_codepoint=0x2FF) | st.sampled_from("/?#@:[]%{}\\"), max_size=12))
def test_what_is_accepted_is_read_alike_by_others(rest: str) -> None:
    text = f"https://shop.example{rest}"
    assert (find_url_form_fault(text) is None) == (
        text.isascii() and text.isprintable() and not set(' "<>\\^`{|}') & set(text)
    )
    if find_url_fault(text, local_allowed=False) is None:
        assert (urlsplit(text).hostname or "").startswith("shop.example")
        assert urlsplit(text).username is None
