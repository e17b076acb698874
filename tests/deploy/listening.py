"""A server that does with a request what a test says: for what no real one can be made to do."""

from __future__ import annotations

import select
import socket
from contextlib import suppress
from typing import Self


class Listening:
    """A listener whose connections the test itself takes."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    def is_called(self, within_s: float) -> bool:
        """Whether anybody has connected, or does within that time."""
        return bool(select.select([self._socket], [], [], within_s)[0])

    def request(self) -> tuple[socket.socket, bytes]:
        """The next connection, and its request as far as its Content-Length says."""
        assert self.is_called(20), "nobody has connected"
        peer, _ = self._socket.accept()
        peer.settimeout(20)
        received = b""
        while b"\r\n\r\n" not in received:
            received += peer.recv(65_536)
        head, _, body = received.partition(b"\r\n\r\n")
        length = next(
            (
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            ),
            0,
        )
        while len(body) < length:
            body += peer.recv(65_536)
        return peer, head + b"\r\n\r\n" + body

    def answer(self, peer: socket.socket, body: bytes = b"{}") -> None:
        """200, and the end of the connection."""
        peer.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        peer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._socket.close()
