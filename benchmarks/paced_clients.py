"""Clients that ask at a pace, whatever the server makes of it, and how long answers take.

    python -m benchmarks.paced_clients '{"port": 8080, "connections": 32, "rate": 200, ...}'

A request that no connection is free for waits for one, and its wait counts: who comes at a pace
does not come later because the server is slow. Printed are the waits' median, p99 and most, in ms.
"""

from __future__ import annotations

import json
import select
import sys
import time
from collections import deque
from typing import Any

from benchmarks.serving_clients import Connection, Keys


def main(asked: dict[str, Any]) -> None:
    keys = Keys()
    request, status = asked["request"].encode(), asked["status"].encode()
    clients = [
        Connection(asked["port"], request, status, keys) for _ in range(asked["connections"])
    ]
    for client in clients:
        client.ask()
        while not client.receive():
            pass
    waits = sorted(_pace(clients, asked["rate"], asked["seconds"]))
    reported = {
        "p50_ms": waits[len(waits) // 2] * 1000,
        "p99_ms": waits[len(waits) * 99 // 100] * 1000,
        "most_ms": waits[-1] * 1000,
        "answers": len(waits),
    }
    print(json.dumps(reported))


def _pace(clients: list[Connection], rate: float, seconds: float) -> list[float]:
    """Ask so often for so long; each answer's seconds since its request was due."""
    ready = select.epoll()
    by_number = {client.socket.fileno(): client for client in clients}
    for number in by_number:
        ready.register(number, select.EPOLLIN)
    free, due, since = deque(clients), deque[float](), dict[Connection, float]()
    waits: list[float] = []
    began = time.perf_counter()
    count, total = 0, int(rate * seconds)
    while len(waits) < total:
        now = time.perf_counter()
        while count < total and began + count / rate <= now:
            due.append(began + count / rate)
            count += 1
        while due and free:
            client = free.popleft()
            since[client] = due.popleft()
            client.ask()
        next_s = began + count / rate - time.perf_counter() if count < total else 1.0
        for number, _ in ready.poll(max(0.0, next_s)):
            client = by_number[number]
            if client.receive():
                waits.append(time.perf_counter() - since[client])
                free.append(client)
    return waits


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
