"""Writes typed_data.json: typed data (EIP-712), its digest, and a signature of it.

    python tests/vectors/make_typed_data.py

Nothing of payments_core is imported: digests and signatures are eth-account's, from domain, types
and message written out in full, or the file would only say that our code agrees with itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_hash.auto import keccak

FILE = Path(__file__).with_name("typed_data.json")
KEY = keccak(b"payments-core typed data vector")
VAULT = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
MODULE = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"
ZERO = "0x" + 40 * "0"
HIGHEST = 2**256 - 1

DESCRIPTION = [
    "Typed data that this service rebuilds, with the digest that a wallet signs and a signature.",
    "Numbers are decimal text, `bytes` are 0x and hex. Made by make_typed_data.py beside this "
    "file with eth-account.",
]
TYPES: dict[str, dict[str, list[dict[str, str]]]] = {
    form: {name: [dict(zip(("name", "type"), field.split(), strict=True)) for field in fields]}
    for form, name, fields in (
        ("settlement", "Settlement", ("quoteId string", "nonce uint256", "deadline uint256")),
        (
            "vault_execute",
            "Execute",
            ("to address", "value uint256", "data bytes", "operation uint8", "nonce uint256"),
        ),
        (
            "safe_transaction",
            "SafeTx",
            (
                "to address", "value uint256", "data bytes", "operation uint8",
                "safeTxGas uint256", "baseGas uint256", "gasPrice uint256", "gasToken address",
                "refundReceiver address", "nonce uint256",
            ),
        ),
    )
}  # fmt: skip


def main() -> None:
    """Write the file, or with --check say whether it is as it would be written."""
    text = made()
    if "--check" in sys.argv[1:]:
        sys.exit(None if FILE.read_text("utf-8") == text else f"{FILE.name} is not as it is made")
    FILE.write_text(text, "utf-8")


def made() -> str:
    """The text of the file."""
    cases = [*settlements(), *executions(), *safe_transactions()]
    document = {"description": DESCRIPTION, "cases": cases}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def case(form: str, name: str, domain: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    signed = Account.sign_message(encode_typed_data(domain, TYPES[form], message), KEY)
    return {
        "form": form,
        "name": name,
        "domain": written(domain),
        "types": TYPES[form],
        "message": written(message),
        "digest": "0x" + bytes(signed.message_hash).hex(),
        "signer": Account.from_key(KEY).address,
        "signature": "0x" + bytes(signed.signature).hex(),
    }


def written(values: dict[str, Any]) -> dict[str, str]:
    return {
        name: f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
        for name, value in values.items()
    }


def settlements() -> Iterator[dict[str, Any]]:
    plain = {"quoteId": "q_-P23J5k-D8QQDDBxu8rHlL0O", "nonce": 7, "deadline": 1_790_000_900}
    domain = {
        "name": "Money Accounts", "version": "1", "chainId": 8453, "verifyingContract": VAULT,
    }  # fmt: skip
    for name, changed, said in (
        ("plain", {}, {}),
        ("on another chain", {"chainId": 137}, {}),
        ("of another version", {"version": "2"}, {}),
        ("at another contract", {"verifyingContract": MODULE}, {}),
        ("at no contract", {"verifyingContract": ZERO}, {}),
        ("an empty quote id", {}, {"quoteId": ""}),
        ("a quote id beyond ASCII", {"name": "Münze ☃"}, {"quoteId": "naïve 𝄞"}),
        ("the lowest numbers", {}, {"nonce": 0, "deadline": 0}),
        ("the highest numbers", {"chainId": HIGHEST}, {"nonce": HIGHEST, "deadline": HIGHEST}),
    ):
        yield case("settlement", name, {**domain, **changed}, {**plain, **said})


def executions() -> Iterator[dict[str, Any]]:
    domain = {
        "name": "payments-core vault", "version": "1", "chainId": 8453, "verifyingContract": VAULT,
    }  # fmt: skip
    enable = keccak(b"enableModule(address)")[:4] + bytes(12) + bytes.fromhex(MODULE[2:])
    plain = {"to": VAULT, "value": 0, "data": enable, "operation": 0, "nonce": 0}
    for name, changed, said in (
        ("enables a module", {}, {}),
        ("on another chain", {"chainId": 1}, {}),
        ("in another vault", {"verifyingContract": MODULE}, {}),
        ("the next nonce", {}, {"nonce": 1}),
        ("no data", {}, {"data": b""}),
        ("a delegated call", {}, {"operation": 1}),
        ("the highest numbers", {}, {"value": HIGHEST, "operation": 255, "nonce": HIGHEST}),
        ("long data", {}, {"data": bytes(range(256)) * 5}),
    ):
        yield case("vault_execute", name, {**domain, **changed}, {**plain, **said})


def safe_transactions() -> Iterator[dict[str, Any]]:
    domain = {"chainId": 8453, "verifyingContract": VAULT}
    plain = {
        "to": MODULE, "value": 0, "data": b"\x01\x02", "operation": 0, "safeTxGas": 0,
        "baseGas": 0, "gasPrice": 0, "gasToken": ZERO, "refundReceiver": ZERO, "nonce": 3,
    }  # fmt: skip
    refunding = {
        "safeTxGas": 1, "baseGas": 2, "gasPrice": 3, "gasToken": MODULE, "refundReceiver": VAULT,
    }  # fmt: skip
    for name, changed, said in (
        ("plain", {}, {}),
        ("on another chain", {"chainId": 1}, {}),
        ("with a refund", {}, refunding),
        ("a delegated call", {}, {"operation": 1}),
    ):
        yield case("safe_transaction", name, {**domain, **changed}, {**plain, **said})


if __name__ == "__main__":
    main()
