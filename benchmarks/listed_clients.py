"""Clients that send each request of a list once, as soon as one of their connections is free.

    python -m benchmarks.listed_clients '{"port": 8080, "connections": 16, "requests": FILE, ...}'

FILE has the requests as JSON. Printed are how many answers came in how many seconds; the first one
of each connection is not counted.
"""

from __future__ import annotations

import json
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.serving_clients import Connection, Keys


def send_all(clients: list[Connection], requests: Iterator[str]) -> int:
    """The number of requests, when all are answered."""
    ready = select.epoll()
    by_number = {client.socket.fileno(): client for client in clients}
    busy = count = 0
    for number, client in by_number.items():
        ready.register(number, select.EPOLLIN)
        busy += _send_next(client, requests)
    while busy:
        for number, _ in ready.poll(1.0):
            if by_number[number].receive():
                count += 1
                busy += _send_next(by_number[number], requests) - 1
    return count


def _send_next(client: Connection, requests: Iterator[str]) -> bool:
    """Whether there was another one."""
    request = next(requests, None)
    if request is None:
        return False
    client.send(request.encode())
    return True


def main(asked: dict[str, Any]) -> None:
    requests = json.loads(Path(asked["requests"]).read_text(encoding="utf-8"))
    clients = [
        Connection(asked["port"], b"", asked["status"].encode(), Keys())
        for _ in range(asked["connections"])
    ]
    counted = iter(requests)
    if len(requests) > len(clients):
        for client in clients:  # statements, caches
            client.send(next(counted).encode())
            while not client.receive():
                pass
    began = time.perf_counter()
    count = send_all(clients, counted)
    print(json.dumps({"answers": count, "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
