"""Public checkout: a payer's browser, with one Payment's client secret and nothing else."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from payments_core.storage.memory import MemoryStorage
from payments_core.storage.port import Storage
from payments_core.tenants.record import PRODUCTS
from payments_core_http.v2.routes.public import CHECKOUT
from tests.http.checkout import BASE, Checkout
from tests.http.door import Seen

WALLET = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
INVENTED = "0x" + "ab" * 32
EVERY_RESPONSE = {
    "x-request-id", "service-version", "cache-control", "x-content-type-options",
    "access-control-allow-origin", "access-control-expose-headers",
}  # fmt: skip
PUBLIC_FIELDS = {
    "id", "paymentId", "intent", "status", "statusVersion", "amount", "amountAtomic",
    "assetSymbol", "decimals", "chainId", "tokenAddress", "receivedAmountAtomic",
    "remainingAmountAtomic", "excessAmountAtomic", "refundedAmountAtomic", "escrow",
    "allowedMethods", "selectedOptionId", "options", "timeline", "reference", "description",
    "apiVersion", "successUrl", "cancelUrl", "expiresAt", "succeededAt", "cancelledAt",
    "createdAt", "updatedAt",
}  # fmt: skip


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


class Page:
    """The payer's page on one Payment."""

    def __init__(self, checkout: Checkout, **more: Any) -> None:
        self.checkout = checkout
        seen = checkout.create(key=f"create-{id(self)}", **more)
        assert seen.status == 201, seen.body
        self.payment = seen.json
        self.path = f"/v2/public/payments/{self.payment['id']}"
        self.secret = self.payment["clientSecret"]

    def call(self, method: str, path: str = "", body: Any = None, **more: Any) -> Seen:
        more.setdefault("auth", f"Bearer {self.secret}")
        return self.checkout.door.call(method, self.path + path, body, **more)

    def option(self, **body: Any) -> Any:
        seen = self.call("POST", "/options", {"providerCode": "direct", **body})
        assert seen.status == 201, seen.body
        return seen.json["option"]

    def now(self, option: Any) -> Any:
        return self.call("GET", f"/options/{option['id']}").json["option"]

    def submit(self, option: Any, hash: str = INVENTED, chain_id: int = BASE) -> Seen:
        body = {"transactionHash": hash, "chainId": chain_id}
        return self.call("POST", f"/options/{option['id']}/submissions", body)

    def state(self, tag: str | None = None) -> Seen:
        return self.call("GET", "/state", headers={"If-None-Match": tag} if tag else None)

    @property
    def code(self) -> str:
        return str(self.payment["paymentUrl"].rpartition("/")[2])

    def exchange(self, code: str | None = None, **more: Any) -> Seen:
        path = f"/v2/public/payment-links/{self.code if code is None else code}/exchange"
        return self.checkout.door.call("POST", path, auth=None, **more)


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
        ("routing", False),
        ("hosted_onramp", False),
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
    sent = page.checkout.door.call(
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
            page.secret.partition("_secret_")[2], page.code, "merchant",
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
        first, second = page.option(), page.option()
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
        checkout.door.call("POST", "/v2/sandbox/transfers", {**body, "amount": "0.000001"})
        checkout.run()
        assert page.now(other)["execution"]["amountAtomic"] == "24999999"
        assert page.now(option)["execution"]["amountAtomic"] == "24999999"
        assert page.option()["execution"]["amountAtomic"] == "24999999"
        checkout.door.call("POST", "/v2/sandbox/transfers", {**body, "amount": "24.999999"})
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


class TestTheSecret:
    ROWS = tuple(row for row in CHECKOUT if row.needs is not None)

    def refused(self, page: Page, **more: Any) -> None:
        option_id = "pay_option_" + "A" * 24
        for row in self.ROWS:
            path = row.path.replace("{paymentId}", page.payment["id"])
            path = path.replace("{optionId}", option_id)
            seen = page.checkout.door.call(row.method, path, **more)
            assert (seen.status, seen.code) == (401, "unauthorized"), row.name
            assert seen.headers["www-authenticate"] == "Bearer"
            assert seen.headers["access-control-allow-origin"] == "*"

    def test_missing(self, checkout: Checkout) -> None:
        self.refused(Page(checkout), auth=None)

    def test_another_payments(self, checkout: Checkout) -> None:
        self.refused(Page(checkout), auth=f"Bearer {Page(checkout).secret}")

    def test_of_another_kind(self, checkout: Checkout) -> None:
        page = Page(checkout)
        door = checkout.door
        for auth in (
            door.basic(),
            f"Bearer {door.secret}",
            f"Bearer {checkout.access}",
            f"Bearer {page.payment['id']}",
            f"Bearer {page.code}",
            f"Basic {page.secret}",
            page.secret,
            f"Bearer {page.secret} ",
            f"Bearer {page.secret},Bearer {page.secret}",
            f"Bearer {page.secret[:-1]}",
        ):
            self.refused(page, auth=auth)

    def test_in_its_other_header(self, checkout: Checkout) -> None:
        page = Page(checkout)
        self.refused(page, auth=None, headers={"X-Service-Payment-Secret": page.secret})

    def test_in_the_query_or_the_body_is_refused_and_not_repeated(self, checkout: Checkout) -> None:
        page = Page(checkout)
        seen = page.call("GET", f"?clientSecret={page.secret}", auth=None)
        assert seen.status == 401
        seen = page.call("GET", f"?clientSecret={page.secret}")
        assert (seen.status, seen.code) == (400, "validation_error")
        assert page.secret.encode() not in seen.body
        body = {"providerCode": "direct", "clientSecret": page.secret}
        assert page.call("POST", "/options", body, auth=None).status == 401
        seen = page.call("POST", "/options", body)
        assert seen.status == 400
        assert page.secret.encode() not in seen.body

    def test_of_another_environment_and_of_another_mode(self, checkout: Checkout) -> None:
        page = Page(checkout)
        door = checkout.door
        other = door.service.tenants.create_app("Other", "other").environments["sandbox"]
        live = door.app_row.environments["production"]
        id = page.payment["id"]
        seen = page.call("GET", auth=f"Bearer {door.payment_secret(id, environment_id=other)}")
        never = page.call("GET", auth=f"Bearer {door.payment_secret('payment_' + 'A' * 24)}")
        assert (seen.status, never.status) == (404, 401)
        self.refused(page, auth=f"Bearer {door.payment_secret(id, environment_id=live)}")

    def test_after_the_end_reads_answer_and_actions_say_why_not(self, checkout: Checkout) -> None:
        cancelled, expired = Page(checkout), Page(checkout, expiresInSeconds=300)
        made = {page: page.option() for page in (cancelled, expired)}
        kept = cancelled.call("POST", "/options", {"providerCode": "direct"}, key="again")
        assert kept.status == 201
        checkout.door.call("POST", f"/v2/payments/{cancelled.payment['id']}/cancel")
        checkout.advance(300)
        for page, (status, code) in {
            cancelled: (409, "invalid_state"),
            expired: (422, "payment_expired"),
        }.items():
            option = made[page]
            for path in ("", "/state", "/methods", f"/options/{option['id']}"):
                assert page.call("GET", path).status == 200
            actions = [
                page.call("POST", "/options", {"providerCode": "direct"}),
                page.call("POST", f"/options/{option['id']}/select"),
                page.call("POST", f"/options/{option['id']}/refresh"),
                page.submit(option),
            ]
            assert [(seen.status, seen.code) for seen in actions] == [(status, code)] * 4
        again = cancelled.call("POST", "/options", {"providerCode": "direct"}, key="again")
        assert (again.status, again.body) == (201, kept.body)
        assert again.headers["idempotent-replayed"] == "true"

    def test_is_bound_to_the_version_that_it_was_made_under(self, checkout: Checkout) -> None:
        page = Page(checkout)
        version = page.payment["apiVersion"]
        agreed = page.call("GET", headers={"Service-Version": version})
        assert (agreed.status, agreed.headers["service-version"]) == (200, version)
        unknown = page.call("GET", headers={"Service-Version": "2020-01-01"})
        assert (unknown.status, unknown.code) == (400, "unsupported_version")

    def test_reaches_nothing_beside_the_public_routes(self, checkout: Checkout) -> None:
        page = Page(checkout)
        id, auth = page.payment["id"], f"Bearer {page.secret}"
        for method, path in (
            ("GET", f"/v2/payments/{id}"),
            ("POST", f"/v2/payments/{id}/cancel"),
            ("GET", f"/v2/client/me/payments/{id}/options"),
            ("POST", f"/v2/sessions/{page.payment['sessionId']}/dispute"),
        ):
            assert checkout.door.call(method, path, auth=auth).status == 401

    @pytest.mark.parametrize("off", ["payments", "public_checkout"])
    def test_needs_the_products(self, checkout: Checkout, off: str) -> None:
        page = Page(checkout)
        tenants = checkout.door.service.tenants
        tenants.set_products(checkout.door.partition, [name for name in PRODUCTS if name != off])
        for seen in (page.call("GET"), page.state(), page.exchange()):
            assert (seen.status, seen.code) == (403, "entitlement_required")


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ({"providerCode": "vault"}, 403, "insufficient_permissions"),
            ({"providerCode": "routing"}, 422, "capability_not_active"),
            ({"providerCode": "hosted_onramp"}, 422, "capability_not_active"),
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
        for _ in range(10):
            page.option()
        seen = page.call("POST", "/options", {"providerCode": "direct"})
        assert (seen.status, seen.code) == (429, "payment_option_limit_reached")

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


class TestTheState:
    def test_has_a_tag_that_changes_with_it_and_at_no_other_time(self, checkout: Checkout) -> None:
        page = Page(checkout)
        tags: list[str] = []

        def changed() -> bool:
            seen = page.state()
            assert seen.status == 200
            tag = seen.headers["etag"]
            assert tag.startswith('"')
            tags.append(tag)
            return len(tags) < 2 or tags[-1] != tags[-2]

        assert changed()
        assert not changed()
        checkout.advance(5)
        assert not changed()
        option = page.option()
        assert changed()
        page.submit(option)
        checkout.run()
        assert not changed()  # a hint moves nothing
        page.call("POST", f"/options/{option['id']}/refresh")
        assert not changed()
        page.call("POST", f"/options/{option['id']}/select")
        assert changed()
        body = {"chainId": BASE, "assetSymbol": "USDC", "amount": "25"}
        checkout.door.call(
            "POST", "/v2/sandbox/transfers", {**body, "to": option["execution"]["to"]}
        )
        checkout.run()
        assert changed()
        assert page.state().json["options"][0]["status"] == "processing"
        checkout.advance(60)
        assert changed()
        assert len(set(tags)) == 5
        assert page.state().json["status"] == "succeeded"

    def test_is_not_sent_to_whoever_has_it(self, checkout: Checkout) -> None:
        page = Page(checkout)
        first = page.state()
        tag = first.headers["etag"]
        for given in (tag, f'"other", {tag}', f"W/{tag}", "*"):
            seen = page.state(given)
            assert (seen.status, seen.body) == (304, b"")
            assert seen.headers["etag"] == tag
            assert set(seen.headers) >= EVERY_RESPONSE
        for given in ('"other"', tag.strip('"'), f"{tag}x", ""):
            assert page.state(given).status == 200
        page.option()
        assert page.state(tag).status == 200

    def test_is_small_and_says_how_it_stands(self, checkout: Checkout) -> None:
        page = Page(checkout)
        option = page.option()
        seen = page.state()
        assert len(seen.body) < 1_000
        assert seen.json == {
            "paymentId": page.payment["id"],
            "status": "awaiting_payment",
            "statusVersion": 1,
            "amountAtomic": "25000000",
            "receivedAmountAtomic": "0",
            "remainingAmountAtomic": "25000000",
            "excessAmountAtomic": "0",
            "refundedAmountAtomic": "0",
            "selectedOptionId": None,
            "options": [
                {
                    "id": option["id"],
                    "status": "pending",
                    "selectionStatus": None,
                    "paidAmountAtomic": "0",
                }
            ],
            "expiresAt": page.payment["expiresAt"],
        }

    def test_answers_head_alike(self, checkout: Checkout) -> None:
        page = Page(checkout)
        assert page.call("HEAD", "/state").headers["etag"] == page.state().headers["etag"]


class TestTheLink:
    def test_is_exchanged_by_anyone_who_has_it_as_often_as_they_like(
        self, checkout: Checkout
    ) -> None:
        page = Page(checkout)
        answers = [page.exchange() for _ in range(3)]
        assert {seen.body for seen in answers} == {answers[0].body}
        [seen, *_] = answers
        assert seen.headers["referrer-policy"] == "no-referrer"
        assert seen.headers["cache-control"] == "no-store"
        assert seen.headers["access-control-allow-origin"] == "*"
        secret = seen.json["clientSecret"]
        assert page.call("GET", auth=f"Bearer {secret}").status == 200

    def test_works_until_the_payment_expires(self, checkout: Checkout) -> None:
        page, cancelled = Page(checkout, expiresInSeconds=300), Page(checkout)
        checkout.door.call("POST", f"/v2/payments/{cancelled.payment['id']}/cancel")
        assert cancelled.exchange().status == 200
        checkout.advance(300)
        seen = page.exchange()
        assert (seen.status, seen.code) == (422, "payment_expired")
        assert page.secret.encode() not in seen.body

    def test_that_is_unknown_is_not_found_in_the_same_bytes(self, checkout: Checkout) -> None:
        page = Page(checkout)
        wrong = [
            page.code[:-1] + ("A" if page.code[-1] != "A" else "B"),
            page.code[:24] + "A" * 24,
            "A" * 48,
            "A" * 47,
            page.code + "A",
            page.payment["id"],
            "%00",
        ]
        answers = []
        for code in wrong:
            seen = page.exchange(code)
            error = dict(seen.json["error"])
            error["details"].pop("requestId")
            answers.append((seen.status, error))
        assert answers == [answers[0]] * len(wrong)
        assert answers[0][0] == 404
        assert answers[0][1]["code"] == "not_found"

    def test_is_not_in_any_log_whatever_happens(
        self, checkout: Checkout, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        page = Page(checkout)
        door = checkout.door
        path = f"/v2/public/payment-links/{page.code}/exchange"
        page.exchange()
        door.call("GET", path, auth=None)
        door.call("POST", path + "/more", auth=None)
        door.call("POST", path, auth=None, raw=b"{")
        door.call("POST", f"{path}?a=1", auth=None)
        door.service.out_of_reach()
        assert page.exchange().status == 503
        assert page.code not in caplog.text
        assert page.code[24:] not in caplog.text


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
        seen = checkout.door.call("OPTIONS", path, auth=None, headers=headers)
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
