"""The script of the checkout page in a real browser: it keeps the page up to date, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from playwright.sync_api import Browser
from playwright.sync_api import Page as Tab

from tests.http.pages.browser import needs_chromium, serve
from tests.http.pages.scenes import SCENES, end, send
from tests.http.pages.wallet import Wallet, read_blocks
from tests.http.payer_page import Page

pytestmark = [needs_chromium, pytest.mark.slow]
POLL_MS = 10_500


@attrs.define
class Visit:
    """A payer's tab on a Payment that waits, whose timers the test moves."""

    page: Page
    tab: Tab
    url: str
    requests: list[Any] = attrs.field(factory=list)
    said: list[str] = attrs.field(factory=list)

    def open(self, query: str = "") -> None:
        self.tab.on("request", lambda request: self.requests.append(request))
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.clock.install(time=0)
        self.tab.clock.pause_at(1_000)  # or a busy machine's seconds count beside the test's
        self.tab.goto(f"{self.url}/pay/{self.page.code}{query}")

    def wait_for(self, heading: str) -> None:
        self.tab.clock.run_for(POLL_MS)
        self.tab.wait_for_function("text => document.querySelector('h1').textContent === text",
                                   arg=heading, polling=100)  # fmt: skip


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Visit]:
    page = SCENES["waiting"]()
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    with serve(page.checkout.api.app) as url:
        yield Visit(page, context.new_page(), url)
        context.close()


def test_the_page_changes_by_itself_and_says_so_to_those_who_hear_it(visit: Visit) -> None:
    visit.open()
    assert visit.tab.inner_text("h1") == "Waiting for your payment"
    send(visit.page, "10")
    visit.wait_for("Part of the payment has arrived")
    assert visit.tab.inner_text("#news") == "Part of the payment has arrived"
    assert visit.tab.title().startswith("Part of the payment has arrived")
    send(visit.page, "15")
    visit.wait_for("Paid")
    count = len(visit.requests)
    visit.tab.clock.run_for(10 * POLL_MS)
    assert len(visit.requests) == count, "what is over is asked for no more"
    assert visit.said == []


def test_the_secret_travels_in_one_header_to_this_one_payment_alone(visit: Visit) -> None:
    wallet = Wallet({
        "eth_requestAccounts": ["0x" + "aa" * 20],
        "eth_getBlockByNumber": read_blocks(visit.page),
        "eth_call": _read_token,
        "eth_sendTransaction": "0x" + "ab" * 32,
    })  # fmt: skip
    wallet.inject(visit.tab)
    visit.open()
    send(visit.page, "10")
    visit.wait_for("Part of the payment has arrived")
    visit.tab.get_by_role("button", name=wallet.name).click()
    visit.tab.wait_for_selector("text=Your wallet has sent a transfer")
    secret = visit.page.secret
    holders = set()
    for request in visit.requests:
        assert secret not in request.url
        assert request.url.startswith(f"{visit.url}/")
        headers = request.all_headers()
        assert "referer" not in headers
        for name, value in headers.items():
            if secret in value:
                holders.add((name, re.sub(r"pay_option_[\w-]+", "ID", request.url)))
    options = f"{visit.url}/v2/public/payments/{visit.page.payment['id']}/options"
    assert holders == {
        ("authorization", options + path) for path in ("", "/ID/select", "/ID/submissions")
    }
    assert visit.tab.evaluate("localStorage.length + sessionStorage.length") == 0


def _read_token(call: dict[str, str], block: str) -> str:
    """Six decimals, and enough of everything."""
    return "0x6" if call["data"] == "0x313ce567" else "0x" + "f" * 12


def test_the_page_is_left_alone_while_nothing_changes(visit: Visit) -> None:
    visit.open()
    visit.tab.evaluate("document.querySelector('main').dataset.mark = 'old'")
    for _ in range(3):
        with visit.tab.expect_response(lambda answer: answer.url.endswith(visit.page.code)) as seen:
            visit.tab.clock.run_for(2 * POLL_MS)  # the clock goes on between them
        assert seen.value.status == 304
    assert visit.tab.evaluate("document.querySelector('main').dataset.mark") == "old"


def test_the_time_that_is_left_is_counted_by_the_servers_clock(visit: Visit) -> None:
    visit.page.checkout.system.advance(3_600 - 90)
    visit.open()
    place = "[data-left-ms]"
    assert visit.tab.inner_text(place) == "00:01:30"
    visit.tab.clock.run_for(9_000)  # before the page asks the service, whose clock stands still
    assert visit.tab.inner_text(place) == "00:01:21"
    end(visit.page)
    visit.tab.clock.run_for(82_000)
    visit.wait_for("This payment has expired")
    assert visit.page.payment["escrow"]["address"] not in visit.tab.content()


STAND_STILL = "performance.now = () => 0;"
"""As the monotonic clock of a device that sleeps."""


@pytest.mark.parametrize("knows", ["the page", "the service"])
def test_the_time_that_is_left_counts_on_while_the_device_sleeps(visit: Visit, knows: str) -> None:
    visit.open()
    visit.tab.evaluate(STAND_STILL)
    passed_s = 1_800 if knows == "the page" else 540  # shorter than the last look is trusted
    visit.page.checkout.system.advance(passed_s)
    if knows == "the page":  # its calendar clock goes on, and the service does not answer
        visit.tab.route("**/pay/**", lambda route: route.abort())
        visit.tab.clock.fast_forward(1_800_000)
        visit.tab.clock.run_for(1_000)
    else:  # not even that goes on, and the answer is a 304
        with visit.tab.expect_response(lambda answer: answer.url.endswith(visit.page.code)) as seen:
            visit.tab.clock.run_for(POLL_MS)
        assert seen.value.status == 304
        visit.tab.clock.run_for(1_000)
    visit.tab.wait_for_function(
        """passed => {
          const [hours, minutes, seconds] = document.querySelector("[data-left-ms]").textContent
            .split(":").map(Number);
          const late = 3600 - passed - (hours * 3600 + minutes * 60 + seconds);
          return late >= 0 && late <= 20;
        }""",
        arg=passed_s,
        polling=100,
    )


def test_a_page_that_wakes_asks_at_once(visit: Visit) -> None:
    visit.open()
    visit.tab.clock.run_for(1_000)
    send(visit.page, "25")
    visit.tab.clock.fast_forward(8_000)  # no poll is due yet
    visit.tab.wait_for_function(
        "() => document.querySelector('h1').textContent === 'Paid'", polling=100, timeout=5_000
    )


def test_an_answer_that_never_comes_does_not_stop_the_page(visit: Visit) -> None:
    visit.open()
    assert visit.tab.evaluate("""() => new Promise((resolve) => {
      const { set } = Object.getOwnPropertyDescriptor(XMLHttpRequest.prototype, "timeout");
      Object.defineProperty(XMLHttpRequest.prototype, "timeout", { set: resolve });
      document.dispatchEvent(new Event("visibilitychange"));
    })""") == 30_000  # fmt: skip


@pytest.mark.parametrize(
    "clipboard",
    [
        "{ writeText: () => Promise.reject(new DOMException('no', 'NotAllowedError')) }",
        "{ writeText: () => { throw new Error('no'); } }",
        "{ writeText: () => new Promise(() => {}) }",
        "undefined",
    ],
)
def test_a_payer_whose_browser_does_not_copy_is_told_and_copies(
    visit: Visit, clipboard: str
) -> None:
    visit.tab.add_init_script(
        f"Object.defineProperty(navigator, 'clipboard', {{ value: {clipboard} }});"
        "window.addEventListener('unhandledrejection', () => console.log('unhandled'));"
    )
    visit.open()
    button = visit.tab.get_by_role("button", name="Copy: To this address")
    button.click()
    visit.tab.clock.run_for(2_500)
    visit.tab.wait_for_function("() => document.getElementById('news').textContent", polling=100)
    assert button.inner_text() == "Not copied"
    said = "Not copied. The text is selected: copy it yourself."
    assert visit.tab.inner_text("#news") == said
    selected = visit.tab.evaluate("getSelection().toString()")
    assert selected == visit.page.payment["escrow"]["address"]
    visit.tab.clock.run_for(1_000)
    assert visit.said == []


def test_a_button_that_is_pressed_twice_has_its_name_again(visit: Visit) -> None:
    visit.open()
    button = visit.tab.get_by_role("button", name="Copy: Amount")
    for _ in range(2):
        button.click()
        visit.tab.wait_for_function(
            "() => document.getElementById('news').textContent === 'Copied'"
        )
        visit.tab.clock.run_for(500)
    visit.tab.clock.run_for(2_100)
    assert button.inner_text() == "Copy"


def test_a_payer_copies_amount_and_address(visit: Visit) -> None:
    visit.open()
    for name, text in (
        ("Copy: Amount", "25.00"),
        ("Copy: To this address", visit.page.payment["escrow"]["address"]),
    ):
        button = visit.tab.get_by_role("button", name=name)
        button.click()
        visit.tab.wait_for_function(
            "() => document.getElementById('news').textContent === 'Copied'"
        )
        assert visit.tab.evaluate("navigator.clipboard.readText()") == text
        assert button.inner_text() == "Copied"
        visit.tab.clock.run_for(2_100)
        assert button.inner_text() == "Copy"


def test_a_service_that_does_not_answer_leaves_the_page_as_it_is(visit: Visit) -> None:
    visit.open("?lang=es")
    visit.tab.route("**/pay/**", lambda route: route.abort())
    for _ in range(4):
        visit.tab.clock.run_for(70_000)
    assert visit.tab.inner_text("h1") == "Esperando su pago"
    visit.tab.unroute("**/pay/**")
    send(visit.page, "25")
    for _ in range(300):  # in steps: three seconds after it is paid the page leads back to the shop
        visit.tab.clock.run_for(1_000)
        visit.tab.wait_for_timeout(20)  # for the answer, in real time
        if visit.tab.inner_text("h1") == "Pagado":
            return
    raise AssertionError(visit.tab.inner_text("h1"))
