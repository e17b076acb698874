"""A webhook receiver in its own process: the demo's other side.

`python -m payments_core_http.cli.receiver` listens on a free port of this machine and reports it in
a JSON line. On standard input it gets signing secrets, one JSON line for each path. For every
delivery it reports, in a JSON line, the result of `payments_core.webhooks.verify`. It ends when its
standard input does, so it never outlives the process that started it.
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
        self._output_lock = threading.Lock()

    def report(self, **facts: Any) -> None:
        """Print one whole line."""
        with self._output_lock:
            sys.stdout.write(json.dumps(facts) + "\n")
            sys.stdout.flush()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report nothing: a sender that is killed in the middle breaks its connection."""


class ReceiverHandler(BaseHTTPRequestHandler):
    """Answers 204 to an authentic delivery, and only after it was reported."""

    server: ReceiverServer
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_POST(self) -> None:
        """Receive one delivery."""
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
        """Log nothing: standard output is only for reports."""


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ReceiverServer() as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        receiver.report(port=receiver.server_port)
        for line in sys.stdin:
            message = json.loads(line)
            receiver.secrets[message["path"]] = message["secret"]
            receiver.report(secretFor=message["path"])
        receiver.shutdown()


if __name__ == "__main__":
    main()
