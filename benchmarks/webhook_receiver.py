"""A receiver for the benchmarks: TLS, kept-alive connections, in a process of its own."""

from __future__ import annotations

import json
import multiprocessing
import socket
import threading
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import attrs

from payments_core.conformance.transport.certificates import certificates, server_context

ANSWER = (
    b"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 22:00:00 GMT\r\nServer: bench\r\n"
    b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
)


@attrs.frozen
class Receiver:
    """The process; `port` is where it listens. Paths that begin with /hangs hang."""

    process: BaseProcess
    port: int
    pipe: Connection

    def received(self) -> dict[str, float]:
        """When each event came first, by its id, in this machine's monotonic seconds."""
        self.pipe.send(None)
        found: dict[str, float] = json.loads(self.pipe.recv())
        return found

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()


def start(hang_s: float = 15.0) -> Receiver:
    """Start the process."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=receive, args=(there, certificates().good, hang_s), daemon=True
    )
    process.start()
    return Receiver(process, here.recv(), here)


def receive(parent: Connection, certificate: Path, hang_s: float) -> None:
    """Answer every request of every connection, in a thread for each."""
    context = server_context(certificate)
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    parent.send(listener.getsockname()[1])
    came: dict[str, float] = {}

    def serve(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with context.wrap_socket(connection, server_side=True) as tls:
                waiting = b""
                while data := tls.recv(65536):
                    waiting += data
                    head, found, body = waiting.partition(b"\r\n\r\n")
                    if not found:
                        continue
                    fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
                    length = int(fields[b"content-length"])
                    if len(body) < length:
                        continue
                    waiting = body[length:]
                    if head.startswith(b"POST /hangs"):
                        time.sleep(hang_s)
                    id = json.loads(body[:length])["id"]
                    came.setdefault(id, time.monotonic())
                    tls.sendall(ANSWER)
        except OSError:
            pass

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    while True:
        parent.recv()
        parent.send(json.dumps(dict(came)))
