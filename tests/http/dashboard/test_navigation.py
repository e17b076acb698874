"""The navigation of the dashboard: the sections that its operator may open, and no others."""

from __future__ import annotations

import pytest

from payments_core.tenants.record import PRODUCTS
from payments_core_http.dashboard.navigation import GROUPS
from payments_core_http.dashboard.routes import ROUTES
from tests.http.console import Console
from tests.http.dashboard.operator_browser import OperatorBrowser, open_browser

SECTIONS = [one for sections in GROUPS.values() for one in sections]


@pytest.fixture
def browser(console: Console) -> OperatorBrowser:
    return open_browser(console.api)


def list_links(browser: OperatorBrowser, path: str) -> list[str | None]:
    return [one["href"] for one in browser.open(path).all("a")]


@pytest.mark.parametrize("section", [one.name for one in SECTIONS])
def test_each_section_leads_to_its_page(browser: OperatorBrowser, section: str) -> None:
    links = browser.open(f"/dashboard/{section}").all("a")
    [current] = [one for one in links if one.get("aria-current") == "page"]
    assert current["href"] == f"/dashboard/{section}"


def test_each_section_requires_what_its_page_requires() -> None:
    needs = {row.path: row.needs for row in ROUTES if row.method == "GET"}
    assert [one.needs for one in SECTIONS] == [needs[f"/dashboard/{one.name}"] for one in SECTIONS]


def test_a_section_of_a_product_that_is_off_is_left_out(
    console: Console, browser: OperatorBrowser
) -> None:
    tenants = console.api.service.tenants
    tenants.set_products(console.api.partition, [p for p in PRODUCTS if p != "payments"])
    links = list_links(browser, "/dashboard/keys")
    assert "/dashboard/webhooks" in links
    assert not {"/dashboard/payments", "/dashboard/screening"} & set(links)
