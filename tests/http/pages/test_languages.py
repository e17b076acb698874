"""Languages: complete catalogs, the choice of one, and how numbers and times are written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
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

ROOM: Mapping[int, Sequence[str]] = {
    10: ("Copy",),
    14: ("Copied", "Not copied"),
    18: ("Wallet", "Another token", "Card or bank", "Scan to pay", "Address only"),
    28: (
        "Open in wallet",
        "Get a new offer",
        "Show the price",
        "Show where to send it",
        "Stay on this page",
        "Print the receipt",
        "Back to the payment",
        "Look again",
        "Pay in full",
        "Pay too little",
        "Pay too much",
        "Pay twice",
        "Pay too late",
        "Add 20 blocks",
        "Let the time end",
    ),
    40: ("Pay with the wallet of this browser", "Undo the newest transfer (reorg)"),
}
"""How many columns a text may take where the page has little room: by the side of a value, as one
of three tabs, on a button of one line and of two. A Chinese character takes two."""

LONGER = 1.7
SPARE = 4
"""How much longer than in English any text may be: so many times, and so many columns."""


def count_columns(text: str) -> int:
    """The columns of a text without the values that are filled in."""
    return sum(
        2 if unicodedata.east_asian_width(one) in "WF" else not unicodedata.combining(one)
        for one in NAMED.sub("", text)
    )


def forms_of(text: str | Sequence[str]) -> list[str]:
    """A text, or the forms of one that counts."""
    return [text] if isinstance(text, str) else list(text)


@pytest.mark.parametrize("tag", TRANSLATED)
class TestCatalogs:
    def test_every_text_is_translated_and_no_other_is_kept(self, tag: str) -> None:
        texts = {message.id for message in extract_texts() if message.id}
        catalog = {message.id: message for message in read_catalog(tag) if message.id}
        assert catalog.keys() == texts
        empty = [id for id, message in catalog.items() if not all(forms_of(message.string))]
        assert empty == []
        assert [id for id, message in catalog.items() if message.fuzzy] == []

    def test_no_text_is_left_in_english(self, tag: str) -> None:
        same = {
            id
            for message in read_catalog(tag)
            for id in forms_of(message.id)
            if id in forms_of(message.string) and NAMED.sub("", id).strip(" :,")
        }
        assert same <= {"Wallet"}

    def test_each_translation_has_the_values_of_its_text(self, tag: str) -> None:
        for message in read_catalog(tag):
            if message.id:
                [expected] = {tuple(sorted(NAMED.findall(id))) for id in forms_of(message.id)}
                for translation in forms_of(message.string):
                    assert tuple(sorted(NAMED.findall(translation))) == expected, message.id
                    assert NAMED.sub("", translation).count("%") == 0

    def test_there_is_a_form_for_each_number(self, tag: str) -> None:
        catalog = read_catalog(tag)
        counting = [message for message in catalog if not isinstance(message.id, str)]
        assert len(counting) >= 3
        assert {len(forms_of(message.string)) for message in counting} == {catalog.num_plurals}

    def test_no_text_is_too_long_for_its_place(self, tag: str) -> None:
        room = {text: columns for columns, texts in ROOM.items() for text in texts}
        catalog = {
            id: message
            for message in read_catalog(tag)
            if message.id
            for id in forms_of(message.id)
        }
        assert room.keys() <= catalog.keys()
        for id, message in catalog.items():
            allowed = room.get(id, LONGER * count_columns(id) + SPARE)
            for text in forms_of(message.string):
                assert count_columns(text) <= allowed, text

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
            ("nl, ar;q=0.7, en;q=0.3", "ar"),
            ("en;q=0.2, ar;q=0.9", "ar"),
            ("ar;q=0, es", "es"),
            ("*", "en"),
            ("AR", "ar"),
            ("pt-PT", "pt"),
            ("zh-CN,zh;q=0.9", "zh"),
            ("nl, de-AT;q=0.8, fr;q=0.9", "fr"),
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
        assert choose_language("pt-BR", "ar").tag == "pt"
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

    @pytest.mark.parametrize(
        ("tag", "lang", "direction"),
        [
            ("en", "en", "ltr"),
            ("es", "es", "ltr"),
            ("ar", "ar", "rtl"),
            ("fr", "fr", "ltr"),
            ("de", "de", "ltr"),
            ("pt", "pt-BR", "ltr"),
            ("zh", "zh-Hans", "ltr"),
        ],
    )
    def test_a_page_says_which_form_of_the_language_it_has(
        self, checkout: Checkout, tag: str, lang: str, direction: str
    ) -> None:
        seen = checkout.api.call("GET", f"/pay/short?lang={tag}", auth=None)
        assert list(Html(seen.body).all("html")) == [{"lang": lang, "dir": direction}]

    @pytest.mark.parametrize("tag", LANGUAGES)
    def test_each_is_offered_by_its_own_name(self, checkout: Checkout, tag: str) -> None:
        page = Page(checkout)
        seen = checkout.api.call("GET", f"/pay/{page.code}?lang={tag}", auth=None)
        html = Html(seen.body)
        offered = {one["hreflang"]: one for one in html.all("a") if "hreflang" in one}
        assert offered.keys() == LANGUAGES.keys()
        assert [name for name, one in offered.items() if "aria-current" in one] == [tag]


class TestPluralForms:
    @pytest.mark.parametrize(
        ("tag", "texts"),
        [
            ("en", {1: "0 of 1 confirmation", 12: "0 of 12 confirmations"}),
            ("fr", {1: "0 sur 1 confirmation", 2: "0 sur 2 confirmations"}),
            ("pt", {1: "0 de 1 confirmação", 2: "0 de 2 confirmações"}),
            ("ar", {3: "0 من 3 تأكيدات", 12: "0 من 12 تأكيدًا", 100: "0 من 100 تأكيد"}),
            ("zh", {1: "0/1 次确认", 12: "0/12 次确认"}),
        ],
    )
    def test_of_a_counted_thing(self, tag: str, texts: Mapping[int, str]) -> None:
        for number, text in texts.items():
            counted = get_language(tag).translate_count(
                "%(blocks)s of %(wanted)s confirmation",
                "%(blocks)s of %(wanted)s confirmations",
                number,
                blocks=0,
                wanted=number,
            )
            assert re.sub("[\u2068\u2069]", "", counted) == text


class TestNumbers:
    @pytest.mark.parametrize(
        ("tag", "amount", "text"),
        [
            ("en", 25_000_000, "25.00\u00a0USDC"),
            ("en", 1_234_567_890_123, "1,234,567.890123\u00a0USDC"),
            ("en", 1, "0.000001\u00a0USDC"),
            ("en", 100_000, "0.10\u00a0USDC"),
            ("es", 25_500_000, "25,50\u00a0USDC"),
            ("fr", 1_234_500_000, "1\u202f234,50\u00a0USDC"),
            ("de", 1_234_500_000, "1.234,50\u00a0USDC"),
            ("pt", 1_234_500_000, "1.234,50\u00a0USDC"),
            ("zh", 1_234_500_000, "1,234.50\u00a0USDC"),
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
            ("fr", "21 sept. 2026, 14:13 UTC"),
            ("de", "21.09.2026, 14:13 UTC"),
            ("pt", "21 de set. de 2026 14:13 UTC"),
            ("zh", "2026年9月21日 14:13 UTC"),
            ("ar", "21\u200f/09\u200f/2026، 2:13 م UTC"),
        ],
    )
    def test_of_a_time(self, tag: str, text: str) -> None:
        assert get_language(tag).format_instant(1_790_000_000_000) == text
