"""A webhook receiver for test_webhook_kills: it remembers durably, and only then answers.

Usage: python -m tests.webhooks.kill_receiver FILE; prints its port, and a line for each delivery.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Memory:
    """A file of JSON lines, each of which is on the disk before `keep` returns."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._lock = threading.Lock()

    def keep(self, facts: dict[str, Any]) -> None:
        line = json.dumps(facts) + "\n"
        with self._lock:
            os.write(self._file, line.encode())
            os.fsync(self._file)
            report(event=facts["headers"]["x-service-event-id"], path=facts["path"])


def report(**facts: Any) -> None:
    """A JSON line on standard output."""
    print(json.dumps(facts), flush=True)


def main() -> None:
    """Receive until it is ended."""
    memory = Memory(Path(sys.argv[1]))

    class Hook(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            memory.keep({"path": self.path, "headers": headers, "body": body.decode()})
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        server.daemon_threads = True
        report(port=server.server_port)
        server.serve_forever()


if __name__ == "__main__":
    main()
