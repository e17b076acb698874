"""How patient the server is, with how many clients at once, and which of them give way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from payments_core_http.server.connection import Connection


@attrs.frozen(kw_only=True)
class ServerLimits:
    """How long, and for how many clients, the server waits. Seconds, but for the counts."""

    connections: int = 1_000
    idle_s: float = 60
    """Without a request: after the connection was made, or after an answer."""
    request_s: float = 30
    """From a request's first byte to its last."""
    answer_s: float = 60
    """From an answer's making until the client has taken it."""
    linger_s: float = 2
    """After the last answer, for the client to read it and close."""
    unsent_bytes: int = 64 * 1024 * 1024
    """What clients have not taken yet of their answers, all of them together."""
    shutdown_grace_s: float = 0.5
    """When the server ends, for a request that is on its way on a connection that is open."""

    def choose_wait_s(self, *, is_ending: bool, unsent: int) -> float:
        """How long a connection may wait outside of a request, with so many `unsent` bytes."""
        if is_ending:
            return self.linger_s
        return self.answer_s if unsent else self.idle_s


def pick_longest_waiting(connections: Sequence[Connection]) -> list[Connection]:
    """Those whose clients are waited for: of the address with most, the longest, first."""
    crowd = Counter(one.addr[0] for one in connections)
    waiting = [one for one in connections if one.is_clients_turn]
    return sorted(waiting, key=lambda one: (-crowd[one.addr[0]], one.waits_since))


def pick_slowest_readers(connections: Iterable[Connection]) -> list[Connection]:
    """Those that have not taken an answer that is made: the longest, first."""
    slow = [one for one in connections if one.total_outbufs_len and not one.requests]
    return sorted(slow, key=lambda one: one.waits_since)
