"""The system's resolver within a time limit."""

from __future__ import annotations

import socket
import threading

import pytest

from payments_core.webhooks.destinations import DestinationForbidden, ResolutionFailed, vet
from payments_core.webhooks.transports import resolver as module
from payments_core.webhooks.transports.resolver import SystemResolver


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1"])
def test_every_spelling_of_a_loopback_address_is_found_out(host: str) -> None:
    addresses = SystemResolver().resolve(host, 443, 5)
    with pytest.raises(DestinationForbidden):
        vet(addresses)


def test_a_name_that_does_not_exist_is_a_failure() -> None:
    with pytest.raises(ResolutionFailed):
        SystemResolver().resolve("no-such-name.invalid", 443, 10)
    with pytest.raises(ResolutionFailed):
        SystemResolver().resolve("a" * 300, 443, 10)


def test_a_name_service_that_hangs_meets_the_limit_and_uses_up_its_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released = threading.Event()
    monkeypatch.setattr(module, "AT_ONCE", 2)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: released.wait(10) and [])
    resolver = SystemResolver()
    for _ in range(2):
        with pytest.raises(ResolutionFailed, match="in time"):
            resolver.resolve("slow.example", 443, 0.01)
    with pytest.raises(ResolutionFailed, match="too many"):
        resolver.resolve("slow.example", 443, 5)
    released.set()
