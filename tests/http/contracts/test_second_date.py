"""Two dates side by side: an older contract, which differs, and the newest.

The dates are those of `tests/dates`. Every answer here is also held against the OpenAPI document of
its date, by `ApiHarness`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from payments_core.accounts.capabilities.record import PRODUCT_OF_CAPABILITY
from payments_core.clock import FixedClock, parse_iso
from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.policies import RateLimits
from payments_core.tenants.record import PRODUCTS
from payments_core_http.app import create_app
from payments_core_http.openapi.document import build_document
from payments_core_http.throttling import Throttle
from tests.dates import NEWER, OLDER, VERSIONS
from tests.http.api_harness import Seen
from tests.http.console import HOOK, Console


@pytest.fixture
def shop() -> Console:
    return Console(versions=VERSIONS)


def pin(shop: Console, version: str) -> None:
    shop.api.service.tenants.set_api_version(shop.api.partition, version)


def make(shop: Console, key: str = "create") -> Any:
    seen = shop.create(key=key)
    assert seen.status == 201, seen.body
    return seen.json


class TestAnswers:
    def test_each_pin_gets_its_own_names_and_words(self, shop: Console) -> None:
        newer = make(shop)
        assert newer["status"] == "awaiting_payment" and "checkoutUrl" not in newer
        pin(shop, OLDER)
        older = shop.read(newer["id"])
        assert (older["checkoutUrl"], older["status"]) == (newer["paymentUrl"], "open")
        assert "paymentUrl" not in older
        listed = shop.call("GET", "/v2/payments").json["data"]
        assert [one["checkoutUrl"] for one in listed] == [newer["paymentUrl"]]

    def test_objects_inside_of_an_answer_differ_too(self, shop: Console) -> None:
        pin(shop, OLDER)
        wallet = {"address": "0x" + "1" * 40, "chainType": "evm", "name": "main"}
        body = {"externalUserId": "with-wallet", "wallets": [wallet]}
        older = shop.call("POST", "/v2/accounts", body).json
        path = f"/v2/accounts/{older['id']}/wallets"
        [one] = shop.call("GET", path).json["data"]
        assert one["name"] == "main" and "label" not in one
        pin(shop, NEWER)
        [one] = shop.call("GET", path).json["data"]
        assert one["label"] == "main" and "name" not in one

    def test_a_cached_answer_is_of_the_version_that_asks(self, shop: Console) -> None:
        made = make(shop)
        path = f"/v2/payments/{made['id']}"
        newer = shop.call("GET", path).body
        pin(shop, OLDER)
        older = shop.call("GET", path).body
        assert shop.call("GET", path).body == older != newer
        pin(shop, NEWER)
        assert shop.call("GET", path).body == newer

    def test_a_replay_is_what_was_answered_first(self, shop: Console) -> None:
        pin(shop, OLDER)
        first = shop.create(key="once")
        pin(shop, NEWER)
        again = shop.create(key="once")
        assert (again.body, again.headers["service-version"]) == (first.body, OLDER)
        assert again.headers["idempotent-replayed"] == "true"
        assert "checkoutUrl" in again.json

    def test_a_token_and_a_secret_keep_their_version(self, shop: Console) -> None:
        pin(shop, OLDER)
        made = make(shop)
        token = shop.access_token("merchant", "payments:read")
        pin(shop, NEWER)
        own = shop.call("GET", f"/v2/client/me/payments/{made['id']}", auth=f"Bearer {token}")
        assert own.headers["service-version"] == OLDER
        assert own.json["checkoutUrl"] == made["checkoutUrl"]
        public = f"/v2/public/payments/{made['id']}"
        bearer = f"Bearer {made['clientSecret']}"
        seen = shop.call("GET", public, auth=bearer)
        assert (seen.status, seen.headers["service-version"]) == (200, OLDER)
        asked = {"Service-Version": NEWER}
        assert shop.call("GET", public, auth=bearer, headers=asked).code == "version_mismatch"

    def test_the_script_of_the_page_speaks_the_newest(self, shop: Console) -> None:
        pin(shop, OLDER)
        made = make(shop)
        code = made["checkoutUrl"].rpartition("/")[2]
        service = shop.api.service
        page = service.checkout.read_page(code, mode="sandbox")
        assert page.client_secret is not None
        assert (
            service.parts.ports.tokens.read_payment_secret(page.client_secret).api_version == NEWER
        )
        exchanged = service.checkout.exchange_link(code, mode="sandbox").client_secret
        assert service.parts.ports.tokens.read_payment_secret(exchanged).api_version == OLDER


class TestBodies:
    def test_a_field_that_is_required_now_has_its_older_meaning(self, shop: Console) -> None:
        body = {"externalUserId": "silent"}
        assert shop.call("POST", "/v2/accounts", body).code == "validation_error"
        pin(shop, OLDER)
        assert shop.call("POST", "/v2/accounts", body).json["subjectType"] == "individual"

    def test_a_default_is_that_of_the_version(self, shop: Console) -> None:
        def lifetime(**more: Any) -> int:
            session = shop.api.session(externalUserId="payer", **more).json
            return (parse_iso(session["expiresAt"]) - parse_iso(session["createdAt"])) // 1_000

        assert lifetime() == 900
        pin(shop, OLDER)
        assert (lifetime(), lifetime(expiresInSeconds=None), lifetime(expiresInSeconds=70)) == (
            600,
            600,
            70,
        )

    @pytest.mark.parametrize(
        ("body", "fault"),
        [
            ({"subjectType": "individual"}, ("subjectType", "is not a known field")),
            ({"wallets": [{"label": "x"}]}, ("wallets[0].label", "is not a known field")),
            ({"other": 1}, ("other", "is not a known field")),
            ({"wallets": [{"name": 1}]}, ("wallets[0].name", "must be a string")),
            ({"wallets": ["x"]}, ("wallets[0]", "must be an object")),
            ({"wallets": {"label": 1}}, ("wallets", "must be an array")),
            ({"settlement": 7}, ("settlement", "must be an object")),
            ({"[": 7}, ("[", "is not a known field")),
            ({"[0]x": 7}, ("[0]x", "is not a known field")),
        ],
    )
    def test_faults_have_the_names_of_the_version(
        self, shop: Console, body: Any, fault: tuple[str, str]
    ) -> None:
        pin(shop, OLDER)
        wallets = body.get("wallets")
        if isinstance(wallets, list) and isinstance(wallets[0], dict):
            body = {"wallets": [{"address": "0x" + "1" * 40, "chainType": "evm", **wallets[0]}]}
        seen = shop.call("POST", "/v2/accounts", {"externalUserId": "faulty", **body})
        faults = [(one["path"], one["message"]) for one in seen.json["error"]["details"]["fields"]]
        assert (seen.code, faults) == ("validation_error", [fault])

    @pytest.mark.parametrize("body", [[], "text", None, 3])
    def test_what_is_no_object_is_refused_as_by_the_newest(self, shop: Console, body: Any) -> None:
        raw = json.dumps(body).encode()
        newer = shop.call("POST", "/v2/accounts", raw=raw)
        pin(shop, OLDER)
        older = shop.call("POST", "/v2/accounts", raw=raw)
        assert older.status == newer.status == 400
        assert older.json["error"]["details"]["fields"] == newer.json["error"]["details"]["fields"]


RETRIED = {"externalUserId": "retried"}


class TestRetries:
    """The answer to a request is lost, and its pin is moved before the caller asks again."""

    def create(self, shop: Console, **more: Any) -> Seen:
        return shop.call("POST", "/v2/accounts", RETRIED, key="retry", **more)

    def test_a_body_of_the_older_contract_is_answered_again(self, shop: Console) -> None:
        pin(shop, OLDER)
        first = self.create(shop)
        pin(shop, NEWER)
        again = self.create(shop)
        assert (first.status, again.body) == (201, first.body)

    def test_a_request_with_the_older_version_is_answered_again(self, shop: Console) -> None:
        pin(shop, OLDER)
        headers = {"Service-Version": OLDER}
        first = self.create(shop, headers=headers)
        pin(shop, NEWER)
        again = self.create(shop, headers=headers)
        assert (again.body, again.headers["service-version"]) == (first.body, OLDER)

    @pytest.mark.parametrize("headers", [{}, {"Service-Version": OLDER}])
    def test_what_was_never_answered_is_refused(
        self, shop: Console, headers: dict[str, str]
    ) -> None:
        code = "version_mismatch" if headers else "validation_error"
        assert self.create(shop, headers=headers).code == code
        assert shop.call("POST", "/v2/accounts", RETRIED, headers=headers).code == code

    def test_another_request_with_the_key_is_refused_for_its_own_fault(self, shop: Console) -> None:
        pin(shop, OLDER)
        self.create(shop)
        pin(shop, NEWER)
        other = {"externalUserId": "other"}
        assert shop.call("POST", "/v2/accounts", other, key="retry").code == "validation_error"
        headers = {"Service-Version": OLDER}
        seen = shop.call("POST", "/v2/accounts", other, key="retry", headers=headers)
        assert seen.code == "version_mismatch"

    def test_a_key_without_the_right_gets_no_answer(self, shop: Console) -> None:
        auth = shop.api.basic(shop.half["v2:console"])
        seen = self.create(shop, auth=auth, headers={"Service-Version": OLDER})
        assert seen.code == "version_mismatch"

    def test_it_counts_in_the_limits_once_its_version_is_right(self, shop: Console) -> None:
        pin(shop, OLDER)
        headers = {"Service-Version": OLDER}
        facts: dict[str, Any] = {"headers": headers, "valid": False}
        first = self.create(shop, headers=headers)
        pin(shop, NEWER)
        limits = RateLimits({"sensitive_minute": 1})
        shop.api.app = create_app(
            shop.api.service,  # type: ignore[arg-type]
            mode="sandbox",
            throttle=Throttle(MemoryLimiter(), limits, clock=FixedClock()),
        )
        again = self.create(shop, **facts)
        assert (again.status, again.body) == (201, first.body)
        assert again.headers["ratelimit-remaining"] == "0"
        assert self.create(shop, **facts).code == "rate_limited"
        other = shop.call("POST", "/v2/accounts", RETRIED, key="other", **facts)
        assert other.code == "version_mismatch"

    def test_a_caller_without_the_product_of_the_body_gets_no_answer(self, shop: Console) -> None:
        pin(shop, OLDER)
        path = f"/v2/accounts/{shop.payer}/capability-activations"
        facts: dict[str, Any] = {"key": "payout", "headers": {"Service-Version": OLDER}}
        body = {"capability": "us_bank_payout"}
        first = shop.call("POST", path, body, **facts)
        assert first.status == 202
        pin(shop, NEWER)
        assert shop.call("POST", path, body, **facts).body == first.body
        tenants, product = shop.api.service.tenants, PRODUCT_OF_CAPABILITY["us_bank_payout"]
        tenants.set_products(shop.api.partition, sorted({*PRODUCTS} - {product}))
        assert shop.call("POST", path, body, **facts).code == "version_mismatch"


class TestEvents:
    def created(self, shop: Console, payment: Any) -> list[Any]:
        shop.run()
        bodies = [json.loads(request.body) for request in shop.receiver.sent]
        shop.receiver.sent.clear()
        return [one for one in bodies if one["payload"].get("paymentId") == payment["id"]]

    def test_a_delivery_is_of_the_version_of_its_payment(self, shop: Console) -> None:
        shop.endpoint(HOOK, "payment.created", "payment.cancelled")
        pin(shop, OLDER)
        older = make(shop, "older")
        [event] = self.created(shop, older)
        assert (event["apiVersion"], event["payload"]["currency"]) == (OLDER, "USDC")
        pin(shop, NEWER)
        newer = make(shop, "newer")
        [event] = self.created(shop, newer)
        assert event["apiVersion"] == NEWER and "currency" not in event["payload"]
        shop.call("POST", f"/v2/payments/{older['id']}/cancel")
        [event] = self.created(shop, older)
        assert (event["apiVersion"], event["payload"]["currency"]) == (OLDER, "USDC")

    def test_events_are_listed_as_they_are_delivered(self, shop: Console) -> None:
        pin(shop, OLDER)
        made = make(shop)
        pin(shop, NEWER)
        listed = shop.call("GET", "/v2/console/events").json["data"]
        [event] = [one for one in listed if one["payload"].get("paymentId") == made["id"]]
        assert (event["apiVersion"], event["payload"]["currency"]) == (OLDER, "USDC")
        read = shop.call("GET", f"/v2/console/events/{event['id']}").json
        assert read == event

    def test_the_core_stores_the_newest_shape(self, shop: Console) -> None:
        pin(shop, OLDER)
        made = make(shop)
        service = shop.api.service
        authority = service.tenants.system_authority(shop.api.partition)
        [event] = [
            one
            for one in service.acting_as(authority).events.list().records
            if one.payload.get("paymentId") == made["id"]
        ]
        assert event.api_version == OLDER and "currency" not in event.payload

    def test_a_triggered_event_and_the_catalogue_are_of_the_pin(self, shop: Console) -> None:
        def fields() -> list[str]:
            catalogue = shop.call("GET", "/v2/console/webhooks").json["eventCatalog"]
            [row] = [one for one in catalogue if one["name"] == "payment.created"]
            return list(row["fields"])

        assert "currency" not in fields()
        pin(shop, OLDER)
        assert "currency" in fields()
        seen = shop.call("POST", "/v2/sandbox/events", {"name": "payment.created"})
        assert seen.json["payload"]["currency"] == seen.json["payload"]["assetSymbol"]


class TestDocuments:
    def test_each_date_has_its_own_document(self, shop: Console) -> None:
        for date in (OLDER, NEWER):
            seen = shop.call("GET", f"/openapi-{date}.json", auth=None)
            assert (seen.status, seen.json) == (200, build_document(date, versions=VERSIONS) | {
                "paths": seen.json["paths"], "tags": seen.json["tags"],
                "components": seen.json["components"], "servers": seen.json["servers"],
            })  # fmt: skip
        assert shop.call("GET", "/openapi.json", auth=None).json["info"]["version"] == NEWER

    def test_an_older_document_has_its_schemas_and_examples(self) -> None:
        whole = build_document(OLDER, versions=VERSIONS)
        schemas, examples = whole["components"]["schemas"], whole["components"]["examples"]
        assert "checkoutUrl" in schemas["Payment"]["required"]
        assert "checkoutUrl" in examples["Payment"]["value"]
        assert "subjectType" not in schemas["CreateAccount"]["properties"]
        assert "subjectType" not in examples["CreateAccount"]["value"]
        assert "name" in examples["WalletPage"]["value"]["data"][0]
        assert schemas["CreateClientSession"]["properties"]["expiresInSeconds"]["default"] == 600
        created = whole["webhooks"]["payment.created"]["post"]["requestBody"]["content"]
        assert created["application/json"]["example"]["payload"]["currency"] == "USDC"
        assert examples["Payment"]["value"]["apiVersion"] == OLDER
        assert build_document(NEWER, versions=VERSIONS)["info"]["version"] == NEWER
