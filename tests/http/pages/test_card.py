"""What the card says: what is due, to whom, how far it is, and nothing that is not known."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any
from urllib.parse import parse_qs, urlsplit

import attrs
import pytest
from babel.numbers import get_currency_precision
from hypothesis import given
from hypothesis import strategies as st

from payments_core.chains.port import NetworkKind
from payments_core.payment_settings.currencies import list_currencies
from payments_core.payments.checkout.checkout import CheckoutPage
from payments_core.pricing.shown import ShownPrice
from payments_core_http.pages.checkout import CheckoutView, build_view
from payments_core_http.pages.languages import get_language
from tests.http.checkout import BASE, Checkout
from tests.http.pages.html import Html
from tests.http.pages.scenes import post, reorg, send, send_unconfirmed
from tests.http.pages.test_branding import brand
from tests.http.payer_page import Page
from tests.shipped import CHAINS

MINUTE_MS = 60_000


def read(page: Page) -> CheckoutPage:
    return page.checkout.api.service.checkout.read_page(page.code, mode="sandbox")


def view(page: Page, kind: NetworkKind = "real", **changed: Any) -> CheckoutView:
    shown = attrs.evolve(read(page), **changed)
    explorer = page.checkout.api.service.choose_explorer
    return build_view(shown, get_language("en"), kind, CHAINS, explorer)


def look(page: Page) -> Html:
    seen = page.checkout.api.call("GET", f"/pay/{page.code}", auth=None)
    assert seen.status == 200, seen.body
    return Html(seen.body)


def strip(text: str) -> str:
    """Without the marks that isolate a value, and with plain spaces."""
    return text.replace("\u2068", "").replace("\u2069", "").replace("\u00a0", " ")


def test_the_amount_is_what_is_still_due(checkout: Checkout) -> None:
    page = Page(checkout.declare_network("real"))
    shown = view(page)
    assert (shown.amount_label, strip(shown.shown_amount)) == ("Amount due", "25.00 USDC")
    send(page, "10")
    shown = view(page)
    assert (shown.amount_label, strip(shown.shown_amount)) == ("Still due", "15.00 USDC")
    assert "of 25.00 USDC" in strip(look(page).text)
    send(page, "15")
    shown = view(page)
    assert (shown.amount_label, strip(shown.shown_amount)) == ("Amount", "25.00 USDC")


def test_a_merchant_without_branding_has_the_name_of_its_app(checkout: Checkout) -> None:
    page = Page(checkout)
    assert view(page).merchant == "Shop"
    assert "Shop" in look(page).text


class TestWhatItIsWorth:
    """What is due in the merchant's currency, as the sandbox's table of prices has it."""

    def test_it_is_beside_what_is_due_and_nowhere_else(self, checkout: Checkout) -> None:
        page = Page(checkout.declare_network("real"))
        assert "≈ 25.00 USD" in strip(look(page).text)
        send(page, "10")
        assert "≈ 15.00 USD" in strip(look(page).text)
        send(page, "15")
        assert "≈" not in look(page).text

    def test_it_is_in_the_currency_of_the_branding(self, checkout: Checkout) -> None:
        page = Page(checkout.declare_network("real"))
        for currency, total in (
            ("EUR", "≈ 22.73 EUR"), ("JPY", "≈ 3,676 JPY"), ("KWD", "≈ 7.692 KWD"),
            ("CDF", "≈ 25.00 USD"),  # no rate in the sandbox's table
            (None, "≈ 25.00 USD"),
        ):  # fmt: skip
            assert brand(checkout, currency=currency).status == 200
            assert total in strip(look(page).text)

    @pytest.mark.parametrize(
        ("price", "currency", "tag", "total"),
        [
            ("0.8765", "USD", "en", "≈ 1,095.62 USD"),
            ("0.8765", "USD", "de", "≈ 1.095,62 USD"),
            ("0.8765", "USD", "fr", "≈ 1\u202f095,62 USD"),
            ("155.5", "JPY", "de", "≈ 194.375 JPY"),
            ("0.30801", "KWD", "de", "≈ 385,012 KWD"),
            ("1/3", "EUR", "ar", "≈ 416.67 EUR"),
            ("0.000008", "USD", "en", "≈ 0.01 USD"),
            ("0.000001", "USD", "en", None),
            ("0.0004", "JPY", "en", None),
            (None, "", "en", None),
        ],
    )
    def test_it_is_rounded_as_the_currency_is_written_and_absent_without_a_price(
        self, checkout: Checkout, price: str | None, currency: str, tag: str, total: str | None
    ) -> None:
        page = Page(checkout, amount="1250.00")
        service = checkout.api.service
        found = None if price is None else ShownPrice(Fraction(price), currency)
        shown = build_view(
            read(page), get_language(tag), "real", CHAINS, service.choose_explorer, found
        )
        assert (shown.total and strip(shown.total)) == total

    @given(
        st.fractions(min_value=0, max_value=10**24, max_denominator=10**30),
        st.sampled_from(sorted(list_currencies())),
    )
    def test_what_is_written_is_at_most_half_a_unit_from_what_is_so(
        self, value: Fraction, currency: str
    ) -> None:
        written = get_language("en").format_currency(value, currency)
        shown = Fraction(strip(written or "≈ 0").split()[1].replace(",", ""))
        assert abs(shown - value) <= Fraction(1, 2 * 10 ** get_currency_precision(currency))


class TestWhatIsNotKnown:
    @pytest.mark.parametrize("looked_ago", [None, 11 * MINUTE_MS])
    def test_nobody_who_has_not_looked_says_that_nothing_has_arrived(
        self, checkout: Checkout, looked_ago: int | None
    ) -> None:
        page = Page(checkout.declare_network("real"))
        now = read(page).looked_at
        at = None if looked_ago is None else now - looked_ago
        assert "We have not looked at the network" in view(page, scanned_at_ms=at).state.text
        assert view(page, scanned_at_ms=now - MINUTE_MS).state.text == "Nothing has arrived yet."

    def test_a_payer_of_a_part_is_told_that_the_rest_may_have_arrived(
        self, checkout: Checkout
    ) -> None:
        page = send(Page(checkout.declare_network("real")), "10")
        text = strip(view(page, scanned_at_ms=None).state.text)
        assert text.startswith("10.00 USDC of 25.00 USDC has arrived")
        assert "if you have already paid the rest, do not pay again" in text
        assert "still due" in view(page).state.text

    def test_what_was_seen_before_is_still_said(self, checkout: Checkout) -> None:
        page = Page(checkout)
        checkout.transfer(page.payment["escrow"]["address"], "7", assetSymbol="DAI")
        assert "is not the one that was asked for" in view(page, scanned_at_ms=None).state.text
        other = reorg(send(Page(checkout), "10"))
        assert "has undone a transfer" in view(other, scanned_at_ms=None).state.text

    def test_what_else_has_arrived_is_said_once_and_what_is_due(self, checkout: Checkout) -> None:
        page = Page(checkout)
        checkout.transfer(page.payment["escrow"]["address"], "7", assetSymbol="DAI")
        shown = view(page)
        assert shown.state.heading == "Something else has arrived: the amount is still due"
        assert strip(shown.state.text).startswith("7.00 DAI has arrived")
        assert shown.notices == ()
        sent_back = view(page, notices=())
        assert sent_back.state.heading == "Waiting for your payment"
        assert "What has arrived is not what was asked for" in sent_back.state.text

    def test_funds_in_review_are_not_passed_on(self, checkout: Checkout) -> None:
        page = Page(checkout, successUrl="https://shop.example/thanks")
        payment = attrs.evolve(
            read(page).payment, labels=("in_review",), received_atomic=25_000_000
        )
        shown = view(page, payment=payment, stage="received", due_atomic=0)
        assert "held for a check" in shown.state.text
        assert "now passed on" not in shown.state.text
        assert shown.state.heading == "Received, and held for a check"
        assert (shown.receipt, shown.returns_soon) == (None, False)


class TestLinksOfWallets:
    def test_each_has_the_whole_request_and_nothing_of_the_page(self, checkout: Checkout) -> None:
        page = Page(checkout.declare_network("real"), amount="25.50")
        request = view(page).request
        assert request is not None
        assert request.codes is not None
        links = {link.wallet: link.url for link in request.codes.wallet_links}
        call = request.codes.payment_uri.removeprefix("ethereum:")
        assert links["MetaMask"] == f"https://link.metamask.io/send/{call}"
        trust = urlsplit(links["Trust Wallet"])
        assert (trust.netloc, trust.path) == ("link.trustwallet.com", "/send")
        assert parse_qs(trust.query) == {
            "asset": [f"c8453_t{request.token_address}"],
            "address": [page.payment["escrow"]["address"]],
            "amount": ["25.50"],
        }
        assert page.code not in str(links) and page.secret not in str(links)

    @pytest.mark.parametrize("kind", ["real", "testnet"])
    def test_a_wallet_can_add_a_public_network(self, checkout: Checkout, kind: NetworkKind) -> None:
        request = view(Page(checkout.declare_network(kind)), kind).request
        assert request is not None
        assert request.add_chain is not None
        added = json.loads(request.add_chain)
        assert (added["chainId"], added["chainName"]) == (hex(BASE), "Base")
        assert added["rpcUrls"] == [CHAINS[BASE].rpc_url]

    @pytest.mark.parametrize("kind", ["local", "simulated"])
    def test_no_wallet_adds_a_sandboxs_own_chain(
        self, checkout: Checkout, kind: NetworkKind
    ) -> None:
        request = view(Page(checkout.declare_network(kind)), kind).request
        assert request is not None
        assert (request.add_chain, request.codes) == (None, None)


class TestTheReceipt:
    def test_names_the_merchant_the_time_and_the_transfer(self, checkout: Checkout) -> None:
        page = Page(checkout.declare_network("real"))
        hash = checkout.transfer(page.payment["escrow"]["address"], "25").json["transactionHash"]
        html = look(page)
        for words in ("Receipt", "Paid to", "Arrived", hash, "Print the receipt"):
            assert words in html.text
        assert f"https://basescan.org/tx/{hash}" in {one["href"] for one in html.all("a")}

    def test_says_what_was_sent_back(self, checkout: Checkout) -> None:
        page = send(Page(checkout.declare_network("real")), "25")
        assert "Refunded" not in look(page).text
        post(page, "/refunds", {"amount": "5"})
        receipt = view(page).receipt
        assert receipt is not None
        assert receipt.refunded == "5.00\u00a0USDC"
        assert "Refunded" in look(page).text

    def test_there_is_none_before_a_payment_is_paid(self, checkout: Checkout) -> None:
        page = send_unconfirmed(Page(checkout.declare_network("real")))
        assert view(page).receipt is None
        assert "Receipt" not in look(page).text


def test_progress_has_the_time_in_steps_so_that_the_page_changes_seldom(
    checkout: Checkout,
) -> None:
    page = send_unconfirmed(Page(checkout.declare_network("real")))
    seen = read(page)
    [receipt] = seen.receipts
    took = CHAINS[BASE].estimate_ms(seen.payment.early_acceptance, seen.payment.confirmations)
    assert took is not None
    arrives = receipt.observed_at_ms + took
    for left_ms, said, is_soon in (
        (1, "about 5 s", True),
        (16_000, "about 20 s", True),
        (19_999, "about 20 s", True),
        (61_000, "about 65 s", False),
        (91_000, "about 2 min", False),
    ):
        shown = view(page, looked_at=arrives - left_ms)
        assert shown.progress is not None
        assert strip(shown.progress.text).endswith(f", {said}")
        assert shown.poll_ms == (2_000 if is_soon else 10_000)
