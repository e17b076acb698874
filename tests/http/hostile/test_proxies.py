"""Behind a reverse proxy: whose requests are counted, over a real socket."""

from __future__ import annotations

import http.client
import sys

import pytest

from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.policies import RateLimits
from payments_core_http.app import create_app
from payments_core_http.client_address import parse_networks
from payments_core_http.server.server import Server
from payments_core_http.throttling import Throttle
from tests.http.door import Door, real_time


@pytest.mark.parametrize(("trusted", "others"), [(("127.0.0.1/32",), 401), ((), 429)])
def test_the_limit_is_the_clients_where_the_proxy_is_trusted(
    trusted: tuple[str, ...], others: int
) -> None:
    door = Door(real_time())
    throttle = Throttle(
        MemoryLimiter(), RateLimits({"ip_minute": 1}), trusted_proxies=parse_networks(trusted)
    )
    app = create_app(door.service, mode="sandbox", throttle=throttle)  # type: ignore[arg-type]
    before = sys.getswitchinterval()
    with Server(app, door.service.ports.identifiers, threads=2) as server:
        seen = [status(server, f"203.0.113.{n}") for n in (1, 2, 3)]
    sys.setswitchinterval(before)
    assert seen == [401, others, others]


def status(server: Server, client: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", "/v2/partners/config", headers={"X-Forwarded-For": client})
    found = connection.getresponse().status
    connection.close()
    return found
