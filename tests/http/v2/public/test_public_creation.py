"""`POST /v2/public/apps/{appId}/payments`: a shop's page asks, without any credential."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from payments_core.clock import HOUR, FixedClock
from payments_core.engine.events import Event
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.tenants.record import PRODUCTS
from payments_core_http.app import create_app
from payments_core_http.throttling import Throttle
from tests.http.api_harness import ApiHarness
from tests.http.checkout import Checkout
from tests.http.counting import CountingLimiter
from tests.http.public_shop import BODY, CORS, ORIGIN, OTHER, SETTINGS, Shop
from tests.service.world import OTHER_WALLET, STRANGER, WALLET

PAGE = Path(__file__).parents[4] / "docs/how-to/public-checkout.md"


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_a_payment_is_created_and_shown_to_the_payer(shop: Shop) -> None:
    body = {
        **BODY, "assetSymbol": "USDC", "chainId": 8453, "reference": "order-1",
        "successUrl": f"{ORIGIN}/thanks", "cancelUrl": f"{OTHER}/cart",
    }  # fmt: skip
    seen = shop.create(body)
    assert seen.status == 201
    made = seen.json
    assert made["status"] == "awaiting_payment"
    assert (made["amount"], made["chainId"], made["reference"]) == ("25.00", 8453, "order-1")
    assert (made["successUrl"], made["cancelUrl"]) == (body["successUrl"], body["cancelUrl"])
    assert made["clientSecret"].startswith(made["paymentId"] + "_secret_")
    assert "/pay/" in made["paymentUrl"]
    assert not {"accountId", "externalUserId", "metadata", "destination", "fees"} & set(made)
    assert seen.headers["cache-control"] == "no-store"
    assert seen.headers["service-version"] == "2026-09-09"
    whole = shop.call("GET", f"/v2/payments/{made['paymentId']}").json
    assert (whole["accountId"], whole["externalUserId"]) == (None, None)
    assert (made["createdBy"], whole["createdBy"]) == ("public", "public")
    assert whole["destination"] == {
        "type": "wallet", "accountId": None, "externalUserId": None, "paymentAddress": None,
        "address": WALLET, "bankAccountId": None, "rail": None, "achReference": None,
        "wireMessage": None,
    }  # fmt: skip


def test_its_secret_opens_it_and_nothing_else(shop: Shop) -> None:
    made = shop.create().json
    path = f"/v2/public/payments/{made['paymentId']}"
    assert shop.call("GET", path, auth=f"Bearer {made['clientSecret']}").status == 200
    another = shop.create(key="k2").json
    assert shop.call("GET", path, auth=f"Bearer {another['clientSecret']}").status == 401


def test_its_events_name_no_account(shop: Shop) -> None:
    made = shop.create().json
    events = shop.service.parts.ports.storage.read(
        shop.partition, lambda s: s.find(Event, "by_created", limit=100).records
    )
    [event] = [one for one in events if one.payload.get("paymentId") == made["paymentId"]]
    assert (event.name, event.payload["accountId"]) == ("payment.created", None)
    assert event.payload["externalUserId"] is None
    assert (event.account_id, event.external_user_id) == (None, None)


def test_it_walks_to_its_end_in_the_sandbox() -> None:
    checkout = Checkout(MemoryStorage())
    api = checkout.api
    api.call("PUT", "/v2/partners/payment-settings", {**SETTINGS, "feeBps": 100})
    made = api.call(
        "POST", f"/v2/public/apps/{api.app_row.id}/payments", BODY,
        auth=None, key="k", headers={"Origin": ORIGIN},
    ).json  # fmt: skip
    to = made["escrow"]["address"]
    body = {"chainId": 8453, "assetSymbol": "USDC", "amount": "25.00", "to": to}
    assert api.call("POST", "/v2/sandbox/transfers", body).status == 200
    api.call("POST", "/v2/sandbox/clock", {"advanceSeconds": 120})
    whole = api.call("GET", f"/v2/payments/{made['paymentId']}").json
    assert (whole["status"], whole["settledAmountAtomic"]) == ("succeeded", "24750000")


class TestTheApp:
    def test_that_there_is_not_is_not_found_in_the_same_bytes(self, shop: Shop) -> None:
        live = shop.service.tenants.create_app("Live", "live", modes=("production",))
        ids = ("app_" + "A" * 24, live.id, "app_x", shop.partition, "env_" + "A" * 24, "directory")
        answers = [shop.create(app_id=id) for id in ids]
        for seen in answers:
            error = dict(seen.json["error"])
            error["details"].pop("requestId")
            assert error["details"].pop("docUrl").endswith("/docs/errors/not_found")
            wanted = {"code": "not_found", "message": "No such app."}
            assert (seen.status, error) == (404, {**wanted, "details": {"resource": "app"}})
            assert not set(CORS) & set(seen.headers)
        assert {tuple(seen.headers) for seen in answers} == {tuple(answers[0].headers)}
        assert shop.stored() == (0, 0)

    @pytest.mark.parametrize("product", ["payments", "public_checkout"])
    def test_needs_its_products(self, shop: Shop, product: str) -> None:
        left = [name for name in PRODUCTS if name != product]
        shop.service.tenants.set_products(shop.partition, left)
        seen = shop.create()
        assert (seen.status, seen.code) == (403, "entitlement_required")
        assert seen.json["error"]["details"]["product"] == product

    def test_that_is_closed_answers_as_without_the_product(self, shop: Shop) -> None:
        shop.set(enabled=False)
        closed = shop.create()
        shop.set()
        shop.service.tenants.set_products(
            shop.partition, [p for p in PRODUCTS if "public" not in p]
        )
        unentitled = shop.create()
        for seen in (closed, unentitled):
            assert (seen.status, seen.code) == (403, "entitlement_required")
            assert seen.json["error"]["details"]["product"] == "public_checkout"
        assert closed.json["error"]["message"] == (
            "The product public_checkout is not enabled in the payment settings: "
            "set enabled to true."
        )
        assert unentitled.json["error"]["message"] == (
            "The product public_checkout is not enabled for this environment."
        )

    def test_that_never_set_anything_is_closed(self, api: ApiHarness) -> None:
        path = f"/v2/public/apps/{api.app_row.id}/payments"
        seen = api.call("POST", path, BODY, auth=None, key="k", headers={"Origin": ORIGIN})
        assert (seen.status, seen.code) == (403, "entitlement_required")

    def test_in_the_url_alone_proves_nothing_whatever_else_is_sent(self, shop: Shop) -> None:
        for auth in (None, shop.basic(), "Bearer nonsense", "Basic nonsense"):
            assert shop.create(auth=auth, key=f"{auth}").status == 201
            assert shop.create(auth=auth, origin="https://evil.example").status == 403

    def test_of_another_versions_contract_is_not_called(self, shop: Shop) -> None:
        for version in ("2020-01-01", "x"):
            seen = shop.create(headers={"Service-Version": version})
            assert (seen.status, seen.code) == (400, "unsupported_version")


EXTRA: dict[str, Any] = {
    "feeBps": 0, "metadata": {}, "description": "x", "expiresInSeconds": 900, "intent": "receive",
    "allowedMethods": ["direct"], "accountId": "acct_" + "A" * 24, "externalUserId": "user-1",
    "environmentId": "env_" + "A" * 24, "webhookUrl": "https://evil.example/", "source": {},
    "mandateId": "x", "confirmations": 1, "underpaymentToleranceBps": 10_000, "fees": {},
    "providerCode": "x", "clientSecret": "x", "version": 1,
}  # fmt: skip


class TestTheBody:
    @pytest.mark.parametrize("name", EXTRA)
    def test_takes_nothing_else(self, shop: Shop, name: str) -> None:
        seen = shop.create({**BODY, name: EXTRA[name]})
        assert (seen.status, list(seen.faults)) == (400, [name])
        assert shop.stored() == (0, 0)

    @pytest.mark.parametrize(
        "destination",
        [
            {"type": "account", "accountId": "acct_" + "A" * 24},
            {"type": "account", "address": WALLET},
            {"type": "payment_address", "paymentAddress": "user@shop"},
            {"type": "bank_account", "bankAccountId": "x", "rail": "ach"},
            {"type": "wallet", "address": WALLET, "chainId": 8453},
            {"type": "wallet", "address": WALLET, "accountId": "acct_" + "A" * 24},
            {"type": "wallet"},
            {"type": "wallet", "address": ""},
            {"type": "wallet", "address": WALLET.replace("AFD", "aFD")},
            {"type": "wallet", "address": "0x" + "0" * 40},
            {"address": WALLET},
            WALLET,
            None,
        ],
    )
    def test_pays_a_wallet_and_nobody_else(self, shop: Shop, destination: Any) -> None:
        seen = shop.create({**BODY, "destination": destination})
        assert (seen.status, seen.code) == (400, "validation_error")
        assert all(path.startswith("destination") for path in seen.faults)

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"amount": "0.99"}, "amount_out_of_range"),
            ({"amount": "100.01"}, "amount_out_of_range"),
            ({"amount": "0"}, "amount_out_of_range"),
            ({"chainId": 5}, "unsupported_chain"),
            ({"assetSymbol": "USDT"}, "unsupported_asset"),
            ({"chainId": 1}, "destination_not_allowed"),
            ({"destination": {"type": "wallet", "address": STRANGER}}, "destination_not_allowed"),
            ({"destination": {"type": "wallet", "address": OTHER_WALLET}},
             "destination_not_allowed"),
        ],
    )  # fmt: skip
    def test_stays_within_the_settings(self, shop: Shop, change: Any, code: str) -> None:
        seen = shop.create({**BODY, **change})
        assert (seen.status, seen.code) == (422, code)
        assert shop.stored() == (0, 0)

    def test_reports_all_its_faults_at_once(self, shop: Shop) -> None:
        seen = shop.create(
            {**BODY, "amount": 25, "reference": "", "successUrl": "x", "extra": 1, "chainId": "1"}
        )
        assert set(seen.faults) == {"amount", "reference", "successUrl", "extra", "chainId"}
        seen = shop.create(
            {"amount": "1.0000001", "destination": {"type": "wallet", "address": "0x12"},
             "successUrl": "https://evil.example/", "cancelUrl": f"{ORIGIN}@evil.example/"}
        )  # fmt: skip
        assert set(seen.faults) == {"amount", "destination.address", "successUrl", "cancelUrl"}

    def test_holds_no_credential(self, shop: Shop) -> None:
        seen = shop.create({**BODY, "reference": shop.secret})
        assert (seen.status, list(seen.faults)) == (400, ["reference"])
        seen = shop.call("POST", shop.path() + f"?key={shop.secret}", BODY, auth=None, key="k",
                         headers={"Origin": ORIGIN})  # fmt: skip
        assert seen.status == 400
        assert shop.secret.encode() not in seen.body


class TestTheKey:
    def test_is_required(self, shop: Shop) -> None:
        seen = shop.create(key=None)
        assert (seen.status, seen.code) == (400, "idempotency_key_required")

    def test_is_answered_with_the_same_secret(self, shop: Shop) -> None:
        first, again = shop.create(), shop.create()
        assert (again.status, again.body) == (201, first.body)
        assert again.headers["idempotent-replayed"] == "true"
        assert "idempotent-replayed" not in first.headers
        assert shop.stored() == (1, 1)

    def test_must_be_random_and_the_page_says_why(self) -> None:
        text = PAGE.read_text(encoding="utf-8")
        paragraph = text[text.index("The `Idempotency-Key` must be random") :].partition("\n\n")[0]
        assert "gets the stored answer, with the payer's `clientSecret`" in paragraph

    def test_keeps_the_secret_sealed(self, shop: Shop) -> None:
        secret = shop.create().json["clientSecret"]
        [stored] = shop.service.parts.ports.storage.read(
            shop.partition, lambda s: s.find(StoredResponse, "by_expiry").records
        )
        assert secret not in repr(stored)
        assert secret.partition("_secret_")[2] not in stored.sealed_body

    def test_with_another_body_is_a_conflict(self, shop: Shop) -> None:
        shop.create()
        seen = shop.create({**BODY, "amount": "26.00"})
        assert (seen.status, seen.code) == (409, "idempotency_conflict")
        assert shop.stored() == (1, 1)

    def test_of_another_origin_is_another(self, shop: Shop) -> None:
        first, second = shop.create(), shop.create(origin=OTHER)
        assert (first.status, second.status) == (201, 201)
        assert first.json["paymentId"] != second.json["paymentId"]
        assert first.json["clientSecret"] != second.json["clientSecret"]

    def test_of_another_app_is_another(self, shop: Shop) -> None:
        tenants = shop.service.tenants
        other = tenants.create_app("Other", "other")
        _, secret = tenants.create_key(other.environments["sandbox"], "standard", "main")
        theirs = shop.call(
            "PUT", "/v2/partners/payment-settings", SETTINGS, auth=shop.basic(secret, other.id)
        )
        assert theirs.status == 200
        first, second = shop.create(), shop.create(app_id=other.id)
        assert (first.status, second.status) == (201, 201)
        assert first.json["paymentId"] != second.json["paymentId"]

    def test_of_the_backend_is_another(self, shop: Shop) -> None:
        body = {"intent": "receive", **BODY}
        assert shop.call("POST", "/v2/payments", body, key="k").status == 201
        assert shop.create().status == 201
        assert shop.stored() == (2, 2)

    def test_is_kept_for_an_hour(self) -> None:
        clock = FixedClock()
        shop = Shop(clock)
        first = shop.create()
        clock.advance(HOUR // 1_000 - 1)
        assert shop.create().body == first.body
        clock.advance(1)
        later = shop.create()
        assert later.status == 201
        assert later.json["paymentId"] != first.json["paymentId"]

    def test_of_a_refused_call_may_be_used_again(self, shop: Shop) -> None:
        assert shop.create({**BODY, "amount": "7000"}).status == 422
        assert shop.create().status == 201


def test_a_foreign_apps_wallet_is_not_allowed_here(shop: Shop) -> None:
    tenants = shop.service.tenants
    other = tenants.create_app("Other", "other")
    _, secret = tenants.create_key(other.environments["sandbox"], "standard", "main")
    wallet = {"type": "wallet", "chainId": 8453, "address": STRANGER}
    settings = {**SETTINGS, "allowedDestinations": [wallet]}
    auth = shop.basic(secret, other.id)
    shop.call("PUT", "/v2/partners/payment-settings", settings, auth=auth)
    body = {**BODY, "destination": {"type": "wallet", "address": STRANGER}}
    assert shop.create(body, app_id=other.id).status == 201
    assert shop.create(body).code == "destination_not_allowed"


def test_the_answer_to_other_methods_names_the_allowed_one(shop: Shop) -> None:
    for method in ("GET", "PUT", "DELETE"):
        seen = shop.call(method, shop.path(), auth=None, headers={"Origin": ORIGIN})
        assert (seen.status, seen.headers["allow"]) == (405, "OPTIONS, POST")


def test_one_address_creates_ten_a_minute_and_reads_why_there_are_no_more() -> None:
    clock = FixedClock()
    shop = Shop(clock)
    limited = Throttle(CountingLimiter(), clock=clock)
    shop.app = create_app(shop.service, mode="sandbox", throttle=limited)  # type: ignore[arg-type]
    here, there = ({"REMOTE_ADDR": f"203.0.113.{number}"} for number in (7, 8))
    seen = [shop.create(key=f"{n}", environ=here, valid=False) for n in range(11)]
    assert [answer.status for answer in seen] == [*[201] * 10, 429]
    assert seen[-1].json["error"]["details"]["rule"] == "public_creation"
    assert seen[-1].headers["access-control-allow-origin"] == ORIGIN
    assert shop.create(key="0", environ=here, valid=False).status == 429  # a replay counts too
    assert shop.create(key="x", environ=there, valid=False).status == 201
