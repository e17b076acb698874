"""Behind a reverse proxy: whose requests are counted, over a real socket."""

from __future__ import annotations

import http.client
import sys
from pathlib import Path

import pytest

from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.policies import RateLimits
from payments_core_http.app import create_app
from payments_core_http.client_address import parse_networks
from payments_core_http.server.server import Server
from payments_core_http.serving import build_server
from payments_core_http.throttling import UNKNOWN_ADDRESSES, Throttle
from tests.http.api_harness import ApiHarness, real_time
from tests.http.wire.other_servers import run_server


@pytest.mark.parametrize(("trusted", "others"), [(("127.0.0.1/32",), 401), ((), 429)])
def test_the_limit_is_the_clients_where_the_proxy_is_trusted(
    trusted: tuple[str, ...], others: int
) -> None:
    api = ApiHarness(real_time())
    throttle = Throttle(
        MemoryLimiter(), RateLimits({"ip_minute": 1}), trusted_proxies=parse_networks(trusted)
    )
    app = create_app(api.service, mode="sandbox", throttle=throttle)  # type: ignore[arg-type]
    before = sys.getswitchinterval()
    with build_server(app, api.service.parts.ports.identifiers, threads=2) as server:
        seen = [status(server, f"203.0.113.{n}") for n in (1, 2, 3)]
    sys.setswitchinterval(before)
    assert seen == [401, others, others]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gunicorn", "granian", "uwsgi", "cheroot", "werkzeug"])
def test_a_scanner_behind_a_unix_socket_blocks_nobody_else(name: str, tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/socket"
    with run_server(name, tmp_path, address, SANDBOX_PROXIES="unix|0.0.0.0/0 ::/0") as server:
        # The proxy is trusted by its socket, and then by an address, which it does not have.
        for app, refusal in (("0", 429), ("1", 404)):
            for number in range(25):
                scanned, _ = server.ask(
                    "GET", f"/wp-{number}.php", X_Forwarded_For="198.51.100.9", X_App=app
                )
            status, _ = server.ask(
                "GET", "/v2/partners/config", X_Forwarded_For="203.0.113.5", X_App=app
            )
            assert (scanned, status) == (refusal, 200)
            assert (UNKNOWN_ADDRESSES in server.read_log()) is (app == "1")


def status(server: Server, client: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", "/v2/partners/config", headers={"X-Forwarded-For": client})
    found = connection.getresponse().status
    connection.close()
    return found
