"""A server whose requests wait for another server, as for a chain's node, or compute.

    python -m benchmarks.waits_for_node http://127.0.0.1:8545

`waits.py` runs it with the packages of each release. `/waits` sends one request there, and anything
else computes for a millisecond. Prints its port.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from payments_core.chains.http.client import HttpClient
from payments_core.clock import SystemClock
from payments_core.engine.identifiers import Identifiers
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.entropy import system_entropy
from payments_core_http.app import DEFAULT_THREADS
from payments_core_http.server.thread_pool import ThreadPool
from payments_core_http.serving import build_server

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

COMPUTES_S = 0.001
DEADLINE_S = 5.0


def main() -> None:
    node = HttpClient(sys.argv[1])
    pool = ThreadPool(DEFAULT_THREADS)
    calls = RemoteCalls(DEFAULT_THREADS, pool)

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/waits":
            with calls.acquire("chain", "environment"):
                node.send("GET", time.monotonic() + DEADLINE_S)
        else:
            began = time.thread_time()
            while time.thread_time() - began < COMPUTES_S:
                pass
        start_response("200 OK", [("Content-Length", "0")])
        return []

    server = build_server(answer, Identifiers(SystemClock(), system_entropy), pool=pool)
    print(server.port, flush=True)
    server.run()


if __name__ == "__main__":
    main()
