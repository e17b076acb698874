"""A cable between a client and a server on loopback, which a test can cut and mend."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Cable:
    """Listens at an address of its own and passes on bytes, while it is whole."""

    def __init__(self, port: int) -> None:
        """To the server at that port of this machine."""
        self._to = ("127.0.0.1", port)
        self._at = ("127.0.0.1", 0)
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        self.mend()
        self.url = "http://{}:{}".format(*self._at)

    def mend(self) -> None:
        """Listen, again at the same address."""
        self._listener = socket.create_server(self._at)
        self._at = self._listener.getsockname()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """Drop what is connected, and refuse what comes, as a machine without the server does."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        with self._lock:
            ends, self._ends = self._ends, set()
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(self._to)
            except OSError:
                return
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._ends |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while chunk := source.recv(65_536):
                sink.sendall(chunk)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        source.close()
        with self._lock:
            self._ends.discard(source)
