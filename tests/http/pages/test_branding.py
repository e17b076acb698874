"""A partner's name, logo and color on the page: readable in any color, and nothing else let in."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core_http.pages.colors import (
    DARK_GROUNDS,
    LIGHT_GROUNDS,
    MIN_CONTRAST,
    compute_contrast,
    make_accent,
)
from payments_core_http.pages.routes import _CSS
from tests.http.api_harness import Seen
from tests.http.checkout import Checkout
from tests.http.pages.html import Html
from tests.http.payer_page import Page

COLORS = st.integers(0, 0xFFFFFF).map(lambda number: f"#{number:06x}")


def brand(checkout: Checkout, **branding: Any) -> Seen:
    version = checkout.api.call("GET", "/v2/partners/payment-settings").json["version"]
    body = {"enabled": False, "branding": branding, "version": version}
    return checkout.api.call("PUT", "/v2/partners/payment-settings", body)


def show(page: Page) -> tuple[Html, dict[str, str]]:
    """The page, and the parts of its policy."""
    seen = page.checkout.api.call("GET", f"/pay/{page.code}", auth=None)
    assert seen.status == 200, seen.body
    parts = seen.headers["content-security-policy"].split(";")
    return Html(seen.body, f"/pay/{page.code}"), dict(
        part.strip().partition(" ")[::2] for part in parts
    )


class TestTheColor:
    @given(COLORS)
    def test_can_be_read_whatever_it_is(self, color: str) -> None:
        accent = make_accent(color)
        for shown, grounds in ((accent.light, LIGHT_GROUNDS), (accent.dark, DARK_GROUNDS)):
            assert all(compute_contrast(shown, ground) >= MIN_CONTRAST for ground in grounds)

    @given(COLORS)
    def test_is_kept_where_it_can_be_read(self, color: str) -> None:
        if all(compute_contrast(color, ground) >= MIN_CONTRAST for ground in LIGHT_GROUNDS):
            assert make_accent(color).light == color

    @pytest.mark.parametrize(
        ("one", "other", "contrast"),
        [("#000000", "#ffffff", 21.0), ("#777777", "#ffffff", 4.48), ("#ff0000", "#ffffff", 4.0)],
    )
    def test_contrast_is_that_of_wcag(self, one: str, other: str, contrast: float) -> None:
        assert round(compute_contrast(one, other), 2) == contrast

    def test_the_grounds_are_those_of_the_style_sheet(self, checkout: Checkout) -> None:
        text = checkout.api.call("GET", "/assets/style.css", auth=None).body.decode()
        grounds = re.findall(r"--(?:ground|raised): (#[0-9a-f]{6});", text)
        assert tuple(grounds) == (*LIGHT_GROUNDS, *DARK_GROUNDS)

    def test_is_in_a_style_sheet_and_not_in_the_page(self, checkout: Checkout) -> None:
        page = Page(checkout)
        assert brand(checkout, primaryColor="#FFd700").status == 200
        html, policy = show(page)
        links = [one["href"] for one in html.all("link")]
        assert links == ["/assets/style.css", "/pay/assets/accent.css?color=ffd700"]
        assert policy["style-src"] == "'self'"
        seen = checkout.api.call("GET", str(links[1]), auth=None)
        assert seen.headers["content-type"] == _CSS
        assert b"--accent: #ffd700;" in seen.body
        again = {"If-None-Match": seen.headers["etag"]}
        assert checkout.api.call("GET", str(links[1]), auth=None, headers=again).status == 304

    @pytest.mark.parametrize("color", ["", "fff", "FFD700", "ffd700;}", "%7B%7D", "../../x"])
    def test_a_style_sheet_has_a_color_and_nothing_else(
        self, checkout: Checkout, color: str
    ) -> None:
        path = f"/pay/assets/accent.css?color={color}"
        assert checkout.api.call("GET", path, auth=None).status == 400


class TestTheLogo:
    def test_is_the_one_image_that_the_policy_lets_in(self, checkout: Checkout) -> None:
        page = Page(checkout)
        html, policy = show(page)
        assert list(html.all("img")) == []
        assert "img-src" not in policy
        brand(checkout, name="Shop", logoUrl="https://cdn.shop.example/a/logo.png?v=2#x")
        html, policy = show(page)
        assert policy["img-src"] == "https://cdn.shop.example/a/logo.png"
        assert policy["default-src"] == "'none'"
        [image] = html.all("img")
        assert image["src"] == "https://cdn.shop.example/a/logo.png?v=2#x"
        assert (image["alt"], image["referrerpolicy"]) == ("", "no-referrer")

    def test_stands_beside_the_name_of_the_app_where_no_other_is_given(
        self, checkout: Checkout
    ) -> None:
        page = Page(checkout)
        brand(checkout, logoUrl="https://cdn.shop.example/logo.png")
        html, _ = show(page)
        [image] = html.all("img")
        assert image["alt"] == "", "the name says it"
        assert "Shop" in html.text

    @pytest.mark.parametrize(
        ("url", "source"),
        [
            ("https://a.example", "https://a.example"),
            ("https://a.example?x", "https://a.example"),
            ("https://a.example/x;script-src%20*", "https://a.example/x%3Bscript-src%20*"),
            ("https://a.example/x,default-src", "https://a.example/x%2Cdefault-src"),
            ("https://a.example/'unsafe-inline'", "https://a.example/%27unsafe-inline%27"),
        ],
    )
    def test_no_address_adds_to_the_policy(self, checkout: Checkout, url: str, source: str) -> None:
        page = Page(checkout)
        before = set(show(page)[1])
        assert brand(checkout, logoUrl=url).status == 200
        _, policy = show(page)
        assert set(policy) == before | {"img-src"}
        assert policy["img-src"] == source

    @pytest.mark.parametrize(
        "url",
        [
            "http://shop.example/logo.png", "data:image/png;base64,AA==", "//shop.example/x.png",
            "javascript:alert(1)", "https://a.example/x y", "https://a.example/\"x",
            "https://user@shop.example/logo.png", "https://*/logo.png", "https://*.example/x",
        ],
    )  # fmt: skip
    def test_another_address_is_refused(self, checkout: Checkout, url: str) -> None:
        seen = brand(checkout, logoUrl=url)
        assert seen.status == 400
        assert seen.json["error"]["details"]["fields"][0]["path"] == "branding.logoUrl"
