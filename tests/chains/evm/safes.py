"""Real Safes, from the bytecode that npm's `@safe-global/safe-contracts` publishes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from eth_abi.abi import encode
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_account.signers.local import LocalAccount

from payments_core.addresses import encode_checksum_address
from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import DEPLOYER, SALT, create2_address
from payments_core_http.cli.anvil.npm_cache import PackageNotCached, ensure_npm_package
from tests.chains.evm.deployed import CHAIN, Deployed, call
from tests.chains.evm.nodes import STRANGER, Node, Receipt

PACKAGE, VERSION = "@safe-global/safe-contracts", "1.4.1"
ZERO = "0x" + 40 * "0"
FIRST = "0x" + 39 * "0" + "1"
"""What stands before the first module in a Safe's list."""

FIELDS = (
    "to address", "value uint256", "data bytes", "operation uint8", "safeTxGas uint256",
    "baseGas uint256", "gasPrice uint256", "gasToken address", "refundReceiver address",
    "nonce uint256",
)  # fmt: skip
EXEC_TRANSACTION = (
    "execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)"
)


class Safe:
    """A Safe, on the node where our contracts are; one owner's signature is enough for it.

    With `others` that are its owners too, as many must sign as it has.
    """

    def __init__(self, deployed: Deployed, owner: LocalAccount, *others: str) -> None:
        self.deployed = deployed
        self.owner = owner
        node = deployed.node
        singleton = node.create(_bytecode("Safe.sol/Safe.json"))
        proxies = node.create(_bytecode("proxies/SafeProxyFactory.sol/SafeProxyFactory.json"))
        handler = node.create(
            _bytecode("handler/CompatibilityFallbackHandler.sol/CompatibilityFallbackHandler.json")
        )
        owners = [owner.address, *others]
        setup = call(
            "setup(address[],uint256,address,bytes,address,address,uint256,address)",
            owners, len(owners), ZERO, b"", handler, ZERO, 0, ZERO,
        )  # fmt: skip
        created = call("createProxyWithNonce(address,bytes,uint256)", singleton, setup, 0)
        self.address = encode_checksum_address(node.call(proxies, created)[12:])
        node.do(STRANGER, proxies, created)

    def nonce(self) -> int:
        """The nonce of its next transaction."""
        return int.from_bytes(self.deployed.node.call(self.address, call("nonce()")))

    def transaction(
        self, to: str, data: bytes, signer: LocalAccount, *, operation: int = 0
    ) -> bytes:
        """The calldata of a transaction that an owner signed."""
        signature = self.signature(to, data, signer, operation=operation)
        arguments = (to, 0, data, operation, 0, 0, 0, ZERO, ZERO, signature)
        return call(EXEC_TRANSACTION, *arguments)

    def signature(
        self,
        to: str,
        data: bytes,
        signer: LocalAccount,
        *,
        chain_id: int = CHAIN,
        safe: str | None = None,
        **fields: object,
    ) -> bytes:
        """An owner's signature over its next transaction, or one with other fields."""
        message = dict.fromkeys([field.split()[0] for field in FIELDS], 0) | {
            "to": to,
            "data": data,
            "gasToken": ZERO,
            "refundReceiver": ZERO,
            "nonce": self.nonce(),
            **fields,
        }
        types = [dict(zip(("name", "type"), field.split(), strict=True)) for field in FIELDS]
        domain = {"chainId": chain_id, "verifyingContract": safe or self.address}
        signable = encode_typed_data(domain, {"SafeTx": types}, message)
        return bytes(Account.sign_message(signable, signer.key).signature)

    def agrees(self, message: bytes) -> bytes:
        """What its owner signs for it to agree to a message, as another Safe's owner."""
        domain = {"chainId": CHAIN, "verifyingContract": self.address}
        types = {"SafeMessage": [{"name": "message", "type": "bytes"}]}
        signable = encode_typed_data(domain, types, {"message": message})
        return bytes(Account.sign_message(signable, self.owner.key).signature)

    def executes(self, to: str, data: bytes) -> Receipt:
        """Have it do what its owner signs; anybody brings the signature."""
        signed = self.transaction(to, data, self.owner)
        return self.deployed.node.do(STRANGER, self.address, signed)


class CounterfactualSafe:
    """A Safe of one owner that has an address, and no contract yet."""

    def __init__(self, node: Node, chain_id: int, owner: LocalAccount, salt: int = 0) -> None:
        self.node = node
        self.chain_id = chain_id
        self.owner = owner
        singleton = _place(node, "Safe.sol/Safe.json")
        self.factory = _place(node, "proxies/SafeProxyFactory.sol/SafeProxyFactory.json")
        handler = _place(
            node, "handler/CompatibilityFallbackHandler.sol/CompatibilityFallbackHandler.json"
        )
        setup = call(
            "setup(address[],uint256,address,bytes,address,address,uint256,address)",
            [owner.address], 1, ZERO, b"", handler, ZERO, 0, ZERO,
        )  # fmt: skip
        self.deployment = call(
            "createProxyWithNonce(address,bytes,uint256)", singleton, setup, salt
        )
        self.address = encode_checksum_address(node.call(self.factory, self.deployment)[12:])

    def sign(self, digest: bytes, chain_id: int | None = None) -> bytes:
        """The owner's signature, which the Safe accepts on one chain alone."""
        domain = {"chainId": chain_id or self.chain_id, "verifyingContract": self.address}
        types = {"SafeMessage": [{"name": "message", "type": "bytes"}]}
        signable = encode_typed_data(domain, types, {"message": digest})
        return bytes(Account.sign_message(signable, self.owner.key).signature)

    def wrap(self, signature: bytes) -> bytes:
        """The signature with the call that deploys the Safe (ERC-6492)."""
        return wrap(self.factory, self.deployment, signature)

    def deploy(self) -> None:
        """Create it."""
        self.node.do(STRANGER, self.factory, self.deployment)


def _place(node: Node, file: str) -> str:
    """Create what Safes share where it is on every chain, unless it is there."""
    code = _bytecode(file)
    found = create2_address(bytes.fromhex(DEPLOYER[2:]), SALT, code)
    address = encode_checksum_address(found)
    if node.ask("eth_getCode", address, "latest") == "0x":
        node.do(STRANGER, DEPLOYER, calls.deploy(code))
    return address


def wrap(factory: str, factory_data: bytes, signature: bytes) -> bytes:
    """A signature in the form of ERC-6492."""
    parts = encode(["address", "bytes", "bytes"], [factory, factory_data, signature])
    return parts + bytes.fromhex("6492" * 16)


@cache
def _artifacts() -> Path:
    try:
        modules = ensure_npm_package(PACKAGE, VERSION)
    except PackageNotCached as reason:
        pytest.skip(str(reason))
    return modules / PACKAGE / "build" / "artifacts" / "contracts"


def _bytecode(file: str) -> bytes:
    compiled = json.loads((_artifacts() / file).read_text())["bytecode"]
    return bytes.fromhex(compiled.removeprefix("0x"))
