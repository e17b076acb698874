"""The desk at which the provider of card payments has tokens sent on the chains, over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.going_live.chains import TestChain


class Desk(ThreadingHTTPServer):
    """Answers `POST` of a transfer, as the API of a sandbox does, on the real nodes."""

    daemon_threads = True

    def __init__(self, chains: Mapping[int, TestChain]) -> None:
        super().__init__(("127.0.0.1", 0), _Sending)
        self.chains = chains
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, name="desk", daemon=True).start()

    def stop(self) -> None:
        """Accept no more."""
        self.shutdown()
        self.server_close()


class _Sending(BaseHTTPRequestHandler):
    server: Desk

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        amount = int(Decimal(asked["amount"]).scaleb(6))
        hash = self.server.chains[asked["chainId"]].pay(asked["to"], amount)
        body = json.dumps({"transactionHash": hash}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing."""
