"""Languages: complete catalogs, the choice of one, and how numbers and times are written."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from docs.catalogs import extract_texts, read_catalog, render_updated
from payments_core_http.pages.languages import (
    DEFAULT_LANGUAGE,
    LANGUAGES,
    choose_language,
    get_language,
)
from tests.http.checkout import Checkout
from tests.http.pages.html import Html
from tests.http.payer_page import Page
from tests.shipped import asset_of

TRANSLATED = [tag for tag in LANGUAGES if tag != DEFAULT_LANGUAGE]
USDC = asset_of(8453, "USDC")
NAMED = re.compile(r"%\((\w+)\)s")


@pytest.mark.parametrize("tag", TRANSLATED)
class TestCatalogs:
    def test_every_text_is_translated_and_no_other_is_kept(self, tag: str) -> None:
        texts = {message.id for message in extract_texts() if message.id}
        catalog = {message.id: message for message in read_catalog(tag) if message.id}
        assert catalog.keys() == texts
        assert [id for id, message in catalog.items() if not message.string] == []
        assert [id for id, message in catalog.items() if message.fuzzy] == []

    def test_each_translation_has_the_values_of_its_text(self, tag: str) -> None:
        for message in read_catalog(tag):
            if message.id:
                text, translation = str(message.id), str(message.string)
                assert sorted(NAMED.findall(translation)) == sorted(NAMED.findall(text)), text
                assert NAMED.sub("", translation).count("%") == 0

    def test_the_catalog_is_as_the_command_writes_it(self, tag: str) -> None:
        from docs.catalogs import catalog_path

        assert catalog_path(tag).read_bytes() == render_updated(tag)


class TestTheChoice:
    @pytest.mark.parametrize(
        ("accepted", "tag"),
        [
            (None, "en"),
            ("", "en"),
            ("es", "es"),
            ("es-MX,es;q=0.9,en;q=0.8", "es"),
            ("de, ar;q=0.7, en;q=0.3", "ar"),
            ("en;q=0.2, ar;q=0.9", "ar"),
            ("ar;q=0, es", "es"),
            ("*", "en"),
            ("AR", "ar"),
            ("es;q=x", "en"),
            ("es;q=²", "en"),
            (";;;,,,=q;", "en"),
            ("x" * 10_000 + ",es", "en"),
        ],
    )
    def test_of_what_the_browser_asks_for(self, accepted: str | None, tag: str) -> None:
        assert choose_language(None, accepted).tag == tag

    def test_the_reader_chooses_before_the_browser(self) -> None:
        assert choose_language("es", "ar").tag == "es"
        assert choose_language("../en", "ar").tag == "ar"

    def test_on_the_page_and_on_its_errors(self, checkout: Checkout) -> None:
        page = Page(checkout)
        for path in (f"/pay/{page.code}", "/pay/short"):
            seen = checkout.api.call("GET", f"{path}?lang=ar", auth=None)
            [html] = Html(seen.body).all("html")
            assert html == {"lang": "ar", "dir": "rtl"}
            wanted = {"Accept-Language": "es"}
            seen = checkout.api.call("GET", path, auth=None, headers=wanted)
            [html] = Html(seen.body).all("html")
            assert html == {"lang": "es", "dir": "ltr"}
            assert seen.headers["vary"] == "Accept-Language"

    @pytest.mark.parametrize("tag", LANGUAGES)
    def test_each_is_offered_by_its_own_name(self, checkout: Checkout, tag: str) -> None:
        page = Page(checkout)
        seen = checkout.api.call("GET", f"/pay/{page.code}?lang={tag}", auth=None)
        html = Html(seen.body)
        offered = {one["hreflang"]: one for one in html.all("a") if "hreflang" in one}
        assert offered.keys() == LANGUAGES.keys()
        assert [name for name, one in offered.items() if "aria-current" in one] == [tag]


class TestNumbers:
    @pytest.mark.parametrize(
        ("tag", "amount", "text"),
        [
            ("en", 25_000_000, "25.00\u00a0USDC"),
            ("en", 1_234_567_890_123, "1,234,567.890123\u00a0USDC"),
            ("en", 1, "0.000001\u00a0USDC"),
            ("en", 100_000, "0.10\u00a0USDC"),
            ("es", 25_500_000, "25,50\u00a0USDC"),
            ("en", 10**77 + 1, f"{10**71:,}.000001\u00a0USDC"),
        ],
    )
    def test_of_an_amount(self, tag: str, amount: int, text: str) -> None:
        assert get_language(tag).format_amount(amount, USDC) == text

    @pytest.mark.parametrize("tag", LANGUAGES)
    def test_no_digit_is_lost_in_any_language(self, tag: str) -> None:
        for amount in (1, 999_999, 1_000_001, 123_456_789_012_345_678):
            text = get_language(tag).format_amount(amount, USDC).removesuffix("\u00a0USDC")
            digits = "".join(one for one in text if one.isdigit())
            written = Decimal(amount).scaleb(-6)
            assert Decimal(digits.lstrip("0") or "0") == Decimal(
                f"{written:f}".rstrip("0").replace(".", "").lstrip("0")
            )

    @pytest.mark.parametrize(
        ("tag", "text"),
        [
            ("en", "Sep 21, 2026, 2:13\u202fPM UTC"),
            ("es", "21 sept 2026, 14:13 UTC"),
            ("ar", "21\u200f/09\u200f/2026، 2:13 م UTC"),
        ],
    )
    def test_of_a_time(self, tag: str, text: str) -> None:
        assert get_language(tag).format_instant(1_790_000_000_000) == text
