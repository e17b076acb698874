"""The page of a checkout link: what it says in every state, what it gives away, its headers."""

from __future__ import annotations

import logging
import re
from typing import Any

import attrs
import pytest

from payments_core.chains.port import NetworkKind
from payments_core.payments.checkout.stages import NOTICES, STAGES
from payments_core_http.pages.checkout import build_view
from payments_core_http.pages.languages import LANGUAGES, get_language
from payments_core_http.pages.words import NETWORK_WORDS, NOTICE_WORDS, STAGE_WORDS
from tests.http.api_harness import Seen
from tests.http.checkout import BASE, Checkout
from tests.http.pages.html import Html
from tests.http.pages.scenes import SCENES, post, reorg, send, send_unconfirmed
from tests.http.payer_page import Page
from tests.shipped import CHAINS

USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
ATTACKS = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</title><script>alert(1)</script>",
    "javascript:alert(1)",
    "{{ 7 * 7 }} {% raw %}",
    "&lt;script&gt; &amp;",
    "<!-- --><svg/onload=alert(1)>",
    "%(amount)s %s %",
)  # fmt: skip


def show(page: Page, query: str = "", **more: Any) -> Seen:
    return page.checkout.api.call("GET", f"/pay/{page.code}{query}", auth=None, **more)


def look(page: Page) -> Html:
    seen = show(page)
    assert seen.status == 200, seen.body
    return Html(seen.body, f"/pay/{page.code}")


def escrow(page: Page) -> str:
    return str(page.payment["escrow"]["address"])


class TestWhatItSays:
    def test_waiting_shows_network_token_amount_and_address_in_words_and_in_two_codes(
        self, checkout: Checkout
    ) -> None:
        checkout.declare_network("real")
        page = Page(checkout, amount="25.50", reference="order-7", description="Two loaves")
        html = look(page)
        assert html.stage == "waiting"
        for words in ("25.50", "USDC", "Base", escrow(page), USDC, "order-7", "Two loaves"):
            assert words in html.text
        images = [one["aria-label"] for one in html.all("div") if one.get("role") == "img"]
        assert images == ["Code for a payment request", "Code for the address alone"]
        [wallet] = [one for one in html.all("a") if one.get("id") == "open"]
        assert wallet["href"] == (
            f"ethereum:{USDC}@{BASE}/transfer?address={escrow(page)}&uint256=25500000"
        )

    def test_a_translator_of_the_browser_changes_nothing_that_must_be_exact(
        self, checkout: Checkout
    ) -> None:
        checkout.declare_network("real")
        page = Page(checkout, amount="25.50", reference="order-7")
        hash = checkout.transfer(escrow(page), "5.25").json["transactionHash"]
        html = look(page)
        for exact in (escrow(page), USDC, hash, "order-7"):
            assert exact in html.text and exact not in html.translatable
        assert html.text.count("20.25") == 5, "title, amount, value, sentence, and to be copied"
        assert html.translatable.count("20.25") == 1, "in the sentence"
        assert "Send only" in html.translatable

    @pytest.mark.parametrize("ends", [None, "/cancel", "expiry"])
    def test_what_does_not_count_is_named_and_not_denied(
        self, checkout: Checkout, ends: str | None
    ) -> None:
        page = Page(checkout)
        checkout.transfer(escrow(page), "25", chainId=1, assetSymbol="USDT")
        checkout.transfer(escrow(page), "7", assetSymbol="DAI")
        if ends == "expiry":
            checkout.advance(3_601)
        elif ends is not None:
            checkout.api.call("POST", f"/v2/payments/{page.payment['id']}{ends}")
        html = look(page)
        assert html.stage == {None: "waiting", "/cancel": "cancelled", "expiry": "expired"}[ends]
        for words in (
            "does not count",
            "\u206825.00\u00a0USDT (Ethereum), 7.00\u00a0DAI\u2069 has arrived",
            "The merchant has been informed",
        ):
            assert words in html.text
        for denial in ("Nothing has arrived", "Nothing arrived", "Nothing had", "not charged"):
            assert denial not in html.text
        assert html.text.count("Not counted") == 2

    @pytest.mark.parametrize("is_confirmed", [False, True])
    def test_a_transfer_that_the_network_undid_is_not_denied(
        self, checkout: Checkout, is_confirmed: bool
    ) -> None:
        page = Page(checkout)
        if is_confirmed:
            checkout.transfer(escrow(page), "10")
        else:
            send_unconfirmed(page, "25")
        reorg(page)
        html = look(page)
        assert html.stage == "waiting"
        assert "Undone by the network" in html.text
        assert "Nothing has arrived" not in html.text
        assert "Look in your wallet before you pay again" in html.text
        assert "The network took a transfer back" not in html.text, "it is said once"

    def test_part_paid_asks_for_the_rest_and_for_no_more(self, checkout: Checkout) -> None:
        page = Page(checkout.declare_network("real"))
        checkout.transfer(escrow(page), "10")
        html = look(page)
        assert html.stage == "part_paid"
        [wallet] = [one for one in html.all("a") if one.get("id") == "open"]
        assert str(wallet["href"]).endswith("&uint256=15000000")
        assert "Confirmed" in html.text
        assert "\u206815.00\u00a0USDC\u2069 is still due." in html.text

    def test_a_part_that_is_being_confirmed_asks_for_the_rest(self, checkout: Checkout) -> None:
        page = Page(checkout)
        send_unconfirmed(page, "10")
        html = look(page)
        assert html.stage == "processing"
        assert "A part of the payment is being confirmed" in html.text
        assert "\u206815.00\u00a0USDC\u2069 is still due: you can pay it now." in html.text

    def test_processing_counts_blocks_and_asks_for_nothing(self, checkout: Checkout) -> None:
        page = Page(checkout)
        send_unconfirmed(page)
        html = look(page)
        assert html.stage == "processing"
        counted = re.findall(r"\d+\W* confirmations? so far", html.text)
        assert len(counted) == 1, "it is said once"
        assert escrow(page) not in html.text
        assert not list(html.all("time")), "its payer has nothing to do in time"

    def test_a_late_transfer_that_is_being_confirmed_has_arrived(self, checkout: Checkout) -> None:
        page = Page(checkout, cancelUrl="https://shop.example/again")
        checkout.advance(3_610)
        send_unconfirmed(page)
        html = look(page)
        assert html.stage == "expired"
        assert "A late transfer is being confirmed" in html.text
        assert "Nothing arrived" not in html.text
        assert "This page updates by itself." in html.text
        assert "https://shop.example/again" not in [one["href"] for one in html.all("a")]

    def test_paid(self, checkout: Checkout) -> None:
        page = Page(checkout, successUrl="https://shop.example/thanks?a=1&b=2")
        checkout.transfer(escrow(page), "25")
        html = look(page)
        assert html.stage == "paid"
        [back] = [one for one in html.all("a") if "rel" in one]
        assert back["href"] == "https://shop.example/thanks?a=1&b=2"
        assert set(str(back["rel"]).split()) == {"noreferrer", "noopener"}

    def test_who_has_sent_a_transfer_is_given_nothing_more_to_do(self, checkout: Checkout) -> None:
        page = Page(checkout, cancelUrl="https://shop.example/cart")
        page.submit(page.option())
        html = look(page)
        assert html.text.count("Your wallet has sent a transfer") == 2, "as title and heading"
        assert "Nothing has arrived yet" not in html.text
        assert "Time ends" not in html.text
        assert "https://shop.example/cart" not in {one["href"] for one in html.all("a")}
        assert escrow(page) not in html.text
        assert "merchant's app" not in html.text

    @pytest.mark.parametrize(
        ("scene", "back"),
        [
            ("waiting", "cart"),
            ("submitted", None),  # a transfer may be on its way
            ("processing", None),
            ("ending", None),
            ("late-processing", None),
            ("paid", "thanks"),
            ("expired", "cart"),
            ("blocked", ""),
            ("late", ""),
            ("short", ""),
            ("undelivered", ""),
            ("refunded", ""),
            ("partially-refunded", ""),
            ("written-off", ""),
        ],
    )
    def test_no_end_is_a_dead_end_and_the_cart_is_not_offered_to_who_has_paid(
        self, scene: str, back: str | None
    ) -> None:
        html = look(SCENES[scene]())
        links = [one for one in html.all("a") if one.get("id") == "back"]
        expected = [] if back is None else [f"https://shop.example/{back}"]
        assert [one["href"] for one in links] == expected
        assert any("data-return-ms" in one for one in links) == (scene == "paid")
        assert all(("primary" in str(one["class"])) == (scene != "waiting") for one in links)

    def test_who_must_look_in_the_wallet_first_finds_no_filled_way_to_pay(self) -> None:
        for scene, filled in (("waiting", True), ("undone", False)):
            [wallet] = [one for one in look(SCENES[scene]()).all("a") if one.get("id") == "open"]
            assert ("primary" in str(wallet["class"])) == filled

    def test_the_front_page_is_of_the_site_that_the_merchant_has_named(
        self, checkout: Checkout
    ) -> None:
        page = Page(checkout, successUrl="http://localhost:8080/shops/1?order=2#3")
        post(send(page, "25"), "/refunds", {})
        [back] = [one for one in look(page).all("a") if one.get("id") == "back"]
        assert back["href"] == "http://localhost:8080/"
        assert set(str(back["rel"]).split()) == {"noreferrer", "noopener"}

    def test_overpaid(self, checkout: Checkout) -> None:
        page = Page(checkout)
        checkout.transfer(escrow(page), "31")
        html = look(page)
        assert html.stage == "paid"
        assert "\u20686.00\u00a0USDC\u2069 more than the amount has arrived" in html.text
        assert "nothing left to do" not in html.text

    def test_duplicate(self, checkout: Checkout) -> None:
        page = Page(checkout)
        checkout.transfer(escrow(page), "25")
        checkout.transfer(escrow(page), "25")
        assert "The payment arrived twice" in look(page).text

    def test_expired_and_then_late(self, checkout: Checkout) -> None:
        page = Page(checkout)
        checkout.advance(3_610)
        html = look(page)
        assert html.stage == "expired"
        assert escrow(page) not in html.text
        checkout.transfer(escrow(page), "25")
        html = look(page)
        assert html.stage == "late"
        assert "25.00\u00a0USDC" in html.text

    def test_short_at_the_end(self, checkout: Checkout) -> None:
        page = Page(checkout)
        checkout.transfer(escrow(page), "5")
        checkout.advance(3_610)
        html = look(page)
        assert html.stage == "short"
        assert escrow(page) not in html.text

    def test_cancelled(self, checkout: Checkout) -> None:
        page = Page(checkout, cancelUrl="https://shop.example/cart")
        checkout.api.call("POST", f"/v2/payments/{page.payment['id']}/cancel")
        html = look(page)
        assert html.stage == "cancelled"
        assert "https://shop.example/cart" in {one["href"] for one in html.all("a")}

    def test_refunded(self, checkout: Checkout) -> None:
        page = Page(checkout)
        checkout.transfer(escrow(page), "25")
        path = f"/v2/payments/{page.payment['id']}/refunds"
        body: dict[str, str] = {}
        seen = checkout.api.call("POST", path, body, key="refund")
        assert seen.status == 201, seen.body
        checkout.advance(60)
        html = look(page)
        assert html.stage == "refunded"
        assert "\u206825.00\u00a0USDC\u2069 has been sent back" in html.text

    def test_refunds_that_are_under_way_say_how_much_comes_back(self, checkout: Checkout) -> None:
        page = Page(checkout)
        checkout.transfer(escrow(page), "25")
        path = f"/v2/payments/{page.payment['id']}/refunds"
        for amount in ("5", "3.5"):
            seen = checkout.api.call("POST", path, {"amount": amount}, key=f"refund-{amount}")
            assert seen.status == 201, seen.body
        html = look(page)
        assert "\u20688.50\u00a0USDC\u2069 is being sent back" in html.text
        checkout.advance(60)
        html = look(page)
        assert "is being sent back" not in html.text
        assert "\u20688.50\u00a0USDC\u2069 of" in html.text

    def test_closed_while_something_is_held(self, checkout: Checkout) -> None:
        page = Page(checkout)
        checkout.transfer(escrow(page), "10")
        checkout.advance(3_610)
        id = page.payment["id"]
        body = {"action": "write_off"}
        checkout.api.call("POST", f"/v2/payments/{id}/reconcile", body, key="off")
        checkout.advance(60)
        html = look(page)
        assert html.stage == "failed"
        assert "\u206810.00\u00a0USDC\u2069 is still held" in html.text
        checkout.api.call("POST", f"/v2/payments/{id}/refunds", {}, key="back")
        checkout.advance(60)
        html = look(page)
        assert "\u206810.00\u00a0USDC\u2069 has been sent back" in html.text
        assert "still held" not in html.text

    def test_one_that_a_vault_alone_can_pay_sends_nobody_to_the_address(
        self, checkout: Checkout
    ) -> None:
        page = Page(checkout, allowedMethods=["vault"])
        html = look(page)
        assert "Pay in the merchant's app" in html.text
        assert "This page cannot take the payment" in html.text
        assert "Waiting for your payment" not in html.text
        assert escrow(page) not in html.text

    @pytest.mark.parametrize("stage", STAGES)
    def test_every_stage_and_every_notice_has_words_whose_amounts_are_filled_in(
        self, checkout: Checkout, stage: Any
    ) -> None:
        page = Page(checkout)
        shown = checkout.api.service.checkout.read_page(page.code, mode="sandbox")
        one = attrs.evolve(shown, stage=stage, notices=NOTICES)
        view = build_view(
            one, get_language("en"), "real", CHAINS, checkout.api.service.choose_explorer
        )
        for message in (view.state, *view.notices):
            assert message.heading
            assert message.text
            assert "%" not in message.text

    def test_the_tables_have_every_stage_and_every_notice(self) -> None:
        assert set(STAGE_WORDS) == set(STAGES)
        assert set(NOTICE_WORDS) == set(NOTICES)


class TestWhereAWalletIsLed:
    """A wallet knows a chain by its number: what it sends for a sandbox's own chain is lost."""

    @pytest.mark.parametrize("kind", ["simulated", "local"])
    @pytest.mark.parametrize("arrived", [None, "10"])
    @pytest.mark.parametrize("tag", LANGUAGES)
    def test_nothing_leads_to_the_real_network_of_a_sandboxs_chain(
        self, checkout: Checkout, kind: NetworkKind, arrived: str | None, tag: str
    ) -> None:
        page = Page(checkout.declare_network(kind))
        if arrived:
            checkout.transfer(escrow(page), arrived)
        seen = show(page, f"?lang={tag}")
        html, language = Html(seen.body), get_language(tag)
        for lead in (b"ethereum:", b"uint256", b"<svg", b'id="open"', b"link.metamask.io"):
            assert lead not in seen.body
        assert html.text.count(language.translate(NETWORK_WORDS[kind])) == 2
        assert language.translate("%(network)s (test network)", network="Base") in html.text
        is_offered = [one for one in html.all("div") if "data-secret" in one]
        assert bool(is_offered) == (kind == "local"), "the script compares the blocks"
        assert (page.secret in seen.body.decode()) == (kind == "local")

    def test_a_sandbox_without_other_chains_says_that_it_moves_real_money(
        self, checkout: Checkout
    ) -> None:
        page = Page(checkout.declare_network("real"))
        assert "what you send is real money" in look(page).text
        assert "test network" not in look(page).text.lower()

    def test_a_wallet_has_no_button_before_the_network_was_scanned(
        self, checkout: Checkout
    ) -> None:
        page = Page(checkout.declare_network("real"))
        shown = checkout.api.service.checkout.read_page(page.code, mode="sandbox")
        for landmark, is_offered in ((None, False), ((7, "0x" + "ab" * 32), True)):
            one = attrs.evolve(shown, landmark=landmark)
            view = build_view(
                one, get_language("en"), "real", CHAINS, checkout.api.service.choose_explorer
            )
            assert (view.client_secret is not None) == is_offered

    def test_the_block_to_compare_is_one_of_the_chain_and_changes_no_tag(
        self, checkout: Checkout
    ) -> None:
        page = Page(checkout.declare_network("real"))
        seen = []
        for _ in range(2):
            seen.append(show(page))
            [place] = [one for one in Html(seen[-1].body).all("div") if "data-secret" in one]
            block = checkout.api.service.chains[BASE].block(int(str(place["data-block-number"])))
            assert block is not None
            assert block.hash == place["data-block-hash"]
            checkout.advance(100)
        assert seen[0].headers["etag"] == seen[1].headers["etag"]
        assert seen[0].body != seen[1].body


class TestWhatItGivesAway:
    def test_the_secret_is_in_no_address_and_no_log(
        self, checkout: Checkout, caplog: pytest.LogCaptureFixture
    ) -> None:
        page = Page(checkout)
        with caplog.at_level(logging.DEBUG):
            seen = show(page)
        reported = [str(seen.headers), caplog.text]
        assert not any(page.secret in text or page.code in text for text in reported)
        addresses = [one.get("href") or one.get("src") for _, one in Html(seen.body).elements]
        assert not any(page.secret in str(address) for address in addresses)
        assert page.code not in seen.body.decode()

    def test_the_secret_is_in_the_page_once_and_while_its_script_can_use_it(
        self, checkout: Checkout
    ) -> None:
        page = Page(checkout.declare_network("real"))
        text = show(page).body.decode()
        assert text.count(page.secret) == 1
        [wallets] = [one for one in Html(text.encode()).all("div") if "data-secret" in one]
        assert wallets["data-secret"] == page.secret
        checkout.transfer(escrow(page), "25")
        assert "_secret_" not in show(page).body.decode(), "it is paid"
        late = Page(checkout)
        checkout.advance(3_610)
        assert "_secret_" not in show(late).body.decode(), "it has expired"

    def test_nothing_of_accounts_or_metadata(self, checkout: Checkout) -> None:
        page = Page(checkout, metadata={"internal": "margin-12"})
        text = show(page).body.decode()
        for private in ("margin-12", checkout.merchant, "acct_", checkout.api.partition):
            assert private not in text

    @pytest.mark.parametrize("attack", ATTACKS)
    def test_what_others_write_appears_as_text(self, checkout: Checkout, attack: str) -> None:
        terms = {"enabled": False, "branding": {"name": attack}, "version": 0}
        seen = checkout.api.call("PUT", "/v2/partners/payment-settings", terms)
        assert seen.status == 200, seen.body
        page = Page(checkout, reference=attack, description=attack)
        plain = look(Page(checkout, reference="x", description="x"))
        html = look(page)
        assert html.text.count(attack) == 3
        assert len(html.elements) == len(plain.elements)
        assert all(name[:2] != "on" for _, given in html.elements for name in given)


class TestErrors:
    def test_an_unknown_code_and_one_of_another_shape_are_pages_alike(
        self, checkout: Checkout
    ) -> None:
        page = Page(checkout)
        api = checkout.api
        unknown = api.call("GET", f"/pay/{page.code[:-4]}AAAA", auth=None)
        other = api.call("GET", "/pay/short", auth=None)
        for seen in (unknown, other):
            assert seen.status == 404
            assert seen.headers["content-type"] == "text/html; charset=utf-8"
            assert "There is no such payment" in Html(seen.body).text
            assert seen.headers["x-request-id"] in Html(seen.body).text
        number = re.compile(rb"req_[\w-]+")
        assert number.sub(b"", unknown.body) == number.sub(b"", other.body)

    def test_a_merchant_without_public_checkout_has_no_page(self, checkout: Checkout) -> None:
        page = Page(checkout)
        tenants = checkout.api.service.tenants
        tenants.set_products(checkout.api.partition, ["accounts", "payments"])
        seen = show(page)
        assert seen.status == 403
        assert "This payment cannot be shown" in Html(seen.body).text

    def test_storage_out_of_reach(self, checkout: Checkout) -> None:
        page = Page(checkout)
        checkout.api.service.out_of_reach()
        seen = show(page)
        assert seen.status == 503
        assert "What you have sent is not lost" in Html(seen.body).text
        assert "retry-after" in seen.headers

    def test_what_others_add_to_a_link_is_passed_over_and_a_credential_refused(
        self, checkout: Checkout
    ) -> None:
        page = Page(checkout)
        assert show(page, "?fbclid=1&utm_source=mail&utm_source=x").status == 200
        seen = show(page, f"?secret={page.secret}")
        assert seen.status == 400
        assert page.secret not in seen.body.decode()


class TestHeaders:
    def test_of_the_page_and_of_its_errors(self, checkout: Checkout) -> None:
        page = Page(checkout)
        for seen in (show(page), checkout.api.call("GET", "/pay/short", auth=None)):
            policy = dict(
                part.strip().partition(" ")[::2]
                for part in seen.headers["content-security-policy"].split(";")
            )
            assert policy["default-src"] == "'none'"
            assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
            assert policy["form-action"] == ("'self'" if seen.status == 200 else "'none'")
            assert policy["require-trusted-types-for"] == "'script'"
            assert "unsafe" not in seen.headers["content-security-policy"]
            assert "http" not in seen.headers["content-security-policy"]
            assert seen.headers["referrer-policy"] == "no-referrer"
            assert seen.headers["cache-control"] == "no-store"
            assert seen.headers["x-frame-options"] == "DENY"
            assert seen.headers["x-content-type-options"] == "nosniff"
            assert "set-cookie" not in seen.headers
            assert "access-control-allow-origin" not in seen.headers

    def test_nothing_is_loaded_from_elsewhere_and_nothing_is_inline(
        self, checkout: Checkout
    ) -> None:
        html = look(Page(checkout))
        loaded = [
            one.get("src") or one.get("href")
            for tag, one in html.elements
            if tag in ("link", "script", "img", "iframe", "object")
        ]
        assert loaded
        for path in loaded:
            seen = checkout.api.call("GET", str(path), auth=None)
            assert seen.status == 200
            again = {"If-None-Match": seen.headers["etag"]}
            assert checkout.api.call("GET", str(path), auth=None, headers=again).status == 304
        assert not [one for _, one in html.elements if "style" in one]
        assert not list(html.all("style"))

    def test_another_method_is_refused(self, checkout: Checkout) -> None:
        seen = checkout.api.call("PUT", f"/pay/{Page(checkout).code}", auth=None)
        assert (seen.status, seen.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")


@pytest.mark.parametrize("name", ["checkout", "wallet", "pairing"])
def test_a_script_is_sent_without_the_lines_of_its_comments(checkout: Checkout, name: str) -> None:
    seen = checkout.api.call("GET", f"/pay/assets/{name}.js", auth=None)
    lines = seen.body.decode().splitlines()
    assert len(lines) > 50
    assert [line for line in lines if line.lstrip().startswith("//")] == []
