"""Payments on the dashboard: the list, one Payment's story, and what is decided there."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import attrs
import pytest
from msgspec import UNSET

from payments_core.errors import NotFound
from payments_core.payments.refunding.operations import NewRefund
from payments_core.payments.refunding.reconciliation_rules import RECONCILIATION_ACTIONS
from payments_core.storage.memory.transaction import MemorySnapshot
from payments_core.tenants.record import PRODUCTS
from payments_core_http.dashboard.words import ACTION_WORDS, METHOD_WORDS
from tests.http.checkout import Checkout
from tests.http.console import HOOK, LATER, Console
from tests.http.dashboard.operator_browser import SCRIPT, OperatorBrowser, open_browser
from tests.http.pages.html import Html
from tests.http.pages.test_checkout_page import ATTACKS
from tests.http.pages.test_choices import ask_route
from tests.http.payer_page import Page

LIST = "/dashboard/payments"


def page(payment: Any) -> str:
    return f"{LIST}/{payment['id']}"


def make(checkout: Checkout, key: str = "create", **more: Any) -> Any:
    checkout.system.advance(0.01)
    seen = checkout.create(key=key, **more)
    assert seen.status == 201, seen.body
    return seen.json


def links(browser: OperatorBrowser, path: str) -> list[str]:
    found = [str(one["href"]) for one in browser.open(path).all("a")]
    return [href for href in found if re.fullmatch(f"{LIST}/payment_[^/]+", href)]


def pay(checkout: Checkout, payment: Any, amount: str = "25") -> None:
    checkout.transfer(payment["escrow"]["address"], amount)


def test_a_translator_of_the_browser_changes_no_id_and_no_address(checkout: Checkout) -> None:
    payment = make(checkout)
    pay(checkout, payment)
    html = open_browser(checkout).open(page(payment))
    [receipt] = checkout.read(payment["id"])["receipts"]
    for exact in (payment["id"], payment["escrow"]["address"], receipt["transactionHash"]):
        assert exact in html.text and exact not in html.translatable


def test_an_option_is_named_by_its_way_to_pay(checkout: Checkout) -> None:
    payer = Page(checkout)
    assert ask_route(payer).status == 303
    html = open_browser(checkout).open(page(payer.payment))
    assert METHOD_WORDS["routing"] in html.text
    assert METHOD_WORDS["direct"] not in html.text


class TestList:
    def test_a_page_asks_for_its_rows_and_for_nothing_more(
        self, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(60):
            make(checkout, f"k-{number}")
        browser = open_browser(checkout)
        first = re.findall(r'rel="next" href="([^"]+)"', browser.get(LIST).body.decode())
        deep = re.findall(
            r'rel="next" href="([^"]+)"', browser.get(LIST + unescape(first[0])).body.decode()
        )
        asked: list[tuple[str, int]] = []
        find = MemorySnapshot.find

        def note(snapshot: Any, kind: Any, index: str, *given: Any, **more: Any) -> Any:
            page = find(snapshot, kind, index, *given, **more)
            asked.append((f"{kind.__name__} {index}", len(page.records)))
            return page

        monkeypatch.setattr(MemorySnapshot, "find", note)
        for path, count in ((LIST, 25), (LIST + unescape(deep[0]), 10)):
            asked.clear()
            assert len(links(browser, path)) == count
            assert asked == [("Payment by_created", count)]

    def test_newest_first_by_pages(self, checkout: Checkout) -> None:
        browser = open_browser(checkout)
        made = [make(checkout, f"k-{number}") for number in range(27)]
        expected = [page(payment) for payment in reversed(made)]
        assert links(browser, LIST) == expected[:25]
        [following] = [
            one["href"] for one in browser.open(LIST).all("a") if one.get("rel") == "next"
        ]
        assert links(browser, LIST + str(following)) == expected[25:]
        assert not [
            one for one in browser.open(LIST + str(following)).all("a") if one.get("rel") == "next"
        ]

    def test_filters(self, checkout: Checkout) -> None:
        browser = open_browser(checkout)
        paid, waiting = make(checkout, "a", reference="order 1&2"), make(checkout, "b")
        pay(checkout, paid)
        assert links(browser, f"{LIST}?status=succeeded") == [page(paid)]
        assert links(browser, f"{LIST}?status=awaiting_payment") == [page(waiting)]
        assert links(browser, f"{LIST}?search=order+1%262") == [page(paid)]
        assert links(browser, f"{LIST}?intent=send") == []
        assert links(browser, f"{LIST}?search={checkout.merchant}") == [page(waiting), page(paid)]
        assert links(browser, f"{LIST}?from=2026-09-21&to=2026-09-21") == [
            page(waiting),
            page(paid),
        ]
        assert links(browser, f"{LIST}?from=2026-09-22") == []
        assert links(browser, f"{LIST}?to=2026-09-20") == []

    def test_filters_go_along_to_the_next_page_and_a_cursor_is_of_its_list(
        self, checkout: Checkout
    ) -> None:
        browser = open_browser(checkout)
        for number in range(30):
            make(checkout, f"k-{number}", reference="same")
        html = browser.open(f"{LIST}?search=same")
        [following] = [str(one["href"]) for one in html.all("a") if one.get("rel") == "next"]
        assert following.startswith("?search=same&cursor=")
        assert len(links(browser, LIST + following)) == 5
        assert browser.get(LIST + following.replace("search=same&", "")).status == 400
        assert browser.get(f"{LIST}?cursor=x").status == 400

    def test_an_id_leads_to_its_payment(self, checkout: Checkout) -> None:
        payment = make(checkout)
        seen = open_browser(checkout).get(f"{LIST}?search={payment['id']}")
        assert (seen.status, seen.headers["location"]) == (303, page(payment))

    @pytest.mark.parametrize("day", ["yesterday", "2026-13-01", "0000-01-01", "2026-09-21T00:00"])
    def test_an_invalid_day_is_refused_in_words(self, checkout: Checkout, day: str) -> None:
        seen = open_browser(checkout).get(f"{LIST}?from={day}")
        assert (seen.status, seen.code) == (400, "validation_error")
        assert b"must be a day" in seen.body


class TestStory:
    def test_it_has_everything_on_one_page(self, console: Console) -> None:
        payment = make(console, reference="order-7", metadata={"table": 7})
        pay(console, payment)
        text = open_browser(console).open(page(payment)).text
        for words in (
            "25.00 USDC", "Succeeded", "order-7", '"table": 7', payment["escrow"]["address"],
            "Awaiting payment", "Verified", "Escrow -25.00 USDC, Recipient 25.00 USDC",
            "payment.created", "payment.succeeded", "Refund",
        ):  # fmt: skip
            assert words in text
        assert payment["clientSecret"] not in text

    def test_its_events_are_listed_from_the_newest_on(self, console: Console) -> None:
        payment = make(console)
        pay(console, payment)
        names = re.findall(r"payment\.\w+", open_browser(console).open(page(payment)).text)
        assert names == [
            f"payment.{name}"
            for name in ("succeeded", "executing", "accepted", "processing", "created")
        ]

    def test_its_journal_has_the_accounts_that_something_was_posted_to(
        self, console: Console
    ) -> None:
        payment, browser = make(console), open_browser(console)
        accounts = r"(Payer|Escrow|Excess|Recipient|Fees|Offramp|Bank)(?=-?[\d.]+ USDC)"
        assert re.findall(accounts, browser.open(page(payment)).text) == ["Escrow"]
        pay(console, payment)
        text = browser.open(page(payment)).text
        assert re.findall(accounts, text) == ["Payer", "Escrow", "Recipient"]

    def test_a_vault_option_with_its_funding(self, checkout: Checkout) -> None:
        payment = make(checkout)
        checkout.authorize(payment, checkout.option(payment))
        checkout.advance(60)
        text = open_browser(checkout).open(page(payment)).text
        expected = (
            r"From the payer's vault\s+Succeeded\s+selected\s*25.00 USDC, funding\s+Confirmed"
        )
        assert re.search(expected, text)

    def test_without_the_product_it_has_no_events(self, checkout: Checkout) -> None:
        payment, browser = make(checkout), open_browser(checkout)
        tenants = checkout.api.service.tenants
        assert "payment.created" in browser.open(page(payment)).text
        tenants.set_products(checkout.api.partition, [p for p in PRODUCTS if p != "webhooks"])
        assert "payment.created" not in browser.open(page(payment)).text

    def test_who_may_not_see_payments_finds_the_way_to_the_rest(self, checkout: Checkout) -> None:
        browser = open_browser(checkout)
        tenants = checkout.api.service.tenants
        tenants.set_products(checkout.api.partition, ["accounts", "webhooks"])
        seen = browser.get(LIST)
        assert (seen.status, seen.code) == (403, "entitlement_required")
        found = [str(one["href"]) for one in Html(seen.body, LIST).all("a")]
        assert {"/dashboard/webhooks", "/dashboard/keys"} <= set(found)
        assert browser.get("/dashboard/webhooks").status == 200
        assert b"<nav" not in OperatorBrowser(checkout.api).get(LIST).body

    def test_a_payment_that_there_is_not(self, checkout: Checkout) -> None:
        browser = open_browser(checkout)
        for id in ("payment_" + "A" * 24, "x", "payment_"):
            seen = browser.get(f"{LIST}/{id}")
            assert (seen.status, seen.code) == (404, "not_found")

    def test_events_of_many_are_looked_through_and_that_ends(
        self, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        payment = make(checkout)
        for number in range(120):
            make(checkout, f"k-{number}")
        checkout.api.call("POST", f"/v2/payments/{payment['id']}/cancel", key="c")
        browser = open_browser(checkout)
        assert "payment.created" in browser.open(page(payment)).text
        monkeypatch.setattr("payments_core.webhooks.dispatch.replay.MAX_EVENTS_LOOKED_AT", 100)
        text = browser.open(page(payment)).text
        assert "payment.cancelled" in text
        assert "payment.created" not in text
        assert "Older events of this Payment may exist" in text


class TestRefund:
    def test_a_refund_is_reviewed_and_then_made(self, checkout: Checkout) -> None:
        payment, browser = make(checkout), open_browser(checkout)
        pay(checkout, payment)
        path = f"{page(payment)}/refund"
        assert "Up to 25.00 USDC can go back" in browser.open(path).text
        review = f"{path}?amount=4.50&reason=Stale+bread"
        text = browser.open(review).text
        assert "Confirm the refund" in text
        assert "4.50 USDC" in text
        assert "Stale bread" in text
        assert checkout.read(payment["id"])["refunds"] == []
        seen = browser.submit(review, path)
        assert (seen.status, seen.headers["location"]) == (303, page(payment))
        assert "The refund is created." in browser.open(seen.headers["location"]).text
        checkout.advance(60)
        after = checkout.read(payment["id"])
        assert (after["status"], after["refundedAmountAtomic"]) == ("partially_refunded", "4500000")
        assert after["refunds"][0]["reason"] == "Stale bread"

    def test_a_form_that_is_sent_twice_refunds_once(self, checkout: Checkout) -> None:
        payment, browser = make(checkout), open_browser(checkout)
        pay(checkout, payment)
        path = f"{page(payment)}/refund"
        form = browser.forms(f"{path}?amount=25")[path]
        first, again = browser.post(path, form), browser.post(path, form)
        assert (again.status, again.headers["location"]) == (303, first.headers["location"])
        assert again.headers["idempotent-replayed"] == "true"
        assert len(checkout.read(payment["id"])["refunds"]) == 1
        changed = browser.post(path, {**form, "amount": "1"})
        assert (changed.status, changed.code) == (409, "idempotency_conflict")

    def test_without_an_amount_there_is_nothing_to_confirm(self, checkout: Checkout) -> None:
        payment, browser = make(checkout), open_browser(checkout)
        pay(checkout, payment)
        path = f"{page(payment)}/refund"
        for given in ("?amount=", "?amount=+"):
            text = browser.open(path + given).text
            assert "You confirm the refund on the next page" in text
            assert "Confirm the refund" not in text

    def test_without_a_key_nothing_is_done(self, checkout: Checkout) -> None:
        payment, browser = make(checkout), open_browser(checkout)
        pay(checkout, payment)
        path = f"{page(payment)}/refund"
        form = browser.forms(f"{path}?amount=25")[path]
        for key, status in ((None, 400), ("", 400), ("é", 400)):
            fields = {name: text for name, text in form.items() if name != "idempotencyKey"}
            sent = fields if key is None else {**fields, "idempotencyKey": key}
            assert browser.post(path, sent).status == status
        assert checkout.read(payment["id"])["refunds"] == []

    @pytest.mark.parametrize(
        ("amount", "code"),
        [("25.01", "amount_out_of_range"), ("0", "amount_out_of_range"), ("x", "validation_error"),
         ("1e3", "validation_error"), ("-1", "validation_error"), ("", "validation_error")],
    )  # fmt: skip
    def test_what_the_api_refuses_is_refused_here(
        self, checkout: Checkout, amount: str, code: str
    ) -> None:
        payment, browser = make(checkout), open_browser(checkout)
        pay(checkout, payment)
        path = f"{page(payment)}/refund"
        form = browser.forms(f"{path}?amount=1")[path]
        seen = browser.post(path, {**form, "amount": amount})
        assert seen.code == code
        assert page(payment) in [one["href"] for one in Html(seen.body, path).all("a")]
        assert checkout.read(payment["id"])["refunds"] == []

    def test_the_plan_is_what_is_made(self, checkout: Checkout) -> None:
        payment = make(checkout)
        pay(checkout, payment, "10")
        checkout.advance(3_700)
        service = checkout.api.service
        authority = service.tenants.system_authority(checkout.api.partition)
        for new in (NewRefund(), NewRefund(amount="2")):
            [leg] = service.acting_as(authority).payments.plan_refund(payment["id"], new).legs
            made = service.acting_as(authority).payments.refund(payment["id"], new)
            assert (made.amount_atomic, made.destination) == (leg.amount_atomic, leg.to)
            assert made.from_escrow_atomic == leg.from_escrow_atomic
            if new.amount is UNSET:
                payment = make(checkout, "second")
                pay(checkout, payment, "10")
                checkout.advance(3_700)
        with pytest.raises(NotFound):
            service.acting_as(authority).payments.plan_refund("payment_" + "A" * 24, NewRefund())


RETURNED_TO = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"


class TestDecisions:
    def late(self, checkout: Checkout) -> Any:
        payment = make(checkout)
        checkout.advance(3_700)
        pay(checkout, payment)
        assert checkout.read(payment["id"])["status"] == "action_required"
        return payment

    def test_a_decision_is_confirmed_and_carried_out(self, checkout: Checkout) -> None:
        payment, browser = self.late(checkout), open_browser(checkout)
        path = f"{page(payment)}/reconcile"
        assert "Releases the funds in escrow" in browser.open(page(payment)).text
        seen = browser.submit(f"{path}?action=accept", path, note="He called us")
        assert seen.headers["location"] == page(payment)
        checkout.advance(60)
        after = checkout.read(payment["id"])
        assert after["status"] == "succeeded"
        assert after["reconciliation"]["note"] == "He called us"

    def test_what_does_not_count_is_shown_and_sent_back(self, checkout: Checkout) -> None:
        payment, browser = make(checkout), open_browser(checkout)
        checkout.transfer(payment["escrow"]["address"], "7", chainId=1, assetSymbol="USDT")
        shown = browser.open(page(payment)).text
        assert "7.00 USDT on Ethereum" in shown
        assert "misdirected" in shown
        [receipt] = checkout.read(payment["id"])["receipts"]
        path = f"{page(payment)}/reconcile"
        asked = f"{path}?action=return_misdirected&receiptId={receipt['id']}"
        assert "What arrived7.00 USDT on Ethereum" in browser.open(asked).text
        seen = browser.submit(asked, path, destination=RETURNED_TO, note="Not USDC")
        assert seen.headers["location"] == page(payment)
        checkout.advance(60)
        [after] = checkout.read(payment["id"])["receipts"]
        assert after["sentBack"]["status"] == "succeeded"
        assert after["sentBack"]["destination"] == RETURNED_TO
        assert checkout.read(payment["id"])["reconciliation"]["resolution"] == "return_misdirected"
        assert "Send back" not in browser.open(page(payment)).text

    def test_an_excess_goes_where_the_operator_says(self, checkout: Checkout) -> None:
        payment, browser = make(checkout), open_browser(checkout)
        pay(checkout, payment, "31.5")
        path = f"{page(payment)}/reconcile"
        browser.submit(f"{path}?action=refund_excess", path, destination=RETURNED_TO)
        checkout.advance(60)
        [refund] = checkout.read(payment["id"])["refunds"]
        assert (refund["destination"], refund["amount"]) == (RETURNED_TO, "6.50")

    def test_what_is_released_is_shown_without_the_excess(self, checkout: Checkout) -> None:
        payment, browser = make(checkout), open_browser(checkout)
        checkout.advance(3_700)
        pay(checkout, payment, "31.5")
        path = f"{page(payment)}/reconcile"
        text = browser.open(f"{path}?action=accept").text
        assert "In escrow31.50 USDC, including an excess of 6.50 USDC" in text
        assert "Released25.00 USDC" in text
        browser.submit(f"{path}?action=accept", path)
        checkout.advance(60)
        assert checkout.read(payment["id"])["settledAmountAtomic"] == "25000000"

    def test_only_what_is_possible_is_offered(self, checkout: Checkout) -> None:
        payment, browser = make(checkout), open_browser(checkout)
        path = f"{page(payment)}/reconcile"
        assert "reconcile?action" not in browser.get(page(payment)).body.decode()
        assert "This is not possible" in browser.open(f"{path}?action=accept").text
        form = browser.forms(f"{page(payment)}/cancel")[f"{page(payment)}/cancel"]
        assert browser.get(f"{path}?action=steal").status == 400
        assert browser.post(path, {**form, "action": "accept"}).code == "form_refused"

    def test_the_library_offers_exactly_what_it_allows(self, checkout: Checkout) -> None:
        payment = self.late(checkout)
        service = checkout.api.service
        authority = service.tenants.system_authority(checkout.api.partition)
        allowed = service.acting_as(authority).payments.list_allowed_actions(payment["id"])
        assert allowed == ("accept", "refund", "write_off")
        with pytest.raises(NotFound):
            service.acting_as(authority).payments.list_allowed_actions("payment_" + "A" * 24)

    def test_nothing_can_be_done_because_it_ended_or_continues(self, checkout: Checkout) -> None:
        browser = open_browser(checkout)
        paid, cancelled = make(checkout, "paid"), make(checkout, "cancelled")
        checkout.api.call("POST", f"/v2/payments/{cancelled['id']}/cancel")
        assert "Nothing. The Payment has ended." in browser.open(page(cancelled)).text
        pay(checkout, paid)
        checkout.api.call("POST", f"/v2/payments/{paid['id']}/refunds", {}, key="refund")
        assert "Nothing. The Payment continues automatically." in browser.open(page(paid)).text
        checkout.advance(60)
        assert "Nothing. The Payment has ended." in browser.open(page(paid)).text

    def test_the_network_of_a_sandbox_is_no_place_for_real_funds(self, checkout: Checkout) -> None:
        browser, payment = open_browser(checkout), make(checkout)
        assert "Send no real funds" in browser.open(page(payment)).text
        checkout.declare_network("real")
        assert "Send no real funds" not in browser.open(page(payment)).text

    def test_cancel(self, checkout: Checkout) -> None:
        payment, browser = make(checkout), open_browser(checkout)
        path = f"{page(payment)}/cancel"
        assert browser.submit(path, path).headers["location"] == page(payment)
        assert checkout.read(payment["id"])["status"] == "cancelled"
        assert path not in browser.get(page(payment)).body.decode()


class TestWhoseItIs:
    @pytest.fixture
    def foreign(self, checkout: Checkout) -> Any:
        """A Payment and an endpoint of another environment, of the same deployment."""
        service = checkout.api.service
        app = service.tenants.create_app("Other", "other")
        other = attrs.evolve(
            service.tenants.system_authority(app.environments["sandbox"]),
        )
        endpoint, _ = service.acting_as(other).webhooks.create(url=HOOK)
        delivery = service.acting_as(other).webhooks.test(endpoint.id)
        return endpoint.id, delivery

    def test_an_operator_sees_nothing_of_another_environment(
        self, checkout: Checkout, foreign: Any
    ) -> None:
        browser = open_browser(checkout)
        endpoint_id, delivery = foreign
        hook = f"/dashboard/webhooks/{endpoint_id}"
        for path in (
            hook, f"{hook}/rotate", f"{hook}/recover", f"{hook}/deliveries/{delivery.id}",
            f"/dashboard/events/{delivery.event_id}",
        ):  # fmt: skip
            seen = browser.get(path)
            assert (seen.status, seen.code) == (404, "not_found")
        for path in ("/dashboard/webhooks", "/dashboard/events"):
            assert endpoint_id not in browser.get(path).body.decode()

    def test_a_session_is_of_its_mode(self, checkout: Checkout) -> None:
        service = checkout.api.service
        environment_id = checkout.api.app_row.environments["production"]
        made = service.operators.create(environment_id, "paul")
        begun = service.operator_sessions.begin("paul", made.password, mode="production")
        assert OperatorBrowser(checkout.api).get(LIST, cookie=begun.token).status == 401
        assert OperatorBrowser(checkout.api).log_in("paul", made.password).status == 401


class TestText:
    @pytest.mark.parametrize("attack", ATTACKS)
    def test_what_others_write_appears_as_text(self, console: Console, attack: str) -> None:
        payment = make(
            console, reference=attack[:60], description=attack, metadata={attack: [attack]}
        )
        endpoint = console.endpoint()
        console.call("PATCH", f"/v2/console/webhooks/{endpoint['id']}", {"description": attack})
        console.receiver.answer = attrs.evolve(LATER, body=attack.encode())
        console.happen()
        console.run()
        console.api.service.tenants.create_key(console.api.partition, "standard", attack[:60])
        browser = open_browser(console)
        [delivery, *_] = console.deliveries(endpoint)
        for path, shows in (
            (page(payment), True),
            (LIST, True),
            (f"{LIST}?search={'%22%3E%3Cscript%3Ealert(1)%3C/script%3E'}", False),
            ("/dashboard/webhooks", True),
            (f"/dashboard/webhooks/{endpoint['id']}", True),
            (f"/dashboard/webhooks/{endpoint['id']}/deliveries/{delivery['id']}", True),
            (f"/dashboard/webhooks/{endpoint['id']}/health", False),
            ("/dashboard/keys", True),
        ):
            html = browser.open(path)
            assert not shows or attack[:60] in html.text, path
            drawn = {"svg"} if path.endswith("/health") else set()
            elements = [one for one in html.elements if one != SCRIPT]
            found = {tag for tag, _ in elements if tag in ("script", "img", "svg")}
            assert found <= drawn
            assert not [n for _, given in html.elements for n in given if n.startswith("on")]


def test_every_decision_has_words() -> None:
    assert set(ACTION_WORDS) == set(RECONCILIATION_ACTIONS)


OTHER = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"


class TestWhatCannotBeUndone:
    """It looks it, and is confirmed on a page that names the amount and whom it goes to."""

    @pytest.fixture
    def late(self, checkout: Checkout) -> Any:
        payment = make(checkout)
        checkout.advance(3_700)
        pay(checkout, payment, "31.5")
        return checkout.read(payment["id"])

    @pytest.mark.parametrize("destination", [None, OTHER])
    def test_a_decision_names_what_goes_where(
        self, checkout: Checkout, late: Any, destination: str | None
    ) -> None:
        browser, confirm = open_browser(checkout), f"{page(late)}/reconcile"
        target = destination or late["receipts"][0]["from"]
        given = f"&destination={destination}" if destination else ""
        html = browser.open(f"{confirm}?action=refund{given}")
        assert re.search(rf"Sent back\s*31.50 USDC to\s*{target}", html.text)
        assert "Refund everything 31.50 USDC" in html.text
        assert [one for one in html.all("button") if one.get("class") == "danger"]
        assert browser.submit(f"{confirm}?action=refund{given}", confirm).status == 303
        [refund] = checkout.read(late["id"])["refunds"]
        assert (refund["amountAtomic"], refund["destination"]) == ("31500000", target)

    def test_a_destination_that_cannot_be_is_refused_before_it_is_confirmed(
        self, checkout: Checkout, late: Any
    ) -> None:
        browser = open_browser(checkout)
        seen = browser.get(f"{page(late)}/reconcile?action=refund&destination=nowhere")
        assert (seen.status, "destination" in seen.body.decode()) == (400, True)

    def test_what_leads_there_looks_it_and_what_pays_the_recipient_does_not(
        self, checkout: Checkout, late: Any
    ) -> None:
        html = open_browser(checkout).open(page(late))
        looks = {
            str(one["href"]).rpartition("/")[2]: one["class"]
            for one in html.all("a")
            if "button" in str(one.get("class"))
        }
        assert looks == {
            "reconcile?action=accept": "button",
            "reconcile?action=refund": "button danger",
            "reconcile?action=refund_excess": "button danger",
            "reconcile?action=write_off": "button danger",
            "refund": "button danger",
        }

    def test_a_cancellation_names_the_amount_and_the_recipient(self, checkout: Checkout) -> None:
        payment = make(checkout, reference="order-5")
        html = open_browser(checkout).open(f"{page(payment)}/cancel")
        assert re.search(r"Amount\s*25.00 USDC\s*Reference\s*order-5\s*Recipient\s*0x", html.text)
        assert [one for one in html.all("button") if one.get("class") == "danger"]
