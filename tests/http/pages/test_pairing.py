"""WalletConnect on the page: only where an operator has supplied its script, and what it widens."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any
from urllib.parse import urlencode

import attrs
import pytest

from payments_core import ValidationFailed, shipped_networks
from payments_core.settings import Settings, WalletConnect
from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.api_harness import Seen
from tests.http.checkout import BASE, Checkout
from tests.http.pages.html import Html
from tests.http.payer_page import Page

PROJECT = "0123456789abcdef0123456789abcdef"
URI = f"wc:{'ab' * 32}@2?expiryTimestamp=1790000300&relay-protocol=irn&symKey={'cd' * 32}"


def supply(script: bytes, **changes: Any) -> WalletConnect:
    """What an operator's settings say of a script."""
    digest = base64.b64encode(hashlib.sha384(script).digest()).decode()
    return WalletConnect(PROJECT, script, f"sha384-{digest}", **changes)


def offer_walletconnect(
    checkout: Checkout, script: bytes = b"'use strict';", **changes: Any
) -> Checkout:
    """The shop, whose operator has supplied WalletConnect's script."""
    service: Any = checkout.api.service
    service.settings = attrs.evolve(service.settings, walletconnect=supply(script, **changes))
    return checkout


ASKED = "?wallet=walletconnect"


def look(page: Page, query: str = "") -> Seen:
    return page.checkout.api.call("GET", f"/pay/{page.code}{query}", auth=None)


def ask_code(page: Page, uri: str, code: str | None = None) -> Seen:
    return page.checkout.api.call(
        "POST",
        f"/pay/{code or page.code}/pairing-code",
        auth=None,
        raw=urlencode({"uri": uri}).encode(),
        environ={"CONTENT_TYPE": "application/x-www-form-urlencoded"},
    )


def policy_of(seen: Seen) -> dict[str, str]:
    """The directives of a page's policy."""
    rows = seen.headers["content-security-policy"].split("; ")
    return {name: sources for name, _, sources in (row.partition(" ") for row in rows)}


def test_a_page_without_its_settings_has_nothing_of_it(checkout: Checkout) -> None:
    page = Page(checkout.declare_network("real"))
    for seen in (look(page), look(page, ASKED)):
        assert b"pairing" not in seen.body
        assert b"walletconnect" not in seen.body
        policy = policy_of(seen)
        assert (policy["connect-src"], policy["trusted-types"]) == ("'self'", "'none'")
    script = checkout.api.call("GET", "/pay/assets/walletconnect.js", auth=None)
    assert (script.status, ask_code(page, URI).status) == (404, 404)


def test_the_page_that_is_asked_for_is_widened_by_the_relay_and_the_node_alone(
    checkout: Checkout,
) -> None:
    page = Page(checkout.declare_network("real"))
    before = policy_of(look(page))
    offer_walletconnect(checkout)
    offered = look(page)
    assert policy_of(offered) == before, "nobody has asked for it"
    [link] = [one for one in Html(offered.body).all("a") if ASKED in str(one.get("href"))]
    assert PROJECT.encode() not in offered.body
    seen = look(page, str(link["href"]))
    assert policy_of(seen) == {
        **before,
        "connect-src": "'self' wss://relay.walletconnect.org https://mainnet.base.org",
        "trusted-types": "walletconnect",
    }
    [part] = [one for one in Html(seen.body).all("div") if one.get("id") == "pairing"]
    assert part["data-project-id"] == PROJECT
    assert str(part["data-integrity"]).startswith("sha384-")
    assert b"walletconnect.js" not in seen.body, "it is loaded when the payer asks for it"
    missing = checkout.api.call("GET", f"/pay/short{ASKED}", auth=None)
    assert policy_of(missing)["connect-src"] == "'self'"
    assert offered.headers["etag"] != seen.headers["etag"]


def test_a_page_on_which_nothing_is_due_is_not_widened(checkout: Checkout) -> None:
    page = Page(offer_walletconnect(checkout.declare_network("real")))
    checkout.transfer(page.payment["escrow"]["address"], "25")
    seen = look(page, ASKED)
    assert policy_of(seen)["connect-src"] == "'self'"
    assert b"pairing" not in seen.body


def test_a_node_without_tls_is_not_for_browsers() -> None:
    base = attrs.evolve(shipped_networks()[BASE], rpc_url="http://node.example")
    plain = Checkout(MemoryStorage(), networks=shipped_networks().merge(base))
    seen = look(Page(offer_walletconnect(plain.declare_network("real"))), ASKED)
    assert b"pairing" not in seen.body


@pytest.mark.parametrize("kind", ["simulated", "local"])
def test_nobody_is_paired_where_the_network_is_not_the_public_one(
    checkout: Checkout, kind: Any
) -> None:
    page = Page(offer_walletconnect(checkout).declare_network(kind))
    seen = look(page, ASKED)
    assert b"pairing" not in seen.body
    assert ASKED.encode() not in seen.body
    assert policy_of(seen)["trusted-types"] == "'none'"


def test_the_script_is_the_operators_own(checkout: Checkout) -> None:
    offer_walletconnect(checkout, b"window.one = 1;")
    seen = checkout.api.call("GET", "/pay/assets/walletconnect.js", auth=None)
    assert (seen.status, seen.body) == (200, b"window.one = 1;")
    assert seen.headers["content-type"].startswith("text/javascript")
    again = checkout.api.call(
        "GET",
        "/pay/assets/walletconnect.js",
        auth=None,
        headers={"If-None-Match": seen.headers["etag"]},
    )
    assert again.status == 304


def test_a_code_is_drawn_for_the_holder_of_the_link(
    checkout: Checkout, caplog: pytest.LogCaptureFixture
) -> None:
    page = Page(offer_walletconnect(checkout))
    seen = ask_code(page, URI)
    assert seen.status == 200
    assert len(re.findall(b"<svg", seen.body)) == 1
    assert seen.headers["cache-control"] == "no-store"
    assert "cdcdcd" not in caplog.text + seen.body.decode()
    assert ask_code(page, URI, code="A" * 40).status == 404


@pytest.mark.parametrize("uri", ["", "https://shop.example", "wc:" + "a" * 700, "wc:é", "wc: a"])
def test_no_other_text_is_drawn(checkout: Checkout, uri: str) -> None:
    assert ask_code(Page(offer_walletconnect(checkout)), uri).status == 400


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"script": b"another"}, "script has another hash"),
        ({"integrity": ""}, "integrity must be sha256-"),
        ({"integrity": "md5-AAAA"}, "integrity must be sha256-"),
        ({"project_id": "a b"}, "project_id must be"),
        ({"relay_url": "https://relay.example"}, "relay_url must be a wss:// URL"),
        ({"relay_url": "wss://relay.example; script-src *"}, "relay_url must be a wss:// URL"),
        ({"relay_url": "wss://relay.example?a=1"}, "relay_url must be a wss:// URL"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        attrs.evolve(supply(b"'use strict';"), **changes)


def test_the_service_takes_no_other_object() -> None:
    with pytest.raises(ValidationFailed):
        Settings(walletconnect="https://cdn.example/wc.js")  # type: ignore[arg-type]
