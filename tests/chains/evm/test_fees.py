"""Fees and gas limits: laws for all numbers, and the table of gas measured again on a node."""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import DEPLOYER, Deployment, RoleModule
from payments_core.chains.evm.fees import (
    GWEI,
    MAX_GAS,
    MEASURED_GAS,
    Action,
    Fees,
    bump_fees,
    gas_limit,
    initial_fees,
)
from payments_core.chains.port import ChainUnavailable
from payments_core.networks import FeePolicy, shipped_networks
from tests.chains.evm.deployed import ENV, Deployed, account
from tests.chains.evm.nodes import ADMIN, MERCHANT, OPERATOR, OWNER, PAYER, STRANGER, Node

POLICIES = {id: network.fees for id, network in shipped_networks().items() if network.fees}
NUMBERS = st.integers(0, 2**256)
BOUNDS = [field.name for field in attrs.fields(FeePolicy)][:4]
POLICY = st.sampled_from(list(POLICIES.values())) | st.lists(
    st.integers(0, 10**13), min_size=4, max_size=4
).map(lambda bounds: FeePolicy(**dict(zip(BOUNDS, sorted(bounds), strict=True))))


def test_every_evm_chain_of_the_registry_has_a_policy() -> None:
    shipped = shipped_networks().items()
    assert set(POLICIES) == {id for id, network in shipped if network.chain_type == "evm"}


def test_a_first_offer_lets_the_base_fee_double() -> None:
    assert initial_fees(3 * GWEI, GWEI, POLICIES[1]) == Fees(7 * GWEI, GWEI)


@pytest.mark.parametrize(
    ("chain_id", "suggested", "offered"),
    [
        (137, 0, 25 * GWEI),
        (137, 25 * GWEI - 1, 25 * GWEI),
        (137, 40 * GWEI, 40 * GWEI),
        (8453, 0, GWEI // 1_000),
        (42161, 0, 0),
        (42161, GWEI, 0),
        (1, 10**30, 5 * GWEI),
    ],
)
def test_a_tip_follows_the_node_within_the_chains_bounds(
    chain_id: int, suggested: int, offered: int
) -> None:
    assert initial_fees(GWEI, suggested, POLICIES[chain_id]).max_priority_fee == offered


@given(NUMBERS, NUMBERS, POLICY)
def test_whatever_a_node_says_no_offer_is_above_the_policy(
    base_fee: int, priority: int, policy: FeePolicy
) -> None:
    fees = initial_fees(base_fee, priority, policy)
    assert policy.min_priority <= fees.max_priority_fee <= fees.max_fee <= policy.fee_ceiling
    assert fees.covers(base_fee) == (base_fee <= fees.max_fee)


@given(st.tuples(NUMBERS, NUMBERS), NUMBERS, NUMBERS, POLICY)
def test_a_bump_is_an_eighth_more_on_both_within_the_policy_or_none_at_all(
    fees: tuple[int, int], base_fee: int, priority: int, policy: FeePolicy
) -> None:
    before = Fees(max(fees), min(fees))
    bump = bump_fees(before, base_fee, priority, policy)
    if bump.is_held:
        assert bump.fees == before
        return
    for old, new in zip(attrs.astuple(before), attrs.astuple(bump.fees), strict=True):
        assert new > old
        assert Fraction(new) >= old * Fraction(1125, 1000)
    assert bump.fees.max_priority_fee <= bump.fees.max_fee <= policy.fee_ceiling
    assert bump.fees.max_priority_fee <= policy.max_priority


@given(NUMBERS, NUMBERS, POLICY)
def test_bumps_end(base_fee: int, priority: int, policy: FeePolicy) -> None:
    fees = initial_fees(base_fee, priority, policy)
    for _ in range(400):
        bump = bump_fees(fees, base_fee, priority, policy)
        if bump.is_held:
            return
        fees = bump.fees
    raise AssertionError("it goes on and on")


@given(st.integers(0, GWEI), st.sampled_from(sorted(POLICIES)))
def test_a_transaction_of_quiet_hours_can_be_bumped_five_times(base_fee: int, id: int) -> None:
    policy = POLICIES[id]
    fees = initial_fees(base_fee, 0, policy)
    for _ in range(5):
        bump = bump_fees(fees, base_fee, 0, policy)
        assert not bump.is_held
        fees = bump.fees


def test_a_bump_follows_a_base_fee_that_ran_away() -> None:
    policy = POLICIES[1]
    bump = bump_fees(initial_fees(GWEI, 0, policy), 80 * GWEI, 2 * GWEI, policy)
    assert bump.fees == Fees(162 * GWEI, 2 * GWEI)
    assert bump.fees.covers(80 * GWEI)


@pytest.mark.parametrize(
    "before",
    [
        Fees(300 * GWEI * 8 // 9 + 1, GWEI),  # the whole fee has no room
        Fees(100 * GWEI, 50 * GWEI * 8 // 9 + 1),  # the tip has none
    ],
)
def test_at_the_ceiling_it_stays_and_says_so(before: Fees) -> None:
    bump = bump_fees(before, 0, 0, POLICIES[1])
    assert bump.is_held
    assert bump.fees == before


@pytest.mark.parametrize("bounds", [(2, 1, 3, 4), (-1, 1, 2, 3), (0, 1, 3, 2), (0.0, 1, 2, 3)])
def test_a_policy_whose_bounds_do_not_rise_is_refused(bounds: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="fee"):
        FeePolicy(**dict(zip(BOUNDS, bounds, strict=True)))


# --- Gas ----------------------------------------------------------------------------------------


@given(st.sampled_from(sorted(MEASURED_GAS)), st.integers(0, MAX_GAS * 10 // 13))
def test_a_gas_limit_is_never_below_what_was_measured_or_estimated(
    action: Action, estimate: int
) -> None:
    limit = gas_limit(action, estimate, POLICIES[8453])
    assert limit >= MEASURED_GAS[action]
    assert Fraction(limit) >= estimate * Fraction(13, 10)
    assert limit <= MAX_GAS


@pytest.mark.parametrize("estimate", [MAX_GAS * 10 // 13 + 1, 2**255])
def test_an_estimate_that_no_transaction_can_have_is_not_believed(estimate: int) -> None:
    with pytest.raises(ChainUnavailable):
        gas_limit("fund", estimate, POLICIES[42161])


def test_arbitrums_estimate_counts_over_the_table() -> None:
    assert gas_limit("pay", 1_000_000, POLICIES[42161]) == 1_300_000


def test_where_data_costs_gas_a_transaction_without_an_estimate_gets_far_more() -> None:
    assert gas_limit("pay", 0, POLICIES[42161]) >= 10 * MEASURED_GAS["pay"]
    assert gas_limit("pay", 0, POLICIES[1]) == gas_limit("pay", 1, POLICIES[1])
    assert all(gas_limit(action, 0, POLICIES[42161]) <= MAX_GAS for action in MEASURED_GAS)


def test_the_table_of_gas_is_what_a_node_uses_at_most(node: Node) -> None:
    used: dict[Action, int] = {}
    deploy = calls.deploy(Deployment(PAYER).creation)
    used["deploy_factory"] = node.do(STRANGER, DEPLOYER, deploy).gas_used
    used |= used_afterwards(Deployed(node))
    used["fill"] = node.do(STRANGER, STRANGER, b"").gas_used
    assert set(used) == set(MEASURED_GAS)
    for action, gas in used.items():
        # An address or an id with more zeros makes calldata a little cheaper.
        assert 0.98 * MEASURED_GAS[action] <= gas <= 1.02 * MEASURED_GAS[action], (action, gas)


def used_afterwards(deployed: Deployed) -> dict[Action, int]:
    allow = calls.set_operator("env_three", OPERATOR, allowed=True)
    used: dict[Action, int] = {"set_operator": deployed.do(ADMIN, allow).gas_used}
    token = deployed.token()
    for kind, owner_id in (("vault", "a"), ("vault", "b"), ("vault", "f"), ("escrow", "c")):
        deployed.filled(kind, owner_id, token)  # type: ignore[arg-type]
    for owner_id in ("d", "e"):
        deployed.filled("deposit", owner_id, token)
    owners: dict[Action, bytes] = {
        "fund": calls.fund(ENV, "a", "new", token, 5),
        "pay": calls.pay(ENV, "c", token, MERCHANT, 5),
        "pay_out": calls.pay_out(ENV, "b", "transit", token, STRANGER, 5),
        "sweep": calls.sweep(ENV, "d", token, 5),
        "sweep_all": calls.sweep_all(ENV, "e", token),
        "report": calls.report(ENV, "escrow", "coined"),
        "set_vault_owner": calls.set_vault_owner(ENV, "new", OWNER),
    }
    deployed.node.do(STRANGER, deployed.address("escrow", "coined"), value=5)
    used |= {action: deployed.do(OPERATOR, data).gas_used for action, data in owners.items()}
    vault = deployed.owned_vault("f", OWNER)
    module = RoleModule(deployed.factory, ENV, vault, OPERATOR, (token,))
    enable = calls.enable_module(module.address)
    used["deploy_role_module"] = deployed.deploy(module.creation).gas_used
    used["enable_module"] = deployed.executes(vault, vault, enable, account(OWNER)).gas_used
    exec = calls.exec_transfer(token, deployed.address("escrow", "newer"), 5, "newer")
    used["exec_transfer"] = deployed.node.do(OPERATOR, module.address, exec).gas_used
    return used
