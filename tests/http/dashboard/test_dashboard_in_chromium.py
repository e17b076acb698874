"""The dashboard in a real browser: for everybody, within its policy, on every screen."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from payments_core_http.dashboard.navigation import GROUPS
from payments_core_http.dashboard.words import DONE
from tests.http.dashboard.gallery import FOLDER, LOOKS, PAGE, PICTURES, name_picture
from tests.http.dashboard.operator_browser import COOKIE
from tests.http.dashboard.served_dashboard import (
    HOME,
    LIST,
    PAGES,
    ServedDashboard,
    serve_dashboard,
)
from tests.http.pages.browser import needs_chromium, require_accessible

pytestmark = [needs_chromium, pytest.mark.slow]
WIDTHS = (320, 1280)
HEIGHTS = """query => [...document.querySelectorAll(query)].map(one => {
  const text = document.createRange();
  text.selectNodeContents(one);
  return text.getBoundingClientRect().height;
})"""
ONE_LINE_PX = 40
MISSING = f"{LIST}/payment_{'A' * 24}"


@pytest.fixture(scope="module")
def dashboard() -> Iterator[ServedDashboard]:
    with serve_dashboard() as dashboard:
        yield dashboard


@pytest.fixture(scope="module")
def page(chromium: Browser, dashboard: ServedDashboard) -> Iterator[Page]:
    """Where the operator is, logged in."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{dashboard.url}/dashboard/login")
    dashboard.log_in(page)
    page.wait_for_url(f"**{HOME}")
    yield page
    context.close()


@pytest.fixture
def visitor(chromium: Browser) -> Iterator[Page]:
    """A browser of its own, which has no cookie."""
    context = chromium.new_context()
    yield context.new_page()
    context.close()


def listen(page: Page) -> list[str]:
    """What the browser complains of, a broken policy first of all, from now on."""
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    return said


def drop_expected(said: list[str], *expected: str) -> list[str]:
    return [text for text in said if not any(part in text for part in ("favicon", *expected))]


class TestEveryPage:
    @pytest.mark.parametrize("name", PAGES)
    def test_it_is_accessible_keeps_its_policy_and_fits(
        self, dashboard: ServedDashboard, page: Page, name: str
    ) -> None:
        said = listen(page)
        response = page.goto(dashboard.url + dashboard.pages[name])
        assert response is not None
        assert response.status == 200
        assert page.title().endswith("· Dashboard")
        require_accessible(page, *WIDTHS)
        assert drop_expected(said) == []

    def test_a_payment_with_links_to_the_explorer(
        self, dashboard: ServedDashboard, page: Page
    ) -> None:
        dashboard.console.declare_network("testnet")
        try:
            page.goto(dashboard.url + dashboard.paid)
            assert page.locator(".explorer").count() > 3
            require_accessible(page, *WIDTHS)
        finally:
            dashboard.console.declare_network("simulated")

    def test_the_log_in_and_what_it_refuses(
        self, dashboard: ServedDashboard, visitor: Page
    ) -> None:
        said = listen(visitor)
        visitor.goto(f"{dashboard.url}/dashboard/keys")
        visitor.wait_for_url("**/login?next=%2Fdashboard%2Fkeys")
        require_accessible(visitor, *WIDTHS)
        dashboard.log_in(visitor, "wrong")
        assert visitor.inner_text("[role=alert]") == "The name, the password or the code is wrong."
        assert visitor.input_value("[name=username]") == "olivia"
        require_accessible(visitor, *WIDTHS)
        dashboard.log_in(visitor)
        visitor.wait_for_url("**/dashboard/keys")
        assert drop_expected(said, "the server responded with a status of 401") == []

    def test_the_new_secret(self, dashboard: ServedDashboard, page: Page) -> None:
        page.goto(f"{dashboard.url}{dashboard.endpoint}/rotate")
        page.click("main button")
        assert page.inner_text(".copy").startswith("whsec_")
        require_accessible(page, *WIDTHS)

    @pytest.mark.parametrize("name", ["missing", "too much"])
    def test_an_error_has_the_sections(
        self, dashboard: ServedDashboard, page: Page, name: str
    ) -> None:
        path = {"missing": MISSING, "too much": f"{dashboard.paid}/refund?amount=999"}[name]
        page.goto(dashboard.url + path)
        assert page.locator("nav a").count() == sum(map(len, GROUPS.values()))
        require_accessible(page, *WIDTHS)

    def test_a_long_reference_squeezes_nothing_else(
        self, dashboard: ServedDashboard, page: Page
    ) -> None:
        page.set_viewport_size({"width": 1280, "height": 700})
        page.goto(dashboard.url + LIST)
        heights = page.evaluate(HEIGHTS, "tbody .whole, tbody time, thead th")
        assert len(heights) == 5 + 3 * 4
        assert max(heights) < ONE_LINE_PX

    @pytest.mark.parametrize("path", [HOME, "/dashboard/login"])
    def test_none_can_be_framed(self, dashboard: ServedDashboard, page: Page, path: str) -> None:
        other = page.context.new_page()
        other.set_content(
            f'<iframe src="{dashboard.url}{path}"></iframe>', wait_until="networkidle"
        )
        framed = other.frames[1].content()
        other.close()
        assert "Dashboard" not in framed

    def test_a_search_leads_straight_there_by_keyboard(
        self, dashboard: ServedDashboard, page: Page
    ) -> None:
        page.goto(dashboard.url + HOME)
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        assert page.get_attribute(":focus", "name") == "q"
        page.keyboard.type("order-1043")
        page.keyboard.press("Enter")
        page.wait_for_url(dashboard.url + dashboard.paid)

    def test_what_waits_is_decided_by_keyboard(
        self, dashboard: ServedDashboard, page: Page
    ) -> None:
        page.goto(dashboard.url + HOME)
        page.locator("#content").focus()
        page.keyboard.press("Tab")
        assert page.inner_text(":focus").startswith("Decide about 25.00 USDC")
        page.keyboard.press("Enter")
        page.wait_for_url(dashboard.url + dashboard.late)
        page.get_by_role("link", name="Write off").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**action=write_off")
        assert page.inner_text("main button.danger") == "Write off"

    def test_a_value_is_copied_and_selected_where_the_browser_refuses(
        self, dashboard: ServedDashboard, chromium: Browser
    ) -> None:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(f"{dashboard.url}/dashboard/login")
        dashboard.log_in(page)
        page.goto(dashboard.url + dashboard.paid)
        button = page.get_by_role("button", name="Copy payment_")
        page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(); }")
        button.click()
        news = page.locator("#news")
        expect(news).to_have_text("Not copied. The text is selected: copy it yourself.")
        id = dashboard.paid.rpartition("/")[2]
        assert page.evaluate("getSelection().toString()") == id
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.reload()
        button.click()
        expect(news).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == id
        context.close()

    def test_without_a_script_there_are_no_buttons_to_copy_and_all_else_works(
        self, dashboard: ServedDashboard, chromium: Browser
    ) -> None:
        context = chromium.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(f"{dashboard.url}/dashboard/login")
        dashboard.log_in(page)
        page.fill("[name=q]", "order-1043")
        page.get_by_role("button", name="Find").click()
        assert page.url == dashboard.url + dashboard.paid
        assert page.locator(".copied button").first.is_hidden()
        context.close()

    def test_on_a_narrow_screen_the_current_section_is_in_sight(
        self, dashboard: ServedDashboard, page: Page
    ) -> None:
        page.set_viewport_size({"width": 390, "height": 700})
        for name in ("inbox", "webhooks", "security"):
            page.goto(f"{dashboard.url}/dashboard/{name}")
            current = page.locator(".top [aria-current]")
            expect(current).to_be_in_viewport(ratio=0.9)

    def test_all_of_it_is_reached_by_keyboard(self, dashboard: ServedDashboard, page: Page) -> None:
        page.goto(dashboard.url + LIST)
        page.keyboard.press("Tab")
        assert page.inner_text(":focus") == "Skip to the content"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.get_attribute(":focus", "name") == "search"
        page.keyboard.type("order-1043")
        page.keyboard.press("Enter")
        page.wait_for_url("**search=order-1043**")
        assert page.locator("tbody tr").count() == 1


class TestWork:
    def test_a_failed_delivery_is_found_and_retried(
        self, dashboard: ServedDashboard, page: Page
    ) -> None:
        page.goto(dashboard.url + LIST)
        page.click("nav >> text=Webhooks")
        page.click("text=Failed deliveries")
        page.click("tbody a")
        assert page.url == dashboard.url + dashboard.failed
        page.click("text=Retry now")
        assert "The delivery is queued" in page.inner_text("[role=status]")
        dashboard.console.run()
        page.reload()
        assert "The endpoint answered 200." in page.inner_text("main")

    def test_a_payment_is_refunded_once(self, dashboard: ServedDashboard, page: Page) -> None:
        page.goto(dashboard.url + LIST)
        page.fill("[name=search]", "order-1043")
        page.keyboard.press("Enter")
        page.click("tbody a")
        page.click("text=Refund >> visible=true")
        page.fill("[name=amount]", "4.5")
        page.fill("[name=reason]", "Stale bread")
        page.click("text=Review the refund")
        page.dblclick("text=Refund 4.50 USDC")
        page.wait_for_url(f"**{dashboard.paid}")
        assert page.inner_text(".done") == DONE["refund"]
        page.reload()
        assert page.locator(".done").count() == 0
        dashboard.console.advance(60)
        page.goto(dashboard.url + dashboard.paid)
        assert "Partially refunded" in page.inner_text("h1")
        [refund] = dashboard.console.read(dashboard.paid.rpartition("/")[2])["refunds"]
        assert (refund["amountAtomic"], refund["reason"]) == ("4500000", "Stale bread")

    def test_after_a_log_out_the_back_button_shows_nothing(
        self, dashboard: ServedDashboard, visitor: Page
    ) -> None:
        visitor.goto(f"{dashboard.url}/dashboard/keys")
        dashboard.log_in(visitor)
        visitor.wait_for_url("**/dashboard/keys")
        visitor.click("text=Log out")
        assert visitor.inner_text("[role=status]") == "You are logged out."
        assert COOKIE not in {str(one["name"]) for one in visitor.context.cookies()}
        visitor.go_back()
        visitor.wait_for_url("**/login**")
        assert visitor.locator("[name=password]").count() == 1


def test_the_gallery_has_a_picture_of_every_page_in_every_look() -> None:
    pictures = {name_picture(name, scheme) for name in PICTURES for scheme, _ in LOOKS}
    assert {path.name for path in FOLDER.glob("*.png")} == pictures
    shown = re.findall(r"\(\.\./images/dashboard/([^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(pictures)
