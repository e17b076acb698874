"""Stands between a client and PostgreSQL's socket, cuts at a COMMIT, or says nothing any more."""

from __future__ import annotations

import select
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

Cut = Literal["before", "after"]
"""Before COMMIT reaches the server, or after it took place and before its answer comes back."""

PORT = 5432


class Proxy:
    """A socket of its own before a server's; `url` leads through it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        reported = parse_qs(parts.query)
        (folder,), port = reported.pop("host"), reported.pop("port", [str(PORT)])[0]
        self._target = f"{folder}/.s.PGSQL.{port}"
        self._folder = Path(tempfile.mkdtemp(prefix="px"))
        rest = "&".join(
            part for part in parts.query.split("&") if not part.startswith(("host=", "port="))
        )
        self.url = f"postgresql://{parts.netloc}{parts.path}?host={self._folder}&{rest}"
        self.connections = 0
        self._cut: Cut | None = None
        self._hangs_at_commit = False
        self._flows = threading.Event()
        self._flows.set()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(f"{self._folder}/.s.PGSQL.{PORT}")
        self._listening.listen()
        threading.Thread(target=self._listen, daemon=True).start()

    def cut_next_commit(self, when: Cut) -> None:
        """Break the connection that commits next."""
        self._cut = when

    def hang(self) -> None:
        """Carry nothing, and end nothing, until `go_on`: as a server does that is stopped."""
        self._flows.clear()

    def hang_at_next_commit(self) -> None:
        """The same from the next COMMIT on, before it reaches the server."""
        self._hangs_at_commit = True

    def go_on(self) -> None:
        """Carry what has come meanwhile, and all that comes."""
        self._flows.set()

    def close(self) -> None:
        self.go_on()
        self._listening.close()
        shutil.rmtree(self._folder)

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            self.connections += 1
            threading.Thread(target=self._carry, args=(client, server), daemon=True).start()

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        asked, answered = _Messages(headless=1), _Messages()
        statements: dict[bytes, bytes] = {}
        doomed = False
        with client, server, suppress(OSError):
            while True:
                ready, _, _ = select.select([client, server], [], [])
                source = server if server in ready else client
                chunk = source.recv(65_536)
                if source is server:
                    self._flows.wait()
                if not chunk:
                    return
                if source is client:
                    commits = [_commits(*message, statements) for message in asked.of(chunk)]
                    if self._hangs_at_commit and any(commits):
                        self._hangs_at_commit = False
                        self.hang()
                    self._flows.wait()
                    if self._cut and any(commits):
                        if self._cut == "before":
                            self._cut = None
                            return
                        doomed = True
                    server.sendall(chunk)
                else:
                    if doomed and any(_is_done(*message) for message in answered.of(chunk)):
                        self._cut = None
                        return
                    if not doomed:
                        client.sendall(chunk)


class _Messages:
    """Takes a stream of the protocol apart; the first of a client has no kind."""

    def __init__(self, headless: int = 0) -> None:
        self._headless = headless
        self._rest = b""

    def of(self, chunk: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._rest += chunk
        while True:
            start = 0 if self._headless else 1
            if len(self._rest) < start + 4:
                return
            (length,) = struct.unpack_from("!I", self._rest, start)
            if len(self._rest) < start + length:
                return
            kind, body = self._rest[:start], self._rest[start + 4 : start + length]
            self._rest = self._rest[start + length :]
            self._headless = 0
            yield kind, body


def _commits(kind: bytes, body: bytes, statements: dict[bytes, bytes]) -> bool:
    """Whether a message runs COMMIT: Bind names a statement that Parse named before."""
    if kind == b"P":
        name, text, _ = body.split(b"\0", 2)
        statements[name] = text
    if kind == b"B":
        return statements[body.split(b"\0", 2)[1]] == b"COMMIT"
    return False


def _is_done(kind: bytes, body: bytes) -> bool:
    return kind == b"C" and body.startswith(b"COMMIT")
