"""The panel of a sandbox's page: what each button does, and who may press it."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

import pytest

from payments_core.chains.port import NetworkKind
from payments_core.sandbox.payer import ACTIONS
from payments_core_http.pages.sandbox_panel import PANEL_WORDS
from tests.http.api_harness import Seen
from tests.http.checkout import Checkout
from tests.http.pages.html import Html
from tests.http.payer_page import Page


def look(page: Page, query: str = "") -> Html:
    seen = page.checkout.api.call("GET", f"/pay/{page.code}{query}", auth=None)
    assert seen.status == 200, seen.body
    return Html(seen.body, f"/pay/{page.code}")


def targets(page: Page) -> dict[str, str]:
    """Where the forms of the page go, by what they do."""
    found = [str(one["action"]) for one in look(page).all("form") if "?play=" in str(one["action"])]
    return {parse_qs(urlsplit(target).query)["play"][0]: target for target in found}


def press(page: Page, action: str) -> Seen:
    target = targets(page)[action]
    return page.checkout.api.call("POST", f"/pay/{page.code}{target}", auth=None)


@pytest.mark.parametrize(("kind", "links"), [("simulated", 1), ("local", 1), ("real", 0)])
def test_where_no_code_can_be_scanned_the_page_leads_to_the_panel(
    checkout: Checkout, kind: NetworkKind, links: int
) -> None:
    html = look(Page(checkout.declare_network(kind)))
    assert [one["href"] for one in html.all("a") if "#" in str(one["href"])] == ["#panel"] * links
    assert [one.get("id") for one in html.all("h2")].count("panel") == 1


@pytest.mark.parametrize(
    ("actions", "stages"),
    [
        (["pay", "mine"], ["processing", "paid"]),
        (["pay_short", "mine", "pay", "mine"], ["processing", "part_paid", "processing", "paid"]),
        (["pay_short", "mine", "expire"], ["processing", "part_paid", "short"]),
        (["pay_over", "mine"], ["processing", "paid"]),
        (["pay_twice", "mine"], ["processing", "paid"]),
        (["expire", "pay", "mine"], ["expired", "expired", "late"]),
        (["pay_late", "mine"], ["expired", "late"]),
        (["pay", "reorg", "mine", "pay", "mine"],
         ["processing", "processing", "waiting", "processing", "paid"]),
    ],
)  # fmt: skip
def test_a_payment_is_led_through_its_states(
    checkout: Checkout, actions: Sequence[str], stages: Sequence[str]
) -> None:
    page = Page(checkout)
    seen = []
    for action in actions:
        answer = press(page, action)
        assert (answer.status, answer.body) == (303, b"")
        assert answer.headers["location"] == f"{page.code}?lang=en"
        seen.append(look(page).stage)
    assert seen == list(stages)


def test_what_came_too_much_or_twice_is_shown(checkout: Checkout) -> None:
    over, twice = Page(checkout), Page(checkout)
    press(over, "pay_over")
    press(over, "mine")
    press(twice, "pay_twice")
    press(twice, "mine")
    assert "\u20682.50\u00a0USDC\u2069 more than the amount has arrived" in look(over).text
    assert "The payment arrived twice" in look(twice).text


def test_a_buyer_pays_at_the_on_ramp(checkout: Checkout) -> None:
    """The on-ramp of a sandbox has no page, so its buyer's button is here."""
    page = Page(checkout)
    page.option(providerCode="hosted_onramp")
    assert press(page, "buy").status == 303
    assert press(page, "buy").status == 303  # twice is once
    seen = []
    for _ in range(3):
        press(page, "mine")
        seen.append(look(page).stage)
    assert seen[-1] == "paid"
    assert page.call("GET").json["receivedAmountAtomic"] == page.payment["amountAtomic"]


def test_only_what_can_do_something_has_a_button(checkout: Checkout) -> None:
    page = Page(checkout)
    assert targets(page).keys() == set(ACTIONS) - {"reorg", "buy"}
    page.option(providerCode="hosted_onramp")
    assert targets(page).keys() == set(ACTIONS) - {"reorg"}
    press(page, "pay")
    assert targets(page).keys() == set(ACTIONS)
    press(page, "mine")
    assert "expire" not in targets(page)


def test_a_button_that_has_become_useless_shows_the_page_again(checkout: Checkout) -> None:
    page = Page(checkout)
    target = targets(page)["expire"]
    press(page, "expire")
    seen = checkout.api.call("POST", f"/pay/{page.code}{target}", auth=None)
    assert seen.status == 303


def test_each_action_has_a_label_and_the_page_its_language(checkout: Checkout) -> None:
    assert PANEL_WORDS.keys() == set(ACTIONS)
    page = Page(checkout)
    html = look(page, "?lang=es")
    assert "Pagar dos veces" in html.text
    [target] = [str(one["action"]) for one in html.all("form") if "=mine" in str(one["action"])]
    seen = checkout.api.call("POST", f"/pay/{page.code}{target}", auth=None)
    assert seen.headers["location"] == f"{page.code}?lang=es"


class TestWhoMayPressIt:
    def test_a_form_of_another_site_does_nothing(self, checkout: Checkout) -> None:
        page, other = Page(checkout), Page(checkout)
        right = targets(page)["expire"]
        wrong = [
            right.replace("token=", "token=A"),
            right.replace("token=", "token=%C3%A9"),
            right.replace("expire", "pay"),
            targets(other)["expire"],
        ]
        for target in wrong:
            seen = checkout.api.call("POST", f"/pay/{page.code}{target}", auth=None)
            assert seen.status == 403, target
            assert "The page was not up to date" in Html(seen.body).text
        for target, status in (
            ("?play=expire", 403),
            (f"{right}&more=1", 400),
            (right.replace("expire", "steal"), 400),
            ("", 303),
        ):
            seen = checkout.api.call("POST", f"/pay/{page.code}{target}", auth=None)
            assert seen.status == status, target
        assert look(page).stage == "waiting"

    def test_the_link_is_needed(self, checkout: Checkout) -> None:
        page = Page(checkout)
        target = targets(page)["expire"]
        seen = checkout.api.call("POST", f"/pay/{page.code[:-4]}AAAA{target}", auth=None)
        assert seen.status == 404

    def test_where_others_share_the_sandbox_there_is_no_panel(self, checkout: Checkout) -> None:
        page = Page(checkout)
        target = targets(page)["expire"]
        checkout.api.service.tenants.create_app("Other", "other")
        assert targets(page) == {}
        seen = checkout.api.call("POST", f"/pay/{page.code}{target}", auth=None)
        assert seen.status == 404
        assert look(page).stage == "waiting"

    def test_the_policy_lets_the_page_send_to_itself_alone(self, checkout: Checkout) -> None:
        seen = checkout.api.call("GET", f"/pay/{Page(checkout).code}", auth=None)
        assert "form-action 'self'" in seen.headers["content-security-policy"]
        seen = checkout.api.call("GET", "/pay/short", auth=None)
        assert "form-action 'none'" in seen.headers["content-security-policy"]
