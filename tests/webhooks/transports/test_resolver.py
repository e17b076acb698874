"""The system's resolver within a time limit."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from payments_core.webhooks.destinations import (
    DestinationForbidden,
    ResolutionFailed,
    ResolverOverloaded,
    require_public_addresses,
)
from payments_core.webhooks.transports import resolver as module
from payments_core.webhooks.transports.resolver import SystemResolver


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1"])
def test_every_spelling_of_a_loopback_address_is_found_out(host: str) -> None:
    addresses = SystemResolver().resolve(host, 443, 5)
    with pytest.raises(DestinationForbidden):
        require_public_addresses(addresses)


def test_a_name_that_does_not_exist_is_a_failure() -> None:
    with pytest.raises(ResolutionFailed):
        SystemResolver().resolve("no-such-name.invalid", 443, 10)
    with pytest.raises(ResolutionFailed):
        SystemResolver().resolve("a" * 300, 443, 10)


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
            resolver.resolve(name, 443, 0.01)
    assert asked == ["a.example", "b.example"], "a name that hangs is looked up once"
    with pytest.raises(ResolverOverloaded, match="too many"):
        resolver.resolve("c.example", 443, 5)
    released.set()
    for _ in range(1000):
        if not resolver._running:
            break
        threading.Event().wait(0.01)
    assert resolver.resolve("c.example", 443, 5) == []


def test_many_who_ask_for_a_name_at_once_have_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    answers = iter(["192.0.2.1", "192.0.2.2"])

    def answer(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        released.wait(10)
        return [(0, 0, 0, "", (next(answers), port))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    resolver = SystemResolver()
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(resolver.resolve, "a.example", 443, 10) for _ in range(8)]
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
            with pytest.raises(ResolverOverloaded, match="too many name resolutions"):
                resolver.resolve("a.example", 443, 5)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: [])
    assert resolver.resolve("a.example", 443, 5) == []
