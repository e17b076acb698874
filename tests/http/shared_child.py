"""A process that serves its own number on a port that others may have too.

python -m tests.http.shared_child 0

It prints its port, and ends gracefully at SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from payments_core.clock import SystemClock
from payments_core.engine.identifiers import Identifiers
from payments_core.entropy import system_entropy
from payments_core_http.serving import build_server

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment


def whose(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The application: which process it is."""
    body = str(os.getpid()).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def main(port: int) -> None:
    identifiers = Identifiers(SystemClock(), system_entropy)
    server = build_server(whose, identifiers, port=port, threads=2, reuse_port=True)
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    print(server.port, flush=True)
    server.run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
