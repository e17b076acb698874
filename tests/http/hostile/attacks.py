"""What hostile clients do: an attack runs until it is stopped."""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Mapping

from tests.http.hostile.target import Target

Attack = Callable[[Target, threading.Event], None]

SLOW_CLIENTS = 200
BYTE_EVERY_S = 0.25
CONNECTIONS = 60
RESET = struct.pack("ii", 1, 0)


def slow_heads(target: Target, stop: threading.Event) -> None:
    """Slowloris: a byte of a head four times a second, and the head never ends."""
    drip(target, stop, b"GET /readyz HTTP/1.1\r\nHost: h\r\nA: ", b"a")


def slow_bodies(target: Target, stop: threading.Event) -> None:
    """A byte of a body four times a second."""
    drip(target, stop, target.request("POST", "/v2/things", None, "Content-Length: 60000"), b" ")


def slow_chunks(target: Target, stop: threading.Event) -> None:
    """A chunk of a byte four times a second."""
    head = target.request("POST", "/v2/things", None, "Transfer-Encoding: chunked")
    drip(target, stop, head, b"1\r\n \r\n")


def blank_lines(target: Target, stop: threading.Event) -> None:
    """Blank lines before a request that never comes, as fast as they go."""
    push(target, stop, b"", b"\r\n" * 32_768)


def pipelines(target: Target, stop: threading.Event) -> None:
    """The shortest requests there are, as many as go into a connection, and no answer is read."""
    push(target, stop, b"", b"GET / HTTP/1.1\r\nHost:\r\n\r\n" * 2_621)


def short_chunks(target: Target, stop: threading.Event) -> None:
    """Bodies in chunks of a byte."""
    head = target.request("POST", "/v2/things", None, "Transfer-Encoding: chunked")
    push(target, stop, head, b"1\r\n \r\n" * 10_000)


def slow_patterns(target: Target, stop: threading.Event) -> None:
    """Heads that take a careless reader seconds each."""
    push(target, stop, b"", b"GET a://" + b"1" * 16_000 + b" \r\n\r\n")


def readers_of_nothing(target: Target, stop: threading.Event) -> None:
    """Ask again and again for the largest answer there is, and read none of it."""
    push(target, stop, b"", target.request("GET", "/openapi.json") * 20, receive_bytes=2_048)


def slow_readers(target: Target, stop: threading.Event) -> None:
    """The same, but a byte is read four times a second, so that the connection is never idle."""
    with contextlib.ExitStack() as open_:
        clients = [open_.enter_context(target.connect(2_048)) for _ in range(CONNECTIONS)]
        for client in clients:
            client.setblocking(False)
            with contextlib.suppress(OSError):
                client.send(target.request("GET", "/openapi.json") * 50)
        while not stop.wait(BYTE_EVERY_S):
            for client in clients:
                with contextlib.suppress(OSError):
                    client.recv(1)


def resets(target: Target, stop: threading.Event) -> None:
    """Requests, and resets before, in the midst of, and after them."""
    chance = random.Random(7)
    raw = target.request("GET", "/v2/partners/config") * 3
    while not stop.is_set():
        with target.connect() as client:
            client.settimeout(0.05)
            client.sendall(raw[: chance.randrange(len(raw) + 1)])
            if chance.random() < 0.3:
                with contextlib.suppress(OSError):
                    client.recv(chance.choice((1, 100, 5_000)))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def garbage(target: Target, stop: threading.Event) -> None:
    """Bytes of chance."""
    chance = random.Random(11)
    while not stop.is_set():
        with target.connect() as client, contextlib.suppress(OSError):
            client.settimeout(0.2)
            client.sendall(chance.randbytes(chance.choice((1, 20, 3_000, 70_000))))
            client.recv(1_000)


def crowds(target: Target, stop: threading.Event) -> None:
    """More connections than there may be; they send nothing, and there are always new ones."""
    clients: list[socket.socket] = []
    try:
        while not stop.is_set():
            clients += [target.connect() for _ in range(50)]
            for old in clients[:-2_000]:
                old.close()
            clients = clients[-2_000:]
    finally:
        for client in clients:
            client.close()


ATTACKS: Mapping[str, Attack] = {
    attack.__name__: attack
    for attack in (
        slow_heads, slow_bodies, slow_chunks, blank_lines, pipelines, short_chunks, slow_patterns,
        readers_of_nothing, slow_readers, resets, garbage, crowds,
    )
}  # fmt: skip


def drip(target: Target, stop: threading.Event, begin: bytes, then: bytes) -> None:
    """Many connections that send a little four times a second; who is cut off comes again."""
    clients: list[socket.socket] = []
    try:
        while not stop.wait(BYTE_EVERY_S if clients else 0):
            for client in list(clients):
                try:
                    client.send(then)
                except OSError:
                    client.close()
                    clients.remove(client)
            while len(clients) < SLOW_CLIENTS:
                clients.append(target.connect())
                clients[-1].setblocking(False)
                clients[-1].send(begin)
    finally:
        for client in clients:
            client.close()


def push(
    target: Target,
    stop: threading.Event,
    begin: bytes,
    then: bytes,
    receive_bytes: int | None = None,
) -> None:
    """Connections that send all that the server takes; who is cut off comes again."""
    with selectors.DefaultSelector() as ready:
        left: dict[socket.socket, bytes] = {}

        def come() -> None:
            client = target.connect(receive_bytes)
            client.setblocking(False)
            ready.register(client, selectors.EVENT_WRITE)
            left[client] = begin + then

        for _ in range(CONNECTIONS):
            come()
        while not stop.is_set():
            for key, _ in ready.select(0.1):
                client = key.fileobj
                assert isinstance(client, socket.socket)
                try:
                    sent = client.send(left[client])
                except BlockingIOError:
                    continue
                except OSError:
                    ready.unregister(client)
                    left.pop(client)
                    client.close()
                    come()
                else:
                    left[client] = left[client][sent:] or then
        for client in left:
            client.close()
