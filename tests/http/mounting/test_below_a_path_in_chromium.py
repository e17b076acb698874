"""Below a path in a real browser: a payer pays, and an operator works, wherever it is mounted."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Response, expect

from tests.http.dashboard.served_dashboard import LIST, ServedDashboard, serve_dashboard
from tests.http.mounting.places import PLACES, PREFIX, place
from tests.http.pages.browser import needs_chromium, serve
from tests.http.pages.scenes import SCENES
from tests.http.pages.wallet import Wallet, read_blocks

pytestmark = [needs_chromium, pytest.mark.slow]
DECIMALS = "0x313ce567"
HAS_STYLE = "[...document.styleSheets].every(one => one.cssRules.length > 0)"


@pytest.fixture(scope="module", params=PLACES)
def dashboard(request: pytest.FixtureRequest) -> Iterator[ServedDashboard]:
    with serve_dashboard(partial(place, name=request.param), PREFIX) as dashboard:
        yield dashboard


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A browser of its own, which must get no error and no answer from outside of the prefix."""
    context = chromium.new_context()
    page = context.new_page()
    wrong: list[str] = []

    def judge(answer: Response) -> None:
        if answer.status >= 400 and answer.status != 401 and "favicon" not in answer.url:
            wrong.append(f"{answer.status} {answer.url}")

    page.on("response", judge)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    context.close()
    assert wrong == []


def test_an_operator_logs_in_works_and_logs_out(dashboard: ServedDashboard, page: Page) -> None:
    page.goto(f"{dashboard.url}/dashboard/activity")
    page.wait_for_url("**/login?next=%2Fdashboard%2Factivity")
    dashboard.log_in(page)
    page.wait_for_url(f"{dashboard.url}/dashboard/activity")
    for section in ("Payments", "Activity", "Webhooks", "Events", "API requests", "Keys"):
        page.click(f"nav >> text={section.rpartition(' ')[2].capitalize()}")
        assert page.evaluate(HAS_STYLE)
        assert page.inner_text("h1")
    page.click("nav >> text=Webhooks")
    page.click("text=Failed deliveries")
    page.click("tbody a")
    assert page.url == dashboard.url + dashboard.failed
    page.click("text=Retry now")
    assert page.url == dashboard.url + dashboard.failed
    assert "The delivery is queued" in page.inner_text("[role=status]")
    dashboard.console.run()
    page.reload()
    assert page.locator("[role=status]").count() == 0
    assert "The endpoint answered 200." in page.inner_text("main")
    page.goto(dashboard.url + LIST)
    page.fill("[name=search]", "order-1043")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=order-1043**")
    assert page.url.startswith(dashboard.url)
    page.click("text=Log out")
    assert page.inner_text("[role=status]") == "You are logged out."
    assert page.url == f"{dashboard.url}/dashboard/login"
    assert not [one for one in page.context.cookies() if "operator" in str(one.get("name"))]


@pytest.mark.parametrize("name", PLACES)
def test_a_payer_pays_from_a_wallet_and_sees_it_arrive(name: str, page: Page) -> None:
    scene = SCENES["waiting"]()
    wallet = Wallet({
        "eth_requestAccounts": ["0x" + "aa" * 20],
        "eth_getBlockByNumber": read_blocks(scene),
        "eth_call": _read_token,
        "eth_sendTransaction": "0x" + "ab" * 32,
    })  # fmt: skip
    wallet.inject(page)
    with serve(place(scene.checkout.api, name)) as url:
        page.goto(f"{url}{PREFIX}/pay/{scene.code}?lang=en")
        assert page.evaluate(HAS_STYLE)
        page.get_by_role("button", name=wallet.name).click()
        expect(page.locator("h1, h2", has_text="Your wallet has sent a transfer")).to_be_visible()
        page.click("footer >> text=Español")
        expect(page.locator("html")).to_have_attribute("lang", "es")


@pytest.mark.parametrize("name", PLACES)
def test_a_developer_plays_the_payer(name: str, page: Page) -> None:
    scene = SCENES["waiting"]()
    with serve(place(scene.checkout.api, name)) as url:
        link = f"{url}{PREFIX}/pay/{scene.code}?lang=en"
        page.goto(link)
        page.click(".panel button >> nth=0")
        assert page.url == link
        expect(page.locator("h1")).to_have_text("Your payment is being confirmed")


def _read_token(call: dict[str, Any], block: str) -> str:
    """Six decimals, and enough of everything."""
    return "0x6" if call["data"] == DECIMALS else "0x" + "f" * 12
