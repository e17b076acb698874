"""Vaults made once, policies replaced version by version, and what they keep from leaving."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.accounts.vaults.balance import daily_spend
from payments_core.accounts.vaults.provisioning import ProvisionedVault
from payments_core.accounts.vaults.record import AllowedDestination, Policy, PolicyTerms, Vault
from payments_core.clock import DAY, SECOND
from payments_core.errors import (
    CapabilityNotActive,
    InvalidState,
    NotFound,
    PolicyDenied,
    PolicyInactive,
    ResourceConflict,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.tenants.authorization import Authority
from tests.service.faults import FaultyStorage, commit_failed, commit_lost
from tests.service.payments.test_concurrency import at_once, kinds
from tests.service.world import BASE, World, answer_of, atomic, once

SHOP = "0xe0dA8Ca1c0C4FE1e95cD7Ea0736DD09dE9201032"
POLYGON = 137


def replace(world: World, terms: PolicyTerms | None = None, **more: Any) -> Policy:
    vault = world.vault_of()
    found = world.resources.vaults.replace_policy(
        world.payer.id, vault.id, terms or PolicyTerms(), **more
    )
    return found.policy


def read(world: World, policy_version: int | None = None) -> Policy:
    found = world.resources.vaults.read_policy(
        world.payer.id, world.vault_of().id, policy_version=policy_version
    )
    return found.policy


def other_tenant(world: World) -> Authority:
    app = world.service.tenants.create_app("Other", "other")
    return world.service.tenants.system_authority(app.environments["sandbox"])


class TestProvisioning:
    def test_a_chain_that_came_later_gets_its_vault_at_the_same_address(self, world: World) -> None:
        account_id = before_other_chains(world)
        made = world.resources.vaults.provision(account_id, POLYGON)
        assert made.is_new
        again = world.resources.vaults.provision(account_id, POLYGON)
        assert (again.is_new, again.vault.id) == (False, made.vault.id)
        listed = world.resources.vaults.list(account_id).records
        assert [vault.chain_id for vault in listed] == [POLYGON, BASE]
        assert len({vault.address for vault in listed}) == 1
        policy = world.resources.vaults.read_policy(account_id, made.vault.id).policy
        assert (policy.policy_version, policy.terms) == (1, PolicyTerms())

    def test_of_many_at_once_one_makes_it(self, world: World) -> None:
        account_id = before_other_chains(world)
        calls = [lambda: world.resources.vaults.provision(account_id, POLYGON)]
        outcomes = at_once(calls * 8)
        assert kinds(outcomes) == {"ProvisionedVault": 8}
        assert sum(made.is_new for made in outcomes) == 1
        assert len({made.vault.id for made in outcomes}) == 1

    @pytest.mark.parametrize("closed", [False, True])
    def test_one_that_was_made_meanwhile_is_the_vault(self, world: World, closed: bool) -> None:
        account_id = before_other_chains(world)
        made: list[ProvisionedVault] = []

        def another_first(call: Any) -> Any:
            provisioning = world.resources.vaults
            made.append(provisioning.provision(account_id, POLYGON))
            if closed:
                world.resources.accounts.change(account_id, status="closed")
            return call()

        service = world.restarted(FaultyStorage(world.storage, 1, another_first, ("transact",)))
        ours = service.acting_as(world.server).vaults.provision(account_id, POLYGON)
        [theirs] = made
        assert (ours.is_new, ours.vault.id) == (False, theirs.vault.id)

    @pytest.mark.parametrize("fault", [commit_lost, commit_failed])
    def test_a_commit_without_an_answer_makes_one(self, world: World, fault: Any) -> None:
        account_id = before_other_chains(world)
        faulty = FaultyStorage(world.storage, 1, fault, ("transact",))
        service = world.restarted(faulty)
        made = service.acting_as(world.server).vaults.provision(account_id, POLYGON)
        assert (faulty.had_its_fault, made.is_new) == (True, True)
        assert world.get(Vault, made.vault.id).chain_id == POLYGON

    def test_a_key_answers_a_retry_as_it_answered_first(self, world: World) -> None:
        account_id = before_other_chains(world)

        def provision() -> ProvisionedVault:
            return world.resources.vaults.provision(account_id, POLYGON, idempotency_key=once("k"))

        assert answer_of(provision) is None
        earlier = answer_of(provision)
        assert earlier is not None
        assert b"ProvisionedVault" in earlier.body

    def test_only_served_chains_and_known_accounts_have_vaults(self, world: World) -> None:
        with pytest.raises(UnsupportedChain):
            world.resources.vaults.provision(world.payer.id, 5)
        with pytest.raises(NotFound):
            world.resources.vaults.provision("acct_" + "x" * 24, BASE)
        with pytest.raises(NotFound):
            world.service.acting_as(other_tenant(world)).vaults.provision(world.payer.id, BASE)

    def test_a_closed_account_gets_no_more_vaults(self, world: World) -> None:
        account_id = before_other_chains(world)
        world.resources.accounts.change(account_id, status="closed")
        assert not world.resources.vaults.provision(account_id, BASE).is_new
        with pytest.raises(InvalidState):
            world.resources.vaults.provision(account_id, POLYGON)


def before_other_chains(world: World) -> str:
    """An account made when Base was the only chain."""
    from payments_core.accounts.operations import NewAccount

    service = world.restarted(chains={BASE: world.chain})
    new = NewAccount(external_user_id="early", subject_type="individual")
    return service.acting_as(world.server).accounts.create(new).account.id


class TestPolicies:
    def test_a_vault_begins_with_an_active_policy_without_limits(self, world: World) -> None:
        assert (read(world).policy_version, read(world).terms) == (1, PolicyTerms())
        assert read(world, 1) == read(world)

    def test_a_replaced_policy_has_the_next_version_and_the_old_ones_can_be_read(
        self, world: World
    ) -> None:
        first = read(world)
        world.clock.advance_to(world.clock.now() + SECOND)
        destinations = (
            AllowedDestination(type="wallet", address=SHOP.lower(), chain_id=BASE),
            AllowedDestination(type="wallet", address=SHOP),
            AllowedDestination(type="account", account_id=world.merchant.id),
        )
        terms = PolicyTerms(
            per_payment_limit="25",
            daily_limit="0.000001",
            allowed_chains=(BASE, 1),
            allowed_assets=("USDC", "USDT"),
            allowed_destinations=destinations,
        )
        second = replace(world, terms)
        assert (second.policy_version, second.per_payment_limit) == (2, "25.00")
        assert second.allowed_destinations is not None
        assert [item.address for item in second.allowed_destinations] == [SHOP, SHOP, None]
        assert first.created_at_ms == second.created_at_ms < second.updated_at_ms
        third = replace(world, PolicyTerms(status="paused"), policy_version=2)
        assert (third.policy_version, third.daily_limit) == (3, None)
        for past in (first, second, third):
            then = read(world, past.policy_version)
            assert (then.terms, then.updated_at_ms) == (past.terms, past.updated_at_ms)
        for missing in (4, 2**53 - 1):
            with pytest.raises(NotFound):
                read(world, missing)

    def test_a_stale_version_replaces_nothing(self, world: World) -> None:
        replace(world, PolicyTerms(daily_limit="5"), policy_version=1)
        with pytest.raises(ResourceConflict):
            replace(world, PolicyTerms(), policy_version=1)
        assert (read(world).policy_version, read(world).daily_limit) == (2, "5.00")

    def test_of_many_with_one_version_one_replaces_it(self, world: World) -> None:
        calls = [
            lambda n=n: replace(world, PolicyTerms(daily_limit=str(n)), policy_version=1)
            for n in range(1, 7)
        ]
        outcomes = at_once(calls)
        assert kinds(outcomes) == {"Policy": 1, "ResourceConflict": 5}
        [won] = [item for item in outcomes if isinstance(item, Policy)]
        assert read(world).terms == won.terms

    def test_many_replacements_at_once_leave_every_version_readable(self, world: World) -> None:
        calls = [lambda n=n: replace(world, PolicyTerms(daily_limit=str(n))) for n in range(1, 6)]
        outcomes = at_once(calls)
        assert kinds(outcomes) == {"Policy": 5}
        assert {policy.policy_version for policy in outcomes} == {2, 3, 4, 5, 6}
        for policy in outcomes:
            assert read(world, policy.policy_version).terms == policy.terms

    @pytest.mark.parametrize("fault", [commit_lost, commit_failed])
    def test_a_commit_without_an_answer_raises_the_version_by_one(
        self, world: World, fault: Any
    ) -> None:
        faulty = FaultyStorage(world.storage, 1, fault, ("transact",))
        service = world.restarted(faulty)
        found = service.acting_as(world.server).vaults.replace_policy(
            world.payer.id, world.vault_of().id, PolicyTerms(daily_limit="7")
        )
        assert faulty.had_its_fault
        assert found.policy.policy_version == read(world).policy_version == 2

    @pytest.mark.parametrize(
        ("terms", "paths"),
        [
            (PolicyTerms(per_payment_limit="0"), ["per_payment_limit"]),
            (
                PolicyTerms(per_payment_limit="1e3", daily_limit="-1"),
                ["per_payment_limit", "daily_limit"],
            ),
            (PolicyTerms(daily_limit="0.0000001"), ["daily_limit"]),
            (PolicyTerms(daily_limit="9" * 78), ["daily_limit"]),
            (
                PolicyTerms(allowed_chains=(BASE, 5, BASE)),
                ["allowed_chains[1]", "allowed_chains[2]"],
            ),
            (PolicyTerms(allowed_assets=("usdc",)), ["allowed_assets[0]"]),
            (PolicyTerms(allowed_assets=("USDC",) * 101), ["allowed_assets"]),
            (
                PolicyTerms(
                    allowed_destinations=(
                        AllowedDestination(type="wallet", address=SHOP),
                        AllowedDestination(type="wallet", address=SHOP.lower()),
                        AllowedDestination(type="wallet", address="0x12", chain_id=5),
                        AllowedDestination(type="account", account_id=None),
                    )
                ),
                [
                    "allowed_destinations[1]",
                    "allowed_destinations[2].chain_id",
                    "allowed_destinations[2].address",
                    "allowed_destinations[3].account_id",
                ],
            ),
            (
                PolicyTerms(
                    allowed_destinations=(AllowedDestination(type="wallet", address=SHOP),) * 101
                ),
                ["allowed_destinations"],
            ),
            (
                PolicyTerms(
                    allowed_destinations=(
                        AllowedDestination(type="account", account_id="acct_" + "x" * 24),
                    )
                ),
                ["allowed_destinations[0].account_id"],
            ),
        ],
    )
    def test_every_fault_is_named_and_nothing_changes(
        self, memory_world: World, terms: PolicyTerms, paths: list[str]
    ) -> None:
        with pytest.raises(ValidationFailed) as caught:
            replace(memory_world, terms)
        assert [field.path for field in caught.value.fields] == paths
        assert read(memory_world).policy_version == 1

    def test_another_accounts_vault_and_another_tenants_look_alike(self, world: World) -> None:
        vault = world.vault_of()
        stranger = other_tenant(world)
        for authority, account_id, noun in (
            (world.server, world.merchant.id, "vault"),
            (stranger, world.payer.id, "account"),
        ):
            vaults = world.service.acting_as(authority).vaults
            for call in (
                lambda a=vaults, b=account_id: a.read_policy(b, vault.id),
                lambda a=vaults, b=account_id: a.replace_policy(b, vault.id, PolicyTerms()),
            ):
                with pytest.raises(NotFound) as caught:
                    call()
                assert caught.value.resource == noun
        assert read(world).policy_version == 1


class TestWhatLeaves:
    """Authorizations under a policy."""

    def test_a_paused_policy_stops_authorizations_until_it_is_active(self, world: World) -> None:
        option = world.option(world.payment("10.00"))
        replace(world, PolicyTerms(status="paused"))
        with pytest.raises(PolicyInactive):
            world.authorize(option)
        replace(world, PolicyTerms())
        assert world.authorize(option).operation.policy_version == 3

    @pytest.mark.parametrize(
        ("terms", "rule"),
        [
            (PolicyTerms(per_payment_limit="9.999999"), "perPaymentLimit"),
            (PolicyTerms(daily_limit="9.999999"), "dailyLimit"),
            (PolicyTerms(allowed_chains=(1,)), "allowedChains"),
            (PolicyTerms(allowed_assets=("USDT",)), "allowedAssets"),
            (
                PolicyTerms(
                    allowed_destinations=(AllowedDestination(type="wallet", address=SHOP),)
                ),
                "allowedDestinations",
            ),
        ],
    )
    def test_a_policy_names_the_rule_by_which_it_refuses(
        self, world: World, terms: PolicyTerms, rule: str
    ) -> None:
        replace(world, terms)
        with pytest.raises(PolicyDenied) as caught:
            world.authorized("10.00")
        assert caught.value.rule == rule
        assert world.held() == (atomic("100"), 0, atomic("100"))

    def test_a_policy_that_covers_the_payment_exactly_lets_it_through(self, world: World) -> None:
        terms = PolicyTerms(
            per_payment_limit="10.00",
            daily_limit="10.00",
            allowed_chains=(BASE,),
            allowed_assets=("USDC",),
            allowed_destinations=(
                AllowedDestination(type="account", account_id=world.merchant.id),
            ),
        )
        replace(world, terms)
        assert world.authorized("10.00").operation.policy_version == 2
        with pytest.raises(PolicyDenied):
            world.authorized("0.01")

    def test_the_days_count_outlives_success_and_ends_with_the_day(self, world: World) -> None:
        replace(world, PolicyTerms(daily_limit="60.00"))
        midnight = (world.clock.now() // DAY + 1) * DAY
        world.authorized("40.00")
        world.finish()
        with pytest.raises(PolicyDenied):
            world.authorized("20.01")
        world.authorized("20.00")
        world.advance((midnight - world.clock.now()) // SECOND + 1)
        assert world.authorized("40.00").operation.status == "authorized"

    def test_a_withdrawn_authorization_is_taken_off_the_days_count(self, world: World) -> None:
        replace(world, PolicyTerms(daily_limit="60.00"))
        option = world.authorized("60.00")
        assert daily_spend(world.balance_now(), world.clock.now()) == atomic("60")
        world.resources.payments.cancel(option.payment.id)
        assert daily_spend(world.balance_now(), world.clock.now()) == 0
        world.authorized("60.00")

    def test_a_transfer_that_fails_for_good_is_taken_off_the_days_count(self, world: World) -> None:
        replace(world, PolicyTerms(daily_limit="60.00"))
        option = world.authorized("60.00")
        world.drain()
        world.finish()
        assert world.operation_now(option).status == "failed"
        assert daily_spend(world.balance_now(), world.clock.now()) == 0
        world.fund("60.00")
        world.authorized("60.00")

    def test_of_two_at_once_the_daily_limit_lets_one_through(self, world: World) -> None:
        replace(world, PolicyTerms(daily_limit="30.00"))
        options = [world.option(world.payment("20.00")) for _ in range(2)]
        outcomes = at_once([lambda option=option: world.authorize(option) for option in options])
        assert kinds(outcomes) == {"OptionDetails": 1, "PolicyDenied": 1}
        assert world.held() == (atomic("100"), atomic("20"), atomic("80"))


class TestYieldSettings:
    def test_they_are_off_until_set_and_kept_when_set(self, world: World) -> None:
        vault = world.vault_of()
        yields = world.resources.vaults
        before = yields.read_yield_settings(world.payer.id, vault.id).settings
        assert (before.enabled, before.strategy, before.created_at_ms) == (
            False, None, vault.created_at_ms,
        )  # fmt: skip
        for strategy in ("lending", None, "x" * 64):
            yields.replace_yield_settings(
                world.payer.id, vault.id, enabled=False, strategy=strategy
            )
            after = yields.read_yield_settings(world.payer.id, vault.id).settings
            assert (after.enabled, after.strategy) == (False, strategy)

    def test_they_cannot_be_enabled_without_an_adapter(self, world: World) -> None:
        vault = world.vault_of()
        yields = world.resources.vaults
        with pytest.raises(CapabilityNotActive) as caught:
            yields.replace_yield_settings(world.payer.id, vault.id, enabled=True)
        assert caught.value.capability == "yield"
        with pytest.raises(NotFound):
            yields.replace_yield_settings(world.merchant.id, vault.id, enabled=True)
        with pytest.raises(ValidationFailed):
            yields.replace_yield_settings(
                world.payer.id, vault.id, enabled=False, strategy="x" * 65
            )
        assert not yields.read_yield_settings(world.payer.id, vault.id).settings.enabled
