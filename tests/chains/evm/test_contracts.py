"""The factory and its purses, tried by everybody who might want the money."""

from __future__ import annotations

import pytest

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import DEPLOYER
from payments_core.chains.evm.artifacts import load_contract
from tests.chains.evm.deployed import ENV, MILLION, OTHER_ENV, Deployed, call
from tests.chains.evm.nodes import (
    ADMIN,
    MERCHANT,
    OPERATOR,
    OTHER_OPERATOR,
    OWNER,
    PAYER,
    STRANGER,
)

ZERO = "0x" + 40 * "0"
NOT_OPERATORS = (ADMIN, OTHER_OPERATOR, OWNER, MERCHANT, STRANGER)


def operators_calls(token: str, environment_id: str = ENV) -> dict[str, bytes]:
    """Everything that only an environment's operator may have done."""
    return {
        "fund": calls.fund(environment_id, "user", "payment", token, 5),
        "pay": calls.pay(environment_id, "payment", token, STRANGER, 5),
        "payOut": calls.pay_out(environment_id, "user", "send", token, STRANGER, 5),
        "sweep": calls.sweep(environment_id, "user", token, 5),
        "setVaultOwner": calls.set_vault_owner(environment_id, "user", STRANGER),
    }


@pytest.fixture
def token(deployed: Deployed) -> str:
    """A token of which vault, escrow and deposit of `user` and `payment` have a million each."""
    token = deployed.token()
    for kind, owner_id in (("vault", "user"), ("escrow", "payment"), ("deposit", "user")):
        deployed.filled(kind, owner_id, token)  # type: ignore[arg-type]
    return token


# --- Who may call what --------------------------------------------------------------------------


@pytest.mark.parametrize("name", operators_calls(ZERO))
def test_only_the_environments_own_operator_moves_its_money(
    deployed: Deployed, token: str, name: str
) -> None:
    data = operators_calls(token)[name]
    for sender in NOT_OPERATORS:
        assert deployed.refuses(sender, data) == "OnlyOperator"
    deployed.do(OPERATOR, data)


@pytest.mark.parametrize("name", operators_calls(ZERO))
def test_an_operator_has_no_say_in_another_environment(
    deployed: Deployed, token: str, name: str
) -> None:
    for kind in ("vault", "escrow", "deposit"):
        owner_id = "payment" if kind == "escrow" else "user"
        there = deployed.address(kind, owner_id, OTHER_ENV)  # type: ignore[arg-type]
        deployed.mint(token, there, MILLION)
    data = operators_calls(token, OTHER_ENV)[name]
    assert deployed.refuses(OPERATOR, data) == "OnlyOperator"
    deployed.do(OTHER_OPERATOR, data)


def test_operators_change_one_at_a_time_and_a_removed_one_is_nobody(
    deployed: Deployed, token: str
) -> None:
    deployed.do(ADMIN, calls.set_operator(ENV, PAYER, allowed=True))
    for operator in (OPERATOR, PAYER):
        deployed.do(operator, calls.pay(ENV, "payment", token, MERCHANT, 1))
    deployed.do(ADMIN, calls.set_operator(ENV, OPERATOR, allowed=False))
    deployed.do(PAYER, calls.pay(ENV, "payment", token, MERCHANT, 1))
    data = calls.pay(ENV, "payment", token, MERCHANT, 1)
    assert deployed.refuses(OPERATOR, data) == "OnlyOperator"


def test_only_the_admin_names_operators_and_hands_over(deployed: Deployed) -> None:
    for data in (calls.set_operator(ENV, STRANGER, allowed=True), calls.offer_admin(STRANGER)):
        for sender in (OPERATOR, OTHER_OPERATOR, STRANGER):
            assert deployed.refuses(sender, data) == "OnlyAdmin"


def test_the_admins_role_is_handed_over_only_when_it_is_taken(deployed: Deployed) -> None:
    assert deployed.refuses(STRANGER, calls.take_admin()) == "OnlyNextAdmin"
    deployed.do(ADMIN, calls.offer_admin(MERCHANT))
    for sender in (ADMIN, STRANGER):
        assert deployed.refuses(sender, calls.take_admin()) == "OnlyNextAdmin"
    named = calls.set_operator(OTHER_ENV, PAYER, allowed=True)
    assert deployed.refuses(MERCHANT, named) == "OnlyAdmin"
    deployed.do(MERCHANT, calls.take_admin())
    deployed.do(MERCHANT, named)
    assert deployed.refuses(ADMIN, named) == "OnlyAdmin"
    assert deployed.refuses(MERCHANT, calls.take_admin()) == "OnlyNextAdmin"


def test_an_offer_can_be_taken_back(deployed: Deployed) -> None:
    deployed.do(ADMIN, calls.offer_admin(STRANGER))
    deployed.do(ADMIN, calls.offer_admin(ZERO))
    assert deployed.refuses(STRANGER, calls.take_admin()) == "OnlyNextAdmin"


@pytest.mark.parametrize("kind", ["vault", "escrow", "deposit"])
def test_a_purse_pays_for_nobody_but_the_factory(deployed: Deployed, token: str, kind: str) -> None:
    for data in operators_calls(token).values():
        deployed.node.send(OPERATOR, deployed.factory, data)  # so that all of them exist
    deployed.do(STRANGER, calls.sweep_all(ENV, "user", token))
    owner_id = "payment" if kind == "escrow" else "user"
    purse = deployed.filled(kind, owner_id, token)  # type: ignore[arg-type]
    stolen = call("pay(address,address,uint256)", token, STRANGER, 5)
    for sender in (*NOT_OPERATORS, OPERATOR):
        assert deployed.refuses(sender, stolen, purse) == "OnlyFactory"


def test_the_implementations_serve_nobody(deployed: Deployed, token: str) -> None:
    vault = deployed.deployment.vault_implementation
    stolen = call("pay(address,address,uint256)", token, STRANGER, 5)
    for implementation in (vault, deployed.deployment.purse_implementation):
        deployed.mint(token, implementation, MILLION)
        assert deployed.refuses(STRANGER, stolen, implementation) == "OnlyFactory"
    taken = call("setOwner(address)", STRANGER)
    assert deployed.refuses(STRANGER, taken, vault) == "OnlyFactory"
    unsigned = calls.execute(token, 0, calls.transfer(STRANGER, 5), bytes(65))
    assert deployed.refuses(STRANGER, unsigned, vault) == "WrongSignature"


# --- Deployment -----------------------------------------------------------------------------------


def test_deploying_the_factory_again_or_first_changes_nothing(
    deployed: Deployed, token: str
) -> None:
    again = calls.deploy(deployed.deployment.creation)
    assert not deployed.node.send(STRANGER, DEPLOYER, again).succeeded
    # `Deployed` had it deployed by a stranger, and the admin is the one that was meant.
    assert deployed.refuses(STRANGER, calls.offer_admin(STRANGER)) == "OnlyAdmin"


def test_a_factory_without_an_admin_is_not_deployed(deployed: Deployed) -> None:
    creation = load_contract("Factory").creation + bytes(32)
    assert not deployed.node.send(STRANGER, DEPLOYER, calls.deploy(creation)).succeeded


def test_nobody_else_creates_what_stands_at_a_purses_address(deployed: Deployed) -> None:
    vault = deployed.address("vault", "user")
    implementation = deployed.deployment.vault_implementation.lower()[2:]
    proxy = (
        f"3d602d80600a3d3981f3363d3d373d3d3d363d73{implementation}5af43d82803e903d91602b57fd5bf3"
    )
    deployed.node.do(STRANGER, DEPLOYER, calls.deploy(bytes.fromhex(proxy)))
    assert deployed.node.code(vault) == b""
    deployed.do(OPERATOR, calls.set_vault_owner(ENV, "user", OWNER))
    assert deployed.node.code(vault).hex() == proxy[20:]


def test_a_purse_that_cannot_be_created_fails_the_whole_transaction(
    deployed: Deployed, token: str
) -> None:
    escrow = deployed.address("escrow", "payment")
    deployed.node.ask("anvil_setNonce", escrow, "0x1")  # CREATE2 takes it for a contract
    data = calls.pay(ENV, "payment", token, MERCHANT, 5)
    assert deployed.refuses(OPERATOR, data) == "CreationFailed"


def test_a_vault_is_given_an_owner_once_and_not_zero(deployed: Deployed) -> None:
    assert deployed.refuses(OPERATOR, calls.set_vault_owner(ENV, "user", ZERO)) == "NoOwner"
    deployed.do(OPERATOR, calls.set_vault_owner(ENV, "user", OWNER))
    for wallet in (OPERATOR, OWNER):
        again = calls.set_vault_owner(ENV, "user", wallet)
        assert deployed.refuses(OPERATOR, again) == "OwnerIsSet"
    assert deployed.node.call(deployed.address("vault", "user"), calls.OWNER.call())[12:] == (
        bytes.fromhex(OWNER[2:])
    )


def test_ether_sent_by_mistake_comes_back(deployed: Deployed, token: str) -> None:
    deployed.do(OPERATOR, calls.fund(ENV, "user", "payment", token, 1))
    deployed.do(OPERATOR, calls.pay(ENV, "payment", token, MERCHANT, 1))
    for address in (
        deployed.factory,
        deployed.address("vault", "user"),
        deployed.address("escrow", "payment"),
    ):
        assert not deployed.node.send(PAYER, address, value=1).succeeded


# --- Moving money ---------------------------------------------------------------------------------


def test_a_vault_funds_an_escrow_that_pays_a_merchant(deployed: Deployed) -> None:
    token = deployed.token()
    vault = deployed.filled("vault", "user", token)
    escrow = deployed.address("escrow", "payment")
    deployed.do(OPERATOR, calls.fund(ENV, "user", "payment", token, 400_000))
    assert deployed.node.code(escrow) == b""  # it need not exist to be paid
    assert (deployed.balance(token, vault), deployed.balance(token, escrow)) == (600_000, 400_000)
    deployed.do(OPERATOR, calls.pay(ENV, "payment", token, MERCHANT, 400_000))
    assert (deployed.balance(token, escrow), deployed.balance(token, MERCHANT)) == (0, 400_000)


def test_two_owners_of_one_name_in_two_environments_share_nothing(
    deployed: Deployed, token: str
) -> None:
    there = calls.pay(OTHER_ENV, "payment", token, MERCHANT, 1)
    assert deployed.refuses(OTHER_OPERATOR, there) == "TransferFailed"
    assert deployed.balance(token, deployed.address("escrow", "payment")) == MILLION


def test_more_than_there_is_moves_nothing(deployed: Deployed, token: str) -> None:
    for data in (
        calls.fund(ENV, "user", "payment", token, MILLION + 1),
        calls.pay(ENV, "payment", token, MERCHANT, MILLION + 1),
        calls.pay_out(ENV, "user", "send", token, MERCHANT, MILLION + 1),
        calls.sweep(ENV, "user", token, MILLION + 1),
    ):
        assert deployed.refuses(OPERATOR, data) == "TransferFailed"


def test_a_pay_out_goes_through_its_escrow_in_one_transaction(
    deployed: Deployed, token: str
) -> None:
    transit = deployed.address("escrow", "send").lower()
    data = calls.pay_out(ENV, "user", "send", token, MERCHANT, 70)
    logs = [log for log in deployed.do(OPERATOR, data).raw["logs"] if len(log["topics"]) == 3]
    ways = [
        tuple(f"0x{topic[26:]}" for topic in log["topics"][1:])
        for log in logs
        if log["address"] == token.lower()
    ]
    vault = deployed.address("vault", "user").lower()
    assert ways == [(vault, transit), (transit, MERCHANT.lower())]
    assert deployed.balance(token, MERCHANT) == 70


@pytest.mark.parametrize("name", ["TestToken", "FeeToken", "SilentToken"])
def test_a_pay_out_never_takes_what_lay_in_its_escrow(deployed: Deployed, name: str) -> None:
    token = deployed.token(name)
    deployed.filled("vault", "user", token)
    escrow = deployed.filled("escrow", "send", token, 55)
    deployed.do(OPERATOR, calls.pay_out(ENV, "user", "send", token, MERCHANT, 10_000))
    assert deployed.balance(token, escrow) == 55
    # The fee token keeps 1 % twice: of 10,000 arrive 9,900, and of those 9,801.
    assert deployed.balance(token, MERCHANT) == (9_801 if name == "FeeToken" else 10_000)


def test_the_operator_sweeps_exactly_what_it_says_and_only_to_the_vault(
    deployed: Deployed, token: str
) -> None:
    deposit, vault = deployed.address("deposit", "user"), deployed.address("vault", "user")
    deployed.do(OPERATOR, calls.sweep(ENV, "user", token, 300_000))
    assert deployed.balance(token, deposit) == 700_000
    assert deployed.balance(token, vault) == MILLION + 300_000


def test_a_stranger_sweeps_everything_but_only_to_the_vault(deployed: Deployed, token: str) -> None:
    deployed.do(STRANGER, calls.sweep_all(ENV, "user", token))
    assert deployed.balance(token, deployed.address("deposit", "user")) == 0
    assert deployed.balance(token, deployed.address("vault", "user")) == 2 * MILLION
    assert deployed.balance(token, STRANGER) == 0
    deployed.do(STRANGER, calls.sweep_all(ENV, "user", token))  # nothing left, and no harm


def test_a_stranger_who_sweeps_first_makes_the_operators_sweep_fail_whole(
    deployed: Deployed, token: str
) -> None:
    deployed.do(STRANGER, calls.sweep_all(ENV, "user", token))
    assert deployed.refuses(OPERATOR, calls.sweep(ENV, "user", token, 5)) == "TransferFailed"
