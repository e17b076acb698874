"""Hostile endpoints, as real servers, against both transports: what they cost, whom they reach.

How each transport takes each of them is in the suite (`payments_core.conformance.transport`); here
are memory, measured on a process of its own, and the way through WebhookJobHandlers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from payments_core.conformance.transport.certificates import NAME, certificates, server_context
from payments_core.conformance.transport.servers import (
    LOOPBACK_ADDRESS,
    OK,
    OTHER_LOOPBACK_ADDRESS,
    LocalServer,
    respond_endlessly,
    respond_slowly,
    respond_with,
)
from payments_core.webhooks.destinations import Destination
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.curl import CurlTransport
from payments_core.webhooks.transports.port import (
    MAX_RESPONSE_BODY_BYTES,
    Deadline,
    Transport,
    WebhookRequest,
)
from payments_core.webhooks.transports.sockets import SocketTransport
from tests.webhooks.webhook_bench import PUBLIC, Bench

ROOT = Path(__file__).resolve().parents[3]
HEAD = b"HTTP/1.1 200 OK\r\n"
BLOCK = b"x" * 65_536
SLACK_S = 2.0
GROWTH_KB = 8_000
"""More than a transport needs for a response, and far less than any of these would take."""

KINDS = ("threads", "curl")


@pytest.fixture
def start() -> Iterator[Callable[..., LocalServer]]:
    servers: list[LocalServer] = []

    def make(*arguments, **options) -> LocalServer:  # type: ignore[no-untyped-def]
        servers.append(LocalServer(*arguments, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "curl":
        pytest.importorskip("pycurl")
    return str(request.param)


@pytest.fixture
def transport(kind: str) -> Iterator[Transport]:
    made: Transport = CurlTransport() if kind == "curl" else SocketTransport()
    yield made
    made.close()


BODIES = {
    "endless": (respond_endlessly(HEAD + b"\r\n", BLOCK), 200, MAX_RESPONSE_BODY_BYTES),
    "2 GB": (
        respond_endlessly(HEAD + b"Content-Length: 2000000000\r\n\r\n", BLOCK),
        200,
        MAX_RESPONSE_BODY_BYTES,
    ),
    "one chunk of 2 GB": (
        respond_endlessly(HEAD + b"Transfer-Encoding: chunked\r\n\r\n77359400\r\n", BLOCK),
        200,
        MAX_RESPONSE_BODY_BYTES,
    ),
    "headers without end": (respond_endlessly(HEAD, b"x: y\r\n" * 1000), None, 0),
    "a header without end": (respond_endlessly(HEAD + b"x: ", BLOCK), None, 0),
    "no response without end": (respond_endlessly(b"", BLOCK), None, 0),
    "a chunk's size without end": (
        respond_endlessly(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * 65_536),
        200,
        0,
    ),
    "a body that drips": (respond_slowly(HEAD + b"\r\n", b"x" * 1_000, 0.01), 200, None),
    "a head that drips": (respond_slowly(b"", HEAD + b"x: " + b"y" * 1_000, 0.01), None, 0),
}


@pytest.mark.parametrize("what", BODIES)
def test_memory_and_time_stay_bounded(start, kind: str, what: str) -> None:  # type: ignore[no-untyped-def]
    serve, status, kept = BODIES[what]
    server = start(serve)
    deadline_s = 1.0
    done = subprocess.run(
        [sys.executable, "-m", "tests.webhooks.transports.hostile_child", kind,
         f"http://{NAME}:{server.port}/", str(deadline_s)],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    reported = json.loads(done.stdout)
    assert reported["status"] == status
    assert kept is None or reported["body"] == kept
    assert reported["took_s"] < deadline_s + SLACK_S
    assert reported["grown_kb"] < GROWTH_KB


# Through WebhookJobHandlers: the addresses are judged first, and the transport goes nowhere else.


def delivered_to(bench: Bench, url: str) -> str:
    endpoint = bench.endpoint(url)
    bench.happen()
    bench.run()
    (delivery,) = bench.deliveries(endpoint)
    return delivery.status


def test_a_name_with_a_public_and_a_private_address_gets_nothing(start, transport) -> None:  # type: ignore[no-untyped-def]
    inside = start(respond_with(OK))
    bench = Bench(wire=transport)
    url = f"https://{NAME}:{inside.port}/"
    endpoint = bench.endpoint(url)
    bench.names.table[NAME] = (PUBLIC, LOOPBACK_ADDRESS)
    bench.happen()
    bench.run()
    assert [delivery.status for delivery in bench.deliveries(endpoint)] == ["abandoned"]
    assert inside.connections == 0


def test_a_name_that_leads_elsewhere_after_vetting_reaches_the_vetted_address(  # type: ignore[no-untyped-def]
    start, transport
) -> None:
    """The resolver's first answer was judged. Code that asks again, as for `localhost` here, would
    be led to another server."""
    vetted = start(respond_with(OK), address=OTHER_LOOPBACK_ADDRESS)
    inside = start(respond_with(OK), address=LOOPBACK_ADDRESS, port=vetted.port)
    bench = Bench(wire=transport, settings=WebhookSettings(local_allowed=True))
    bench.names.table["localhost"] = (OTHER_LOOPBACK_ADDRESS,)
    assert delivered_to(bench, f"http://localhost:{vetted.port}/") == "delivered"
    assert len(vetted.requests) == 1
    assert inside.connections == 0


def test_a_kept_connection_is_not_used_once_the_name_leads_inside(start, transport) -> None:  # type: ignore[no-untyped-def]
    server = start(respond_with(OK, keep=True))
    bench = Bench(wire=transport, settings=WebhookSettings(local_allowed=True))
    endpoint = bench.endpoint(f"http://{NAME}:{server.port}/")
    bench.names.table[NAME] = (LOOPBACK_ADDRESS,)
    bench.happen()
    bench.run()
    assert len(server.requests) == 1
    bench.names.table[NAME] = (LOOPBACK_ADDRESS, "10.0.0.7")
    bench.happen()
    bench.run()
    found = sorted(delivery.status for delivery in bench.deliveries(endpoint))
    assert found == ["abandoned", "delivered"]
    assert len(server.requests) == 1


def test_a_redirect_inside_is_abandoned_and_reaches_nobody(start, transport) -> None:  # type: ignore[no-untyped-def]
    inside = start(respond_with(OK))
    location = f"Location: http://127.0.0.1:{inside.port}/\r\n".encode()
    server = start(respond_with(b"HTTP/1.1 307 Go\r\n" + location + b"Content-Length: 0\r\n\r\n"))
    bench = Bench(wire=transport, settings=WebhookSettings(local_allowed=True))
    bench.names.table[NAME] = (LOOPBACK_ADDRESS,)
    assert delivered_to(bench, f"http://{NAME}:{server.port}/") == "abandoned"
    assert inside.connections == 0


def test_a_kept_connection_is_used_again(start, kind: str) -> None:  # type: ignore[no-untyped-def]
    """Or every test of reuse would pass for want of any."""
    authority = certificates().ca_file
    for scheme, tls in (("http", None), ("https", server_context(certificates().good))):
        server = start(respond_with(OK, keep=True), tls)
        made: Transport
        if kind == "curl":
            made = CurlTransport(authority)
        else:
            made = SocketTransport(trusting(authority))
        request = WebhookRequest(Destination(scheme, NAME, server.port, "/"), {}, b"{}")
        for _ in range(5):
            assert made.send(request, [LOOPBACK_ADDRESS], Deadline.after(5)).status == 200
        made.close()
        assert (server.connections, len(server.requests)) == (1, 5)


def trusting(authority: Path):  # type: ignore[no-untyped-def]
    import ssl

    return ssl.create_default_context(cafile=str(authority))
