"""The server's timeouts, how many clients it serves, and which connections are closed first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

import attrs


@attrs.frozen(kw_only=True)
class ServerLimits:
    """How long, and for how many clients, the server waits. In seconds, except for the counts."""

    connections: int = 1_000
    idle_s: float = 60
    """Without a request: after the connection was made, or after an answer."""
    request_s: float = 30
    """From a request's first byte to its last."""
    answer_s: float = 60
    """From the making of an answer until the client has read it."""
    linger_s: float = 2
    """After the last answer, for the client to read it and close."""
    unsent_bytes: int = 64 * 1024 * 1024
    """The bytes of answers that clients have not read yet, of all clients together."""
    shutdown_grace_s: float = 0.5
    """When the server stops, for a request in transit on an open connection."""

    def choose_wait_s(self, *, is_ending: bool, unsent: int) -> float:
        """How long a connection may wait outside of a request, with so many `unsent` bytes."""
        if is_ending:
            return self.linger_s
        return self.answer_s if unsent else self.idle_s


class Client(Protocol):
    """What is known of a connection's client."""

    addr: Any
    """Its address begins with the host."""
    waits_since: float
    is_answering: bool
    unsent_bytes: int
    """How many bytes of answers it has not read."""

    @property
    def is_clients_turn(self) -> bool:
        """Whether the server waits for it."""


C = TypeVar("C", bound=Client)


def pick_longest_waiting(connections: Sequence[C]) -> list[C]:
    """Connections that wait for clients: first the longest wait of the address with the most."""
    crowd = Counter(one.addr[0] for one in connections)
    waiting = [one for one in connections if one.is_clients_turn]
    return sorted(waiting, key=lambda one: (-crowd[one.addr[0]], one.waits_since))


def pick_slowest_readers(connections: Iterable[C]) -> list[C]:
    """Connections whose clients have not read a finished answer: the longest wait first."""
    slow = [one for one in connections if one.unsent_bytes and not one.is_answering]
    return sorted(slow, key=lambda one: one.waits_since)
