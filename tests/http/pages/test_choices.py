"""The parts of the page for a router and an on-ramp: forms that need no script."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from payments_core.errors import (
    CapabilityNotActive,
    DependencyFailed,
    DestinationNotAllowed,
    OptionLocked,
    PaymentExpired,
    PaymentOptionLimitReached,
    PaymentsError,
    ScreeningRefused,
    Unavailable,
)
from payments_core_http.errors import InternalError
from payments_core_http.pages.rendering import render_error_page
from tests.http.api_harness import Seen
from tests.http.checkout import BASE, Checkout
from tests.http.pages.html import Html
from tests.http.payer_page import Page

POLYGON = 137
REFUND_TO = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"


def look(page: Page, query: str = "") -> Html:
    seen = page.checkout.api.call("GET", f"/pay/{page.code}{query}", auth=None)
    assert seen.status == 200, seen.body
    assert "form-action 'self'" in seen.headers["content-security-policy"]
    return Html(seen.body, f"/pay/{page.code}")


def fields_of(page: Page, method: str, *, refresh: bool = False) -> dict[str, str]:
    """The hidden fields of the form of a method, as the page has them."""
    shown, found = look(page), []
    for tag, attributes in shown.elements:
        if tag == "form":
            found.append(dict[str, str]())
        if tag == "input" and attributes.get("type") == "hidden":
            found[-1][str(attributes["name"])] = str(attributes["value"])
    [fields] = [
        one for one in found if one.get("method") == method and ("option" in one) == refresh
    ]
    return fields


def send(page: Page, fields: dict[str, str]) -> Seen:
    return page.checkout.api.call(
        "POST",
        f"/pay/{page.code}?lang=en",
        auth=None,
        raw=urlencode(fields).encode(),
        environ={"CONTENT_TYPE": "application/x-www-form-urlencoded"},
    )


def ask_route(page: Page, **changes: str) -> Seen:
    fields = fields_of(page, "routing")
    wanted = {"asset": f"{POLYGON}/USDC", "refundAddress": REFUND_TO}
    return send(page, {**fields, **wanted, **changes})


def test_a_payer_asks_for_a_route_and_sends_to_its_address(checkout: Checkout) -> None:
    page = Page(checkout)
    assert len([one for one in look(page).all("input") if one.get("name") == "method"]) >= 3
    answer = ask_route(page)
    assert answer.status == 303
    assert answer.headers["location"].endswith(f"{page.code}?lang=en&method=routing")
    [option] = page.call("GET").json["options"]
    shown = look(page, "?method=routing")
    assert option["execution"]["to"] in shown.text
    assert REFUND_TO in shown.text
    chosen = [
        one["id"] for one in shown.all("input") if one.get("name") == "method" and "checked" in one
    ]
    assert chosen == ["method-routing"]
    refreshed = send(page, fields_of(page, "routing", refresh=True))
    assert refreshed.status == 303
    [again] = page.call("GET").json["options"]
    assert again["execution"]["to"] != option["execution"]["to"]


def test_a_payer_is_led_to_the_on_ramp(checkout: Checkout) -> None:
    page = Page(checkout)
    assert send(page, fields_of(page, "hosted_onramp")).status == 303
    [option] = page.call("GET").json["options"]
    shown = look(page, "?method=hosted_onramp")
    [link] = [one for one in shown.all("a") if one["href"] == option["execution"]["url"]]
    assert link["rel"] == "noreferrer noopener"
    assert "25.50\u00a0USD" in shown.text


def test_an_expired_offer_is_not_shown_to_be_paid(checkout: Checkout) -> None:
    page = Page(checkout)
    send(page, fields_of(page, "hosted_onramp"))
    [option] = page.call("GET").json["options"]
    checkout.api.call("POST", "/v2/sandbox/clock", {"advanceSeconds": 601})
    shown = look(page, "?method=hosted_onramp")
    assert "This offer has expired" in shown.text
    assert option["execution"]["url"] not in {one.get("href") for one in shown.all("a")}


PAGE_CHANGED = "The page was not up to date"
UNAVAILABLE = "This way to pay is not available"
NOT_USABLE = "What was entered cannot be used"


@pytest.mark.parametrize(
    ("changes", "status", "heading"),
    [
        ({"token": ""}, 403, PAGE_CHANGED),
        ({"token": "nonsense"}, 403, PAGE_CHANGED),
        ({"asset": "everything"}, 400, NOT_USABLE),
        ({"asset": f"{BASE}/NONE"}, 422, UNAVAILABLE),
        ({"refundAddress": "0x1"}, 400, NOT_USABLE),
        ({"refundAddress": ""}, 400, NOT_USABLE),
        ({"option": "pay_option_" + "x" * 24}, 404, "There is no such payment"),
    ],
)
def test_a_form_that_is_not_ours_or_not_right_is_a_page_of_its_error(
    checkout: Checkout, changes: dict[str, str], status: int, heading: str
) -> None:
    page = Page(checkout)
    answer = ask_route(page, **changes)
    assert answer.status == status
    assert answer.headers["content-type"].startswith("text/html")
    assert heading in Html(answer.body).text
    assert page.call("GET").json["options"] == []


@pytest.mark.parametrize(
    ("failure", "heading"),
    [
        (DependencyFailed("router"), "The provider does not answer"),
        (ScreeningRefused("blocked"), "This address cannot be used"),
        (DestinationNotAllowed("wallet"), "This address cannot be used"),
        (PaymentExpired(0), "The time to pay has ended"),
        (OptionLocked("pay_option_x"), PAGE_CHANGED),
        (PaymentOptionLimitReached(20), UNAVAILABLE),
        (CapabilityNotActive("routing"), UNAVAILABLE),
        (Unavailable(1), "The page cannot be shown at present"),
        (InternalError(), "Something went wrong"),
    ],
)
def test_what_went_wrong_with_a_form_is_said_and_leads_back_to_the_page(
    failure: PaymentsError, heading: str
) -> None:
    """The link is right: a payer who is told otherwise asks the merchant for another one."""
    html = Html(render_error_page(failure, "req_1", "en", None, is_form=True))
    assert heading in html.text
    [back] = [one for one in html.all("a") if one.get("class") == "button primary"]
    assert back["href"] == "?lang=en"
