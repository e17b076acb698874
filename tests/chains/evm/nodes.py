"""A node to send real transactions to, as the development accounts of anvil."""

from __future__ import annotations

import http.client
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import attrs
import pytest
from eth_account import Account

from payments_core.addresses import encode_checksum_address
from payments_core.clock import SECOND, FixedClock
from payments_core_http.cli.anvil.process import AnvilProcess, AnvilUnavailable

MNEMONIC_KEYS = (
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
    "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
    "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
    "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
)
"""Anvil's own development keys, known to everybody; each has 10,000 ether there."""

ACCOUNTS = tuple(Account.from_key(key) for key in MNEMONIC_KEYS)
ADMIN, OPERATOR, OTHER_OPERATOR, OWNER, PAYER, MERCHANT, STRANGER = (
    account.address for account in ACCOUNTS
)
GAS = 8_000_000


@contextmanager
def anvil_or_skip(**options: Any) -> Iterator[AnvilProcess]:
    """An anvil of one's own, whose first block is at the instant at which a `FixedClock` begins.

    Skips for want of npm; where there is npm, there should be anvil.
    """
    begins = ("--timestamp", str(FixedClock().now() // SECOND))
    process = AnvilProcess(options=(*begins, *options.pop("options", ())), **options)
    try:
        process.start()
    except AnvilUnavailable as reason:
        if shutil.which("npm"):
            raise
        pytest.skip(str(reason))
    try:
        yield process
    finally:
        process.stop()


class Refused(Exception):
    """The node answered with an error; `data` is what a contract reverted with."""

    def __init__(self, message: str, data: bytes) -> None:
        super().__init__(message)
        self.data = data


@attrs.frozen
class Receipt:
    """What became of a transaction."""

    succeeded: bool
    gas_used: int
    contract: str | None
    raw: dict[str, Any] = attrs.field(repr=False)


class Node:
    """JSON-RPC to one node, no more careful than a test needs."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ask(self, method: str, *params: Any) -> Any:
        """The result of a method. Raises Refused."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        self._connection.request("POST", "/", body, {"Content-Type": "application/json"})
        answer = json.loads(self._connection.getresponse().read())
        if "error" in answer:
            error = answer["error"]
            data = error.get("data")
            data = data if isinstance(data, str) and data.startswith("0x") else "0x"
            raise Refused(error["message"], bytes.fromhex(data[2:]))
        return answer["result"]

    def send(
        self, sender: str, to: str | None, data: bytes = b"", *, value: int = 0, gas: int = GAS
    ) -> Receipt:
        """Send a transaction as one of anvil's accounts, whatever becomes of it."""
        transaction = {"from": sender, "gas": hex(gas), "data": hexed(data), "value": hex(value)}
        if to is not None:
            transaction["to"] = to
        return self.receipt(self.ask("eth_sendTransaction", transaction))

    def do(self, sender: str, to: str | None, data: bytes = b"", *, value: int = 0) -> Receipt:
        """Send a transaction that must succeed."""
        receipt = self.send(sender, to, data, value=value)
        assert receipt.succeeded, self.reason(sender, to, data)
        return receipt

    def fails(self, sender: str, to: str, data: bytes) -> bytes:
        """Send a transaction that must fail in its block; what it reverted with."""
        reason = self.reason(sender, to, data)
        assert not self.send(sender, to, data).succeeded
        return reason

    def reason(self, sender: str, to: str | None, data: bytes) -> bytes:
        """What the transaction would revert with now."""
        try:
            self.call(to, data, sender=sender)
        except Refused as refused:
            return refused.data
        raise AssertionError("it succeeds")

    def call(self, to: str | None, data: bytes, *, sender: str | None = None) -> bytes:
        """What a contract answers, without a transaction. Raises Refused."""
        call = {"data": hexed(data)}
        call |= {"to": to} if to else {}
        call |= {"from": sender} if sender else {}
        return bytes.fromhex(self.ask("eth_call", call, "latest")[2:])

    def receipt(self, transaction_hash: str) -> Receipt:
        """The receipt of a transaction that is about to be in a block."""
        for _ in self._looks():
            raw = self.ask("eth_getTransactionReceipt", transaction_hash)
            if raw is not None:
                contract = raw.get("contractAddress")
                return Receipt(raw["status"] == "0x1", int(raw["gasUsed"], 16), contract, raw)
        raise AssertionError(f"{transaction_hash} is in no block")

    def wait_until_mined(self) -> None:
        """Wait until no transaction is without a block; only while blocks are made at once."""
        for _ in self._looks():
            if int(self.ask("txpool_status")["pending"], 16) == 0:
                return
        raise AssertionError("the node makes no block")

    def _looks(self) -> Iterator[None]:
        """Look after the node as long as one needs on a busy machine."""
        ends_at = time.monotonic() + 30
        while time.monotonic() < ends_at:
            yield
            time.sleep(0.002)

    def create(self, code: bytes, sender: str = STRANGER) -> str:
        """Deploy a contract; its address."""
        contract = self.do(sender, None, code).contract
        assert contract is not None
        return encode_checksum_address(bytes.fromhex(contract[2:]))

    def code(self, address: str) -> bytes:
        """The code that an address has."""
        return bytes.fromhex(self.ask("eth_getCode", address, "latest")[2:])


def hexed(data: bytes) -> str:
    """Bytes as JSON-RPC writes them."""
    return f"0x{data.hex()}"
