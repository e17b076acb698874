"""The partner's webhook receiver, in a process of its own that nobody kills.

`python -m tests.outages.receiver FILE SEED` listens on a free port of this machine and writes it in
a JSON line. On standard input it gets the signing secret; it ends when that does. What it has
verified it appends to FILE, one JSON line each, before it answers. Now and then it answers 500,
sometimes though it has taken the event.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TextIO

from payments_core.webhooks import WebhookRefused, verify

FAILS_BEFORE = 0.03
FAILS_AFTER = 0.02
TRY_AGAIN_S = 2


class Receiver(ThreadingHTTPServer):
    """The server, its file, and what it does by chance."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, file: TextIO, seed: str) -> None:
        super().__init__(("127.0.0.1", 0), Deliveries)
        self.secret = ""
        self.chance = random.Random(f"receiver/{seed}")
        self._file = file
        self._lock = threading.Lock()

    def note(self, **facts: Any) -> None:
        """One line of the file, whole."""
        with self._lock:
            self._file.write(json.dumps(facts) + "\n")
            self._file.flush()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that is killed in the middle breaks its connection: nothing to report."""


class Deliveries(BaseHTTPRequestHandler):
    """Takes what is proven authentic."""

    server: Receiver
    protocol_version = "HTTP/1.1"
    timeout = 15

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # the sender was cut off
            self.close_connection = True
            return
        drawn = self.server.chance.random()
        if drawn < FAILS_BEFORE:
            self._answer(500)
            return
        delivery = self.headers.get("x-service-delivery")
        try:
            event = verify(body, dict(self.headers.items()), self.server.secret)
        except WebhookRefused as refusal:
            self.server.note(refused=refusal.code, delivery=delivery)
            self._answer(400)
            return
        digest = hashlib.sha256(body).hexdigest()
        self.server.note(event=event.id, name=event.name, delivery=delivery, body=digest)
        self._answer(500 if drawn > 1 - FAILS_AFTER else 204)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        if status == 500:
            self.send_header("Retry-After", str(TRY_AGAIN_S))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Standard output is for the port alone."""


def main(path: str, seed: str) -> None:
    """Serve until standard input ends."""
    with open(path, "a", encoding="utf-8") as file, Receiver(file, seed) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        print(json.dumps({"port": receiver.server_port}), flush=True)
        for line in sys.stdin:
            receiver.secret = json.loads(line)["secret"]
            print(json.dumps({"has": "secret"}), flush=True)
        receiver.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
