"""A role module on a vault of ours: one operator, listed tokens, escrows and nothing else."""

from __future__ import annotations

import pytest

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import RoleModule, hash_id
from payments_core.chains.evm.artifacts import load_contract
from tests.chains.evm.deployed import MILLION, OTHER_ENV, Deployed, account, call
from tests.chains.evm.nodes import (
    ADMIN,
    MERCHANT,
    OPERATOR,
    OTHER_OPERATOR,
    OWNER,
    PAYER,
    STRANGER,
)


class Roles:
    """An owned vault with a role module that may move one token."""

    def __init__(self, deployed: Deployed) -> None:
        self.deployed = deployed
        self.token = deployed.token()
        self.vault = deployed.owned_vault("user", OWNER)
        deployed.mint(self.token, self.vault, MILLION)
        self.module: RoleModule = deployed.role_module(self.vault, self.token)
        self.escrow = deployed.address("escrow", "payment")
        self.enable(self.module)

    def enable(self, module: RoleModule) -> None:
        """By the owner's signature."""
        data = calls.enable_module(module.address)
        self.deployed.executes(self.vault, self.vault, data, account(OWNER))

    def refuses(
        self,
        inner: bytes,
        *,
        token: str | None = None,
        sender: str = OPERATOR,
        owner_id: str = "payment",
    ) -> str:
        """The name of the error with which the module refuses to have this done."""
        data = calls.EXEC.call(token or self.token, inner, hash_id(owner_id))
        return self.deployed.refuses(sender, data, self.module.address)


@pytest.fixture
def roles(deployed: Deployed) -> Roles:
    return Roles(deployed)


def test_the_operator_moves_a_listed_token_into_an_escrow(roles: Roles) -> None:
    data = calls.exec_transfer(roles.token, roles.escrow, 70, "payment")
    roles.deployed.node.do(OPERATOR, roles.module.address, data)
    assert roles.deployed.balance(roles.token, roles.escrow) == 70
    assert roles.deployed.balance(roles.token, roles.vault) == MILLION - 70


def test_nobody_but_its_operator_uses_it(roles: Roles) -> None:
    inner = calls.transfer(roles.escrow, 5)
    for sender in (ADMIN, OTHER_OPERATOR, OWNER, PAYER, STRANGER):
        assert roles.refuses(inner, sender=sender) == "OnlyOperator"


def test_nothing_but_a_listed_token_is_called(roles: Roles) -> None:
    inner = calls.transfer(roles.escrow, 5)
    for target in (roles.deployed.token(), roles.vault, roles.deployed.factory, PAYER):
        assert roles.refuses(inner, token=target) == "TokenNotAllowed"


def test_no_call_but_a_whole_transfer_is_made(roles: Roles) -> None:
    good = calls.transfer(roles.escrow, 5)
    approve = call("approve(address,uint256)", roles.escrow, 5)
    from_vault = call("transferFrom(address,address,uint256)", roles.vault, roles.escrow, 5)
    others = [b"", good[:4], good[:67], good[1:], good + bytes(1), good + bytes(32), good + good]
    for inner in (*others, approve, from_vault, call("mint(address,uint256)", roles.escrow, 5)):
        assert roles.refuses(inner) == "NotATransfer"


def test_no_recipient_but_the_named_owners_escrow_is_paid(roles: Roles) -> None:
    address = roles.deployed.address
    others = [
        address("escrow", "another"),
        address("escrow", "payment", OTHER_ENV),
        address("vault", "payment"),
        address("deposit", "payment"),
        roles.vault,
        OPERATOR,
        MERCHANT,
    ]
    for recipient in others:
        assert roles.refuses(calls.transfer(recipient, 5)) == "NotToTheEscrow"
    assert roles.refuses(calls.transfer(roles.escrow, 5), owner_id="other") == "NotToTheEscrow"


def test_bytes_hidden_in_front_of_the_address_are_refused(roles: Roles) -> None:
    good = calls.transfer(roles.escrow, 5)
    for place in (4, 10, 15):
        hidden = bytearray(good)
        hidden[place] = 1
        assert roles.refuses(bytes(hidden)) == "NotToTheEscrow"


def test_more_than_the_vault_has_fails_whole(roles: Roles) -> None:
    inner = calls.transfer(roles.escrow, MILLION + 1)
    assert roles.refuses(inner) == "TransferFailed"


def test_a_listed_token_that_is_not_deployed_is_refused(roles: Roles) -> None:
    module = roles.deployed.role_module(roles.vault, roles.token, PAYER)
    roles.enable(module)
    data = calls.exec_transfer(PAYER, roles.escrow, 5, "payment")
    assert roles.deployed.refuses(OPERATOR, data, module.address) == "TransferFailed"


def test_a_module_that_was_not_enabled_or_no_longer_is_moves_nothing(roles: Roles) -> None:
    other = RoleModule(roles.deployed.factory, OTHER_ENV, roles.vault, OPERATOR, (roles.token,))
    roles.deployed.deploy(other.creation)
    there = roles.deployed.address("escrow", "payment", OTHER_ENV)
    data = calls.exec_transfer(roles.token, there, 5, "payment")
    assert roles.deployed.refuses(OPERATOR, data, other.address) == "OnlyModules"
    disabled = calls.disable_module("0x" + 39 * "0" + "1", roles.module.address)
    roles.deployed.executes(roles.vault, roles.vault, disabled, account(OWNER))
    assert roles.refuses(calls.transfer(roles.escrow, 5)) == "OnlyModules"


def test_a_module_for_one_vault_moves_nothing_from_another(roles: Roles) -> None:
    other = roles.deployed.owned_vault("another", MERCHANT)
    roles.deployed.mint(roles.token, other, MILLION)
    data = calls.exec_transfer(roles.token, roles.escrow, 5, "payment")
    roles.deployed.node.do(OPERATOR, roles.module.address, data)
    assert roles.deployed.balance(roles.token, other) == MILLION


def test_the_artifact_of_the_module_has_no_way_to_change_what_it_may(roles: Roles) -> None:
    changing = {
        entry["name"]
        for entry in load_contract("RoleModule").abi
        if entry["type"] == "function" and entry["stateMutability"] != "view"
    }
    assert changing == {"exec"}
