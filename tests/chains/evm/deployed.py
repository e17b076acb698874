"""Our contracts on a node, with two environments that have an operator each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from eth_abi.abi import encode
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_account.signers.local import LocalAccount
from eth_hash.auto import keccak

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import (
    DEPLOYER,
    Deployment,
    Generation,
    PurseKind,
    RoleModule,
)
from payments_core.chains.evm.artifacts import load_contract, load_contracts
from payments_core.chains.role_modules import CALL
from tests.chains.evm.nodes import (
    ACCOUNTS,
    ADMIN,
    OPERATOR,
    OTHER_OPERATOR,
    STRANGER,
    Node,
    Receipt,
)

ENV = "env_one"
OTHER_ENV = "env_two"
CHAIN = 8453
MILLION = 1_000_000


class Deployed:
    """The factory on a node, and shorthands for what tests do with it."""

    def __init__(self, node: Node, generation: Generation = 2) -> None:
        self.node = node
        self.deployment = Deployment(ADMIN, generation)
        self.factory = self.deployment.factory
        self.deploy(self.deployment.creation)
        self.do(ADMIN, calls.set_operator(ENV, OPERATOR, allowed=True))
        self.do(ADMIN, calls.set_operator(OTHER_ENV, OTHER_OPERATOR, allowed=True))

    def deploy(self, creation: bytes) -> Receipt:
        """Create what the deterministic deployer creates for anybody."""
        return self.node.do(STRANGER, DEPLOYER, calls.deploy(creation))

    def token(self, name: str = "TestToken") -> str:
        """A test token of its own."""
        return self.node.create(load_contract(name).creation)

    def mint(self, token: str, holder: str, amount: int) -> None:
        """Give somebody new tokens."""
        self.node.do(STRANGER, token, call("mint(address,uint256)", holder, amount))

    def balance(self, token: str, holder: str) -> int:
        """How many tokens somebody has."""
        return int.from_bytes(self.node.call(token, calls.BALANCE_OF.call(holder)))

    def address(self, kind: PurseKind, owner_id: str, environment_id: str = ENV) -> str:
        """Where a purse is."""
        return self.deployment.address(environment_id, kind, owner_id)

    def filled(self, kind: PurseKind, owner_id: str, token: str, amount: int = MILLION) -> str:
        """A purse with tokens, which need not exist for that."""
        address = self.address(kind, owner_id)
        self.mint(token, address, amount)
        return address

    def owned_vault(self, owner_id: str, owner: str) -> str:
        """A vault that was given its owner."""
        self.do(OPERATOR, calls.set_vault_owner(ENV, owner_id, owner))
        return self.address("vault", owner_id)

    def do(self, sender: str, data: bytes) -> Receipt:
        """Have the factory do something that must succeed."""
        return self.node.do(sender, self.factory, data)

    def refuses(self, sender: str, data: bytes, to: str | None = None) -> str:
        """The name of the error with which the factory, or another contract, refuses this."""
        reason = self.node.fails(sender, to or self.factory, data)
        return errors().get(reason[:4], reason.hex())

    def nonce(self, vault: str) -> int:
        """The nonce that the owner's next signature is over."""
        return int.from_bytes(self.node.call(vault, calls.NONCE.call()))

    def executes(self, vault: str, to: str, data: bytes, owner: LocalAccount) -> Receipt:
        """Have a vault do what its owner signs."""
        signature = signed(owner, vault, to, data, nonce=self.nonce(vault))
        return self.node.do(STRANGER, vault, calls.execute(to, 0, data, signature))

    def role_module(self, avatar: str, *tokens: str) -> RoleModule:
        """A role module that is deployed, for the environment's operator."""
        module = RoleModule(self.factory, ENV, avatar, OPERATOR, tokens)
        self.deploy(module.creation)
        return module


def account(address: str) -> LocalAccount:
    """The development account with its key."""
    return next(account for account in ACCOUNTS if account.address == address)


def signed(
    owner: LocalAccount,
    vault: str,
    to: str,
    data: bytes,
    *,
    nonce: int,
    value: int = 0,
    operation: int = CALL,
    chain_id: int = CHAIN,
) -> bytes:
    """The owner's signature over what a vault is to do, made by eth-account from the words."""
    domain = {
        "name": "payments-core vault",
        "version": "1",
        "chainId": chain_id,
        "verifyingContract": vault,
    }
    fields = ("to address", "value uint256", "data bytes", "operation uint8", "nonce uint256")
    types = [dict(zip(("name", "type"), field.split(), strict=True)) for field in fields]
    message = {"to": to, "value": value, "data": data, "operation": operation, "nonce": nonce}
    signable = encode_typed_data(domain, {"Execute": types}, message)
    return bytes(Account.sign_message(signable, owner.key).signature)


def call(signature: str, *arguments: object) -> bytes:
    """The calldata of any function, by its signature."""
    types = signature.partition("(")[2].removesuffix(")")
    return keccak(signature.encode())[:4] + encode(types.split(",") if types else (), arguments)


def batched(*each: tuple[str, bytes]) -> bytes:
    """To a `Batch`: make these calls in one transaction."""
    selector = keccak(b"run((address,bytes)[])")[:4]
    return selector + encode(["(address,bytes)[]"], [each])


@cache
def errors() -> dict[bytes, str]:
    """The names of our contracts' errors by their selectors."""
    return {
        keccak(_signature(entry).encode())[:4]: str(entry["name"])
        for one in load_contracts()
        for entry in one.abi
        if entry["type"] == "error"
    }


@cache
def functions(name: str) -> frozenset[str]:
    """The signatures of a contract's functions."""
    return frozenset(
        _signature(entry) for entry in load_contract(name).abi if entry["type"] == "function"
    )


def _signature(entry: object) -> str:
    assert isinstance(entry, dict)
    return f"{entry['name']}({','.join(map(_type, entry['inputs']))})"


def _type(argument: Mapping[str, Any]) -> str:
    """The type as in signatures: a struct is its fields in brackets."""
    if argument["type"] != "tuple":
        return str(argument["type"])
    return f"({','.join(map(_type, argument['components']))})"
