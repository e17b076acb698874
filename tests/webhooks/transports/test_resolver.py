"""The system's resolver within a time limit."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from payments_core.engine.remote_calls import RemoteCalls
from payments_core.webhooks.destinations import (
    Destination,
    DestinationForbidden,
    ResolutionFailed,
    ResolverOverloaded,
    require_public_addresses,
    resolve_destination,
)
from payments_core.webhooks.transports import resolver as module
from payments_core.webhooks.transports.resolver import BoundedResolver, SystemResolver

ENV = "env_1"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1"])
def test_every_spelling_of_a_loopback_address_is_found_out(host: str) -> None:
    addresses = SystemResolver().resolve(host, 443, 5, environment_id=ENV)
    with pytest.raises(DestinationForbidden):
        require_public_addresses(addresses)


def test_a_name_that_does_not_exist_is_a_failure() -> None:
    with pytest.raises(ResolutionFailed):
        SystemResolver().resolve("no-such-name.invalid", 443, 10, environment_id=ENV)
    with pytest.raises(ResolutionFailed):
        SystemResolver().resolve("a" * 300, 443, 10, environment_id=ENV)


def test_a_name_service_that_hangs_meets_the_limit_and_uses_up_its_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released = threading.Event()
    asked: list[str] = []

    def hang(host: str, *_: object, **__: object) -> list[object]:
        asked.append(host)
        released.wait(10)
        return []

    monkeypatch.setattr(module, "MAX_CONCURRENT_LOOKUPS", 2)
    monkeypatch.setattr(socket, "getaddrinfo", hang)
    resolver = SystemResolver()
    for name in ("a.example", "a.example", "b.example", "a.example", "b.example"):
        with pytest.raises(ResolutionFailed, match="timed out"):
            resolver.resolve(name, 443, 0.01, environment_id=ENV)
    assert asked == ["a.example", "b.example"], "a name that hangs is looked up once"
    with pytest.raises(ResolverOverloaded, match="too many"):
        resolver.resolve("c.example", 443, 5, environment_id=ENV)
    released.set()
    for _ in range(1000):
        if not resolver._running:
            break
        threading.Event().wait(0.01)
    assert resolver.resolve("c.example", 443, 5, environment_id=ENV) == []


def test_many_who_ask_for_a_name_at_once_have_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    released, asking = threading.Event(), threading.Barrier(9)
    answers = (f"192.0.2.{number}" for number in count(1))

    def answer(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        released.wait(10)
        return [(0, 0, 0, "", (next(answers), port))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    resolver = SystemResolver()

    def ask() -> list[str]:
        asking.wait(10)
        return resolver.resolve("a.example", 443, 10, environment_id=ENV)

    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(ask) for _ in range(8)]
        asking.wait(10)
        threading.Event().wait(0.2)  # so that all have come to the look-up
        released.set()
    assert len({tuple(each.result()) for each in found}) <= 2


def test_a_thread_that_cannot_be_started_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module, "MAX_CONCURRENT_LOOKUPS", 2)
    resolver = SystemResolver()
    with monkeypatch.context() as starved:
        starved.setattr(threading.Thread, "start", fail)
        for _ in range(5):
            with pytest.raises(ResolverOverloaded, match="too many threads"):
                resolver.resolve("a.example", 443, 5, environment_id=ENV)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: [])
    assert resolver.resolve("a.example", 443, 5, environment_id=ENV) == []


# Between tenants.


class NameServer:
    """Stands for the system's: it never answers for some names until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.released = threading.Event()
        self.asked: list[str] = []
        self.fails = False
        monkeypatch.setattr(socket, "getaddrinfo", self._answer)

    def _answer(self, host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        self.asked.append(host)
        if host.startswith("hang"):
            self.released.wait(30)
        if self.fails:
            raise socket.gaierror(-2, "no such name")
        return [(0, 0, 0, "", ("198.51.100.7", port))]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    server = NameServer(monkeypatch)
    yield server
    server.released.set()


def test_one_environments_hanging_names_take_only_its_own_room(server: NameServer) -> None:
    resolver = SystemResolver()
    refused = 0
    for n in range(75):
        with pytest.raises(ResolutionFailed) as caught:
            resolver.resolve(f"hang{n}.example", 443, 0.001, environment_id="attacker")
        refused += isinstance(caught.value, ResolverOverloaded)
    assert refused == 75 - module.MAX_LOOKUPS_PER_ENVIRONMENT
    for n in range(100):
        assert resolver.resolve(f"ok{n}.example", 443, 5, environment_id=ENV) == ["198.51.100.7"]


def test_a_failure_is_kept_for_a_while(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    resolver, server.fails = SystemResolver(), True
    for _ in range(3):
        with pytest.raises(ResolutionFailed, match="gaierror"):
            resolver.resolve("a.example", 443, 5, environment_id=ENV)
    assert server.asked == ["a.example"]
    now[0] += module.FAILURE_KEPT_S
    server.fails = False
    assert resolver.resolve("a.example", 443, 5, environment_id=ENV) == ["198.51.100.7"]


def test_the_failures_that_are_kept_are_bounded(
    server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FAILURES_KEPT", 3)
    resolver, server.fails = SystemResolver(), True
    for n in range(5):
        with pytest.raises(ResolutionFailed):
            resolver.resolve(f"{n}.example", 443, 5, environment_id=ENV)
    assert [name for name, _ in resolver._failures] == ["2.example", "3.example", "4.example"]


def test_nobody_waits_for_a_name_that_is_known_to_hang(
    server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HANGING_AFTER_S", 0.05)
    resolver = SystemResolver()
    with pytest.raises(ResolutionFailed, match="timed out"):
        resolver.resolve("hang.example", 443, 0.1, environment_id=ENV)
    resolver._failures.clear()
    with pytest.raises(ResolutionFailed, match="hangs"):
        resolver.resolve("hang.example", 443, 60, environment_id=ENV)


@pytest.mark.parametrize("host", ["198.51.100.7", "2001:4860::1"])
def test_an_address_is_not_looked_up(server: NameServer, host: str) -> None:
    destination = Destination("https", host, 443, "/")
    found = resolve_destination(SystemResolver(), destination, 5, environment_id=ENV)
    assert (list(found), server.asked) == ([host], [])


def test_few_requests_wait_for_names_and_the_others_not_at_all(server: NameServer) -> None:
    bounded = BoundedResolver(SystemResolver(), 2, RemoteCalls(4))
    with ThreadPoolExecutor(8) as pool:
        waiting = [
            pool.submit(bounded.resolve, f"hang{n}.example", 443, 30, environment_id=ENV)
            for n in range(2)
        ]
        while len(server.asked) < 2:
            threading.Event().wait(0.001)
        with pytest.raises(ResolverOverloaded, match="too many requests"):
            bounded.resolve("ok.example", 443, 30, environment_id=ENV)
        server.released.set()
    assert all(future.result() for future in waiting)
    assert bounded.resolve("ok.example", 443, 5, environment_id=ENV) == ["198.51.100.7"]
