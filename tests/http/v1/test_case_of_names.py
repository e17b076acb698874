"""Usernames, resolvers and payment addresses compare without regard to case (contract §5)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints
from urllib.parse import quote

import attrs
import pytest

from payments_core import NewAccount
from payments_core_http.routes import ROUTES
from tests.http.api_harness import ApiHarness

FORMS = ("alice_b@shop", "ALICE_B@SHOP", "Alice_B@shop", "alice_b@Shop", "aLiCe_B@sHoP")
SOURCE = {
    "sourceAddress": "0x8ba1f109551bD432803012645Ac136ddd64DBA72",
    "sourceChainId": 8453,
    "sourceChainToken": "USDC",
}
NAMED: dict[tuple[str, str], Any] = {  # with what makes a body; None for a query
    ("/v2/payments", "paymentAddress"): lambda name: {
        "intent": "receive", "amount": "1.00",
        "destination": {"type": "payment_address", "paymentAddress": name},
    },
    ("/sdk/v1/get-user", "username"): None,
    ("/sdk/v1/resolve", "paymentAddress"): None,
    ("/sdk/v1/is-kyc-done", "username"): None,
    ("/sdk/v1/is-kyc-done", "paymentAddress"): None,
    ("/sdk/v1/get-balance", "paymentAddress"): lambda name: {"paymentAddress": name},
    ("/sdk/v1/quote", "destinationPaymentAddress"): lambda name: {
        "amount": 1, "destinationPaymentAddress": name, **SOURCE,
    },
    ("/sdk/v1/get-deposit-address", "paymentAddress"): lambda name: {
        "paymentAddress": name, "rawAmount": "1000000", **SOURCE,
    },
}  # fmt: skip
PUBLIC = {"/sdk/v1/resolve", "/sdk/v1/is-kyc-done", "/sdk/v1/quote"}
"""Routes for the app id alone."""

CHOOSING = {
    ("/v2/accounts", "username"),
    ("/v2/accounts/{accountId}/handle", "username"),
    ("/sdk/v1/register", "username"),
    ("/sdk/v1/update-username", "username"),
    ("/sdk/v1/check-username", "username"),
}
"""Fields that choose a username: the same name in another case is taken."""


def names_in(annotation: Any) -> Iterator[str]:
    """The fields of an input class, and of the classes within it."""
    if attrs.has(annotation):
        hints = get_type_hints(annotation)
        for field in attrs.fields(annotation):
            yield field.name
            yield from names_in(hints[field.name])
    for part in get_args(annotation):
        yield from names_in(part)


@pytest.fixture(scope="module")
def api() -> ApiHarness:
    api = ApiHarness()
    api.service.acting_as(api.service.tenants.system_authority(api.partition)).accounts.create(
        NewAccount(external_user_id="alice", subject_type="individual", username="Alice_B"),
    )
    return api


def ask(api: ApiHarness, path: str, field: str, name: str) -> Any:
    """The answer to the credential that the route takes."""
    make = NAMED[path, field]
    more: dict[str, Any] = {"auth": by_app_id(api) if path in PUBLIC else ""}
    if path == "/sdk/v1/get-deposit-address":
        _, key = api.service.tenants.create_key(api.partition, "publishable", name[:20])
        more = {"auth": None, "headers": {"x-sdk-key": key}}
    if make is None:
        return api.call("GET", f"{path}?{field}={quote(name)}", **more)
    return api.call("POST", path, make(name), key=quote(f"{field}-{name}"), **more)


def by_app_id(api: ApiHarness) -> str:
    """The credential of the app id alone."""
    return "Basic " + b64encode(f"{api.app_row.id}:".encode()).decode()


def test_every_field_that_names_an_account_is_tried() -> None:
    found = {
        (row.path, name)
        for row in ROUTES
        for kind in (row.body, row.query)
        for name in names_in(kind)
        if "username" in name.lower() or "paymentaddress" in name.lower()
    }
    assert found == NAMED.keys() | CHOOSING


@pytest.mark.parametrize(("path", "field"), NAMED)
def test_a_name_is_found_in_any_case(api: ApiHarness, path: str, field: str) -> None:
    for form in FORMS:
        name = form.partition("@")[0] if field == "username" else form
        seen = ask(api, path, field, name)
        assert seen.status < 300, (name, seen.body)
    # U+212A and U+017F become ASCII letters by Unicode's rules: they are other names.
    others = ["bob", "alice_\N{LATIN SMALL LETTER LONG S}"] if field == "username" else [
        "bob@shop", "alice_b@shops", "alice_b@\N{LATIN SMALL LETTER LONG S}hop", "alice_b @shop",
    ]  # fmt: skip
    for name in others:
        seen = ask(api, path, field, name)
        assert seen.status in (400, 404), (name, seen.body)


def test_a_taken_username_is_taken_in_any_case(api: ApiHarness) -> None:
    for form in FORMS:
        name = form.partition("@")[0]
        target = f"/sdk/v1/check-username?username={name}"
        seen = api.call("GET", target, auth=by_app_id(api))
        assert seen.json["data"]["available"] is False
        body = {"externalUserId": form, "subjectType": "individual", "username": name}
        assert api.call("POST", "/v2/accounts", body).code == "username_taken"
        assert api.call("POST", "/sdk/v1/register", {"username": name}).status == 409
