"""A stand-in for Circle's attestation service, in a process of its own.

Usage: python -m tests.routers.cctp.attestation_server DOMAIN=URL...

It reads the messages of a transaction from the source chain's node, and signs them with two keys:
standard ones when their block is final, fast ones at once, with a fee and an end. `POST /control`
has the next requests go wrong: `faults` are names of `_FAULTS`, one a request.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from eth_abi.abi import decode
from eth_hash.auto import keccak

from payments_core.chains.evm.signers import LocalSigner
from tests.chains.evm.nodes import Node

MESSAGE_SENT = "0x" + keccak(b"MessageSent(bytes)").hex()
_SIGNER = LocalSigner(b"two attesters who sign messages.")
ATTESTERS = tuple(sorted(_SIGNER.address(name) for name in ("first", "second")))
_NAMES = {_SIGNER.address(name): name for name in ("first", "second")}

NONCE, FINALITY, BODY = slice(12, 44), slice(144, 148), 148
AMOUNT, MAX_FEE, FEE, ENDS = (
    slice(BODY + start, BODY + start + 32) for start in (68, 132, 164, 196)
)
RECIPIENT = slice(BODY + 36, BODY + 68)


def attest(message: bytes) -> bytes:
    """The signatures of both attesters, in the order of their addresses."""
    digest = keccak(message)
    made = (_SIGNER.sign(_NAMES[address], digest) for address in sorted(ATTESTERS, key=str.lower))
    return b"".join(one[:64] + bytes([27 + one[64]]) for one in made)


class Service:
    """What the service knows, and what is to go wrong next."""

    def __init__(self, nodes: dict[int, str]) -> None:
        self.nodes = nodes
        self.faults: list[str] = []
        self.fee_ppm = 0
        self.expires_at = 0
        self.threshold = 2
        self.requests = 0

    def find_messages(self, domain: int, transaction_hash: str) -> list[dict[str, Any]] | None:
        """The entries of a transaction; None if it is in no block."""
        node = Node(self.nodes[domain])
        try:
            receipt = node.ask("eth_getTransactionReceipt", transaction_hash)
            if receipt is None or receipt["status"] != "0x1":
                return None
            final = int(node.ask("eth_getBlockByNumber", "finalized", False)["number"], 16)
        finally:
            node.close()
        height = int(receipt["blockNumber"], 16)
        return [
            self._entry(domain, log, is_final=height <= final)
            for log in receipt["logs"]
            if log["topics"][0] == MESSAGE_SENT
        ]

    def _entry(self, domain: int, log: dict[str, Any], *, is_final: bool) -> dict[str, Any]:
        (raw,) = decode(["bytes"], bytes.fromhex(log["data"][2:]))
        message = bytearray(raw)
        asked = int.from_bytes(message[140:144])
        fee = int.from_bytes(message[AMOUNT]) * self.fee_ppm // 10**6
        is_fast = asked <= 1000 and fee <= int.from_bytes(message[MAX_FEE])
        name = f"{domain}/{log['transactionHash']}/{log['logIndex']}"
        nonce = keccak(name.encode())
        entry = {
            "message": "0x",
            "eventNonce": "0x" + nonce.hex(),
            "attestation": "PENDING",
            "decodedMessage": None,
            "cctpVersion": 2,
            "status": "pending_confirmations",
        }
        if asked <= 1000 and not is_fast:
            entry["delayReason"] = "insufficient_fee"
        if not (is_final or is_fast):
            return entry
        message[NONCE] = nonce
        message[FINALITY] = (1000 if is_fast else 2000).to_bytes(4)
        if is_fast:
            message[FEE] = fee.to_bytes(32)
            message[ENDS] = self.expires_at.to_bytes(32)
        signed = bytes(message)
        return {
            **entry,
            "message": "0x" + signed.hex(),
            "attestation": "0x" + attest(signed)[: 65 * self.threshold].hex(),
            "status": "complete",
        }


def _other_recipient(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As signed, but for another recipient, before the right ones."""
    false = []
    for entry in entries:
        message = bytearray.fromhex(entry["message"][2:])
        message[RECIPIENT] = bytes(31) + b"\x66"
        false.append({**entry, "message": "0x" + message.hex()})
    return false + entries


def _pending(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            **entry,
            "message": "0x",
            "attestation": "PENDING",
            "status": "pending_confirmations",
            "delayReason": "insufficient_fee",
        }
        for entry in entries
    ]


_CHANGES = {"other_recipient": _other_recipient, "pending": _pending}
_FAULTS = ("error", "drop", "cut", "garbage", "unknown", "redirect", *_CHANGES)


class Handler(BaseHTTPRequestHandler):
    """The two routes of the service, and `POST /control`."""

    protocol_version = "HTTP/1.1"
    service: Service

    def do_GET(self) -> None:
        """`/v2/messages/{domain}?transactionHash=`."""
        self.service.requests += 1
        parts = urlsplit(self.path)
        domain = int(parts.path.rpartition("/")[2])
        (hash,) = parse_qs(parts.query)["transactionHash"]
        fault = self.service.faults.pop(0) if self.service.faults else ""
        entries = self.service.find_messages(domain, hash)
        if fault == "drop":  # the request was carried out, and its answer is lost
            self.close_connection = True
            return
        if fault == "error":
            self._answer(503, {"code": 1, "message": "busy"})
        elif fault == "too_many":
            self._answer(429, {"code": 2, "message": "slow down"})
        elif fault == "garbage":
            self._answer(200, {"messages": "none"})
        elif fault == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"messages": [')
            self.close_connection = True
        elif fault == "unknown" or entries is None:
            self._answer(404, {"code": 404, "message": "Not found"})
        else:
            self._answer(200, {"messages": _CHANGES.get(fault, list)(entries)})

    def do_POST(self) -> None:
        """`/v2/reattest/{nonce}`, and what a test says is to happen."""
        told = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/control":
            for name, value in json.loads(told).items():
                setattr(self.service, name, value)
            self._answer(200, {"requests": self.service.requests})
            return
        assert self.path.startswith("/v2/reattest/0x")
        self.service.expires_at = 0
        self._answer(200, {"message": "requested"})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main() -> None:
    """Serve until the standard input ends."""
    nodes = dict(one.split("=", 1) for one in sys.argv[1:])
    Handler.service = Service({int(domain): url for domain, url in nodes.items()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    import threading

    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    time.sleep(0)


if __name__ == "__main__":
    main()
