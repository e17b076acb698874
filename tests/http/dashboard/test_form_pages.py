"""What is made and changed by forms of the dashboard: links, settings, restricted keys."""

from __future__ import annotations

import re
from typing import Any

import pytest

from payments_core.tenants.record import PRODUCTS
from tests.http.api_harness import ApiHarness, Seen
from tests.http.console import Console
from tests.http.dashboard.operator_browser import OperatorBrowser, open_browser
from tests.http.pages.html import Html

LINK, SETTINGS, KEY = "/dashboard/links/new", "/dashboard/settings", "/dashboard/keys/new"


@pytest.fixture
def browser(console: Console) -> OperatorBrowser:
    return open_browser(console)


def about(seen: Seen, field: str) -> str:
    """What is said beside a field."""
    return seen.body.decode().partition(f'id="field-{field}-about"')[2].partition("</div>")[0]


class TestLinks:
    def test_a_link_is_made_once_listed_and_cancelled(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        fields = {
            **browser.forms(LINK)[LINK], "amount": "12.50", "destination": console.merchant,
            "destination:by": "accountId", "description": "Bread <b>", "expiresInSeconds": "900",
        }  # fmt: skip
        first, second = (browser.post(LINK, fields) for _ in range(2))
        path = first.headers["location"]
        assert (first.status, second.headers["location"]) == (303, path)
        page = browser.open(path)
        assert "The payment link is made." in page.text
        [made] = console.call("GET", "/v2/payments").json["data"]
        assert made["paymentUrl"] in page.text
        assert (made["amount"], made["description"]) == ("12.50", "Bread <b>")
        assert b"_secret_" not in browser.get(path).body
        assert path in {one["href"] for one in browser.open("/dashboard/links").all("a")}
        cancel = f"/dashboard/payments/{made['id']}/cancel"
        assert cancel in {one["href"] for one in page.all("a")}
        assert browser.submit(cancel, cancel).status == 303
        assert "Nobody can begin to pay by it now." in browser.open(path).text

    @pytest.mark.parametrize(
        ("by", "name"),
        [
            ("externalUserId", "merchant"),
            ("paymentAddress", "merchant@shop"),
            ("address", "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"),
        ],
    )
    def test_it_pays_whom_it_names(
        self, console: Console, browser: OperatorBrowser, by: str, name: str
    ) -> None:
        given = {"amount": "1", "destination": name, "destination:by": by}
        assert browser.submit(LINK, LINK, **given).status == 303
        [made] = console.call("GET", "/v2/payments").json["data"]
        assert made["destination"][by].lower() == name.lower()

    @pytest.mark.parametrize(
        ("changes", "field", "words", "status"),
        [
            ({"amount": "-1"}, "amount", "decimal string", 400),
            ({"amount": "0"}, "amount", "greater than zero", 422),
            ({"amount": ""}, "amount", "is required", 400),
            ({"destination": ""}, "destination", "is required", 400),
            ({"destination:by": "address"}, "destination", "address", 400),
            ({"destination": "nobody@shop", "destination:by": "paymentAddress"}, "", "", 404),
            ({"successUrl": "shop"}, "successUrl", "URL", 400),
            ({"chainId": "999"}, "chainId", "not supported", 422),
        ],
    )
    def test_what_is_wrong_is_beside_its_field(
        self,
        console: Console,
        browser: OperatorBrowser,
        changes: dict[str, str],
        field: str,
        words: str,
        status: int,
    ) -> None:
        given = {"amount": "1", "destination": console.merchant, "destination:by": "accountId"}
        seen = browser.submit(LINK, LINK, **{**given, **changes, "reference": "kept"})
        assert seen.status == status
        if field:
            assert words in about(seen, field)
            assert 'value="kept"' in seen.body.decode()
        assert console.call("GET", "/v2/payments").json["data"] == []


class TestSettings:
    def test_what_is_shown_can_be_sent_back(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        wanted = {
            "enabled": True, "allowedOrigins": ["https://shop.example", "https://b.example"],
            "allowedDestinations": [{
                "type": "wallet", "chainId": 8453,
                "address": "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f",
            }],
            "allowedMethods": ["vault", "direct"], "chains": [8453, 10], "assets": ["USDC"],
            "minAmount": "1.00", "maxAmount": "90.50", "expiresInSeconds": 900,
            "monitoringSeconds": 7_200, "underpaymentToleranceBps": 5, "feeBps": 25,
            "confirmations": {"8453": 12}, "successUrl": "https://shop.example/thanks",
            "cancelUrl": None,
            "branding": {
                "name": "Shop", "logoUrl": None, "primaryColor": "#1a2b3c", "currency": "EUR",
            },
        }  # fmt: skip
        path = "/v2/partners/payment-settings"
        console.call("PUT", path, wanted)
        before = console.call("GET", path).json
        assert browser.submit(SETTINGS, SETTINGS).headers["location"] == SETTINGS
        after = console.call("GET", path).json
        for name in ("version", "updatedAt"):
            before.pop(name)
            after.pop(name)
        assert sorted(after.pop("chains")) == sorted(before.pop("chains"))
        assert after == before

    def test_defaults_are_replaced_and_an_empty_field_is_no_limit(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        given = {"enabled": "on", "allowedOrigins": "https://a.example\n\nhttps://b.example\n"}
        for _ in range(2):
            assert browser.submit(SETTINGS, SETTINGS, **given, minAmount="5").status == 303
        assert browser.submit(SETTINGS, SETTINGS, minAmount=" ").status == 303
        now = console.call("GET", "/v2/partners/payment-settings").json
        assert now["allowedOrigins"] == ["https://a.example", "https://b.example"]
        assert (now["enabled"], now["minAmount"], now["version"]) == (True, None, 3)

    @pytest.mark.parametrize(
        ("field", "value", "words"),
        [
            ("allowedOrigins", "https://a.example\nshop", "Item 2:"),
            ("allowedDestinations", "8453 0x12", "Item 1: address"),
            ("allowedDestinations", "base 0x12", "Item 1: chainId must be an integer"),
            ("expiresInSeconds", "5", "must be 300 to 86400"),
            ("feeBps", "1.5", "must be an integer"),
            ("minAmount", "0", "greater than zero"),
            ("confirmations.8453", "0", "must be 1 to 1000"),
            ("branding.primaryColor", "red", "a color such as"),
            ("branding.currency", "EUE", "a currency of ISO 4217, such as EUR"),
        ],
    )
    def test_what_is_wrong_is_beside_its_field(
        self, console: Console, browser: OperatorBrowser, field: str, value: str, words: str
    ) -> None:
        seen = browser.submit(SETTINGS, SETTINGS, **{field: value})
        assert seen.status == 400
        assert words in about(seen, field.replace(".", "-"))
        assert console.call("GET", "/v2/partners/payment-settings").json["version"] == 0

    def test_several_faults_are_all_shown(self, browser: OperatorBrowser) -> None:
        seen = browser.submit(SETTINGS, SETTINGS, feeBps="x", expiresInSeconds="y")
        links = re.findall(rb'<a href="#(field-[^"]+)"', seen.body)
        assert links == [b"field-expiresInSeconds", b"field-feeBps"]
        Html(seen.body)

    def test_a_change_meanwhile_is_not_lost(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        fields = browser.forms(SETTINGS)[SETTINGS]
        console.call("PUT", "/v2/partners/payment-settings", {"enabled": False, "feeBps": 7})
        seen = browser.post(SETTINGS, {**fields, "feeBps": "8"})
        assert seen.status == 409
        assert "The settings are at version 1 now; read them again." in seen.body.decode()
        assert console.call("GET", "/v2/partners/payment-settings").json["feeBps"] == 7


def make_key(browser: OperatorBrowser, *scopes: str, **fields: str) -> Seen:
    chosen = {f"scopes:{scope}": "on" for scope in scopes}
    return browser.submit(KEY, KEY, **{"name": "reports", **chosen, **fields})


def secret_of(seen: Seen) -> str:
    assert seen.status == 200, seen.body
    [found] = re.findall(r"rk_sandbox_[\w-]+", seen.body.decode())
    return str(found)


def list_payments(api: ApiHarness, secret: str) -> int:
    return api.call("GET", "/v2/payments", auth=api.basic(secret)).status


class TestKeys:
    def test_its_secret_is_shown_once_and_opens_what_it_says(
        self, console: Console, browser: OperatorBrowser, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(0)
        seen = make_key(browser, "v2:payments")
        secret = secret_of(seen)
        api = console.api
        assert list_payments(api, secret) == 200
        assert api.call("GET", "/v2/accounts", auth=api.basic(secret)).status == 403
        for page in ("/dashboard/keys", "/dashboard/requests", KEY):
            assert secret not in browser.get(page).body.decode()
        assert secret not in caplog.text
        assert secret not in repr(api.service.tenants.get_environment(api.partition))

    def test_a_form_sent_twice_makes_one(self, console: Console, browser: OperatorBrowser) -> None:
        fields = {**browser.forms(KEY)[KEY], "name": "reports", "scopes:v2:payments": "on"}
        before = len(keys(console))
        assert secret_of(browser.post(KEY, fields)) == secret_of(browser.post(KEY, fields))
        assert len(keys(console)) == before + 1

    @pytest.mark.parametrize(
        ("scopes", "fields", "field", "words"),
        [
            ((), {}, "scopes", "at least one"),
            (("v2:payments",), {"name": ""}, "name", "is required"),
            (("v2:payments",), {"name": "x" * 65}, "name", "64"),
            (("v2:payments",), {"expiresInDays": "0"}, "expiresInDays", "1"),
        ],
    )
    def test_what_is_wrong_is_beside_its_field(
        self,
        console: Console,
        browser: OperatorBrowser,
        scopes: tuple[str, ...],
        fields: dict[str, str],
        field: str,
        words: str,
    ) -> None:
        before = len(keys(console))
        seen = make_key(browser, *scopes, **fields)
        assert seen.status == 400
        assert words in about(seen, field)
        assert len(keys(console)) == before

    def test_an_expiry_ends_it(self, console: Console, browser: OperatorBrowser) -> None:
        secret = secret_of(make_key(browser, "v2:payments", expiresInDays="1"))
        assert list_payments(console.api, secret) == 200
        console.system.advance(86_400)
        assert list_payments(console.api, secret) == 401

    def test_a_scope_of_a_product_that_is_off_is_marked(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        products = [one for one in PRODUCTS if one != "kyc"]
        console.api.service.tenants.set_products(console.api.partition, products)
        text = browser.open(KEY).text
        assert re.findall(r"(v2:\w+):[^(\n]*\(not enabled now\)", text) == ["v2:kyc"]

    def test_it_is_revoked_at_once(self, console: Console, browser: OperatorBrowser) -> None:
        secret = secret_of(make_key(browser, "v2:payments"))
        path = revocation(browser)
        assert "cannot be undone" in browser.open(path).text
        fields = browser.forms(path)[path]
        for _ in range(2):
            seen = browser.post(path, fields)
            assert (seen.status, seen.headers["location"]) == (303, "/dashboard/keys")
        assert list_payments(console.api, secret) == 401
        assert path not in {one["href"] for one in browser.open("/dashboard/keys").all("a")}
        assert "It is revoked already." in browser.open(path).text

    def test_a_standard_key_is_revoked_on_the_command_line_alone(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        restricted = (make_key(browser, "v2:payments"), revocation(browser))[1]
        [standard] = [one for one in keys(console) if one.kind == "standard"]
        path = f"/dashboard/keys/{standard.id}/revoke"
        assert path not in browser.forms(path)
        token = browser.forms(restricted)[restricted]
        assert browser.post(path, token).status == 403, "the form of another key"
        own = {**token, "formToken": form_token(browser, path)}
        assert browser.post(path, own).status == 409
        assert keys(console) == keys(console)
        [same] = [one for one in keys(console) if one.kind == "standard"]
        assert same.revoked_at is None
        assert browser.get("/dashboard/keys/key_nobodyxxxxxxxxxxxxxxxxxxxx/revoke").status == 404


def keys(console: Console) -> Any:
    return console.api.service.tenants.get_environment(console.api.partition).keys


def revocation(browser: OperatorBrowser) -> str:
    """Where the newest key is revoked."""
    links = [str(one["href"]) for one in browser.open("/dashboard/keys").all("a")]
    return next(one for one in links if one.endswith("/revoke"))


def form_token(browser: OperatorBrowser, action: str) -> str:
    from payments_core_http.browser_sessions import make_form_token

    key_ring = browser.api.service.parts.ports.key_ring
    return make_form_token(key_ring, browser.cookie or "", action)
