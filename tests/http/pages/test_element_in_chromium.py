"""A shop's page of another origin shows the checkout by the element, and hears what happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from playwright.sync_api import Browser, FrameLocator, Route, expect
from playwright.sync_api import Page as Tab

from examples import element_shop
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.cli.anvil.chain import AnvilChain
from payments_core_http.client import Client
from tests.chains.evm.nodes import anvil_or_skip
from tests.chains.scenes import signer
from tests.http.checkout import BASE, Checkout
from tests.http.mounting.places import PREFIX, place
from tests.http.pages.browser import (
    needs_chromium,
    require_accessible,
    serve,
)
from tests.http.pages.test_element import allow
from tests.http.payer_page import Page

pytestmark = [needs_chromium, pytest.mark.slow]
POLL_MS = 10_500
POLICY = (
    "default-src 'none'; script-src {0}/checkout/; connect-src {0}/v2/; frame-src {0}/pay/;"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
"""What a shop with a strict policy must let in."""
NOTE_EVENTS = """window.heard = [];
for (const name of ["paid", "expired", "closed"]) {
  document.addEventListener(name, ({ target, detail }) => {
    window.heard.push([target.id, name, detail.paymentId]);
  });
}"""


@attrs.define
class Shop:
    """A shop that shows any HTML, by default within a strict policy of its own."""

    service: str
    html: str = ""
    is_strict: bool = True

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        headers = [("Content-Type", "text/html; charset=utf-8")]
        if self.is_strict:
            headers.append(("Content-Security-Policy", POLICY.format(self.service)))
        start_response("200 OK", headers)
        script = f'<script type="module" src="{self.service}/checkout/element.js"></script>'
        head = f'<!doctype html><html lang="en"><title>Shop</title>{script}'
        return [f"{head}<main><h1>Shop</h1>{self.html}</main></html>".encode()]


@attrs.define
class Visit:
    """A visitor of the shop; its service is below a path of another origin."""

    checkout: Checkout
    shop: Shop
    url: str
    tab: Tab
    said: list[str]
    asked: list[str]

    def open(self, *elements: str) -> None:
        self.shop.html = "".join(elements)
        self.tab.goto(self.url)

    def pass_time(self, ms: int = POLL_MS) -> None:
        self.tab.clock.run_for(ms)

    @property
    def problems(self) -> list[str]:
        """What the browser said, without what it says of no fault. On a busy machine Chromium has
        reported inline styles of documents that the page fetches, which have none: that is tested
        in test_checkout_page.py, by their text."""
        passed_over = ("favicon", "Applying inline style")
        return [text for text in self.said if not any(one in text for one in passed_over)]

    @property
    def heard(self) -> list[list[str]]:
        heard: list[list[str]] = self.tab.evaluate("window.heard")
        return heard

    def wait_heard(self, *expected: list[str]) -> None:
        self.tab.wait_for_function("count => heard.length >= count", arg=len(expected), polling=50)
        assert self.heard == list(expected)


def put(page: Page, id: str = "one", more: str = "", text: str = "") -> str:
    secret, payment_id = page.secret, page.payment["id"]
    given = f'client-secret="{secret}" payment-id="{payment_id}" {more}'
    return f'<payments-checkout id="{id}" {given}>{text}</payments-checkout>'


def look_into(tab: Tab, id: str = "one") -> FrameLocator:
    """The page in the element, once it has said that it is there."""
    expect(tab.locator(f"#{id} iframe")).to_be_visible(timeout=30_000)
    return tab.frame_locator(f"#{id} iframe")


@pytest.fixture(scope="module")
def shops() -> Iterator[tuple[Checkout, Shop, str]]:
    checkout = Checkout(MemoryStorage())
    checkout.run()  # scans the network, without which the page does not say that nothing arrived
    with serve(place(checkout.api, "mount")) as service:
        shop = Shop(service + PREFIX)
        with serve(shop) as url:
            origin = url.replace("127.0.0.1", "localhost")
            allow(checkout, origin)
            yield checkout, shop, origin


@pytest.fixture
def visit(chromium: Browser, shops: tuple[Checkout, Shop, str]) -> Iterator[Visit]:
    context = chromium.new_context(viewport={"width": 1000, "height": 800})
    tab = context.new_page()
    visit = Visit(*shops, tab, [], [])
    tab.on("console", lambda message: visit.said.append(message.text))
    tab.on("pageerror", lambda error: visit.said.append(str(error)))
    tab.on("request", lambda request: visit.asked.append(request.url))
    tab.add_init_script(NOTE_EVENTS)
    tab.clock.install()
    yield visit
    context.close()


def test_a_payment_on_a_real_node_is_heard_by_the_shop(chromium: Browser) -> None:
    """The shop is that of the examples."""
    with anvil_or_skip() as process:
        chain = AnvilChain(process.url, BASE, signer())
        chain.prepare_node()
        checkout = Checkout(MemoryStorage(), sandbox_chains={BASE: chain})
        checkout.run()
        client = Client.in_process(checkout.api.app, checkout.api.app_row.id, checkout.api.secret)
        with serve(checkout.api.app) as service:
            shop = element_shop.create_shop(client, checkout.merchant, service)
            with serve(shop) as url:
                url = url.replace("127.0.0.1", "localhost")
                allow(checkout, url)
                checkout.run()  # a first scan, without which no wallet could pay
                tab = chromium.new_page()
                tab.clock.install()
                tab.goto(f"{url}/orders/1")
                page = tab.frame_locator("payments-checkout iframe")
                expect(page.locator("h1")).to_have_text("Waiting for your payment")
                expect(page.get_by_text("Open in a new tab")).to_be_visible()
                to = page.locator("dd", has_text="0x").first.locator("code").inner_text()
                checkout.transfer(to, "4.50")
                for _ in range(3):
                    checkout.advance(20)
                tab.clock.run_for(POLL_MS)
                expect(page.locator("h1")).to_have_text("Paid")
                expect(tab.locator("#order")).to_have_text("Thank you. The bread is on its way.")
                tab.close()


def test_a_payer_pays_in_place_and_no_address_has_the_secret(visit: Visit) -> None:
    page = Page(visit.checkout, successUrl="https://shop.example/thanks")
    visit.open(put(page))
    inside = look_into(visit.tab)
    expect(inside.locator("h1")).to_have_text("Waiting for your payment")
    frame = visit.tab.locator("#one iframe")
    expect(frame).to_have_attribute("title", "Payment")
    body = inside.locator("body")
    heights = frame.bounding_box()["height"], body.bounding_box()["height"]  # type: ignore[index]
    assert heights[1] <= heights[0] < heights[1] + 1, "nothing of it is cut off"
    inside.get_by_role("button", name="Pay in full").click()
    expect(inside.locator("h1")).to_have_text("Your payment is being confirmed")
    assert visit.heard == []
    inside.get_by_role("button", name="Add 20 blocks").click()
    expect(inside.locator("h1")).to_have_text("Paid")
    visit.wait_heard(["one", "paid", page.payment["id"]])
    visit.pass_time()
    inside.get_by_role("link", name="Español").click()
    expect(inside.locator("h1")).to_have_text("Pagado")
    visit.wait_heard(["one", "paid", page.payment["id"]])
    expect(inside.locator("#back")).to_have_attribute("target", "_top")
    assert visit.tab.url == f"{visit.url}/", "it leads nobody away by itself"
    assert len(visit.asked) > 5
    assert not [url for url in visit.asked if "_secret_" in url]
    assert visit.problems == []


def test_what_is_wrong_with_a_form_is_said_in_the_frame(visit: Visit) -> None:
    page = Page(visit.checkout)
    visit.open(put(page))
    inside = look_into(visit.tab)
    inside.get_by_text("Another token").click()
    inside.get_by_label("Your own address").fill("nobody")
    inside.get_by_role("button", name="Show where to send it").click()
    inside.get_by_role("link", name="Back to the payment").click()
    inside.get_by_text("Another token").click()
    inside.get_by_label("Your own address").fill("0x" + "5e" * 20)
    inside.get_by_role("button", name="Show where to send it").click()
    expect(inside.get_by_text("Valid until")).to_be_visible()
    visit.pass_time()
    expect(inside.get_by_text("Valid until")).to_be_visible()
    assert visit.tab.evaluate("history.length") == 3, "about:blank, the shop, and one link in it"
    assert [text for text in visit.problems if "400" not in text] == []


def test_a_dialog_is_closed_from_inside_and_its_payment_is_heard_afterwards(visit: Visit) -> None:
    page = Page(visit.checkout)
    visit.open(put(page, more="dialog", text="Pay 25 USDC"))
    opener = visit.tab.get_by_role("button", name="Pay 25 USDC")
    assert visit.tab.locator("#one iframe").count() == 0, "nothing is loaded before"
    opener.click()
    dialog = visit.tab.get_by_role("dialog", name="Payment")
    expect(dialog).to_be_visible()
    expect(visit.tab.get_by_role("button", name="Close")).to_be_focused()
    inside = look_into(visit.tab)
    expect(inside.locator("h1")).to_have_text("Waiting for your payment")
    inside.get_by_role("button", name="Copy: Amount").focus()
    visit.tab.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    visit.wait_heard(["one", "closed", page.payment["id"]])
    expect(opener).to_be_focused()
    visit.checkout.transfer(page.payment["escrow"]["address"], "25")
    visit.pass_time()
    visit.wait_heard(["one", "closed", page.payment["id"]], ["one", "paid", page.payment["id"]])
    opener.press("Enter")
    expect(inside.locator("h1")).to_have_text("Paid")
    visit.tab.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_each_element_has_its_own_payment_until_it_is_given_another(visit: Visit) -> None:
    first, second, third = (Page(visit.checkout) for _ in range(3))
    visit.open(put(first), put(second, "two"))
    for id in ("one", "two"):
        expect(look_into(visit.tab, id).locator("h1")).to_have_text("Waiting for your payment")
    visit.checkout.transfer(second.payment["escrow"]["address"], "25")
    visit.pass_time()
    visit.wait_heard(["two", "paid", second.payment["id"]])
    visit.tab.evaluate(
        "given => Object.assign(document.getElementById('two'), given)",
        {"clientSecret": third.secret, "paymentId": third.payment["id"]},
    )
    expect(look_into(visit.tab, "two").locator("h1")).to_have_text("Waiting for your payment")
    visit.tab.evaluate("document.getElementById('one').remove()")
    visit.checkout.advance(3_700)
    visit.pass_time()
    visit.wait_heard(["two", "paid", second.payment["id"]], ["two", "expired", third.payment["id"]])
    assert len(visit.tab.frames) == 2, "the page of the removed element is gone"


def test_nobody_else_is_believed(visit: Visit) -> None:
    """A script of the shop, another frame of it, and another page in the element's own frame."""
    page = Page(visit.checkout)
    visit.shop.is_strict = False
    visit.open(put(page), '<iframe id="other"></iframe>')
    visit.shop.is_strict = True
    expect(look_into(visit.tab).locator("h1")).to_have_text("Waiting for your payment")
    claim = "parent.postMessage({ type: 'payments-checkout:shown', stage: 'paid' }, '*')"
    visit.tab.evaluate(claim)
    [framed] = [one for one in visit.tab.frames if "/pay/" in one.url]
    [other] = [one for one in visit.tab.frames if one.url == "about:blank"]
    other.evaluate(claim)
    framed.evaluate("url => { location.href = url; }", visit.url)
    strange = look_into(visit.tab).locator("h1")
    expect(strange).to_have_text("Shop")
    strange.evaluate(f"() => {claim}")
    visit.pass_time(1_000)
    assert visit.heard == []


@pytest.mark.parametrize("is_obeyed", [True, False])
def test_the_page_is_for_no_other_origin(visit: Visit, is_obeyed: bool) -> None:
    """Nor does a browser that lets any page frame it tell that page anything."""
    page = Page(visit.checkout)
    link = f"{visit.shop.service}/pay/{page.code}?frame={visit.url}"

    def disobey(route: Route) -> None:
        route.fulfill(body=route.fetch().body(), content_type="text/html")

    visit.url = visit.url.replace("localhost", "127.0.0.1")
    visit.shop.is_strict = False
    visit.tab.add_init_script("addEventListener('message', () => { window.told = true; })")
    if not is_obeyed:
        visit.tab.route(f"{link.partition('?')[0]}**", disobey)
    visit.open(f'<iframe src="{link}"></iframe>')
    visit.shop.is_strict = True
    visit.tab.wait_for_load_state("networkidle")
    refused = [text for text in visit.said if "frame-ancestors" in text]
    assert bool(refused) == is_obeyed, visit.said
    is_shown = "Waiting for your payment" in visit.tab.frames[1].content()
    assert is_shown != is_obeyed
    assert visit.tab.evaluate("window.told") is None


def test_an_origin_that_is_not_allowed_reads_what_is_wrong(visit: Visit) -> None:
    page = Page(visit.checkout)
    visit.url = visit.url.replace("localhost", "127.0.0.1")
    visit.open(put(page))
    visit.tab.locator("#one iframe").wait_for(state="attached")
    visit.tab.wait_for_load_state("networkidle")
    visit.pass_time(5_100)
    message = visit.tab.locator("#one [role=alert]")
    expect(message).to_contain_text("This payment cannot be shown")
    link = message.get_by_role("link", name="Open in a new tab")
    expect(link).to_have_attribute("href", f"{visit.shop.service}/pay/{page.code}")
    assert any("allowedOrigins" in text for text in visit.said)
    assert page.secret not in "".join(visit.said)


@pytest.mark.parametrize("wrong", ["client-secret", "payment-id"])
def test_what_the_service_refuses_is_said(visit: Visit, wrong: str) -> None:
    page, other = Page(visit.checkout), Page(visit.checkout)
    given = put(page)
    if wrong == "client-secret":
        given = given.replace(page.secret, page.secret[:-4] + "AAAA")
    else:
        given = given.replace(f'"{page.payment["id"]}"', f'"{other.payment["id"]}"')
    visit.open(given)
    expect(visit.tab.locator("#one [role=alert]")).to_have_text("This payment cannot be shown")
    assert any("refuses payment-id and client-secret" in text for text in visit.said)
    assert "_secret_" not in "".join(visit.said)


def test_a_service_that_cannot_be_reached_is_asked_again(visit: Visit) -> None:
    page, other = Page(visit.checkout), Page(visit.checkout)
    visit.tab.route("**/v2/public/**", lambda route: route.abort(), times=2)
    visit.open(put(page, more='lang="es"'), put(other, "two"))
    expect(visit.tab.locator("#two [role=alert]")).to_be_visible()
    visit.tab.evaluate("two.remove()")
    message = visit.tab.locator("#one [role=alert]")
    expect(message).to_have_text("La página no se puede mostrar por ahora")
    visit.pass_time(1_100)
    expect(look_into(visit.tab).locator("h1")).to_have_text("Esperando su pago")
    assert len([url for url in visit.asked if other.payment["id"] in url]) == 1
    look_into(visit.tab).get_by_role("link", name="English").click()
    expect(look_into(visit.tab).locator("h1")).to_have_text("Waiting for your payment")


def test_a_phone_opens_wallet_apps_from_the_frame(chromium: Browser, visit: Visit) -> None:
    page = Page(visit.checkout.declare_network("real"))
    visit.tab.set_viewport_size({"width": 390, "height": 844})
    visit.open(put(page))
    inside = look_into(visit.tab)
    inside.get_by_role("button", name="Copy: Amount").click()
    expect(inside.get_by_role("button", name="Copy: Amount")).to_have_text("Copied")
    with visit.tab.context.expect_page() as opened:
        inside.get_by_role("link", name="Open in a new tab").click()
    alone = opened.value
    expect(alone.locator("h1")).to_have_text("Waiting for your payment")
    assert "frame" not in alone.url
    assert alone.evaluate("window.opener") is None
    for link in inside.locator(".open a:not(#open)").all():
        assert link.get_attribute("target") == "_blank"
    visit.tab.bring_to_front()
    inside.locator("#open").click()  # no app takes ethereum: here, but nothing forbids it
    assert inside.locator("#open").get_attribute("target") == "_top"
    assert visit.problems == []


def test_the_element_is_accessible_in_place_and_in_a_dialog(visit: Visit) -> None:
    page = Page(visit.checkout)
    visit.open(put(page), put(page, "two", "dialog"))
    expect(look_into(visit.tab).locator("h1")).to_be_visible()
    require_accessible(visit.tab, 320)
    visit.tab.get_by_role("button", name="Pay").click()
    expect(look_into(visit.tab, "two").locator("h1")).to_be_visible()
    require_accessible(visit.tab, 320)
