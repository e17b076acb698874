"""The way of `deploy-role-module` on a node: a vault's and a Safe's owner signs, we bring it.

Read, decided, signed by us, sent, and used; and each refusal where it belongs: at the policy by
field, and at the signer for bytes that are anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm import role_modules
from payments_core.chains.evm.addresses import DEPLOYER, Deployment, RoleModule
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.role_modules import (
    ModuleCall,
    deployment_call,
    encode_execution,
    require_safe_signatures,
)
from payments_core.chains.evm.signers import RemoteSigner
from payments_core.chains.evm.transactions import decode_signed
from payments_core.chains.port import SignerRefused
from payments_core.chains.role_modules import (
    AvatarCall,
    AvatarKind,
    ModuleState,
    TxData,
    build_enable_call,
    require_signature,
)
from payments_core.chains.typed_data import safe_transaction_digest, safe_transaction_message
from payments_core.errors import ValidationFailed
from tests.chains.evm.deployed import (
    CHAIN,
    ENV,
    MILLION,
    OTHER_ENV,
    Deployed,
    account,
    call,
    signed,
)
from tests.chains.evm.nodes import (
    ADMIN,
    MERCHANT,
    OPERATOR,
    OTHER_OPERATOR,
    OWNER,
    PAYER,
    STRANGER,
    Receipt,
)
from tests.chains.evm.safes import EXEC_TRANSACTION, ZERO, Safe
from tests.signers import sign_digest

REFUNDS: list[dict[str, object]] = [
    {"safeTxGas": 1},
    {"baseGas": 1},
    {"gasPrice": 1},
    {"gasToken": STRANGER},
    {"refundReceiver": STRANGER},
]
"""Each field by which a Safe would pay somebody for gas."""


class OperatorKeys:
    """A key service with the development accounts' keys."""

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        """See KeyService."""
        operator = {ENV: OPERATOR, OTHER_ENV: OTHER_OPERATOR}[environment_id]
        return sign_digest(bytes(account(operator).key), digest)[:64]


class Home:
    """A user's vault or Safe with a million tokens, and a role module that is nowhere yet."""

    def __init__(self, deployed: Deployed, kind: AvatarKind, *owners: str) -> None:
        self.deployed, self.node, self.kind = deployed, deployed.node, kind
        signer = RemoteSigner(OperatorKeys(), {ENV: OPERATOR, OTHER_ENV: OTHER_OPERATOR})
        self.chain = EvmChain(NodeQuorum([deployed.node.url], CHAIN), Deployment(ADMIN), signer)
        self.token = deployed.token()
        self.safe = Safe(deployed, account(OWNER), *owners) if kind == "safe" else None
        self.address = self.safe.address if self.safe else deployed.owned_vault("user", OWNER)
        deployed.mint(self.token, self.address, MILLION)
        self.module = RoleModule(deployed.factory, ENV, self.address, OPERATOR, (self.token,))
        self.enable = calls.enable_module(self.module.address)
        self.asked = TxData(to=self.address, value=0, data=self.enable, operation=0)

    def standing(self) -> ModuleState:
        """What the chain says now."""
        standing = role_modules.read_module_state(self.chain, self.module)
        assert standing is not None
        return standing

    def decided(self, **changes: Any) -> AvatarCall:
        """The call that the owner is let sign now."""
        asked = attrs.evolve(self.asked, **changes)
        nonce, targets = self.standing().nonce, (self.address,)
        module = self.module.address
        return build_enable_call(self.address, module, CHAIN, nonce, asked, targets, self.kind)

    def signs(self, signer: str = OWNER, **changes: Any) -> bytes:
        """A signature, made by eth-account, over enabling the module or over something else."""
        said = {"to": self.address, "data": self.enable, **changes}
        if self.safe is not None:
            return self.safe.signature(signer=account(signer), **said)
        said = {"vault": self.address, "nonce": self.standing().nonce, **said}
        return signed(account(signer), **said)

    def accepted(self, call: AvatarCall, signature: bytes) -> bytes:
        """The signature as the avatar takes it. Raises ValidationFailed."""
        reported = "0x" + signature.hex()
        if self.kind == "safe":
            return require_safe_signatures(call, reported, self.chain)
        owner = self.standing().owner
        assert owner is not None

        def accepts(address: str, digest: bytes, signature: bytes) -> bool:
            return bool(self.chain.check_contract_signature(address, digest, signature))

        return require_signature(call, owner, reported, accepts)

    def enabling(self, signature: bytes) -> ModuleCall:
        """The transaction that enables the module, with a signature that was accepted."""
        decision = self.decided()
        accepted = self.accepted(decision, signature)
        return ModuleCall(self.module, self.address, encode_execution(decision, accepted))

    def brings(self, step: ModuleCall) -> Receipt:
        """Have the operator sign and send it."""
        slot = int(self.node.ask("eth_getTransactionCount", OPERATOR, "latest"), 16)
        prepared = self.chain.prepare_call(ENV, slot, step)
        unsigned, sender = decode_signed(prepared.raw, chain_id=CHAIN)
        assert (unsigned.to, unsigned.data, unsigned.value) == (step.to, step.data, 0)
        assert (unsigned.nonce, sender) == (slot, OPERATOR)
        self.chain.broadcast(prepared)
        return self.node.receipt(prepared.hash)

    def executing(self, to: str, data: bytes, **fields: Any) -> bytes:
        """Calldata that has the avatar do something, with any fields, and no good signature."""
        value, operation = fields.get("value", 0), fields.get("operation", 0)
        if self.kind == "vault":
            return calls.execute(to, value, data, bytes(65), operation=operation)
        refund = [
            fields.get(name, default)
            for name, default in (
                ("safeTxGas", 0), ("baseGas", 0), ("gasPrice", 0), ("gasToken", ZERO),
                ("refundReceiver", ZERO),
            )
        ]  # fmt: skip
        return call(EXEC_TRANSACTION, to, value, data, operation, *refund, bytes(65))


@pytest.fixture(params=["vault", "safe"])
def home(request: pytest.FixtureRequest, deployed: Deployed) -> Home:
    return Home(deployed, request.param)


@pytest.fixture
def safe(deployed: Deployed) -> Home:
    return Home(deployed, "safe")


def refused_at(refused: Callable[..., object], *arguments: object, **named: object) -> list[str]:
    """The fields at which something is refused."""
    with pytest.raises(ValidationFailed) as failed:
        refused(*arguments, **named)
    return [fault.path for fault in failed.value.fields]


# --- The whole way ------------------------------------------------------------------------------


@pytest.mark.parametrize("lowered", [0, 27])
def test_an_owner_signs_once_and_the_operator_funds_escrows_from_there_on(
    home: Home, lowered: int
) -> None:
    owner = OWNER if home.kind == "vault" else None
    assert home.standing() == ModuleState(0, owner, is_deployed=False, is_enabled=False)
    assert home.brings(deployment_call(home.module)).succeeded
    assert home.standing() == ModuleState(0, owner, is_deployed=True, is_enabled=False)
    signature = home.signs()
    reported = signature[:64] + bytes([signature[64] - lowered])  # as some wallets write it
    assert home.brings(home.enabling(reported)).succeeded
    assert home.standing() == ModuleState(1, owner, is_deployed=True, is_enabled=True)
    escrow = home.deployed.address("escrow", "payment")
    fund = calls.exec_transfer(home.token, escrow, 70, "payment")
    home.node.do(OPERATOR, home.module.address, fund)
    assert home.deployed.balance(home.token, escrow) == 70
    assert home.deployed.balance(home.token, home.address) == MILLION - 70


def test_where_no_vault_and_no_safe_is_nothing_stands(home: Home) -> None:
    for avatar in (STRANGER, home.token, home.deployed.address("vault", "nobody")):
        module = attrs.evolve(home.module, avatar=avatar)
        assert role_modules.read_module_state(home.chain, module) is None


# --- What may be asked ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"operation": 1}, "tx_data.operation"),
        ({"value": 1}, "tx_data.value"),
        ({"to": STRANGER}, "tx_data.to"),
        ({"to": DEPLOYER}, "tx_data.to"),
        ({"data": calls.enable_module(STRANGER)}, "tx_data.data"),
        ({"data": b""}, "tx_data.data"),
        ({"safe_tx_gas": 1}, "tx_data.safe_tx_gas"),
        ({"base_gas": 1}, "tx_data.base_gas"),
        ({"gas_price": 1}, "tx_data.gas_price"),
        ({"gas_token": STRANGER}, "tx_data.gas_token"),
        ({"refund_receiver": STRANGER}, "tx_data.refund_receiver"),
    ],
)
def test_any_other_call_is_refused_at_its_field(
    home: Home, changes: dict[str, Any], path: str
) -> None:
    assert refused_at(home.decided, **changes) == [path]


def test_appended_bytes_and_another_avatars_module_are_refused(home: Home) -> None:
    other = attrs.evolve(home.module, avatar=home.deployed.address("vault", "another"))
    for data in (home.enable + b"\0", home.enable[:-1], calls.enable_module(other.address)):
        assert refused_at(home.decided, data=data) == ["tx_data.data"]


# --- Whose signature ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"signer": STRANGER},
        {"chain_id": 1},
        {"nonce": 1},
        {"to": STRANGER},
        {"data": calls.enable_module(STRANGER)},
        {"value": 1},
        {"operation": 1},
    ],
)
def test_a_signature_over_anything_else_is_refused(home: Home, changes: dict[str, Any]) -> None:
    signature = home.signs(**changes)
    assert refused_at(home.enabling, signature) == ["signature"]


@pytest.mark.parametrize("changes", [*REFUNDS, {"safe": STRANGER}])
def test_a_safes_owner_who_signed_a_refund_or_for_another_safe_is_refused(
    safe: Home, changes: dict[str, Any]
) -> None:
    signature = safe.signs(**changes)
    assert refused_at(safe.enabling, signature) == ["signature"]


def test_a_signature_works_once(home: Home) -> None:
    signature = home.signs()
    step = home.enabling(signature)
    assert home.brings(step).succeeded
    assert refused_at(home.enabling, signature) == ["signature"]
    assert not home.brings(step).succeeded  # were it brought all the same
    assert home.standing().nonce == 1


def test_no_signature_and_nonsense_are_refused(home: Home) -> None:
    for signature in (b"", bytes(65), b"\1" * 65, b"\xff" * 4_096, home.signs()[:64]):
        assert refused_at(home.enabling, signature) == ["signature"]


def test_as_many_owners_must_sign_as_the_safe_wants(deployed: Deployed) -> None:
    home = Home(deployed, "safe", PAYER)
    parts = [home.signs(signer) for signer in sorted((OWNER, PAYER), key=str.lower)]
    for wrong in (parts[0], parts[1], parts[0] * 2, parts[1] + parts[0], parts[0] + bytes(65)):
        assert refused_at(home.enabling, wrong) == ["signature"]
    assert home.brings(home.enabling(parts[0] + parts[1])).succeeded
    assert home.standing().is_enabled


def test_a_hash_that_an_owner_approved_on_chain_needs_no_signature(safe: Home) -> None:
    approved = bytes(12) + bytes.fromhex(OWNER[2:]) + bytes(32) + b"\1"
    assert refused_at(safe.enabling, approved) == ["signature"]
    safe.node.do(OWNER, safe.address, call("approveHash(bytes32)", safe.decided().digest))
    assert safe.brings(safe.enabling(approved)).succeeded
    assert safe.standing().is_enabled


def test_a_safe_that_owns_a_safe_agrees_by_its_own_owner(deployed: Deployed) -> None:
    inner = Safe(deployed, account(MERCHANT))
    home = Home(deployed, "safe", inner.address)

    def both(message: bytes) -> bytes:
        by_contract = bytes(12) + bytes.fromhex(inner.address[2:])
        by_contract += (130).to_bytes(32, "big") + b"\0"  # where what it is asked about begins
        parts = {OWNER: home.signs(), inner.address: by_contract}
        agreed = inner.agrees(message)
        static = b"".join(parts[owner] for owner in sorted(parts, key=str.lower))
        return static + len(agreed).to_bytes(32, "big") + agreed

    said = home.decided()
    message = safe_transaction_message(
        chain_id=CHAIN, safe=home.address, nonce=0, to=said.to, value=0, data=said.data, operation=0
    )
    assert refused_at(home.enabling, both(message + b"\0")) == ["signature"]
    assert home.brings(home.enabling(both(message))).succeeded
    assert home.standing().is_enabled


def test_the_digest_is_the_safes_own(safe: Home) -> None:
    arguments = (safe.address, 0, safe.enable, 0, 0, 0, 0, ZERO, ZERO, 0)
    types = "address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,uint256"
    theirs = safe.node.call(safe.address, call(f"getTransactionHash({types})", *arguments))
    assert theirs == safe.decided().digest
    assert theirs == safe_transaction_digest(
        chain_id=CHAIN, safe=safe.address, nonce=0, to=safe.address, value=0, data=safe.enable
    )


@pytest.mark.parametrize("code", ["", "00", "600160005260206000f3"])
def test_what_lets_every_signature_pass_is_not_a_safe(safe: Home, code: str) -> None:
    # No code, code that always succeeds, and code that always answers 1.
    creation = "60" + f"{len(code) // 2:02x}" + "600c60003960" + f"{len(code) // 2:02x}" + "6000f3"
    fake = safe.node.create(bytes.fromhex(creation + code)) if code else PAYER
    asked = attrs.evolve(safe.decided(), vault=fake)
    for signature in ("0x" + safe.signs().hex(), "0x"):
        assert refused_at(require_safe_signatures, asked, signature, safe.chain) == ["signature"]


# --- What is signed by us -------------------------------------------------------------------------


def refused(home: Home, step: ModuleCall, environment_id: str = ENV) -> None:
    with pytest.raises(SignerRefused):
        home.chain.prepare_call(environment_id, 0, step)


def test_only_the_modules_own_creation_goes_to_the_deployer(home: Home) -> None:
    good = deployment_call(home.module)
    other = attrs.evolve(home.module, operator=PAYER)
    for data in (
        b"",
        good.data + b"\0",
        good.data[:-1],
        b"\1" + good.data[1:],  # another salt, another address
        calls.deploy(other.creation),
        home.executing(home.address, home.enable),
    ):
        refused(home, attrs.evolve(good, data=data))


@pytest.mark.parametrize(
    "fields",
    [
        {"operation": 1},
        {"operation": 2},
        {"value": 1},
        {"to": STRANGER},
        {"to": DEPLOYER},
        {"data": b""},
        {"data": calls.enable_module(STRANGER)},
        {"data": calls.disable_module(STRANGER, STRANGER)},
        {"data": calls.set_factory_role(allowed=True)},
        {"data": calls.transfer(STRANGER, 5)},
    ],
)
def test_no_other_inner_call_is_brought(home: Home, fields: dict[str, Any]) -> None:
    said = {"to": home.address, "data": home.enable, **fields}
    refused(home, ModuleCall(home.module, home.address, home.executing(**said)))


@pytest.mark.parametrize("fields", REFUNDS)
def test_no_refund_is_brought(safe: Home, fields: dict[str, Any]) -> None:
    data = safe.executing(safe.address, safe.enable, **fields)
    refused(safe, ModuleCall(safe.module, safe.address, data))


def test_no_other_target_and_no_other_bytes_are_signed(home: Home) -> None:
    good = home.enabling(home.signs())
    for to in (STRANGER, home.token, home.deployed.factory, home.module.address, DEPLOYER):
        refused(home, attrs.evolve(good, to=to))
    inner_longer = home.executing(home.address, home.enable + b"\0")
    for data in (good.data + b"\0", good.data[:-1], home.enable, b"", inner_longer):
        refused(home, attrs.evolve(good, data=data))


def test_no_module_but_one_of_this_deployment_environment_and_operator(home: Home) -> None:
    for change in (
        {"factory": Deployment(PAYER).factory},
        {"environment_id": OTHER_ENV},
        {"operator": OTHER_OPERATOR},
    ):
        refused(home, deployment_call(attrs.evolve(home.module, **change)))
    refused(home, deployment_call(home.module), environment_id=OTHER_ENV)
