"""The address rules at creation and before every attempt, and where the connection then goes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from typing import Any

import attrs
import pytest

from payments_core.engine.jobs.parking import CLAIMS_BEFORE_PARKING
from payments_core.errors import ValidationFailed, WebhookUrlNotAllowed
from payments_core.webhooks.destinations import RefusedPrefix, ResolverOverloaded
from payments_core.webhooks.dispatch.attempt import POSTPONED_MS
from payments_core.webhooks.operations import MAX_RESOLVING_REQUESTS
from payments_core.webhooks.record import Delivery, Endpoint
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.port import TransportResult
from payments_core.webhooks.transports.resolver import SystemResolver
from payments_core.webhooks.transports.sockets import SocketTransport
from payments_core_http.app import DEFAULT_THREADS
from tests.webhooks.webhook_bench import HOOK, OK, PUBLIC, Bench, Names, Wire

NAME = "partner.example"
OTHER_PUBLIC = "8.8.4.4"
PUBLIC_6 = "2606:4700:4700::1111"
LOCAL = WebhookSettings(local_allowed=True)

LOOPBACK = ("127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1")
INSIDE = (
    *("10.0.0.7", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.1.1", "169.254.169.254"),
    *("169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192", "0.0.0.0", "224.0.0.1"),
    *("255.255.255.255", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1"),
    *("ff02::1", "::", "::10.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"),
    *("64:ff9b::a9fe:a9fe", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:a00:1::1", "2001:0:1::1"),
    *("2606:4700::5efe:a00:1", "2606:4700::200:5efe:7f00:1", "2001:db8::1", "100::1"),
)
FORBIDDEN = (*LOOPBACK, *INSIDE)


@attrs.define
class LikeTheSystem(Names):
    """Names as the system resolves them: an address is its own answer, whatever the table says."""

    def resolve(
        self, host: str, port: int, timeout_s: float, *, environment_id: str
    ) -> Sequence[str]:
        answer = Names.resolve(self, host, port, timeout_s, environment_id=environment_id)
        try:
            return (str(ip_address(host)),)
        except ValueError:
            return answer


@attrs.define
class Timed(Names):
    """It keeps for how long each look-up may take."""

    timeouts_s: list[float] = attrs.field(factory=list)

    def resolve(
        self, host: str, port: int, timeout_s: float, *, environment_id: str
    ) -> Sequence[str]:
        self.timeouts_s.append(timeout_s)
        return Names.resolve(self, host, port, timeout_s, environment_id=environment_id)


@attrs.define
class Turning(Names):
    """A name whose answer is another one at each look-up; the last stays."""

    answers: list[Sequence[str]] = attrs.field(factory=list)

    def resolve(
        self, host: str, port: int, timeout_s: float, *, environment_id: str
    ) -> Sequence[str]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def only(bench: Bench, endpoint: Endpoint) -> Delivery:
    (delivery,) = bench.stored(endpoint)
    return delivery


def went_to(bench: Bench) -> list[tuple[str, ...]]:
    return [addresses for _, addresses in bench.wire.sent]  # type: ignore[attr-defined]


def assert_abandoned_unsent(bench: Bench, endpoint: Endpoint, *, attempts: int = 1) -> None:
    """It ended at once, nothing was sent in that attempt, and nothing is tried again."""
    delivery = only(bench, endpoint)
    assert (delivery.status, delivery.attempts) == ("abandoned", attempts)
    assert (delivery.response_status, delivery.response_body) == (None, None)
    assert delivery.next_attempt_at_ms is None
    assert len(went_to(bench)) == attempts - 1
    assert bench.jobs_of(endpoint) == ()
    assert bench.run_for(86_400) == 0
    assert len(went_to(bench)) == attempts - 1


def move(bench: Bench, *addresses: str) -> None:
    bench.names.table[NAME] = addresses


# At creation.


def test_a_request_waits_a_second_for_a_name_where_an_attempt_has_ten() -> None:
    names = Timed()
    bench = Bench(names=names)
    bench.endpoint(f"https://{NAME}/")
    bench.happen()
    bench.run()
    [at_creation, at_attempt] = names.timeouts_s
    assert at_creation == 1.0
    assert 9.0 < at_attempt <= 10.0
    assert MAX_RESOLVING_REQUESTS == DEFAULT_THREADS // 4


@pytest.mark.parametrize("address", FORBIDDEN)
def test_no_endpoint_is_made_whose_name_leads_inside(address: str) -> None:
    bench = Bench()
    for addresses in ((address,), (PUBLIC, address), (address, PUBLIC), (PUBLIC_6, address)):
        move(bench, *addresses)
        with pytest.raises(WebhookUrlNotAllowed) as raised:
            bench.endpoint(HOOK)
        assert address not in str(raised.value)
    assert bench.endpoints.list(bench.authority).records == ()


@pytest.mark.parametrize("address", [a for a in FORBIDDEN if "%" not in a])
def test_no_endpoint_is_made_for_a_forbidden_address_itself(address: str) -> None:
    bench = Bench(names=LikeTheSystem())
    url = f"https://[{address}]/" if ":" in address else f"https://{address}/"
    with pytest.raises(WebhookUrlNotAllowed):
        bench.endpoint(url)
    assert bench.endpoints.list(bench.authority).records == ()


@pytest.mark.parametrize(
    "url", ["https://user:pw@partner.example/", "https://user@partner.example/",
            "https://@partner.example/", "http://partner.example/", "ws://partner.example/"],
)  # fmt: skip
def test_no_endpoint_is_made_with_credentials_or_without_tls(url: str) -> None:
    bench = Bench()
    with pytest.raises(WebhookUrlNotAllowed) as raised:
        bench.endpoint(url)
    assert "pw" not in str(raised.value)
    assert bench.names.asked == []
    assert bench.endpoints.list(bench.authority).records == ()


def test_a_zone_in_a_url_is_not_an_address() -> None:
    with pytest.raises(ValidationFailed):
        Bench().endpoint("https://[fe80::1%25eth0]/")


# Between creation and the attempt, and between two attempts.


@pytest.mark.parametrize("address", FORBIDDEN)
def test_a_name_that_moved_inside_after_creation_gets_nothing(address: str) -> None:
    bench = Bench()
    endpoint = bench.endpoint()
    bench.happen()
    move(bench, address)
    bench.run()
    assert_abandoned_unsent(bench, endpoint)


@pytest.mark.parametrize("address", FORBIDDEN)
def test_a_name_that_moved_inside_after_a_failed_attempt_gets_no_other(address: str) -> None:
    bench = Bench(wire=Wire([TransportResult(500)]))
    endpoint = bench.endpoint()
    bench.happen()
    bench.run()
    assert only(bench, endpoint).status == "failed"
    move(bench, address)
    bench.run_for(30)
    assert_abandoned_unsent(bench, endpoint, attempts=2)
    assert went_to(bench) == [(PUBLIC,)]


@pytest.mark.parametrize(
    "addresses",
    [
        (PUBLIC, "10.0.0.7"),
        ("10.0.0.7", PUBLIC),
        (PUBLIC_6, "::1"),
        (PUBLIC, OTHER_PUBLIC, PUBLIC_6, "169.254.169.254"),
        (PUBLIC, "not an address"),
    ],
)
def test_one_forbidden_address_among_public_ones_abandons(addresses: tuple[str, ...]) -> None:
    bench = Bench()
    endpoint = bench.endpoint()
    bench.happen()
    move(bench, *addresses)
    bench.run()
    assert_abandoned_unsent(bench, endpoint)


def test_each_attempt_goes_where_the_name_leads_at_that_time() -> None:
    bench = Bench(wire=Wire([TransportResult(500), TransportResult(500), OK]))
    endpoint = bench.endpoint()
    bench.happen()
    bench.run()
    move(bench, OTHER_PUBLIC)
    bench.run_for(30)
    move(bench, PUBLIC_6, f"::ffff:{OTHER_PUBLIC}", "64:ff9b::808:404")
    bench.run_for(60)
    assert went_to(bench) == [(PUBLIC,), (OTHER_PUBLIC,), (PUBLIC_6, OTHER_PUBLIC)]
    assert only(bench, endpoint).status == "delivered"


def test_the_addresses_that_were_judged_are_those_connected_to() -> None:
    """A name that turns around at each look-up is asked once for each attempt."""
    names = Turning(answers=[(PUBLIC,), (PUBLIC,), ("10.0.0.7",)])
    bench = Bench(names=names)
    endpoint = bench.endpoint()
    bench.happen()
    bench.run()
    assert names.asked == [NAME, NAME]  # creation, and the one attempt
    assert went_to(bench) == [(PUBLIC,)]
    assert only(bench, endpoint).status == "delivered"


# Look-ups that fail.


def test_a_look_up_that_fails_is_tried_again_until_the_attempts_are_used_up() -> None:
    bench = Bench(settings=WebhookSettings(max_attempts=4))
    endpoint = bench.endpoint()
    bench.names.table[NAME] = None
    bench.happen()
    for attempts, wait_s in ((1, 30), (2, 60), (3, 120)):
        bench.run()
        delivery = only(bench, endpoint)
        assert (delivery.status, delivery.attempts) == ("failed", attempts)
        assert delivery.response_status is None
        assert delivery.next_attempt_at_ms == bench.clock.now() + wait_s * 1000
        bench.clock.advance(wait_s)
    bench.run()
    delivery = only(bench, endpoint)
    assert (delivery.status, delivery.attempts) == ("abandoned", 4)
    assert went_to(bench) == []


def test_a_name_without_any_address_is_a_look_up_that_failed() -> None:
    bench = Bench()
    endpoint = bench.endpoint()
    move(bench)
    bench.happen()
    bench.run()
    assert only(bench, endpoint).status == "failed"
    move(bench, PUBLIC)
    bench.run_for(30)
    assert only(bench, endpoint).status == "delivered"


def test_a_name_that_did_not_resolve_at_creation_is_judged_when_it_does() -> None:
    bench = Bench()
    bench.names.table[NAME] = None
    endpoint = bench.endpoint()
    bench.happen()
    bench.run()
    assert only(bench, endpoint).status == "failed"
    move(bench, "169.254.169.254")
    bench.clock.advance(30)
    bench.run()
    delivery = only(bench, endpoint)
    assert (delivery.status, delivery.attempts) == ("abandoned", 2)
    assert went_to(bench) == []


# Addresses in the URL.


@pytest.mark.parametrize(
    ("url", "address", "authority"),
    [
        (f"https://{PUBLIC}/x", PUBLIC, PUBLIC),
        (f"https://{PUBLIC}:8443/x", PUBLIC, f"{PUBLIC}:8443"),
        (f"https://[{PUBLIC_6}]/x", PUBLIC_6, f"[{PUBLIC_6}]"),
        ("https://[2606:4700:4700:0:0:0:0:1111]:8443/x", PUBLIC_6, f"[{PUBLIC_6}]:8443"),
        (f"https://[::ffff:{PUBLIC}]/x", PUBLIC, f"[{ip_address(f'::ffff:{PUBLIC}')}]"),
    ],
)
def test_a_public_address_in_the_url_is_delivered_to(
    url: str, address: str, authority: str
) -> None:
    bench = Bench(names=LikeTheSystem())
    endpoint = bench.endpoint(url)
    bench.happen()
    bench.run()
    ((request, addresses),) = bench.wire.sent  # type: ignore[attr-defined]
    assert addresses == (address,)
    assert request.destination.host_header == authority
    assert only(bench, endpoint).status == "delivered"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/", "http://[::1]:9/", "https://localhost/", "http://a.example/"]
)
def test_an_endpoint_from_a_local_sandbox_gets_nothing_where_that_is_not_allowed(url: str) -> None:
    names = LikeTheSystem(table={"localhost": ("127.0.0.1", "::1")})
    bench = Bench(names=names, settings=LOCAL)
    endpoint = bench.endpoint(url)
    bench.attempts._settings = WebhookSettings()
    bench.happen()
    bench.run()
    assert_abandoned_unsent(bench, endpoint)


# What settings change.


@pytest.mark.parametrize("address", LOOPBACK)
def test_a_local_sandbox_delivers_to_loopback(address: str) -> None:
    bench = Bench(settings=LOCAL)
    move(bench, address)
    endpoint = bench.endpoint("http://partner.example:8000/")
    bench.happen()
    bench.run()
    assert went_to(bench) == [(address.removeprefix("::ffff:"),)]
    assert only(bench, endpoint).status == "delivered"


@pytest.mark.parametrize("address", INSIDE)
def test_a_local_sandbox_lets_nothing_else_inside(address: str) -> None:
    bench = Bench(settings=LOCAL)
    move(bench, "127.0.0.1", address)
    with pytest.raises(WebhookUrlNotAllowed):
        bench.endpoint("http://partner.example/")
    move(bench, "127.0.0.1")
    endpoint = bench.endpoint("http://partner.example/")
    bench.happen()
    move(bench, "127.0.0.1", address)
    bench.run()
    assert_abandoned_unsent(bench, endpoint)


@pytest.mark.parametrize("url", ["https://user:pw@localhost/", "ftp://localhost/"])
def test_a_local_sandbox_allows_no_credentials_and_no_other_scheme(url: str) -> None:
    with pytest.raises(WebhookUrlNotAllowed):
        Bench(settings=LOCAL).endpoint(url)


def test_an_operators_prefix_holds_at_creation_and_at_each_attempt() -> None:
    rules = (RefusedPrefix.of("8.8.4.0/24", "ours"), RefusedPrefix.of("2606:4700::/32", "ours"))
    bench = Bench(settings=WebhookSettings(refused_prefixes=rules))
    for address in (OTHER_PUBLIC, PUBLIC_6, f"::ffff:{OTHER_PUBLIC}", "64:ff9b::808:404"):
        move(bench, PUBLIC, address)
        with pytest.raises(WebhookUrlNotAllowed):
            bench.endpoint()
    move(bench, PUBLIC)
    endpoint = bench.endpoint()
    bench.happen()
    move(bench, PUBLIC, OTHER_PUBLIC)
    bench.run()
    assert_abandoned_unsent(bench, endpoint)


# Real sockets.


def test_the_connection_goes_to_the_judged_address_and_names_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[tuple[str, str]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            heard.append((self.headers["Host"], self.headers["x-service-event"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    def no_look_up(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("a name was looked up after it had been judged")

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        bench = Bench(wire=SocketTransport(), settings=LOCAL)
        move(bench, "127.0.0.1")
        endpoint = bench.endpoint(f"http://{NAME}:{server.server_port}/")
        bench.happen()
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        monkeypatch.setattr(socket, "getaddrinfo", no_look_up)
        monkeypatch.setattr(socket, "gethostbyname", no_look_up)
        bench.run()
        server.shutdown()
        thread.join()
    assert only(bench, endpoint).status == "delivered"
    assert heard == [(f"{NAME}:{server.server_port}", "account.created")]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "0177.0.0.1", "[::1]",
             "[::ffff:127.0.0.1]", "127.0.0.1.", "127。0。0。1"],
)  # fmt: skip
def test_no_way_to_write_loopback_reaches_a_listener(host: str) -> None:
    """Through the system's own resolver, which reads some of these as addresses."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        bench = Bench(wire=SocketTransport(), names=SystemResolver())  # type: ignore[arg-type]
        with pytest.raises((WebhookUrlNotAllowed, ValidationFailed)):
            bench.endpoint(f"https://{host}:{listener.getsockname()[1]}/")
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_listener_behind_a_name_that_moved_to_loopback_hears_nothing() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        bench = Bench(wire=SocketTransport())
        endpoint = bench.endpoint(f"https://{NAME}:{listener.getsockname()[1]}/")
        bench.happen()
        move(bench, PUBLIC, "127.0.0.1")
        bench.run()
        assert only(bench, endpoint).status == "abandoned"
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_delivery_without_room_for_its_look_up_waits_and_loses_no_attempt() -> None:
    full = True

    class Full(Names):
        def resolve(
            self, host: str, port: int, timeout_s: float, *, environment_id: str
        ) -> Sequence[str]:
            if full:
                raise ResolverOverloaded("too many")
            return (PUBLIC,)

    bench = Bench(names=Full())
    endpoint = bench.endpoint()
    bench.happen()
    for _ in range(2 * CLAIMS_BEFORE_PARKING):
        bench.run_for(POSTPONED_MS // 1000)
        assert (only(bench, endpoint).attempts, only(bench, endpoint).status) == (0, "pending")
    full = False
    bench.run_for(POSTPONED_MS // 1000)
    assert (only(bench, endpoint).attempts, only(bench, endpoint).status) == (1, "delivered")
