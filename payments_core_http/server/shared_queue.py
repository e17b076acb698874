"""One queue of new connections for several processes: the one with the fewest connections accepts.

Otherwise the process that wakes first would accept all that wait. Clients that keep their
connections, as a proxy does, would then be served by that process alone.
"""

from __future__ import annotations

import math
import mmap
import socket

MAX_ACCEPTS = 64
"""How many new connections are accepted at a time."""
YIELD_S = 0.005
"""How long a process leaves new connections to others that have fewer."""
ACCEPTS_AFTER_YIELD = 8
"""How many it then accepts itself: the others may hang, or only be slow to wake."""
SLACK = 4
"""How many more connections than the others a process may have, plus a quarter of theirs. Counts
are a little old when they are read: without slack, two processes would wait for each other."""

_AWAY = 2**32 - 1
"""The count of a process that does not accept."""


class SharedQueue:
    """A listening socket, and how many connections each of the processes has that accept from it.

    It is made before the fork. The counts are in shared memory, and each process writes its own.
    """

    def __init__(self, listening: socket.socket, processes: int) -> None:
        self.listening = listening
        self.processes = processes
        self._counts = memoryview(mmap.mmap(-1, 4 * processes)).cast("I")
        for number in range(1, processes + 1):
            self.leave(number)

    def leave(self, number: int) -> None:
        """Record that a process accepts no more. Processes are numbered from 1."""
        self._counts[number - 1] = _AWAY

    def report(self, number: int, connections: int) -> None:
        """Record how many connections a process has."""
        self._counts[number - 1] = connections

    def fewest_besides(self, number: int) -> int:
        """The fewest connections that another process has; a large number if there is no other."""
        others = self._counts.tolist()
        del others[number - 1]
        return min(others, default=_AWAY)


class QueueMember:
    """One process, at the queue. Times are monotonic, in seconds."""

    def __init__(self, queue: SharedQueue, number: int) -> None:
        self.listening = queue.listening
        self._queue = queue
        self._number = number
        self._yielded_at = -math.inf

    def leave(self) -> None:
        """Record that this process accepts no more."""
        self._queue.leave(self._number)

    def may_accept(self, connections: int, now: float) -> bool:
        """Whether to wait for new connections, with so many; not while others come first."""
        self._queue.report(self._number, connections)
        return self.yield_left_s(now) <= 0 or self._room(connections) > 0

    def yield_left_s(self, now: float) -> float:
        """How long others come first; 0 or less if they do not."""
        return self._yielded_at + YIELD_S - now

    def choose_accepts(self, connections: int, now: float) -> int:
        """How many of those that wait to accept; 0 lets others come first.

        `may_accept` was called before, in the same turn of the loop.
        """
        room = self._room(connections)
        has_yielded = 0 <= now - self._yielded_at - YIELD_S < YIELD_S
        if room <= 0 and not has_yielded:
            self._yielded_at = now
            return 0
        self._yielded_at = -math.inf
        return min(room, MAX_ACCEPTS) if room > 0 else ACCEPTS_AFTER_YIELD

    def _room(self, connections: int) -> int:
        fewest = self._queue.fewest_besides(self._number)
        return fewest + SLACK + fewest // SLACK - connections
