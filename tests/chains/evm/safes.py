"""Real Safes, from the bytecode that npm's `@safe-global/safe-contracts` publishes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_account.signers.local import LocalAccount

from payments_core.addresses import checksummed
from payments_core.sandbox.npm_cache import NotCached, npm_package
from tests.chains.evm.deployed import CHAIN, Deployed, call
from tests.chains.evm.nodes import STRANGER, Receipt

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
    """A Safe with one owner, on the node where our contracts are."""

    def __init__(self, deployed: Deployed, owner: LocalAccount) -> None:
        self.deployed = deployed
        self.owner = owner
        node = deployed.node
        singleton = node.create(_bytecode("Safe.sol/Safe.json"))
        proxies = node.create(_bytecode("proxies/SafeProxyFactory.sol/SafeProxyFactory.json"))
        setup = call(
            "setup(address[],uint256,address,bytes,address,address,uint256,address)",
            [owner.address], 1, ZERO, b"", ZERO, ZERO, 0, ZERO,
        )  # fmt: skip
        created = call("createProxyWithNonce(address,bytes,uint256)", singleton, setup, 0)
        self.address = checksummed(node.call(proxies, created)[12:])
        node.do(STRANGER, proxies, created)

    def nonce(self) -> int:
        """The nonce of its next transaction."""
        return int.from_bytes(self.deployed.node.call(self.address, call("nonce()")))

    def transaction(
        self, to: str, data: bytes, signer: LocalAccount, *, operation: int = 0
    ) -> bytes:
        """The calldata of a transaction that an owner signed."""
        message = dict.fromkeys([field.split()[0] for field in FIELDS], 0) | {
            "to": to,
            "data": data,
            "operation": operation,
            "gasToken": ZERO,
            "refundReceiver": ZERO,
            "nonce": self.nonce(),
        }
        types = [dict(zip(("name", "type"), field.split(), strict=True)) for field in FIELDS]
        domain = {"chainId": CHAIN, "verifyingContract": self.address}
        signable = encode_typed_data(domain, {"SafeTx": types}, message)
        signature = bytes(Account.sign_message(signable, signer.key).signature)
        arguments = (to, 0, data, operation, 0, 0, 0, ZERO, ZERO, signature)
        return call(EXEC_TRANSACTION, *arguments)

    def executes(self, to: str, data: bytes) -> Receipt:
        """Have it do what its owner signs; anybody brings the signature."""
        signed = self.transaction(to, data, self.owner)
        return self.deployed.node.do(STRANGER, self.address, signed)


@cache
def _artifacts() -> Path:
    try:
        modules = npm_package(PACKAGE, VERSION)
    except NotCached as reason:
        pytest.skip(str(reason))
    return modules / PACKAGE / "build" / "artifacts" / "contracts"


def _bytecode(file: str) -> bytes:
    compiled = json.loads((_artifacts() / file).read_text())["bytecode"]
    return bytes.fromhex(compiled.removeprefix("0x"))
