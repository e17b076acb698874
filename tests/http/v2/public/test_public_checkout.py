"""Public checkout: what a payer's browser is shown of one Payment, and what it may do."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.storage.port import Storage
from tests.http.checkout import BASE, Checkout
from tests.http.payer_page import INVENTED, Page

WALLET = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
PUBLIC_FIELDS = {
    "id", "paymentId", "intent", "status", "statusVersion", "amount", "amountAtomic",
    "assetSymbol", "decimals", "chainId", "tokenAddress", "receivedAmountAtomic",
    "remainingAmountAtomic", "excessAmountAtomic", "refundedAmountAtomic", "escrow",
    "allowedMethods", "selectedOptionId", "options", "timeline", "reference", "description",
    "apiVersion", "successUrl", "cancelUrl", "createdBy", "expiresAt", "succeededAt",
    "cancelledAt", "createdAt", "updatedAt", "paymentUrl",
}  # fmt: skip


def test_a_browser_pays_from_the_link_to_the_end(storage: Storage) -> None:
    page = Page(Checkout(storage))
    link = page.exchange()
    assert link.status == 200
    assert link.json == {
        "paymentId": page.payment["id"],
        "clientSecret": page.secret,
        "expiresAt": page.payment["expiresAt"],
    }
    shown = page.call("GET").json
    assert (shown["status"], shown["remainingAmountAtomic"]) == ("awaiting_payment", "25000000")
    [direct, *others] = page.call("GET", "/methods").json["methods"]
    assert (direct["providerCode"], direct["available"]) == ("direct", True)
    assert [(one["providerCode"], one["available"]) for one in others] == [
        ("routing", True),
        ("hosted_onramp", True),
    ]
    option = page.option(payerAddress=WALLET.lower())
    assert (option["selectionStatus"], option["payerAddress"]) == (None, WALLET)
    assert option["execution"] == {
        "type": "transfer",
        "chainId": BASE,
        "tokenAddress": shown["tokenAddress"],
        "to": shown["escrow"]["address"],
        "amountAtomic": "25000000",
    }
    selected = page.call("POST", f"/options/{option['id']}/select").json["option"]
    assert selected["selectionStatus"] == "selected"
    body = {"chainId": BASE, "assetSymbol": "USDC", "amount": "25"}
    sent = page.checkout.api.call(
        "POST", "/v2/sandbox/transfers", {**body, "to": option["execution"]["to"]}
    )
    assert sent.status == 200
    submitted = page.submit(option, sent.json["transactionHash"])
    assert submitted.status == 202
    [named] = submitted.json["option"]["transactionSubmissions"]
    assert named["transactionHash"] == sent.json["transactionHash"]
    page.checkout.run()
    coming = page.now(option)
    assert (coming["status"], coming["execution"]) == ("processing", None)
    page.checkout.advance(60)
    done = page.now(option)
    assert (done["status"], done["isTerminal"], done["refreshable"]) == ("succeeded", True, False)
    assert (done["paidAmountAtomic"], done["remainingAmountAtomic"]) == ("25000000", "0")
    [receipt] = done["receipts"]
    assert (receipt["status"], receipt["optionId"]) == ("verified", option["id"])
    assert page.call("GET").json["status"] == "succeeded"
    [entry] = page.checkout.read(page.payment["id"])["options"]
    assert entry == {"option": done, "fundingOperation": None, "metadata": None}


class TestWhatIsShown:
    def test_the_payment_names_no_account_and_no_wallet(self, checkout: Checkout) -> None:
        page = Page(checkout, metadata={"order": "secret order"}, reference="order-7")
        shown = page.call("GET")
        assert set(shown.json) == PUBLIC_FIELDS
        assert shown.json["reference"] == "order-7"
        destination = checkout.read(page.payment["id"])["destination"]
        for hidden in (
            checkout.merchant, checkout.payer, destination["address"], "secret order",
            page.secret.partition("_secret_")[2], "merchant",
        ):  # fmt: skip
            assert hidden.encode() not in shown.body

    def test_a_vaults_option_stays_with_its_payer(self, checkout: Checkout) -> None:
        page = Page(checkout)
        vault = checkout.option(page.payment)
        shown = page.call("GET").json
        assert (shown["options"], shown["selectedOptionId"]) == ([], None)
        assert page.state().json["selectedOptionId"] is None
        assert page.call("GET", f"/options/{vault['id']}").status == 404

    def test_the_options_of_the_payment_are_in_it(self, checkout: Checkout) -> None:
        page = Page(checkout)
        first, second = page.option(), page.option(payerAddress=WALLET)
        page.call("POST", f"/options/{second['id']}/select")
        shown = page.call("GET").json
        assert [option["id"] for option in shown["options"]] == [first["id"], second["id"]]
        assert shown["selectedOptionId"] == second["id"]

    def test_nothing_is_to_be_sent_where_a_vault_has_authorized(self, checkout: Checkout) -> None:
        page = Page(checkout)
        option = page.option()
        assert checkout.authorize(page.payment, checkout.option(page.payment)).status == 200
        assert page.now(option)["execution"] is None
        seen = page.call("POST", f"/options/{option['id']}/select")
        assert (seen.status, seen.code) == (409, "option_locked")

    def test_what_is_on_its_way_is_not_asked_for_again(self, checkout: Checkout) -> None:
        """Nor does a stranger's dust take the rest from the payer."""
        page = Page(checkout)
        option, other = page.option(), page.option()
        to = option["execution"]["to"]
        body = {"chainId": BASE, "assetSymbol": "USDC", "to": to}
        checkout.api.call("POST", "/v2/sandbox/transfers", {**body, "amount": "0.000001"})
        checkout.run()
        assert page.now(other)["execution"]["amountAtomic"] == "24999999"
        assert page.now(option)["execution"]["amountAtomic"] == "24999999"
        assert page.option()["execution"]["amountAtomic"] == "24999999"
        checkout.api.call("POST", "/v2/sandbox/transfers", {**body, "amount": "24.999999"})
        checkout.run()
        assert page.now(other)["execution"] is None
        assert page.now(option)["execution"] is None

    def test_a_short_transfer_leaves_the_rest_to_be_sent(self, checkout: Checkout) -> None:
        page = Page(checkout)
        option = page.option()
        checkout.transfer(option["execution"]["to"], "10")
        now = page.now(option)
        assert (now["status"], now["execution"]["amountAtomic"]) == ("pending", "15000000")
        assert (now["paidAmountAtomic"], now["remainingAmountAtomic"]) == ("10000000", "15000000")
        other = page.option()
        assert other["requiredAmountAtomic"] == "15000000"
        refreshed = page.call("POST", f"/options/{option['id']}/refresh")
        assert refreshed.json["option"]["requiredAmountAtomic"] == "25000000"


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ({"providerCode": "vault"}, 403, "insufficient_permissions"),
            ({"providerCode": "routing"}, 400, "validation_error"),
            ({"providerCode": "hosted_onramp", "chainId": 137}, 422, "unsupported_chain"),
            ({"providerCode": "cash"}, 400, "validation_error"),
            ({}, 400, "validation_error"),
            ({"providerCode": "direct", "chainId": 137}, 422, "unsupported_chain"),
            ({"providerCode": "direct", "assetSymbol": "USDT"}, 422, "unsupported_asset"),
            ({"providerCode": "direct", "payerAddress": "0x1"}, 400, "validation_error"),
            ({"providerCode": "direct", "amount": "1"}, 400, "validation_error"),
        ],
    )
    def test_of_an_option(
        self, checkout: Checkout, body: dict[str, Any], status: int, code: str
    ) -> None:
        page = Page(checkout)
        seen = page.call("POST", "/options", body)
        assert (seen.status, seen.code) == (status, code)
        assert page.call("GET").json["options"] == []

    def test_of_a_method_that_the_payment_does_not_allow(self, checkout: Checkout) -> None:
        page = Page(checkout, allowedMethods=["vault"])
        seen = page.call("POST", "/options", {"providerCode": "direct"})
        assert (seen.status, seen.code) == (422, "capability_not_active")
        assert page.call("GET", "/methods").json["methods"] == []

    def test_of_the_eleventh_option(self, checkout: Checkout) -> None:
        page = Page(checkout)
        for number in range(1, 11):
            page.option(payerAddress=f"0x{number:040x}")
        seen = page.call("POST", "/options", {"providerCode": "direct"})
        assert (seen.status, seen.code) == (429, "payment_option_limit_reached")
        assert seen.json["error"]["details"]["limit"] == 10
        option = checkout.option(page.payment)  # an account's own vault is not kept out
        assert checkout.authorize(page.payment, option).status == 200

    def test_of_nothing_that_is_asked_for_again(self, checkout: Checkout) -> None:
        page = Page(checkout)
        assert page.option() == page.option()

    @pytest.mark.parametrize(
        ("body", "status", "paths"),
        [
            ({}, 400, {"transactionHash", "chainId"}),
            ({"transactionHash": "0x12", "chainId": BASE}, 400, {"transactionHash"}),
            (
                {"transactionHash": "a" * 129, "chainId": "8453"},
                400,
                {"transactionHash", "chainId"},
            ),
            ({"transactionHash": INVENTED, "chainId": 5}, 422, set()),
        ],
    )
    def test_of_a_submission(
        self, checkout: Checkout, body: dict[str, Any], status: int, paths: set[str]
    ) -> None:
        page = Page(checkout)
        option = page.option()
        seen = page.call("POST", f"/options/{option['id']}/submissions", body)
        assert seen.status == status
        if paths:
            assert set(seen.faults) == paths
        assert page.now(option)["transactionSubmissions"] == []

    def test_of_the_sixth_submission(self, checkout: Checkout) -> None:
        page = Page(checkout)
        option = page.option()
        for number in range(5):
            assert page.submit(option, f"0x{number:064x}").status == 202
        seen = page.submit(option, f"0x{5:064x}")
        assert (seen.status, seen.code) == (409, "conflict")
        checkout.transfer(option["execution"]["to"], "25")
        assert page.now(option)["status"] == "succeeded"

    def test_of_another_payments_option(self, checkout: Checkout) -> None:
        page, other = Page(checkout), Page(checkout)
        foreign, never = other.option(), "pay_option_" + "A" * 24
        for action in ("/select", "/refresh"):
            answers = [page.call("POST", f"/options/{id}{action}") for id in (foreign["id"], never)]
            assert {seen.status for seen in answers} == {404}
        assert page.submit(foreign).status == page.submit({"id": never}).status == 404


class TestBrowsers:
    @pytest.mark.parametrize("place", ["", "/state", "/options", "exchange"])
    def test_every_origin_may_ask_without_cookies(self, checkout: Checkout, place: str) -> None:
        page = Page(checkout)
        path = page.path + place
        if place == "exchange":
            path = f"/v2/public/payment-links/{page.code}/exchange"
        headers = {
            "Origin": "https://anywhere.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,idempotency-key",
        }
        seen = checkout.api.call("OPTIONS", path, auth=None, headers=headers)
        assert seen.status == 204
        assert seen.headers["access-control-allow-origin"] == "*"
        assert "Authorization" in seen.headers["access-control-allow-headers"]
        assert "ETag" in seen.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in seen.headers

    def test_a_retry_is_answered_with_what_was_stored(self, checkout: Checkout) -> None:
        page, other = Page(checkout), Page(checkout)
        body = {"providerCode": "direct"}
        first = page.call("POST", "/options", body, key="one")
        again = page.call("POST", "/options", body, key="one")
        assert (again.body, again.headers["idempotent-replayed"]) == (first.body, "true")
        assert len(page.call("GET").json["options"]) == 1
        assert other.call("POST", "/options", body, key="one").status == 201  # another principal
        option = first.json["option"]
        seen = page.call("POST", f"/options/{option['id']}/select", key="one")
        assert (seen.status, seen.code) == (409, "idempotency_conflict")
