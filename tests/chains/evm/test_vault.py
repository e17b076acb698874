"""A vault and its owner: what a signature does, and all the ways in which it must do nothing."""

from __future__ import annotations

import attrs
import pytest
from eth_account.signers.local import LocalAccount
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.artifacts import load_contract
from payments_core.chains.role_modules import CALL
from payments_core_http.cli.anvil.process import AnvilProcess
from tests.chains.evm.deployed import CHAIN, ENV, MILLION, Deployed, account, call, signed
from tests.chains.evm.nodes import (
    ADMIN,
    MERCHANT,
    OPERATOR,
    OWNER,
    PAYER,
    STRANGER,
    Node,
    hexed,
)
from tests.signers import sign_digest

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
MODULE = STRANGER
"""Modules are contracts, usually; for the vault an account that may is one."""


@attrs.frozen
class Owned:
    """A vault with an owner and a million tokens."""

    deployed: Deployed
    address: str
    token: str
    key: LocalAccount

    def balance(self) -> int:
        """What it has."""
        return self.deployed.balance(self.token, self.address)

    def refuses(self, data: bytes, sender: str = STRANGER) -> str:
        """The name of the error with which it refuses this."""
        return self.deployed.refuses(sender, data, self.address)

    def refuses_signature(self, signature: bytes, amount: int = 5) -> None:
        """Hold that this signature does not pay the merchant."""
        data = calls.execute(self.token, 0, calls.transfer(MERCHANT, amount), signature)
        assert self.refuses(data) == "WrongSignature"


@pytest.fixture
def vault(deployed: Deployed) -> Owned:
    token = deployed.token()
    address = deployed.owned_vault("user", OWNER)
    deployed.mint(token, address, MILLION)
    return Owned(deployed, address, token, account(OWNER))


PAYS = calls.transfer(MERCHANT, 5)

# --- Signatures -----------------------------------------------------------------------------------


def test_what_the_owner_signed_is_done_for_any_caller(vault: Owned) -> None:
    vault.deployed.executes(vault.address, vault.token, PAYS, vault.key)
    assert vault.deployed.balance(vault.token, MERCHANT) == 5
    assert vault.deployed.nonce(vault.address) == 1


def test_a_signature_works_once(vault: Owned) -> None:
    signature = signed(vault.key, vault.address, vault.token, PAYS, nonce=0)
    data = calls.execute(vault.token, 0, PAYS, signature)
    vault.deployed.node.do(STRANGER, vault.address, data)
    assert vault.refuses(data) == "WrongSignature"


@pytest.mark.parametrize(
    "change",
    [
        {"chain_id": 1},  # signed for another chain
        {"nonce": 1},
        {"value": 1},
        {"operation": 1},
        {"data": calls.transfer(MERCHANT, 6)},
        {"data": PAYS + bytes(1)},
        {"to": MERCHANT},
        {"vault": MERCHANT},  # signed for another contract
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_signature_over_anything_else_is_refused(vault: Owned, change: dict[str, object]) -> None:
    said = {"vault": vault.address, "to": vault.token, "data": PAYS, "nonce": 0} | change
    vault.refuses_signature(signed(vault.key, **said))  # type: ignore[arg-type]


def test_a_signature_for_another_vault_of_the_same_owner_is_refused(vault: Owned) -> None:
    other = vault.deployed.owned_vault("same-user-again", OWNER)
    vault.refuses_signature(signed(vault.key, other, vault.token, PAYS, nonce=0))


def test_a_signature_does_not_work_on_another_chain_where_all_addresses_are_the_same(
    vault: Owned,
) -> None:
    with AnvilProcess(chain_id=10) as process:
        node = Node(process.url)
        there = Deployed(node)
        assert there.owned_vault("user", OWNER) == vault.address
        node.ask("anvil_setCode", vault.token, hexed(load_contract("TestToken").runtime or b""))
        there.mint(vault.token, vault.address, MILLION)
        for chain_id, works in ((CHAIN, False), (10, True)):
            fields = {"nonce": 0, "chain_id": chain_id}
            signature = signed(vault.key, vault.address, vault.token, PAYS, **fields)
            data = calls.execute(vault.token, 0, PAYS, signature)
            assert node.send(STRANGER, vault.address, data).succeeded == works
        node.close()


def test_nobody_elses_signature_counts(vault: Owned) -> None:
    for address in (ADMIN, OPERATOR, PAYER, MERCHANT, STRANGER):
        key = account(address)
        vault.refuses_signature(signed(key, vault.address, vault.token, PAYS, nonce=0))


def test_the_other_form_of_a_signature_is_refused(vault: Owned) -> None:
    good = signed(vault.key, vault.address, vault.token, PAYS, nonce=0)
    high_s = ORDER - int.from_bytes(good[32:64])
    turned = bytes([55 - good[64]])  # 27 and 28 change places
    vault.refuses_signature(good[:32] + high_s.to_bytes(32) + turned)
    vault.refuses_signature(good[:64] + bytes([good[64] - 27]))  # v as 0 or 1
    vault.refuses_signature(good + bytes(1))
    vault.refuses_signature(good[:64])
    vault.refuses_signature(b"")
    vault.refuses_signature(bytes(65))
    vault.deployed.node.do(STRANGER, vault.address, calls.execute(vault.token, 0, PAYS, good))


def test_a_vault_without_an_owner_takes_no_signature(deployed: Deployed) -> None:
    token = deployed.token()
    address = deployed.filled("vault", "nobody", token)
    deployed.do(OPERATOR, calls.fund(ENV, "nobody", "payment", token, 5))
    zero_key = [bytes(65), b"\xff" * 65, bytes(64) + b"\x1b"]
    real = [signed(account(OWNER), address, token, PAYS, nonce=0)]
    for signature in zero_key + real:
        data = calls.execute(token, 0, PAYS, signature)
        assert deployed.refuses(STRANGER, data, address) == "WrongSignature"


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    data=st.binary(max_size=300),
    value=st.integers(0, 2**256 - 1),
    nonce=st.integers(0, 2**256 - 1),
    operation=st.integers(0, 255),
)
def test_the_digest_is_that_of_eip_712(
    vault: Owned, data: bytes, value: int, nonce: int, operation: int
) -> None:
    question = call(
        "executeDigest(address,uint256,bytes,uint8,uint256)",
        vault.token, value, data, operation, nonce,
    )  # fmt: skip
    digest = vault.deployed.node.call(vault.address, question)
    fields = {"value": value, "nonce": nonce, "operation": operation}
    signature = signed(vault.key, vault.address, vault.token, data, **fields)
    ours = sign_digest(bytes(vault.key.key), digest)
    assert ours[:64] == signature[:64]  # both are deterministic (RFC 6979)


def test_a_call_that_fails_is_undone_whole_with_its_own_reason(vault: Owned) -> None:
    data = calls.transfer(MERCHANT, MILLION + 1)
    signature = signed(vault.key, vault.address, vault.token, data, nonce=0)
    assert vault.refuses(calls.execute(vault.token, 0, data, signature)) == "TooLittle"
    assert vault.deployed.nonce(vault.address) == 0


def test_a_signed_call_cannot_use_its_signature_again_from_within(vault: Owned) -> None:
    token = vault.deployed.token("HostileToken")
    vault.deployed.mint(token, vault.address, 100)
    signature = signed(vault.key, vault.address, token, PAYS, nonce=0)
    again = calls.execute(token, 0, PAYS, signature)
    reported = call("attack(address,bytes,bytes)", vault.address, again, bytes(31) + b"\x01")
    vault.deployed.node.do(STRANGER, token, reported)
    vault.deployed.node.do(STRANGER, vault.address, again)
    assert int.from_bytes(vault.deployed.node.call(token, call("called()"))) == 1
    assert int.from_bytes(vault.deployed.node.call(token, call("succeeded()"))) == 0
    assert vault.deployed.balance(token, MERCHANT) == 5


# --- Owners that are contracts --------------------------------------------------------------------

MAGIC = bytes.fromhex("1626ba7e")


@pytest.mark.parametrize(
    ("answer", "agrees"),
    [
        (MAGIC + bytes(28), True),
        (MAGIC, False),  # shorter than a word
        (MAGIC + bytes(27) + b"\x01", False),
        (MAGIC + bytes(60), False),
        (b"\xff" * 32, False),
        (bytes(31) + b"\x01", False),
        (b"", False),
    ],
)
def test_a_contract_that_owns_a_vault_agrees_by_exactly_one_answer(
    deployed: Deployed, answer: bytes, agrees: bool
) -> None:
    token = deployed.token()
    wallet = deployed.token("ContractWallet")
    vault = deployed.owned_vault("user", wallet)
    deployed.mint(token, vault, MILLION)
    fields = (token, 0, PAYS, CALL, 0)
    question = call("executeDigest(address,uint256,bytes,uint8,uint256)", *fields)
    digest = deployed.node.call(vault, question)
    accepted = call("accept(bytes32,bytes,bytes)", digest, b"yes", answer)
    deployed.node.do(STRANGER, wallet, accepted)
    data = calls.execute(token, 0, PAYS, b"yes")
    other = calls.execute(token, 0, calls.transfer(STRANGER, 5), b"yes")
    assert deployed.refuses(STRANGER, other, vault) == "WrongSignature"
    if agrees:
        deployed.node.do(STRANGER, wallet, call("setReverting(bool)", True))
        assert deployed.refuses(STRANGER, data, vault) == "WrongSignature"
        deployed.node.do(STRANGER, wallet, call("setReverting(bool)", False))
        deployed.node.do(STRANGER, vault, data)
    assert deployed.refuses(STRANGER, data, vault) == "WrongSignature"


def test_a_key_whose_account_has_code_still_signs(vault: Owned) -> None:
    # EIP-7702 gives an account code; here the node is asked to.
    vault.deployed.node.ask("anvil_setCode", OWNER, "0xef0100" + vault.token[2:])
    vault.deployed.executes(vault.address, vault.token, PAYS, vault.key)
    assert vault.deployed.balance(vault.token, MERCHANT) == 5


# --- What only the vault itself may do ------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        calls.enable_module(MODULE),
        calls.disable_module(OWNER, MODULE),
        calls.set_factory_role(allowed=False),
    ],
)
def test_roles_are_given_and_taken_by_the_owners_signature_alone(vault: Owned, data: bytes) -> None:
    for sender in (ADMIN, OPERATOR, OWNER, STRANGER):
        assert vault.refuses(data, sender) == "OnlyItself"
    vault.deployed.executes(vault.address, vault.address, data, vault.key)


def test_an_owner_takes_the_factorys_role_away_and_gives_it_back(vault: Owned) -> None:
    deployed = vault.deployed
    fund = calls.fund(ENV, "user", "payment", vault.token, 5)
    pay_out = calls.pay_out(ENV, "user", "send", vault.token, MERCHANT, 5)
    refused = calls.set_factory_role(allowed=False)
    deployed.executes(vault.address, vault.address, refused, vault.key)
    for data in (fund, pay_out):
        assert deployed.refuses(OPERATOR, data) == "FactoryRefused"
    again = calls.set_factory_role(allowed=True)
    deployed.executes(vault.address, vault.address, again, vault.key)
    deployed.do(OPERATOR, fund)


def test_deposits_still_come_in_where_the_factory_has_no_role(vault: Owned) -> None:
    refused = calls.set_factory_role(allowed=False)
    vault.deployed.executes(vault.address, vault.address, refused, vault.key)
    vault.deployed.filled("deposit", "user", vault.token)
    vault.deployed.do(STRANGER, calls.sweep_all(ENV, "user", vault.token))
    assert vault.balance() == 2 * MILLION


# --- Modules --------------------------------------------------------------------------------------

FROM_MODULE = "execTransactionFromModule(address,uint256,bytes,uint8)"


def test_only_enabled_modules_act_and_only_while_they_are(vault: Owned) -> None:
    node = vault.deployed.node
    data = call(FROM_MODULE, vault.token, 0, PAYS, CALL)
    for sender in (ADMIN, OPERATOR, OWNER, MODULE):
        assert vault.refuses(data, sender) == "OnlyModules"
    enabled = calls.enable_module(MODULE)
    vault.deployed.executes(vault.address, vault.address, enabled, vault.key)
    is_enabled = calls.IS_MODULE_ENABLED.call(MODULE)
    assert int.from_bytes(node.call(vault.address, is_enabled)) == 1
    node.do(MODULE, vault.address, data)
    assert vault.refuses(data, OWNER) == "OnlyModules"
    disabled = calls.disable_module("0x" + 39 * "0" + "1", MODULE)
    vault.deployed.executes(vault.address, vault.address, disabled, vault.key)
    assert vault.refuses(data, MODULE) == "OnlyModules"
    assert vault.deployed.balance(vault.token, MERCHANT) == 5


def test_no_operation_but_a_call_is_done_for_anybody(vault: Owned) -> None:
    enabled = calls.enable_module(MODULE)
    vault.deployed.executes(vault.address, vault.address, enabled, vault.key)
    for operation in (1, 2, 255):
        data = call(FROM_MODULE, vault.token, 0, PAYS, operation)
        assert vault.refuses(data, MODULE) == "OnlyCalls"
        # Not for the owner either, whose signature over it is good.
        fields = {"nonce": vault.deployed.nonce(vault.address), "operation": operation}
        signature = signed(vault.key, vault.address, vault.token, PAYS, **fields)
        data = calls.execute(vault.token, 0, PAYS, signature, operation=operation)
        assert vault.refuses(data) == "OnlyCalls"


def test_a_module_cannot_change_who_may_act(vault: Owned) -> None:
    enabled = calls.enable_module(MODULE)
    vault.deployed.executes(vault.address, vault.address, enabled, vault.key)
    for inner in (calls.enable_module(PAYER), calls.set_factory_role(allowed=False)):
        data = call(FROM_MODULE, vault.address, 0, inner, CALL)
        assert vault.refuses(data, MODULE) == "NotItself"


def test_a_module_learns_that_its_call_failed(vault: Owned) -> None:
    enabled = calls.enable_module(MODULE)
    vault.deployed.executes(vault.address, vault.address, enabled, vault.key)
    data = call(FROM_MODULE, vault.token, 0, calls.transfer(MERCHANT, 2 * MILLION), CALL)
    assert int.from_bytes(vault.deployed.node.call(vault.address, data, sender=MODULE)) == 0
    vault.deployed.node.do(MODULE, vault.address, data)
    assert vault.balance() == MILLION
