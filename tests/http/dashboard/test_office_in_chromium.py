"""Accounts, banks, links and forms in a real browser: for everybody, on every screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.http.console import HOOK, OTHER
from tests.http.dashboard.operator_browser import COOKIE
from tests.http.dashboard.served_office import OFFICE_PAGES, ServedOffice, serve_office
from tests.http.pages.browser import needs_chromium, require_accessible

pytestmark = [needs_chromium, pytest.mark.slow]
WIDTHS = (320, 1280)


@pytest.fixture(scope="module")
def office() -> Iterator[ServedOffice]:
    with serve_office() as office:
        yield office


@pytest.fixture(scope="module")
def page(chromium: Browser, office: ServedOffice) -> Iterator[Page]:
    """Where the operator is, logged in, in a browser without scripts of pages."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{office.url}/dashboard/login")
    office.log_in(page)
    page.wait_for_url("**/dashboard/inbox")
    yield page
    context.close()


def test_every_page_is_accessible_and_fits(office: ServedOffice, page: Page) -> None:
    """In one go, since each page needs the same of a browser."""
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{page.url}: {message.text}"))
    assert tuple(office.pages) == OFFICE_PAGES
    for name, path in office.pages.items():
        response = page.goto(office.url + path)
        assert response is not None
        assert response.status == 200, name
        require_accessible(page, *WIDTHS)
        page.set_viewport_size({"width": 320, "height": 700})
        page.evaluate("document.documentElement.dir = 'rtl'")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, f"{name}, rtl"
    assert [text for text in said if "favicon" not in text] == []


def test_a_refused_form_is_accessible_and_leads_to_its_fields(
    office: ServedOffice, page: Page
) -> None:
    page.goto(office.url + office.pages["settings"])
    page.fill("[name=allowedOrigins]", "https://a.example\nshop")
    page.fill("[name=expiresInSeconds]", "5")
    page.click("text=Change the settings")
    require_accessible(page, *WIDTHS)
    assert page.input_value("[name=allowedOrigins]") == "https://a.example\nshop"
    page.click("[role=alert] >> text=Expires after")
    assert page.url.endswith("#field-expiresInSeconds")
    page.fill("[name=allowedOrigins]", "https://a.example")
    page.fill("[name=expiresInSeconds]", "600")
    page.click("text=Change the settings")
    assert "The settings are changed" in page.inner_text("main [role=status]")


@pytest.mark.parametrize("has_script", [True, False])
def test_an_endpoint_is_added_by_keyboard_with_and_without_scripts(
    office: ServedOffice, page: Page, chromium: Browser, has_script: bool
) -> None:
    context = chromium.new_context(java_script_enabled=has_script)
    kept: list[Any] = [one for one in page.context.cookies() if one["name"] == COOKIE]
    context.add_cookies(kept)
    tab = context.new_page()
    tab.goto(office.url + office.pages["endpoint-new"])
    tab.fill("[name=url]", f"{OTHER}/{has_script}" if has_script else f"{HOOK}/plain")
    tab.press("[name=url]", "Enter")
    assert tab.inner_text(".copy").startswith("whsec_")
    context.close()


def test_a_double_press_makes_one_link(office: ServedOffice, page: Page) -> None:
    before = len(office.console.call("GET", "/v2/payments").json["data"])
    page.goto(office.url + office.pages["link-new"])
    page.fill("[name=amount]", "7.50")
    page.fill("[name=destination]", office.console.merchant)
    page.dblclick("text=Make the link")
    page.wait_for_url("**/dashboard/links/payment_*")
    assert page.inner_text("main .copied code").startswith("http")
    assert len(office.console.call("GET", "/v2/payments").json["data"]) == before + 1


def test_an_export_is_a_file(office: ServedOffice, page: Page) -> None:
    page.goto(office.url + office.pages["payouts"])
    with page.expect_download() as download:
        page.click("text=Export as CSV")
    assert download.value.suggested_filename.startswith("payouts-")
    assert download.value.path().read_bytes().count(b"\r\n") == 3
