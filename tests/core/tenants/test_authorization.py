"""Authorization, rule by rule: a pure function of requirement, environment, key and session."""

from __future__ import annotations

import itertools

import pytest

from payments_core.errors import (
    EntitlementRequired,
    InsufficientPermissions,
    PaymentsError,
    Unauthorized,
)
from payments_core.tenants.authorization import (
    SYSTEM_REQUIREMENT,
    Authority,
    Requirement,
    authorize,
    effective_scopes,
    key_is_live,
    session_is_valid,
)
from payments_core.tenants.record import (
    PERMISSION_PRODUCTS,
    PRODUCTS,
    SCOPE_PRODUCT,
    ClientSession,
    Environment,
    Key,
)

NOW = 1_790_000_000_000


def a_key(kind: str, *scopes: str, **given: object) -> Key:
    facts = {"id": "key_1", "name": "k", "digest": "d", "created_at_ms": NOW, "kind": kind}
    return Key(**{**facts, "scopes": scopes, **given})  # type: ignore[arg-type]


def an_environment(*products: str, keys: tuple[Key, ...] = ()) -> Environment:
    return Environment(
        id="env_1",
        app_id="app_1",
        partner_id="acme",
        app_name="Acme",
        mode="sandbox",
        api_version="2026-09-09",
        products=products or PRODUCTS,
        keys=keys,
        created_at_ms=NOW,
        updated_at_ms=NOW,
    )


def a_session(*permissions: str, **given: object) -> ClientSession:
    facts: dict[str, object] = {
        "id": "client_session_1",
        "account_id": "acct_1",
        "issuer_key_id": "key_1",
        "permissions": permissions,
        "api_version": "2026-09-09",
        "created_at_ms": NOW,
        "exchange_expires_at_ms": NOW,
        "expires_at_ms": NOW,
    }
    return ClientSession(**{**facts, **given})  # type: ignore[arg-type]


def without(product: str) -> Environment:
    return an_environment(*(name for name in PRODUCTS if name != product))


def refused(error: type[PaymentsError], *arguments: object) -> PaymentsError:
    with pytest.raises(error) as caught:
        authorize(*arguments)  # type: ignore[arg-type]
    assert type(caught.value) is error
    return caught.value


@pytest.mark.parametrize("scope", SCOPE_PRODUCT)
def test_a_scope_needs_its_product_whatever_the_key(scope: str) -> None:
    needs = Requirement("server", scopes=(scope,))
    for key in (a_key("standard"), a_key("restricted", scope)):
        authorize(needs, an_environment(), key, None)
        error = refused(EntitlementRequired, needs, without(SCOPE_PRODUCT[scope]), key, None)
        assert error.details == {"product": SCOPE_PRODUCT[scope]}


def test_a_restricted_key_needs_every_scope_and_learns_which_before_any_product() -> None:
    needs = Requirement("server", scopes=("v2:webhooks", "v2:console", "v2:kyc"))
    key = a_key("restricted", "v2:console")
    error = refused(InsufficientPermissions, needs, an_environment("accounts"), key, None)
    assert error.details == {"required": ["v2:webhooks", "v2:kyc"]}


def test_some_calls_are_for_standard_keys_alone() -> None:
    needs = Requirement("server", standard_only=True)
    authorize(needs, an_environment(), a_key("standard"), None)
    refused(InsufficientPermissions, needs, an_environment(), a_key("restricted"), None)


def test_a_publishable_key_or_none_is_nobody_on_a_servers_call() -> None:
    for key in (None, a_key("publishable", "v2:accounts")):
        refused(Unauthorized, Requirement("server"), an_environment(), key, a_session("x"))


def test_a_client_call_needs_a_session_and_a_key_does_not_replace_it() -> None:
    needs = Requirement("client", permissions=("account:read",))
    refused(Unauthorized, needs, an_environment(), a_key("standard"), None)


@pytest.mark.parametrize("permission", PERMISSION_PRODUCTS)
def test_a_permission_must_be_granted_and_its_products_be_on(permission: str) -> None:
    needs = Requirement("client", permissions=(permission,))
    authorize(needs, an_environment(), None, a_session(permission))
    others = [name for name in PERMISSION_PRODUCTS if name != permission]
    error = refused(InsufficientPermissions, needs, an_environment(), None, a_session(*others))
    assert error.details == {"required": [permission]}
    for product in PERMISSION_PRODUCTS[permission]:
        refused(EntitlementRequired, needs, without(product), None, a_session(permission))


def test_a_route_may_need_a_product_of_its_own() -> None:
    session = a_session("account:read")
    for caller, key in (("server", a_key("standard")), ("client", None)):
        needs = Requirement(caller, products=("kyc",))  # type: ignore[arg-type]
        authorize(needs, an_environment(), key, session)
        refused(EntitlementRequired, needs, without("kyc"), key, session)


def test_those_who_embed_the_library_are_trusted() -> None:
    authorize(SYSTEM_REQUIREMENT, an_environment("accounts"), None, None)


def test_more_rights_never_refuse_what_fewer_allow() -> None:
    scopes = tuple(SCOPE_PRODUCT)[:4]
    for size in range(5):
        for needed in itertools.combinations(scopes, size):
            needs = Requirement("server", scopes=needed)
            authorize(needs, an_environment(), a_key("restricted", *scopes), None)
            for missing in needed:
                fewer = [scope for scope in scopes if scope != missing]
                key = a_key("restricted", *fewer)
                refused(InsufficientPermissions, needs, an_environment(), key, None)


def test_a_standard_keys_scopes_follow_the_products() -> None:
    environment = an_environment("accounts", "webhooks")
    assert effective_scopes(environment, a_key("standard")) == (
        "v2:accounts", "v2:console", "v2:webhooks",
    )  # fmt: skip
    restricted = a_key("restricted", "v2:accounts", "v2:kyc")
    assert effective_scopes(environment, restricted) == ("v2:accounts",)


def test_a_key_lives_until_it_is_revoked_or_its_time_is_over() -> None:
    assert key_is_live(a_key("standard"), NOW)
    assert key_is_live(a_key("standard", expires_at_ms=NOW + 1), NOW)
    assert not key_is_live(a_key("standard", expires_at_ms=NOW), NOW)
    assert not key_is_live(a_key("standard", revoked_at_ms=NOW), NOW)


def test_a_session_stands_on_itself_and_on_the_key_that_made_it() -> None:
    live, dead = a_key("standard"), a_key("standard", revoked_at_ms=NOW)
    expired = a_key("standard", expires_at_ms=NOW - 1)
    assert session_is_valid(a_session(), an_environment(keys=(live,)))
    assert session_is_valid(a_session(), an_environment(keys=(expired,)))
    assert not session_is_valid(a_session(), an_environment(keys=(dead,)))
    assert not session_is_valid(a_session(), an_environment())
    assert not session_is_valid(a_session(revoked_at_ms=NOW), an_environment(keys=(live,)))


def test_who_retries_is_the_app_or_the_account_never_the_key() -> None:
    environment = an_environment()
    server = Authority(
        requirement=SYSTEM_REQUIREMENT,
        environment=environment,
        key=a_key("standard"),
        api_version="v",
    )
    client = Authority(
        requirement=SYSTEM_REQUIREMENT,
        environment=environment,
        session=a_session(),
        api_version="v",
    )
    assert (server.principal, client.principal) == ("app:app_1", "account:acct_1")
    assert (server.partition, server.mode) == ("env_1", "sandbox")
    assert client.account_id == "acct_1"
    with pytest.raises(Unauthorized):
        _ = server.account_id
