"""Client sessions: every rule of "Authentication" that the library itself keeps."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.accounts.record import Account
from payments_core.clock import SECOND, to_datetime
from payments_core.credentials.tokens import ACCESS_PREFIX, CLIENT_SESSION_PREFIX, Claims
from payments_core.errors import (
    AccountSuspended,
    ClientTokenExpired,
    EntitlementRequired,
    InsufficientPermissions,
    NotFound,
    Unauthorized,
    ValidationFailed,
)
from payments_core.tenants.authorization import Authority, Requirement, authorize
from payments_core.tenants.record import PRODUCTS, ClientSession
from tests.service.world import PAYER_PERMISSIONS, World, authority_of


def without(*products: str) -> tuple[str, ...]:
    return tuple(product for product in PRODUCTS if product not in products)


def access_token(world: World, **given: object) -> str:
    given.setdefault("account_id", world.payer.id)
    created = world.resources.client_sessions.create(**given)  # type: ignore[arg-type]
    return world.service.client_tokens.exchange(created.token, mode="sandbox").access_token


def test_a_session_reads_its_account_unless_more_was_asked(world: World) -> None:
    created = world.resources.client_sessions.create(external_user_id="payer")
    session = created.session
    assert session.permissions == ("account:read",)
    assert session.account_id == world.payer.id
    assert session.expires_at_ms == session.created_at_ms + 900 * SECOND
    assert session.exchange_expires_at_ms == session.created_at_ms + 300 * SECOND
    exchanged = world.service.client_tokens.exchange(created.token, mode="sandbox")
    assert exchanged.permissions == ("account:read",)
    environment, read = world.service.client_tokens.authenticate(
        exchanged.access_token, mode="sandbox"
    )
    assert (environment.id, read.id) == (world.environment_id, session.id)
    for shown in (created, exchanged):
        assert created.token not in repr(shown)
        assert exchanged.access_token not in repr(shown)


def test_an_account_that_is_closed_at_the_commit_gets_no_session(world: World) -> None:
    """Also where it was open when it was looked up."""
    service = world.service
    look_up = service.parts.accounts.look_up

    def look_up_and_close(*given: Any) -> Account:
        found = look_up(*given)
        service.acting_as(world.server).accounts.change(found.id, status="closed")
        return found

    service.parts.accounts.look_up = look_up_and_close  # type: ignore[method-assign]
    with pytest.raises(AccountSuspended):
        service.acting_as(world.server).client_sessions.create(external_user_id="payer")


def test_the_look_up_is_strict_and_makes_no_account(world: World) -> None:
    with pytest.raises(NotFound):
        world.resources.client_sessions.create(external_user_id="nobody")
    with pytest.raises(NotFound):
        world.resources.client_sessions.create(account_id="acct_none")
    with pytest.raises(ValidationFailed):
        world.resources.client_sessions.create()
    with pytest.raises(ValidationFailed):
        world.resources.client_sessions.create(account_id=world.payer.id, external_user_id="payer")
    assert world.event_names()["account.created"] == 2


@pytest.mark.parametrize(("seconds", "fits"), [(59, 0), (60, 1), (86_400, 1), (86_401, 0)])
def test_a_session_lives_from_a_minute_to_a_day(
    memory_world: World, seconds: int, fits: bool
) -> None:
    if fits:
        made = memory_world.resources.client_sessions.create(
            external_user_id="payer", expires_in_s=seconds
        )
        assert made.session.expires_at_ms == made.session.created_at_ms + seconds * SECOND
        assert made.session.exchange_expires_at_ms <= made.session.expires_at_ms
    else:
        with pytest.raises(ValidationFailed):
            memory_world.resources.client_sessions.create(
                external_user_id="payer", expires_in_s=seconds
            )


def test_an_unknown_permission_makes_no_session(world: World) -> None:
    with pytest.raises(InsufficientPermissions) as caught:
        access_token(world, permissions=("account:read", "everything"))
    assert caught.value.required == ("everything",)


@pytest.mark.parametrize(
    ("permission", "product"),
    [
        ("account:read", "accounts"),
        ("payments:read", "payments"),
        ("payments:write", "payments"),
        ("deposits:read", "deposit_addresses"),
        ("deposits:write", "deposit_addresses"),
        ("vault_payments:write", "payments"),
        ("vault_payments:write", "vaults"),
    ],
)
def test_a_permission_needs_its_product(memory_world: World, permission: str, product: str) -> None:
    world = memory_world
    token = access_token(world, permissions=(permission, "account:read"))
    world.service.tenants.set_products(world.environment_id, without(product))
    with pytest.raises(EntitlementRequired) as caught:
        access_token(world, permissions=(permission,))
    assert caught.value.product == product
    # What was granted before no longer opens anything either, on every call anew.
    environment, session = world.service.client_tokens.authenticate(token, mode="sandbox")
    with pytest.raises(EntitlementRequired):
        authorize(Requirement("client", permissions=(permission,)), environment, None, session)


def test_the_exchange_lists_what_the_products_leave(world: World) -> None:
    token = world.resources.client_sessions.create(
        account_id=world.payer.id, permissions=PAYER_PERMISSIONS
    ).token
    world.service.tenants.set_products(world.environment_id, without("vaults"))
    exchanged = world.service.client_tokens.exchange(token, mode="sandbox")
    assert exchanged.permissions == ("account:read", "payments:read", "payments:write")
    assert "vault_payments:write" in exchanged.session.permissions


def test_a_session_token_is_exchanged_once_and_within_its_time(world: World) -> None:
    token = world.resources.client_sessions.create(account_id=world.payer.id).token
    late = world.resources.client_sessions.create(account_id=world.payer.id).token
    world.system.advance(299.999)
    world.service.client_tokens.exchange(token, mode="sandbox")
    with pytest.raises(Unauthorized):
        world.service.client_tokens.exchange(token, mode="sandbox")
    world.system.advance(0.001)
    with pytest.raises(ClientTokenExpired):
        world.service.client_tokens.exchange(late, mode="sandbox")
    with pytest.raises(Unauthorized):  # consumed is reported before expired
        world.service.client_tokens.exchange(token, mode="sandbox")


def test_revoked_is_reported_before_expired(world: World) -> None:
    created = world.resources.client_sessions.create(account_id=world.payer.id)
    access = access_token(world)
    world.resources.client_sessions.revoke(created.session.id)
    world.system.advance(1_000)
    with pytest.raises(Unauthorized):
        world.service.client_tokens.exchange(created.token, mode="sandbox")
    with pytest.raises(ClientTokenExpired):
        world.service.client_tokens.authenticate(access, mode="sandbox")


def test_an_access_token_ends_with_its_session(world: World) -> None:
    access = access_token(world, expires_in_s=600)
    world.system.advance(599.999)
    world.service.client_tokens.authenticate(access, mode="sandbox")
    world.system.advance(0.001)
    with pytest.raises(ClientTokenExpired):
        world.service.client_tokens.authenticate(access, mode="sandbox")


def test_revoking_a_session_ends_its_tokens_at_once(world: World) -> None:
    access = access_token(world)
    _, session = world.service.client_tokens.authenticate(access, mode="sandbox")
    revoked = world.resources.client_sessions.revoke(session.id)
    assert world.resources.client_sessions.revoke(session.id).revoked_at_ms == revoked.revoked_at_ms
    with pytest.raises(Unauthorized):
        world.service.client_tokens.authenticate(access, mode="sandbox")
    with pytest.raises(NotFound):
        world.resources.client_sessions.revoke("client_session_none")


def test_revoking_the_key_ends_the_sessions_it_made_and_only_those(world: World) -> None:
    tenants = world.service.tenants
    spared = access_token(world)
    key, _ = tenants.create_key(world.environment_id, "standard", "second")
    created = world.service.acting_as(authority_of(world.environment, key)).client_sessions.create(
        account_id=world.payer.id
    )
    ended = world.service.client_tokens.exchange(created.token, mode="sandbox").access_token
    unused = world.service.acting_as(authority_of(world.environment, key)).client_sessions.create(
        account_id=world.payer.id
    )
    tenants.revoke_key(world.environment_id, key.id)
    for call in (
        lambda: world.service.client_tokens.authenticate(ended, mode="sandbox"),
        lambda: world.service.client_tokens.exchange(unused.token, mode="sandbox"),
    ):
        with pytest.raises(Unauthorized):
            call()
    world.service.client_tokens.authenticate(spared, mode="sandbox")


def test_a_key_that_merely_expires_spares_its_sessions(world: World) -> None:
    tenants = world.service.tenants
    ends = world.clock.now() + 60 * SECOND
    key, secret = tenants.create_key(
        world.environment_id, "standard", "brief", expires_at=to_datetime(ends)
    )
    created = world.service.acting_as(authority_of(world.environment, key)).client_sessions.create(
        account_id=world.payer.id
    )
    access = world.service.client_tokens.exchange(created.token, mode="sandbox").access_token
    world.system.advance(60)
    with pytest.raises(Unauthorized):
        tenants.authenticate(world.app.id, secret, mode="sandbox")
    world.service.client_tokens.authenticate(access, mode="sandbox")


def test_only_a_standard_key_makes_sessions(world: World) -> None:
    tenants = world.service.tenants
    restricted, _ = tenants.create_key(
        world.environment_id, "restricted", "r", scopes=("v2:accounts",)
    )
    with pytest.raises(InsufficientPermissions):
        world.service.acting_as(authority_of(world.environment, restricted)).client_sessions.create(
            account_id=world.payer.id
        )
    with pytest.raises(Unauthorized):
        world.service.acting_as(
            tenants.system_authority(world.environment_id)
        ).client_sessions.create(account_id=world.payer.id)
    with pytest.raises(Unauthorized):
        world.service.acting_as(world.client).client_sessions.create(account_id=world.payer.id)


def test_kinds_of_tokens_never_pass_for_each_other(world: World) -> None:
    created = world.resources.client_sessions.create(account_id=world.payer.id)
    access = world.service.client_tokens.exchange(created.token, mode="sandbox").access_token
    payment_secret = str(world.payment().client_secret)
    for token in (created.token, payment_secret, world.secret, "", "cat_", "x" * 5_000):
        with pytest.raises(Unauthorized):
            world.service.client_tokens.authenticate(token, mode="sandbox")
        with pytest.raises(Unauthorized):
            world.service.client_tokens.authenticate(
                ACCESS_PREFIX + token.removeprefix(CLIENT_SESSION_PREFIX), mode="sandbox"
            )
    for token in (access, payment_secret, world.secret, CLIENT_SESSION_PREFIX + access[4:]):
        with pytest.raises(Unauthorized):
            world.service.client_tokens.exchange(token, mode="sandbox")


def test_a_token_opens_its_own_mode_and_environment_alone(world: World) -> None:
    created = world.resources.client_sessions.create(account_id=world.payer.id)
    with pytest.raises(Unauthorized):
        world.service.client_tokens.exchange(created.token, mode="production")
    access = world.service.client_tokens.exchange(created.token, mode="sandbox").access_token
    with pytest.raises(Unauthorized):
        world.service.client_tokens.authenticate(access, mode="production")
    for environment_id in ("env_none", world.app.environments["production"]):
        claims = Claims(environment_id, created.session.id, "2026-09-09", 0)
        elsewhere = world.service.parts.ports.tokens.mint(ACCESS_PREFIX, claims)
        for mode in ("sandbox", "production"):
            with pytest.raises(Unauthorized):
                world.service.client_tokens.authenticate(elsewhere, mode=mode)


def test_a_token_of_a_session_that_never_was_is_unauthorized(world: World) -> None:
    claims = Claims(world.environment_id, "client_session_none", "2026-09-09", 0)
    forged = world.service.parts.ports.tokens.mint(ACCESS_PREFIX, claims)
    with pytest.raises(Unauthorized):
        world.service.client_tokens.authenticate(forged, mode="sandbox")


def test_a_session_is_bound_to_the_version_it_was_made_under(world: World) -> None:
    session = world.client.session
    assert session is not None
    assert session.api_version == world.environment.api_version
    stored = world.get(ClientSession, session.id)
    assert stored.api_version == session.api_version


def test_a_revocation_counts_at_the_use_of_an_authority_read_before(world: World) -> None:
    payment = world.payment()
    client = world.client_of(world.payer)
    assert client.session is not None
    world.resources.client_sessions.revoke(client.session.id)
    with pytest.raises(Unauthorized):
        world.service.acting_as(client).options.create(payment.payment.id)
    assert world.paid(payment.payment.id).option_ids == ()


def test_a_session_without_the_permission_is_refused_before_anything(world: World) -> None:
    reader = world.client_of(world.payer, "account:read", "payments:read")
    assert reader.session is not None
    with pytest.raises(InsufficientPermissions) as caught:
        authorize(reader.requirement, reader.environment, None, reader.session)
    assert caught.value.required == ("vault_payments:write",)
    assert isinstance(reader, Authority)
