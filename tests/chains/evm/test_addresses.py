"""Addresses are computed as the contracts compute them, and are the same on every chain."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payments_core.addresses import AddressError
from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import (
    DEPLOYER,
    PURSE_KINDS,
    Deployment,
    PurseKind,
    RoleModule,
    create2_address,
    hash_id,
)
from payments_core_http.cli.anvil.process import AnvilProcess
from tests.chains.evm.deployed import ENV, Deployed
from tests.chains.evm.nodes import ADMIN, MERCHANT, OPERATOR, OWNER, PAYER, STRANGER, Node

ids = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
kinds = st.sampled_from(sorted(PURSE_KINDS))


def asked(deployed: Deployed, environment_id: str, kind: PurseKind, owner_id: str) -> str:
    """What the factory on the node says."""
    name = (hash_id(environment_id), PURSE_KINDS[kind], hash_id(owner_id))
    answer = deployed.node.call(deployed.factory, calls.ADDRESS_OF.call(*name))
    return f"0x{answer[12:].hex()}"


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(environment_id=ids, kind=kinds, owner_id=ids)
def test_the_factory_computes_the_same_address(
    deployed: Deployed, environment_id: str, kind: PurseKind, owner_id: str
) -> None:
    ours = deployed.deployment.address(environment_id, kind, owner_id)
    assert asked(deployed, environment_id, kind, owner_id) == ours.lower()


@given(one=st.tuples(ids, kinds, ids), other=st.tuples(ids, kinds, ids))
def test_two_purposes_never_share_an_address(
    one: tuple[str, PurseKind, str], other: tuple[str, PurseKind, str]
) -> None:
    deployment = Deployment(ADMIN)
    assert (deployment.address(*one) == deployment.address(*other)) == (one == other)


@pytest.mark.parametrize(
    ("creator", "salt", "creation", "address"),
    [  # examples of EIP-1014
        ("00" * 20, "00" * 32, "00", "4d1a2e2bb4f88f0250f26ffff098b0b30b26bf38"),
        (
            "00000000000000000000000000000000deadbeef",
            "00000000000000000000000000000000000000000000000000000000cafebabe",
            "deadbeef",
            "60f3f640a8508fc6a86d45df051962668e1e8ac7",
        ),
    ],
)
def test_create2_is_that_of_the_standard(
    creator: str, salt: str, creation: str, address: str
) -> None:
    said = (bytes.fromhex(text) for text in (creator, salt, creation))
    assert create2_address(*said).hex() == address


def test_the_factory_is_where_it_was_said_to_be(deployed: Deployed) -> None:
    assert deployed.node.code(deployed.factory)
    answers = {
        "admin()": ADMIN,
        "vaultImplementation()": deployed.deployment.vault_implementation,
        "purseImplementation()": deployed.deployment.purse_implementation,
    }
    for question, address in answers.items():
        said = deployed.node.call(deployed.factory, calls.Function(question[:-2], ()).call())
        assert said[12:].hex() == address.lower()[2:]


def test_another_admin_has_another_factory_and_other_addresses() -> None:
    one, other = Deployment(ADMIN), Deployment(STRANGER)
    assert one.factory != other.factory
    assert one.address(ENV, "vault", "user") != other.address(ENV, "vault", "user")


def test_an_admin_is_an_address_and_not_zero() -> None:
    for text in ("0x12", "0x" + "0" * 40, ADMIN[:-1] + "g"):
        with pytest.raises(AddressError):
            _ = Deployment(text).factory


def test_addresses_are_the_same_on_another_chain(deployed: Deployed) -> None:
    with AnvilProcess(chain_id=137) as other:
        node = Node(other.url)
        there = Deployed(node)
        there.do(OPERATOR, calls.set_vault_owner(ENV, "user", OWNER))
        assert there.factory == deployed.factory
        assert node.code(deployed.address("vault", "user"))
        node.close()


def test_the_order_of_its_tokens_does_not_move_a_role_module() -> None:
    one = RoleModule(DEPLOYER, ENV, PAYER, OPERATOR, (MERCHANT, STRANGER))
    other = RoleModule(DEPLOYER, ENV, PAYER, OPERATOR, (STRANGER, MERCHANT.lower(), STRANGER))
    assert one.address == other.address


def test_a_role_module_is_where_it_was_said_to_be(deployed: Deployed) -> None:
    module = deployed.role_module(PAYER, MERCHANT, STRANGER)
    avatar = deployed.node.call(module.address, calls.Function("avatar", ()).call())
    assert avatar[12:].hex() == PAYER.lower()[2:]
