"""A node on loopback that can lie, lag, hang and answer whatever a test wants.

`FakeChain` is what nodes may agree on; each `FakeNode` serves one over real HTTP, honestly unless
a test sets a fault of the connection, or lies to a method.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attrs

from payments_core.acceptance import Acceptance
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.reader import EvmReader
from payments_core.chains.http.client import RequestLimits
from payments_core.conformance.transport.certificates import server_context

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
TOKEN = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
OTHER_TOKEN = "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359"
PAYER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
ESCROW = "0x90F79bf6EB2c4f870365E785982E1f101E93b906"
VAULT = "0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65"
FINAL_DEPTH = 8

Lie = Callable[[Sequence[Any], Any], Any]


class Refuse(Exception):
    """Raised by a lie: answer with a JSON-RPC error."""


def hashed(*parts: object) -> str:
    """A hash that nothing else has."""
    return "0x" + hashlib.sha256(repr(parts).encode()).hexdigest()


def padded(address: str) -> str:
    """An address as a topic."""
    return "0x" + address[2:].lower().rjust(64, "0")


def transfer_log(
    recipient: str = ESCROW, amount: int = 5, token: str = TOKEN, sender: str = PAYER
) -> dict[str, Any]:
    """A log without its place."""
    topics = [TRANSFER, padded(sender), padded(recipient)]
    return {"address": token.lower(), "topics": topics, "data": f"0x{amount:064x}"}


def other_log() -> dict[str, Any]:
    """A log that is not a transfer."""
    return {"address": TOKEN.lower(), "topics": [hashed("Approval")], "data": "0x"}


@attrs.define
class FakeTransaction:
    """A transaction and what it logs."""

    hash: str
    logs: list[dict[str, Any]]
    succeeded: bool = True


def block_unix_s(number: int) -> int:
    """The timestamp of the block of a height: one every two seconds."""
    return 1_700_000_000 + 2 * number


@attrs.define
class FakeBlock:
    """A block, with its transactions."""

    number: int
    hash: str
    transactions: list[FakeTransaction]


class FakeChain:
    """Blocks, balances and what contracts return."""

    def __init__(self, chain_id: int = 8453, height: int = 20, fork: str = "") -> None:
        self.chain_id = chain_id
        self.fork = fork
        self.blocks: list[FakeBlock] = []
        self.pending: set[str] = set()
        self.balances: dict[tuple[str, str], int] = {}
        self.mine(height + 1)

    def mine(self, count: int = 1) -> None:
        """Add empty blocks."""
        for _ in range(count):
            self.add()

    def add(self, *transactions: FakeTransaction) -> FakeBlock:
        """Add a block."""
        number = len(self.blocks)
        hashes = [transaction.hash for transaction in transactions]
        block = FakeBlock(number, hashed(number, self.fork, hashes), list(transactions))
        self.blocks.append(block)
        return block

    def include(self, *logs: dict[str, Any], name: object = 0, succeeded: bool = True) -> str:
        """Add a block with one transaction; its hash."""
        transaction = FakeTransaction(hashed("tx", name), list(logs), succeeded)
        self.add(transaction)
        return transaction.hash

    def forked(self, at: int, fork: str) -> FakeChain:
        """The same chain below `at`, with other empty blocks from there on."""
        other = FakeChain(self.chain_id, -1, fork)
        other.blocks = list(self.blocks[:at])
        other.mine(len(self.blocks) - at)
        return other

    def receipts(self, block: FakeBlock) -> list[dict[str, Any]]:
        """The receipts of a block, logs and all."""
        found, index = [], 0
        for transaction in block.transactions:
            place = {
                "blockNumber": hex(block.number),
                "blockHash": block.hash,
                "transactionHash": transaction.hash,
            }
            logs = [
                {**log, **place, "logIndex": hex(index + n), "removed": False}
                for n, log in enumerate(transaction.logs)
            ]
            index += len(logs)
            status = hex(int(transaction.succeeded))
            found.append({**place, "status": status, "logs": logs, "gasUsed": "0x5208"})
        return found


def busy_chain() -> FakeChain:
    """Transfers of two tokens to three recipients, and other logs between them."""
    chain = FakeChain(height=4)
    for name in range(12):
        chain.include(
            other_log(),
            transfer_log(ESCROW, amount=name),
            transfer_log(VAULT, amount=name, token=OTHER_TOKEN),
            transfer_log(PAYER, amount=name),
            name=name,
        )
    return chain


class FakeNode:
    """Serves a chain over HTTP until it is closed."""

    def __init__(
        self, chain: FakeChain, *, behind: int = 0, port: int = 0, certificate: Path | None = None
    ) -> None:
        self.chain = chain
        self.behind = behind
        self.fault: str | None = None
        self.says: bytes | None = None
        self.says_status = 200
        self.lies: dict[str, Lie] = {}
        self.asked: list[tuple[str, Sequence[Any]]] = []
        self.requests: list[Any] = []
        self.targets: list[str] = []
        self.released = threading.Event()
        node = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                node.targets.append(self.path)
                node._serve(self, json.loads(body))

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        if certificate is not None:
            self._server.socket = server_context(certificate).wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
            # Who does not trust it ends the handshake, which is not an error here.
            self._server.handle_error = lambda *about: None  # type: ignore[method-assign]
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        """End it, and whatever hangs in it."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def height(self) -> int:
        """Its newest block."""
        return len(self.chain.blocks) - 1 - self.behind

    # HTTP

    def _serve(self, handler: BaseHTTPRequestHandler, request: Any) -> None:
        self.requests.append(request)
        fault = self.fault
        if self.says is not None:
            return self._send(handler, self.says_status, self.says)
        if fault == "hang":
            self.released.wait(30)
            return None
        if isinstance(request, list) and fault == "no batches":
            return self._send(handler, 200, _error(None, "no batches here"))
        if isinstance(request, list) and fault == "no batches 400":
            return self._send(handler, 400, b"batches are not allowed")
        answers = [
            self._answer(one) for one in (request if isinstance(request, list) else [request])
        ]
        if fault == "wrong ids":
            answers = [{**answer, "id": answer["id"] + 1_000} for answer in answers]
        if fault == "same ids":
            answers = [{**answer, "id": answers[0]["id"]} for answer in answers]
        if fault == "one missing":
            answers = answers[:-1]
        if fault == "backwards":
            answers.reverse()
        said = json.dumps(answers if isinstance(request, list) else (answers or [None])[0]).encode()
        match fault:
            case "garbage":
                said = b"<html>Bad Gateway, token=hunter2</html>"
            case "empty":
                said = b""
            case "truncated":
                said = said[: len(said) // 2]
            case "cut":
                handler.send_response(200)
                handler.send_header("content-length", str(len(said)))
                handler.end_headers()
                handler.wfile.write(said[: len(said) // 2])
                handler.close_connection = True
                return None
            case "huge":
                said = b'{"jsonrpc":"2.0","id":1,"result":"' + b"a" * (10 << 20) + b'"}'
            case "endless":
                return self._endless(handler)
            case "drip":
                return self._drip(handler, said)
            case "drip headers":
                return self._drip(handler, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", True)
            case "redirect":
                handler.send_response(302)
                handler.send_header("location", self.url)
                handler.send_header("content-length", "0")
                handler.end_headers()
                return None
            case "deep":
                said = b"[" * 200_000
        status = int(fault.split()[1]) if fault and fault.startswith("status") else 200
        return self._send(handler, status, said)

    def _send(self, handler: BaseHTTPRequestHandler, status: int, said: bytes) -> None:
        handler.send_response(status)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(said)))
        handler.end_headers()
        try:
            handler.wfile.write(said)
        except OSError:  # who asked would not read it all
            handler.close_connection = True

    def _drip(self, handler: BaseHTTPRequestHandler, said: bytes, whole: bool = False) -> None:
        if not whole:
            handler.send_response(200)
            handler.send_header("content-length", str(len(said)))
            handler.end_headers()
        handler.close_connection = True
        for byte in said:
            if self.released.wait(0.02):
                return
            try:
                handler.wfile.write(bytes([byte]))
            except OSError:
                return

    def _endless(self, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        handler.close_connection = True
        try:
            while not self.released.is_set():
                handler.wfile.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        except OSError:
            return

    # JSON-RPC

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        method, params = request["method"], request["params"]
        self.asked.append((method, params))
        try:
            result = getattr(self, method)(*params)
            if method in self.lies:
                result = self.lies[method](params, result)
        except Refuse as refusal:
            return {
                "jsonrpc": "2.0",
                "id": request["id"],
                "error": {"code": -32000, "message": str(refusal)},
            }
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}

    def eth_chainId(self) -> str:
        return hex(self.chain.chain_id)

    def eth_getBlockByNumber(self, tag: str, full: bool) -> dict[str, Any] | None:
        number = {"latest": self.height, "finalized": max(0, self.height - FINAL_DEPTH)}.get(tag)
        number = int(tag, 16) if number is None else number
        if number > self.height:
            return None
        block = self.chain.blocks[number]
        return {
            "number": hex(number),
            "hash": block.hash,
            "timestamp": hex(block_unix_s(number)),
            "transactions": [],
            "size": "0x1",
        }

    def eth_getTransactionReceipt(self, hash: str) -> dict[str, Any] | None:
        return next((one for one in self._receipts() if one["transactionHash"] == hash), None)

    def eth_getTransactionByHash(self, hash: str) -> dict[str, Any] | None:
        known = hash in self.chain.pending or self.eth_getTransactionReceipt(hash)
        return {"hash": hash, "nonce": "0x0"} if known else None

    def eth_getLogs(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        wanted = {address.lower() for address in query["address"]}
        topics = query["topics"]
        return [
            log
            for receipt in self._receipts()
            for log in receipt["logs"]
            if first <= int(log["blockNumber"], 16) <= last
            and log["address"] in wanted
            and log["topics"][:1] == [topics[0]]
            and (len(topics) < 3 or (log["topics"][2:3] and log["topics"][2] in topics[2]))
        ]

    def eth_call(self, call: dict[str, str], tag: str) -> str:
        holder = "0x" + call["data"][-40:]
        return f"0x{self.chain.balances.get((call.get('to', '').lower(), holder), 0):064x}"

    def _receipts(self) -> list[dict[str, Any]]:
        blocks = self.chain.blocks[: self.height + 1]
        return [receipt for block in blocks for receipt in self.chain.receipts(block)]


def reading(
    nodes: Sequence[FakeNode],
    acceptance: Acceptance | None = None,
    agreement: int | None = None,
    *,
    timeout_s: float = 1.0,
) -> EvmReader:
    """The read side over these nodes, with little patience."""
    limits = RequestLimits(connect_timeout_s=0.6, total_timeout_s=timeout_s)
    urls = [node.url for node in nodes]
    endpoints = NodeQuorum(urls, 8453, agreement, limits=limits, ask_s=3 * timeout_s)
    return EvmReader(endpoints, [acceptance or Acceptance("finalized")])


def _error(id: int | None, message: str) -> bytes:
    error = {"code": -32600, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode()
