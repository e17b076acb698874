"""A proxy between our processes and a provider: it counts the calls and carries out kills.

It passes requests on as they came. It knows who calls by the connection, so that our processes are
those of any deployment.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from typing import Any
from urllib.parse import urlsplit

from tests.going_live.kills import Kills, find_caller
from tests.outages.processes import Process

TIMEOUT_S = 60.0
HOP_HEADERS = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})

Names = Callable[[str, str, Mapping[str, str], bytes], Collection[str]]
"""The names of the calls of a request: of its method, path, headers (by lower names) and body."""


class Proxy(ThreadingHTTPServer):
    """One provider's. `processes` may call; in front of our own servers they are called."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, provider: str, names: Names, kills: Kills, target: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.provider, self.names, self.kills, self.target = provider, names, kills, target
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.processes: Sequence[Process] = ()
        self.calls: Counter[str] = Counter()
        self._turns = cycle(range(1_000))
        threading.Thread(target=self.serve_forever, name=f"{provider}-proxy", daemon=True).start()

    def stop(self) -> None:
        """Accept no more."""
        self.shutdown()
        self.server_close()

    def find_target(self) -> tuple[str, Process | None]:
        """Where a request goes, and the process that is there if it is one of ours."""
        if self.target:
            return self.target, None
        ready = [one for one in self.processes if one.is_ready]
        if not ready:
            return "", None
        chosen = ready[next(self._turns) % len(ready)]
        return f"http://127.0.0.1:{chosen.port}", chosen

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a caller that was killed has closed its connection."""


class _Passing(BaseHTTPRequestHandler):
    server: Proxy
    protocol_version = "HTTP/1.1"
    timeout = TIMEOUT_S

    def do_GET(self) -> None:
        self._pass()

    def do_POST(self) -> None:
        self._pass()

    do_PUT = do_DELETE = do_PATCH = do_POST

    def _pass(self) -> None:
        server = self.server
        body = self.rfile.read(int(self.headers["content-length"] or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        names = server.names(self.command, self.path, headers, body)
        server.calls.update(names)
        target, called = server.find_target()

        def find() -> Process | None:
            port = self.client_address[1]
            return called or find_caller(port, server.server_port, server.processes)

        if server.kills.strike(server.provider, names, "before", find):
            self.close_connection = True
            return
        answer = _ask(target, self.command, self.path, headers, body)
        if answer is None or server.kills.strike(server.provider, names, "after", find):
            self.close_connection = True
            return
        self._answer(*answer)

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in HOP_HEADERS:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing: headers and paths have secrets."""


def _ask(
    target: str, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> tuple[int, Mapping[str, str], bytes] | None:
    """The answer; None without one."""
    to = urlsplit(target)
    if not target:
        return None
    connection = http.client.HTTPConnection(str(to.hostname), to.port, timeout=TIMEOUT_S)
    kept = {name: value for name, value in headers.items() if name not in HOP_HEADERS}
    try:
        connection.request(method, path, body or None, {**kept, "Content-Length": str(len(body))})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def names_of_rpc(method: str, path: str, headers: Mapping[str, str], body: bytes) -> set[str]:
    """The methods of JSON-RPC in a request."""
    found = json.loads(body)
    return {str(one["method"]) for one in (found if isinstance(found, list) else [found])}


def names_of_kms(method: str, path: str, headers: Mapping[str, str], body: bytes) -> set[str]:
    """The operation of a request to AWS KMS."""
    return {headers.get("x-amz-target", "").partition(".")[2]}


def names_of_kyc(method: str, path: str, headers: Mapping[str, str], body: bytes) -> set[str]:
    """`start` and `look`; the user's visits are nobody's call."""
    kind = path.strip("/").partition("/")[0]
    return {{"POST": "start", "GET": "look"}[method]} if kind == "cases" else set()


def names_of_circle(method: str, path: str, headers: Mapping[str, str], body: bytes) -> set[str]:
    """`attest`, whether a burn is signed."""
    return {"attest"} if method == "GET" else set()


def names_of_cards(method: str, path: str, headers: Mapping[str, str], body: bytes) -> set[str]:
    """`buy` and `look`; what is on the provider's page is the payer's."""
    kind = path.strip("/").partition("/")[0]
    return {{"POST": "buy", "GET": "look"}[method]} if kind == "purchases" else set()


def names_of_screening(method: str, path: str, headers: Mapping[str, str], body: bytes) -> set[str]:
    """`screen`, each call."""
    return {"screen"}


def names_of_bank(method: str, path: str, headers: Mapping[str, str], body: bytes) -> set[str]:
    """The method and the kind, such as `PUT payouts`."""
    return {f"{method} {urlsplit(path).path.strip('/').partition('/')[0]}"}


def names_of_notices(method: str, path: str, headers: Mapping[str, str], body: bytes) -> set[str]:
    """The kind of the provider: `/providers/{kind}/{name}`."""
    return {path.split("/")[2]}
