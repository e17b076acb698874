"""Apps, environments and keys; and rights that end in the middle of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_core.clock import to_datetime
from payments_core.engine.decision import Decision
from payments_core.errors import (
    EntitlementRequired,
    NotFound,
    ResourceConflict,
    Unauthorized,
    ValidationFailed,
)
from payments_core.payments.destinations import ToAccount
from payments_core.payments.operations import NewPayment
from payments_core.payments.options.record import PaymentOption
from payments_core.tenants.authorization import Authority, Requirement, effective_scopes
from payments_core.tenants.record import PRODUCTS, SCOPE_PRODUCT, CredentialIndexEntry, KeyUse
from tests.service.world import World, authority_of


def test_an_app_has_an_environment_for_every_mode(world: World) -> None:
    assert set(world.app.environments) == {"sandbox", "production"}
    for mode, environment_id in world.app.environments.items():
        environment = world.service.tenants.get_environment(environment_id)
        assert (environment.mode, environment.app_id) == (mode, world.app.id)
        assert environment.products == tuple(sorted(PRODUCTS))
    assert world.service.tenants.get_app(world.app.id).environments == world.app.environments
    for look in (world.service.tenants.get_app, world.service.tenants.get_environment):
        with pytest.raises(NotFound):
            look("none")


def test_a_partner_id_belongs_to_one_app(world: World) -> None:
    create = world.service.tenants.create_app
    with pytest.raises(ResourceConflict):
        create("Copycat", "acme")
    for wrong in ("ac", "Acme", "-acme", "acme-", "a" * 41, "ac me", "acme\n"):
        with pytest.raises(ValidationFailed):
            create("Wrong", wrong)
    with pytest.raises(ValidationFailed):
        create("Wrong", "wrong", products=("teleport",))


def test_a_secret_opens_its_own_app_and_mode_alone(world: World) -> None:
    authenticate = world.service.tenants.authenticate
    environment, key = authenticate(world.app.id, world.secret, mode="sandbox")
    assert (environment.id, key.id) == (world.environment_id, world.key.id)
    other = world.service.tenants.create_app("Other", "other")
    for app_id, secret, mode in (
        (other.id, world.secret, "sandbox"),
        ("", world.secret, "sandbox"),
        (world.app.id, world.secret, "production"),
        (world.app.id, world.secret[:-1], "sandbox"),
        (world.app.id, world.secret + "0", "sandbox"),
        (world.app.id, world.secret.replace("sk_", "rk_"), "sandbox"),
        (world.app.id, "", "sandbox"),
        (world.app.id, world.app.id, "sandbox"),
        (world.app.id, "sk_sandbox_ünïcode", "sandbox"),
    ):
        with pytest.raises(Unauthorized):
            authenticate(app_id, secret, mode=mode)


def test_a_secret_is_stored_nowhere_in_clear(world: World) -> None:
    assert world.secret not in repr(world.environment)
    assert world.secret not in repr(world.key)
    digest = world.environment.keys[0].digest
    row = world.storage.read("directory", lambda s: s.get(CredentialIndexEntry, digest))
    assert row is not None
    assert row.key_id == world.key.id
    assert digest not in repr(world.environment)


def test_several_keys_live_side_by_side_and_end_apart(world: World) -> None:
    tenants = world.service.tenants
    key, secret = tenants.create_key(world.environment_id, "standard", "new")
    tenants.authenticate(world.app.id, secret, mode="sandbox")
    before = tenants.revoke_key(world.environment_id, key.id)
    with pytest.raises(Unauthorized):
        tenants.authenticate(world.app.id, secret, mode="sandbox")
    tenants.authenticate(world.app.id, world.secret, mode="sandbox")
    world.system.advance(5)
    again = tenants.revoke_key(world.environment_id, key.id)
    assert again.keys == before.keys
    with pytest.raises(NotFound):
        tenants.revoke_key(world.environment_id, "key_none")
    with pytest.raises(NotFound):
        tenants.create_key("env_none", "standard", "x")


def test_a_key_expires_to_the_millisecond(world: World) -> None:
    tenants = world.service.tenants
    ends = world.clock.now() + 1_000
    _, secret = tenants.create_key(
        world.environment_id, "restricted", "r", expires_at=to_datetime(ends)
    )
    world.system.advance(0.999)
    tenants.authenticate(world.app.id, secret, mode="sandbox")
    world.system.advance(0.001)
    with pytest.raises(Unauthorized):
        tenants.authenticate(world.app.id, secret, mode="sandbox")


def test_only_a_restricted_key_has_scopes_of_its_own(world: World) -> None:
    create = world.service.tenants.create_key
    with pytest.raises(ValidationFailed):
        create(world.environment_id, "standard", "s", scopes=("v2:accounts",))
    with pytest.raises(ValidationFailed):
        create(world.environment_id, "restricted", "r", scopes=("v2:everything",))
    key, _ = create(world.environment_id, "restricted", "r", scopes=("v2:kyc", "v2:accounts"))
    world.service.tenants.set_products(world.environment_id, ("accounts", "vaults"))
    environment = world.environment
    assert effective_scopes(environment, key) == ("v2:accounts",)
    assert effective_scopes(environment, world.key) == ("v2:accounts", "v2:vaults")
    world.service.tenants.set_products(world.environment_id, PRODUCTS)
    assert effective_scopes(world.environment, key) == ("v2:accounts", "v2:kyc")
    assert effective_scopes(world.environment, world.key) == tuple(sorted(SCOPE_PRODUCT))


def test_a_use_is_noted_once_a_minute(world: World) -> None:
    first = world.get(KeyUse, world.key.id).last_used_at_ms
    world.system.advance(59)
    assert world.server
    assert world.get(KeyUse, world.key.id).last_used_at_ms == first
    world.system.advance(1)
    assert world.server
    assert world.get(KeyUse, world.key.id).last_used_at_ms == world.clock.now()


def payment_by(world: World, authority: Authority) -> Any:
    new = NewPayment(amount="1", destination=ToAccount(account_id=world.merchant.id))
    return world.service.acting_as(authority).payments.receive(new)


def scoped(world: World) -> Authority:
    """A restricted key's authority for Payments, as a route would have read it."""
    key, _ = world.service.tenants.create_key(
        world.environment_id, "restricted", "r", scopes=("v2:payments",)
    )
    needs = Requirement("server", scopes=("v2:payments",))
    return authority_of(world.environment, key, requirement=needs)


@pytest.mark.parametrize(
    ("error", "change"),
    [
        (Unauthorized, lambda w, a: w.service.tenants.revoke_key(w.environment_id, a.key.id)),
        (
            EntitlementRequired,
            lambda w, a: w.service.tenants.set_products(w.environment_id, ("accounts",)),
        ),
    ],
)
def test_rights_that_end_after_they_were_read_end_the_call(
    world: World, error: type[Exception], change: Callable[[World, Authority], object]
) -> None:
    authority = scoped(world)
    payment_by(world, authority)
    change(world, authority)
    with pytest.raises(error):
        payment_by(world, authority)
    assert world.event_names()["payment.created"] == 1


def test_a_change_that_takes_nothing_away_disturbs_nobody(world: World) -> None:
    authority = scoped(world)
    world.service.tenants.create_key(world.environment_id, "standard", "another")
    world.service.tenants.set_products(world.environment_id, ("accounts", "payments"))
    payment_by(world, authority)
    payment_by(world, authority)
    assert world.event_names()["payment.created"] == 2


def test_a_revocation_in_the_middle_of_a_transaction_undoes_it(world: World) -> None:
    """Between the reading of rights and the commit: the first to commit is first."""
    authority = scoped(world)
    revoked: list[str] = []
    option = world.option(world.payment())

    def decide(tx: Any, id_sequence: Any) -> Decision[None]:
        current = tx.get(PaymentOption, option.option.id, for_update=True)
        return Decision(None, replaces=(attrs.evolve(current, updated_at_ms=1),))

    class Interrupted:
        """A permit under which a key is revoked right after it was confirmed once."""

        partition, mode = authority.partition, authority.mode
        reads = authority.reads

        def confirm(self, tx: Any) -> None:
            if not revoked:
                revoked.append("now")
                raise InterruptedError
            authority.confirm(tx)

    with pytest.raises(InterruptedError):
        world.service.parts.ports.committer.commit(Interrupted(), decide)
    assert authority.key is not None
    world.service.tenants.revoke_key(world.environment_id, authority.key.id)
    with pytest.raises(Unauthorized):
        world.service.parts.ports.committer.commit(Interrupted(), decide)
    assert world.option_now(option).updated_at_ms != 1


def test_a_session_cannot_be_granted_a_product_that_went_off_meanwhile(world: World) -> None:
    server = world.server
    world.service.tenants.set_products(world.environment_id, ("accounts",))
    with pytest.raises(EntitlementRequired):
        world.service.acting_as(server).client_sessions.create(
            account_id=world.payer.id, permissions=("payments:read",)
        )


def test_an_environment_that_is_gone_opens_nothing(world: World) -> None:
    ghost = attrs.evolve(world.environment, id="env_none")
    authority = Authority(
        requirement=Requirement("trusted"), environment=ghost, api_version=ghost.api_version
    )
    with pytest.raises(Unauthorized):
        world.service.parts.ports.committer.commit(
            authority, lambda tx, id_sequence: Decision(None)
        )


@pytest.mark.parametrize("name", ["", "x" * 129])
def test_an_apps_name_has_a_length(world: World, name: str) -> None:
    with pytest.raises(ValidationFailed):
        world.service.tenants.create_app(name, "another")
