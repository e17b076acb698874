"""A webhook receiver in a process of its own: the demo's other side.

`python -m payments_core_http.cli.receiver` listens on a free port of this machine and tells it in
a JSON line. On standard input it is told signing secrets, one JSON line for each path. Of every
delivery it tells, in a JSON line, what `payments_core.webhooks.verify` made of it. It ends when
its standard input does, so it never outlives the one who started it.
"""

from __future__ import annotations

import hashlib
import json
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from payments_core.webhooks import WebhookRefused, verify

MAX_BODY_BYTES = 1024 * 1024


class ReceiverServer(ThreadingHTTPServer):
    """The server, with the signing secret of each path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ReceiverHandler)
        self.secrets: dict[str, str] = {}
        self._telling = threading.Lock()

    def report(self, **facts: Any) -> None:
        """Print one line, whole."""
        with self._telling:
            sys.stdout.write(json.dumps(facts) + "\n")
            sys.stdout.flush()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that is killed in the middle breaks its connection: nothing to report."""


class ReceiverHandler(BaseHTTPRequestHandler):
    """Answers 204 for what is proven authentic, and only after it was reported."""

    server: ReceiverServer
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_POST(self) -> None:
        """Take one delivery."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self._respond(400)
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):  # the sender was cut off
            self.close_connection = True
            return
        secret = self.server.secrets.get(self.path)
        if secret is None:
            self._respond(503)
            return
        try:
            event = verify(body, dict(self.headers.items()), secret)
        except WebhookRefused as refusal:
            self.server.report(path=self.path, verified=False, refused=refusal.code)
            self._respond(400)
            return
        self.server.report(
            path=self.path,
            verified=True,
            deliveryId=self.headers.get("x-service-delivery"),
            eventId=event.id,
            name=event.name,
            payload=event.payload,
            bodySha256=hashlib.sha256(body).hexdigest(),
        )
        self._respond(204)

    def _respond(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Standard output is for facts alone."""


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who started it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ReceiverServer() as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        receiver.report(port=receiver.server_port)
        for line in sys.stdin:
            told = json.loads(line)
            receiver.secrets[told["path"]] = told["secret"]
            receiver.report(secretFor=told["path"])
        receiver.shutdown()


if __name__ == "__main__":
    main()
