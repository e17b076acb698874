"""A role module on a real Safe, which its owner enables by an ordinary Safe transaction."""

from __future__ import annotations

import pytest

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import hash_id
from tests.chains.evm.deployed import MILLION, Deployed, account, call
from tests.chains.evm.nodes import MERCHANT, OPERATOR, OWNER, PAYER, STRANGER
from tests.chains.evm.safes import FIRST, Safe


class SafeWithRole:
    """A Safe with a million tokens and a role module, not enabled yet."""

    def __init__(self, deployed: Deployed) -> None:
        self.deployed = deployed
        self.safe = Safe(deployed, account(OWNER))
        self.token = deployed.token()
        deployed.mint(self.token, self.safe.address, MILLION)
        self.module = deployed.role_module(self.safe.address, self.token)
        self.escrow = deployed.address("escrow", "payment")

    def enable(self) -> None:
        """By the owner's SafeTx."""
        self.safe.executes(self.safe.address, calls.enable_module(self.module.address))

    def exec(self, inner: bytes, token: str | None = None) -> bytes:
        """The calldata that has the module do something for the payment's escrow."""
        return calls.EXEC.call(token or self.token, inner, hash_id("payment"))

    def refuses(self, inner: bytes, *, token: str | None = None, sender: str = OPERATOR) -> str:
        """The name of the error with which the module refuses this."""
        return self.deployed.refuses(sender, self.exec(inner, token), self.module.address)


@pytest.fixture
def role(deployed: Deployed) -> SafeWithRole:
    return SafeWithRole(deployed)


def test_a_safe_whose_owner_enabled_the_module_pays_into_the_escrow(role: SafeWithRole) -> None:
    role.enable()
    node, module = role.deployed.node, role.module.address
    is_enabled = calls.IS_MODULE_ENABLED.call(module)
    assert int.from_bytes(node.call(role.safe.address, is_enabled)) == 1
    node.do(OPERATOR, module, calls.exec_transfer(role.token, role.escrow, 70, "payment"))
    assert role.deployed.balance(role.token, role.escrow) == 70
    assert role.deployed.balance(role.token, role.safe.address) == MILLION - 70


def test_a_module_that_the_owner_did_not_enable_moves_nothing(role: SafeWithRole) -> None:
    inner = calls.transfer(role.escrow, 5)
    reason = role.deployed.node.fails(OPERATOR, role.module.address, role.exec(inner))
    assert b"GS104" in reason  # Safe: method can only be called from an enabled module


def test_nobody_but_the_owner_enables_it(role: SafeWithRole) -> None:
    enable = calls.enable_module(role.module.address)
    node, safe = role.deployed.node, role.safe
    assert b"GS031" in node.fails(OPERATOR, safe.address, enable)
    forged = safe.transaction(safe.address, enable, account(STRANGER))
    assert b"GS026" in node.fails(STRANGER, safe.address, forged)


def test_a_safe_transaction_works_once(role: SafeWithRole) -> None:
    enable = calls.enable_module(role.module.address)
    signed = role.safe.transaction(role.safe.address, enable, account(OWNER))
    role.deployed.node.do(STRANGER, role.safe.address, signed)
    assert b"GS026" in role.deployed.node.fails(STRANGER, role.safe.address, signed)


def test_nothing_outside_the_role_is_done_on_a_safe(role: SafeWithRole) -> None:
    role.enable()
    good = calls.transfer(role.escrow, 5)
    assert role.refuses(good, sender=STRANGER) == "OnlyOperator"
    assert role.refuses(good, sender=OWNER) == "OnlyOperator"
    for target in (role.safe.address, role.deployed.token(), role.deployed.factory):
        assert role.refuses(good, token=target) == "TokenNotAllowed"
    for inner in (
        good + bytes(1),
        good[:-1],
        call("approve(address,uint256)", role.escrow, 5),
        call("transferFrom(address,address,uint256)", role.safe.address, role.escrow, 5),
        calls.enable_module(PAYER),
    ):
        assert role.refuses(inner) == "NotATransfer"
    for recipient in (MERCHANT, OPERATOR, role.deployed.address("vault", "payment")):
        assert role.refuses(calls.transfer(recipient, 5)) == "NotToTheEscrow"
    assert role.refuses(calls.transfer(role.escrow, MILLION + 1)) == "TransferFailed"
    assert role.deployed.balance(role.token, role.safe.address) == MILLION


def test_a_module_that_the_owner_disabled_moves_nothing(role: SafeWithRole) -> None:
    role.enable()
    disable = calls.disable_module(FIRST, role.module.address)
    role.safe.executes(role.safe.address, disable)
    inner = calls.transfer(role.escrow, 5)
    reason = role.deployed.node.fails(OPERATOR, role.module.address, role.exec(inner))
    assert b"GS104" in reason
