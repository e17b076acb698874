"""Credentials: each in its own header and scheme, all others refused alike."""

from __future__ import annotations

import base64
from typing import Any, ClassVar

from payments_core.clock import FixedClock, to_datetime
from payments_core.credentials.secrets import new_secret
from payments_core_http.routes import ROUTES
from tests.changed_text import change_end
from tests.http.api_harness import ApiHarness

BASIC = 'Basic realm="payments", charset="UTF-8"'
PAYMENT = "payment_" + "A" * 24
OTHER = "payment_" + "B" * 24


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def refusal(seen: Any) -> dict[str, Any]:
    error = dict(seen.json["error"])
    assert error["details"].pop("requestId") == seen.headers["x-request-id"]
    return error


def test_the_right_pair_opens_the_environment(api: ApiHarness) -> None:
    assert api.call("GET", "/v2/partners/config").status == 200


def test_the_scheme_may_be_written_in_any_case(api: ApiHarness) -> None:
    pair = api.basic().removeprefix("Basic ")
    assert api.call("GET", "/v2/partners/config", auth=f"basic  {pair}").status == 200


def test_every_wrong_basic_header_is_refused_with_the_same_bytes(api: ApiHarness) -> None:
    app_id, secret = api.app_row.id, api.secret
    pair = encoded(f"{app_id}:{secret}")
    elsewhere = api.service.tenants.create_app("Other", "other")
    _, production = api.service.tenants.create_key(
        api.app_row.environments["production"], "standard", "live"
    )
    _, publishable = api.service.tenants.create_key(api.partition, "publishable", "sdk")
    wrong = [
        None,
        " ",
        "Basic",
        "Basic ",
        pair,
        f"Basic{pair}",
        f"Basic {pair} ",
        f"Basic {pair},Basic {pair}",
        f"Basic {pair.rstrip('=')}*",
        f"Basic {pair[:-1]}",
        "Basic " + encoded(f"{app_id}:{secret}\n"),
        "Basic " + encoded(f"{app_id} :{secret}"),
        "Basic " + encoded(f"{app_id}\0:{secret}"),
        "Basic " + encoded(f"{app_id}:"),
        "Basic " + encoded(f":{secret}"),
        "Basic " + encoded(app_id),
        "Basic " + encoded(f"{app_id}:{change_end(secret)}"),
        "Basic " + encoded(f"{elsewhere.id}:{secret}"),
        "Basic " + encoded(f"{app_id}:{production}"),
        "Basic " + encoded(f"é:{secret}"),
        "Basic " + "A" * 100_000,
        f"Bearer {secret}",
        f"Digest {pair}",
    ]
    answers = [api.call("GET", "/v2/partners/config", auth=header) for header in wrong]
    assert {seen.status for seen in answers} == {401}
    assert {seen.headers["www-authenticate"] for seen in answers} == {BASIC}
    assert [refusal(seen) for seen in answers] == [refusal(answers[0])] * len(answers)
    assert answers[0].code == "unauthorized"
    pk = api.call("GET", "/v2/partners/config", auth=api.basic(publishable))
    assert refusal(pk) == refusal(answers[0])


class TestTheBearerKey:
    """The dispute route takes the app secret alone, as a Bearer token (contract §2)."""

    path = "/v2/sessions/ses_" + "A" * 24 + "/dispute"
    body: ClassVar = {"reason": "not delivered"}

    def call(self, api: ApiHarness, auth: str | None, **more: Any) -> Any:
        return api.call("POST", self.path, self.body, auth=auth, **more)

    def test_alone_opens_its_environment(self, api: ApiHarness) -> None:
        for scheme in ("Bearer", "bearer ", "BEARER"):
            seen = self.call(api, f"{scheme} {api.secret}")
            assert (seen.status, seen.code) == (404, "not_found")  # let in, to no such session

    def test_every_wrong_one_is_refused_with_the_same_bytes(self) -> None:
        clock = FixedClock()
        api = ApiHarness(clock)
        tenants = api.service.tenants
        made = {
            "revoked": tenants.create_key(api.partition, "standard", "r"),
            "expired": tenants.create_key(
                api.partition, "standard", "e", expires_at=to_datetime(clock.now() + 1_000)
            ),
            "live": tenants.create_key(api.app_row.environments["production"], "standard", "l"),
            "publishable": tenants.create_key(api.partition, "publishable", "p"),
        }
        for _, secret in (made["revoked"], made["expired"]):
            assert self.call(api, f"Bearer {secret}").status == 404
        tenants.revoke_key(api.partition, made["revoked"][0].id)
        clock.advance(1)
        unknown = new_secret("standard", "sandbox", lambda count: b"x" * count)
        wrong = [
            None,
            " ",
            "Bearer",
            "Bearer ",
            api.secret,
            f"Bearer{api.secret}",
            f"Bearer {api.secret} ",
            f"Bearer {api.secret},Bearer {api.secret}",
            f"Bearer {api.app_row.id}:{api.secret}",
            f"Bearer {api.secret[:-1]}",
            f"Bearer {change_end(api.secret)}",
            f"Bearer {unknown}",
            "Bearer " + "A" * 100_000,
            "Bearer sk_sandbox_é",
            *(f"Bearer {secret}" for _, secret in made.values()),
            f"Bearer {api.access_token()}",
            f"Bearer {api.session().json['clientSessionToken']}",
            f"Bearer {api.payment_secret(PAYMENT)}",
            api.basic(),
            f"Basic {api.secret}",
            f"Digest {api.secret}",
        ]
        answers = [self.call(api, header) for header in wrong]
        assert {seen.status for seen in answers} == {401}
        assert {seen.headers["www-authenticate"] for seen in answers} == {"Bearer"}
        assert {seen.headers["service-version"] for seen in answers} == {"2026-09-09"}
        elsewhere = refusal(api.call("GET", "/v2/partners/config", auth=None))
        assert [refusal(seen) for seen in answers] == [elsewhere] * len(answers)
        assert {tuple(sorted(seen.headers)) for seen in answers} == {
            tuple(sorted(answers[0].headers))
        }

    def test_a_restricted_key_needs_the_scope(self, api: ApiHarness) -> None:
        seen = self.call(api, f"Bearer {api.restricted_secret}")
        assert (seen.status, seen.code) == (403, "insufficient_permissions")
        assert seen.json["error"]["details"]["required"] == ["v2:payments"]
        _, secret = api.service.tenants.create_key(
            api.partition, "restricted", "payments", scopes=["v2:payments"]
        )
        assert self.call(api, f"Bearer {secret}").status == 404

    def test_a_product_that_is_off_is_named(self, api: ApiHarness) -> None:
        api.service.tenants.set_products(api.partition, ["accounts"])
        seen = self.call(api, f"Bearer {api.secret}")
        assert (seen.status, seen.code) == (403, "entitlement_required")

    def test_is_bound_to_its_environments_version(self, api: ApiHarness) -> None:
        api.service.tenants.set_api_version(api.partition, "2026-01-01")
        headers = {"Service-Version": "2026-09-09"}
        seen = self.call(api, f"Bearer {api.secret}", headers=headers)
        assert (seen.code, seen.headers["service-version"]) == ("version_mismatch", "2026-01-01")

    def test_opens_only_the_rows_that_ask_for_it(self, api: ApiHarness) -> None:
        rows = [row for row in ROUTES if row.credential == "bearer_key"]
        assert [row.name for row in rows] == ["POST /v2/sessions/{sessionId}/dispute"]
        session = self.path.removesuffix("/dispute")
        for method, path in (("GET", session), ("POST", f"{self.path}/resolve")):
            seen = api.call(method, path, auth=f"Bearer {api.secret}")
            assert (seen.status, seen.headers["www-authenticate"]) == (401, BASIC)

    def test_is_refused_in_the_url_and_in_the_body(self, api: ApiHarness) -> None:
        seen = api.call("POST", f"{self.path}?key={api.secret}", self.body, auth=None)
        assert seen.status == 401
        right = f"Bearer {api.secret}"
        seen = api.call("POST", f"{self.path}?key={api.secret}", self.body, auth=right)
        assert (seen.status, list(seen.faults)) == (400, ["query"])
        seen = api.call("POST", self.path, {"reason": api.secret}, auth=right)
        assert (seen.status, list(seen.faults)) == (400, ["reason"])
        assert api.secret.encode() not in seen.body


def test_a_padded_pair_has_one_encoding(api: ApiHarness) -> None:
    pair = encoded(f"{api.app_row.id}:{api.secret}")
    assert (pair.endswith("=") and not pair.endswith("==")) or True
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    stem = pair.rstrip("=")
    last = alphabet.index(stem[-1])
    other = stem[:-1] + alphabet[last ^ 1] + "=" * (len(pair) - len(stem))
    if pair != stem:  # the spare bits of the last character name nothing
        assert api.call("GET", "/v2/partners/config", auth=f"Basic {other}").status == 401


def test_a_revoked_key_opens_nothing(api: ApiHarness) -> None:
    api.service.tenants.revoke_key(api.partition, api.key.id)
    assert api.call("GET", "/v2/partners/config").status == 401


def test_client_routes_ask_for_bearer_and_never_for_basic(api: ApiHarness) -> None:
    for auth in (None, "", "Bearer no", "Bearer", "Bearer a b"):
        seen = api.call("POST", f"/v2/client/things/{PAYMENT}", auth=auth)
        assert (seen.status, seen.code) == (401, "unauthorized")
        assert seen.headers["www-authenticate"] == "Bearer"


def test_an_expired_client_token_says_so() -> None:
    clock = FixedClock()
    api = ApiHarness(clock)
    token = api.access_token(expiresInSeconds=60)
    clock.advance(60)
    seen = api.call("POST", f"/v2/client/things/{PAYMENT}", auth=f"Bearer {token}")
    assert (seen.status, seen.code) == (401, "client_token_expired")
    assert seen.headers["www-authenticate"] == "Bearer"


def test_a_server_secret_is_not_a_client_token(api: ApiHarness) -> None:
    seen = api.call("POST", f"/v2/client/things/{PAYMENT}", auth=f"Bearer {api.secret}")
    assert seen.status == 401


def test_a_client_token_opens_no_server_route(api: ApiHarness) -> None:
    token = api.access_token()
    assert api.call("GET", "/v2/partners/config", auth=f"Bearer {token}").status == 401


class TestThePaymentSecret:
    """The second credential of account-bound checkout."""

    def call(self, api: ApiHarness, secret: str | None, payment_id: str = PAYMENT) -> Any:
        headers = {} if secret is None else {"X-Service-Payment-Secret": secret}
        auth = f"Bearer {api.access_token()}"
        return api.call("POST", f"/v2/client/things/{payment_id}", auth=auth, headers=headers)

    def test_of_this_payment_is_accepted(self, api: ApiHarness) -> None:
        seen = self.call(api, api.payment_secret(PAYMENT))
        assert (seen.status, seen.json) == (200, {"paymentId": PAYMENT})

    def test_still_authenticates_after_its_expiry(self, api: ApiHarness) -> None:
        assert self.call(api, api.payment_secret(PAYMENT, expires_at_ms=0)).status == 200

    def test_is_needed(self, api: ApiHarness) -> None:
        assert self.call(api, None).code == "unauthorized"

    def test_of_another_payment_is_unauthorized(self, api: ApiHarness) -> None:
        assert self.call(api, api.payment_secret(OTHER)).code == "unauthorized"

    def test_forged_is_unauthorized(self, api: ApiHarness) -> None:
        assert self.call(api, change_end(api.payment_secret(PAYMENT))).code == "unauthorized"

    def test_of_another_environment_is_a_mismatch(self, api: ApiHarness) -> None:
        seen = self.call(api, api.payment_secret(PAYMENT, environment_id="env_" + "A" * 24))
        assert (seen.status, seen.code) == (403, "credential_mismatch")

    def test_alone_opens_nothing(self, api: ApiHarness) -> None:
        secret = api.payment_secret(PAYMENT)
        for auth in (None, f"Bearer {secret}"):
            headers = {"X-Service-Payment-Secret": secret}
            seen = api.call("POST", f"/v2/client/things/{PAYMENT}", auth=auth, headers=headers)
            assert seen.code == "unauthorized"


def test_a_missing_scope_is_named(api: ApiHarness) -> None:
    seen = api.call("GET", "/v2/scoped", auth=api.basic(api.restricted_secret))
    assert (seen.status, seen.code) == (403, "insufficient_permissions")
    assert seen.json["error"]["details"]["required"] == ["v2:vaults"]
    assert "www-authenticate" not in seen.headers


def test_a_product_that_is_off_is_named(api: ApiHarness) -> None:
    api.service.tenants.set_products(api.partition, ["accounts"])
    seen = api.call("GET", "/v2/scoped")
    assert (seen.status, seen.code) == (403, "entitlement_required")
    assert seen.json["error"]["details"]["product"] == "vaults"
