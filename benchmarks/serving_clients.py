"""Clients that keep their connections and ask without a pause, in a lean process of its own.

    python -m benchmarks.serving_clients '{"port": 8080, "connections": 16, "seconds": 1, ...}'

A connection asks again as soon as it is answered. Printed are how many answers came in how many
seconds, and how much processor time this process took for that: near the whole of it, the clients
would be what is measured. `KEY` in the request is another number each time, of the same length.
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import sys
import time
from typing import Any

KEY = b"{key-of-16-byte}"
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.I)
_RECEIVE_BYTES = 65_536


class WrongAnswer(Exception):
    """A server gave another answer than the one that is counted."""


class Connection:
    """One client."""

    def __init__(self, port: int, request: bytes, status: bytes, keys: Keys) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._before, self._key, self._after = request.partition(KEY)
        self._expected = b"HTTP/1.1 " + status
        self._keys = keys
        self._received = b""

    def ask(self) -> None:
        """Send the next request."""
        key = self._keys.next() if self._key else b""
        self.send(self._before + key + self._after)

    def send(self, request: bytes) -> None:
        """Send that request."""
        self.socket.sendall(request)

    def receive(self) -> bool:
        """Take what is here; whether that was the answer's end. Raises WrongAnswer."""
        piece = self.socket.recv(_RECEIVE_BYTES)
        received = self._received = self._received + piece
        head = received.find(b"\r\n\r\n")
        if head >= 0:
            length = _LENGTH.search(received, 0, head)
            if length is None or not received.startswith(self._expected):
                raise WrongAnswer(received[:500])
            if len(received) >= head + 4 + int(length[1]):
                self._received = b""
                return True
        if not piece:
            raise WrongAnswer(b"the connection ended: " + received[:500])
        return False


class Keys:
    """Keys that no other process and no other round takes: another's would be answered again."""

    def __init__(self) -> None:
        self._process = os.getpid() % 10**7
        self._count = time.time_ns() // 1_000_000 % 10**9

    def next(self) -> bytes:
        self._count = (self._count + 1) % 10**9
        return b"%07d%09d" % (self._process, self._count)


def rounds_of_one(client: Connection, end: float) -> int:
    """Answers to one connection until the end."""
    count = 0
    while time.perf_counter() < end:
        client.ask()
        while not client.receive():
            pass
        count += 1
    return count


def rounds_of_many(clients: list[Connection], end: float) -> int:
    """Answers to all of them until the end."""
    ready = select.epoll()
    by_number = {client.socket.fileno(): client for client in clients}
    for number in by_number:
        ready.register(number, select.EPOLLIN)
    for client in clients:
        client.ask()
    count = 0
    while time.perf_counter() < end:
        for number, _ in ready.poll(1.0):
            client = by_number[number]
            if client.receive():
                count += 1
                client.ask()
    return count


def main(asked: dict[str, Any]) -> None:
    request, status = asked["request"].encode(), asked["status"].encode()
    keys = Keys()
    clients = [
        Connection(asked["port"], request, status, keys) for _ in range(asked["connections"])
    ]
    for client in clients:  # the first of each is not counted: connections, statements, caches
        client.ask()
        while not client.receive():
            pass
    began, used = time.perf_counter(), time.process_time()
    end = began + asked["seconds"]
    count = rounds_of_one(clients[0], end) if len(clients) == 1 else rounds_of_many(clients, end)
    seconds, used = time.perf_counter() - began, time.process_time() - used
    print(json.dumps({"answers": count, "seconds": seconds, "processor_s": used}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
