"""The element for shops: its script for any origin, and a page that only an allowed one frames."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from payments_core_http.pages.element import ELEMENT_WORDS
from payments_core_http.pages.languages import LANGUAGES
from tests.http.api_harness import Seen
from tests.http.checkout import Checkout
from tests.http.mounting.test_without_a_public_url import forget_url
from tests.http.pages.html import Html
from tests.http.payer_page import Page

SHOP = "https://shop.example"
OTHER = "https://shop.example:8443"
ELEMENT = "/checkout/element.js"


def allow(checkout: Checkout, *origins: str) -> None:
    body = {"enabled": False, "allowedOrigins": origins}
    assert checkout.api.call("PUT", "/v2/partners/payment-settings", body).status == 200


def show(page: Page, query: str = "", **more: Any) -> Seen:
    return page.checkout.api.call("GET", f"/pay/{page.code}{query}", auth=None, **more)


def frame(page: Page, origin: str = SHOP) -> Seen:
    return show(page, f"?frame={origin}")


def read_policy(headers: Mapping[str, str]) -> dict[str, str]:
    parts = headers["content-security-policy"].split(";")
    return dict(part.strip().partition(" ")[::2] for part in parts)


class TestTheScript:
    def test_is_a_module_for_pages_of_any_origin(self, checkout: Checkout) -> None:
        seen = checkout.api.call("GET", ELEMENT, auth=None, headers={"Origin": SHOP})
        assert seen.status == 200
        assert seen.headers["content-type"] == "text/javascript; charset=utf-8"
        assert seen.headers["access-control-allow-origin"] == "*"
        assert seen.headers["cross-origin-resource-policy"] == "cross-origin"
        assert seen.headers["cache-control"] == "no-cache"
        again = {"If-None-Match": seen.headers["etag"]}
        known = checkout.api.call("GET", ELEMENT, auth=None, headers=again)
        assert (known.status, known.body) == (304, b"")
        assert known.headers["access-control-allow-origin"] == "*"
        assert len(seen.body) < 16_000

    def test_has_its_texts_in_every_language_of_the_pages(self, checkout: Checkout) -> None:
        script = checkout.api.call("GET", ELEMENT, auth=None).body.decode()
        texts = json.loads(script.partition(" = ")[2].partition(";\n")[0])
        assert texts.keys() == LANGUAGES.keys()
        for tag in LANGUAGES:
            assert texts[tag].keys() == ELEMENT_WORDS.keys()
        assert (texts["en"]["close"], texts["es"]["close"]) == ("Close", "Cerrar")


class TestWhoMayFrameThePage:
    def test_an_allowed_origin_and_no_other(self, checkout: Checkout) -> None:
        page = Page(checkout)
        allow(checkout, SHOP, OTHER)
        for origin in (SHOP, OTHER):
            seen = frame(page, origin)
            assert read_policy(seen.headers)["frame-ancestors"] == origin
            assert "x-frame-options" not in seen.headers
            [main] = Html(seen.body).all("main")
            assert main["data-frame"] == origin

    @pytest.mark.parametrize(
        "query",
        [
            "", "?frame=", "?frame=*", "?frame=https://evil.example", "?frame=https://shop.example/",
            "?frame=HTTPS://shop.example", "?frame=null", "?frame=https://shop.example%20*",
            "?frame=https://shop.example;script-src%20*", "?frame=https://shop.example:443",
        ],
    )  # fmt: skip
    def test_nobody_without_its_exact_origin(self, checkout: Checkout, query: str) -> None:
        page = Page(checkout)
        allow(checkout, SHOP)
        seen = show(page, query)
        assert read_policy(seen.headers)["frame-ancestors"] == "'none'"
        assert seen.headers["x-frame-options"] == "DENY"
        assert SHOP not in seen.headers["content-security-policy"]
        assert b"data-frame" not in seen.body

    def test_nobody_where_no_origin_is_allowed(self, checkout: Checkout) -> None:
        page = Page(checkout)
        for seen in (frame(page), checkout.api.call("GET", f"/pay/short?frame={SHOP}", auth=None)):
            assert read_policy(seen.headers)["frame-ancestors"] == "'none'"
            assert seen.headers["x-frame-options"] == "DENY"

    def test_never_the_dashboard(self, checkout: Checkout) -> None:
        allow(checkout, SHOP)
        seen = checkout.api.call("GET", f"/dashboard/login?frame={SHOP}", auth=None)
        assert read_policy(seen.headers)["frame-ancestors"] == "'none'"
        assert seen.headers["x-frame-options"] == "DENY"

    def test_only_as_long_as_it_is_allowed(self, checkout: Checkout) -> None:
        page = Page(checkout)
        allow(checkout, SHOP)
        tag = frame(page).headers["etag"]
        assert show(page).headers["etag"] != tag, "it is another page"
        body = {"enabled": False, "version": 1}
        assert checkout.api.call("PUT", "/v2/partners/payment-settings", body).status == 200
        seen = show(page, f"?frame={SHOP}", headers={"If-None-Match": tag})
        assert (seen.status, seen.headers["x-frame-options"]) == (200, "DENY")


class TestTheFramedPage:
    def test_leads_to_a_tab_of_its_own_where_wallets_could_pay(self, checkout: Checkout) -> None:
        page = Page(checkout.declare_network("real"))
        allow(checkout, SHOP)
        text = "A wallet in this browser may not work in this frame."
        assert text not in Html(show(page).body).text
        html = Html(frame(page).body)
        assert text in html.text
        [link] = [one for one in html.all("a") if one.get("target")]
        assert (link["target"], link["rel"]) == ("_blank", "noreferrer noopener")
        assert link["href"] == "?lang=en"

    def test_says_nothing_of_wallets_where_none_can_pay(self, checkout: Checkout) -> None:
        page = Page(checkout)
        allow(checkout, SHOP)
        html = Html(frame(page).body)
        assert "frame" not in html.text
        assert [one for one in html.all("a") if one.get("target")] == []

    def test_stays_framed_after_a_form(self, checkout: Checkout) -> None:
        page = Page(checkout)
        allow(checkout, SHOP)
        [target, *_] = [one["action"] for one in Html(frame(page).body).all("form")]
        path = f"/pay/{page.code}{target}&frame={SHOP}"
        seen = checkout.api.call("POST", path, auth=None)
        assert seen.status == 303
        assert parse_qs(urlsplit(seen.headers["location"]).query)["frame"] == [SHOP]


class TestTheLink:
    def test_is_known_to_the_holder_of_the_secret(self, checkout: Checkout) -> None:
        page = Page(checkout)
        assert page.call("GET").json["paymentUrl"] == page.payment["paymentUrl"]

    def test_is_null_without_a_public_url(self, checkout: Checkout) -> None:
        page = Page(checkout)
        forget_url(checkout.api)
        assert page.call("GET").json["paymentUrl"] is None
