"""The checkout's card in a real browser: what is seen first on each device, and what it does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from tests.http.pages.browser import DESKTOP, PHONE, needs_chromium, serve
from tests.http.pages.scenes import SCENES, send
from tests.http.pages.wallet import ANNOUNCE
from tests.http.payer_page import Page

pytestmark = [needs_chromium, pytest.mark.slow]
POLL_MS = 10_500
SHOP = "https://shop.example/"
DEVICES: Mapping[str, Mapping[str, Any]] = {"desktop": DESKTOP, "phone": PHONE}
WITH_WALLET = ANNOUNCE.replace("NAME", '"Example wallet"')
FILLED = """() => [...document.querySelectorAll("main a, main button")].filter((one) => {
  const style = getComputedStyle(one);
  return one.checkVisibility() && style.backgroundColor === style.borderColor;
}).map((one) => one.textContent)"""


@attrs.frozen
class Visit:
    """A payer's tab on the page of a Payment."""

    page: Page
    tab: Tab
    url: str

    def open(self, query: str = "") -> None:
        self.tab.goto(f"{self.url}/pay/{self.page.code}{query}")

    def poll(self) -> None:
        with self.tab.expect_response(lambda answer: answer.url.endswith(self.page.code)):
            self.tab.clock.run_for(POLL_MS)


@contextmanager
def visit(chromium: Browser, scene: str, **context: Any) -> Iterator[Visit]:
    page = SCENES[scene]()
    opened = chromium.new_context(**context)
    opened.route(f"{SHOP}**", lambda route: route.fulfill(body="the shop", status=200))
    with serve(page.checkout.api.app) as url:
        yield Visit(page, opened.new_page(), url)
        opened.close()


@pytest.mark.parametrize("has_wallet", [False, True])
@pytest.mark.parametrize("device", DEVICES)
def test_amount_network_state_and_action_are_seen_first(
    chromium: Browser, device: str, has_wallet: bool
) -> None:
    tab = chromium.new_page(**DEVICES[device])
    if has_wallet:
        tab.add_init_script(WITH_WALLET)
    action = "#wallets button" if has_wallet else "#open" if device == "phone" else ".qr"
    height = DEVICES[device]["viewport"]["height"]
    for scene in ("waiting", "part-paid", "branded"):
        page = SCENES[scene]()
        with serve(page.checkout.api.app) as url:
            for tag in ("en", "ar"):
                Visit(page, tab, url).open(f"?lang={tag}")
                for seen in (".amount", "header p:nth-of-type(3)", "h1", action):
                    box = tab.locator(seen).first.bounding_box()
                    assert box is not None, (scene, tag, seen)
                    assert box["y"] + box["height"] <= height, (scene, tag, seen)
                assert "Base" in tab.inner_text("header p:nth-of-type(3)")
    tab.close()


@pytest.mark.parametrize(
    ("device", "has_wallet", "filled"),
    [
        ("desktop", False, []),
        ("desktop", True, ["Pay with \u2068Example wallet\u2069"]),
        ("phone", False, ["Open in wallet"]),
        ("phone", True, ["Pay with \u2068Example wallet\u2069"]),
    ],
)
def test_one_action_is_filled(
    chromium: Browser, device: str, has_wallet: bool, filled: list[str]
) -> None:
    with visit(chromium, "waiting", **DEVICES[device]) as payer:
        if has_wallet:
            payer.tab.add_init_script(WITH_WALLET)
        payer.open()
        assert payer.tab.evaluate(FILLED) == filled
        assert payer.tab.locator(".qr:visible").count() == (1 if device == "desktop" else 0)


@pytest.mark.parametrize("runs_scripts", [True, False])
def test_one_code_is_shown_and_the_other_is_chosen(chromium: Browser, runs_scripts: bool) -> None:
    with visit(chromium, "waiting", java_script_enabled=runs_scripts) as payer:
        payer.open()
        address = payer.tab.get_by_role("img", name="Code for the address alone")
        expect(address).to_be_hidden()
        payer.tab.get_by_text("Address only").click()
        expect(address).to_be_visible()
        expect(payer.tab.get_by_role("img", name="Code for a payment request")).to_be_hidden()


@pytest.mark.parametrize("runs_scripts", [True, False])
def test_a_phone_unfolds_the_codes_which_it_cannot_scan(
    chromium: Browser, runs_scripts: bool
) -> None:
    with visit(chromium, "waiting", **PHONE, java_script_enabled=runs_scripts) as payer:
        payer.tab.clock.install()
        payer.open()
        code = payer.tab.get_by_role("img", name="Code for a payment request")
        expect(code).to_be_hidden()
        card = payer.tab.locator(".card").bounding_box()
        assert card is not None
        assert card["y"] + card["height"] <= 1.4 * PHONE["viewport"]["height"]
        payer.tab.get_by_role("checkbox", name="Pay from another device").press("Space")
        expect(code).to_be_visible()
        if runs_scripts:
            send(payer.page, "10")
            payer.poll()
            expect(payer.tab.locator("h1")).to_have_text("Part of the payment has arrived")
            expect(code).to_be_visible()


def test_a_new_page_leaves_what_the_payer_chose_and_reached(chromium: Browser) -> None:
    with visit(chromium, "waiting") as payer:
        payer.tab.clock.install()
        payer.open()
        payer.tab.get_by_text("Address only").click()
        payer.tab.get_by_text("Contract of the token").click()
        payer.tab.locator("#copy-address").focus()
        send(payer.page, "10")
        payer.poll()
        expect(payer.tab.locator("h1")).to_have_text("Part of the payment has arrived")
        expect(payer.tab.locator("#code-address")).to_be_checked()
        expect(payer.tab.locator("#copy-token")).to_be_visible()
        expect(payer.tab.locator("#copy-address")).to_be_focused()


@pytest.mark.parametrize(
    ("tag", "time"),
    [("en", "Sep 21, 2026, 8:43 PM GMT+5:30"), ("ar", "21 سبتمبر 2026، 8:43 م غرينتش+5:30")],
)
def test_times_are_those_of_the_payers_place(chromium: Browser, tag: str, time: str) -> None:
    with visit(chromium, "waiting", timezone_id="Asia/Kolkata") as payer:
        payer.open(f"?lang={tag}")
        shown = payer.tab.inner_text(".state time")
        assert re.sub(r"\s", " ", shown) == time
    with visit(chromium, "waiting", java_script_enabled=False) as payer:
        payer.open("?lang=en")
        assert (
            re.sub(r"\s", " ", payer.tab.inner_text(".state time")) == "Sep 21, 2026, 3:13 PM UTC"
        )


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_progress_moves_unless_the_payer_wants_no_motion(chromium: Browser, motion: Any) -> None:
    with visit(chromium, "counting", reduced_motion=motion) as payer:
        payer.open()
        assert payer.tab.locator("progress").get_attribute("max") == "12"
        assert "of 12 confirmations, about" in re.sub(r"[\u2068\u2069]", "", payer.tab.content())
        moving = payer.tab.evaluate("document.getAnimations().length")
        assert moving == (1 if motion == "no-preference" else 0)


class TestTheWayBack:
    def test_leads_to_the_merchant_after_three_seconds(self, chromium: Browser) -> None:
        with visit(chromium, "waiting") as payer:
            payer.tab.clock.install()
            payer.open()
            send(payer.page, "25")
            payer.poll()
            expect(payer.tab.locator("h1")).to_have_text("Paid")
            assert payer.tab.evaluate(FILLED) == ["Back to \u2068Panadería Ñandú\u2069"]
            payer.tab.clock.run_for(2_900)
            assert payer.tab.url.startswith(payer.url)
            payer.tab.clock.run_for(200)
            payer.tab.wait_for_url(f"{SHOP}thanks")

    def test_waits_for_who_stays_and_for_who_came_back(self, chromium: Browser) -> None:
        with visit(chromium, "paid") as payer:
            payer.tab.clock.install()
            payer.open()
            payer.tab.get_by_role("button", name="Stay on this page").click()
            payer.tab.clock.run_for(60_000)
            assert payer.tab.url.startswith(payer.url)
            payer.tab.click("#back")
            payer.tab.wait_for_url(f"{SHOP}thanks")
            payer.tab.go_back()
            payer.tab.clock.run_for(60_000)
            assert payer.tab.url.startswith(payer.url)

    @pytest.mark.parametrize("scene", ["overpaid", "refunding", "refunded", "waiting"])
    def test_waits_where_the_payer_must_read_or_pay(self, chromium: Browser, scene: str) -> None:
        with visit(chromium, scene) as payer:
            payer.open()
            assert payer.tab.locator("[data-return-ms], #returning").count() == 0

    def test_waits_for_who_opens_a_receipt_later(self, chromium: Browser) -> None:
        with visit(chromium, "paid") as payer:
            payer.page.checkout.system.advance(600)
            payer.open()
            assert payer.tab.locator("#back.primary").count() == 1
            assert payer.tab.locator("[data-return-ms], #returning").count() == 0


def test_a_receipt_is_printed_without_what_one_can_press(chromium: Browser) -> None:
    with visit(chromium, "paid") as payer:
        payer.tab.add_init_script("window.print = () => { window.printed = true; };")
        payer.open()
        payer.tab.get_by_role("button", name="Print the receipt").click()
        assert payer.tab.evaluate("window.printed")
        payer.tab.emulate_media(media="print")
        for shown in (".amount", "h1", ".receipt dl", ".transfers code"):
            expect(payer.tab.locator(shown)).to_be_visible()
        for hidden in ("#print", "#back", "footer"):
            expect(payer.tab.locator(hidden)).to_be_hidden()
