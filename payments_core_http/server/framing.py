"""Where a request begins and ends: stricter than waitress, and in time linear in its bytes.

Waitress parses heads with regular expressions of which two backtrack: 16 KB of the wrong bytes keep
its only loop busy for twenty seconds. So a head is parsed here first, with expressions that never
backtrack, and waitress gets it normalized. A request that two servers in a row could understand in
two ways is refused: that is how request smuggling works.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from waitress.buffers import OverflowableBuffer
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.utilities import BadRequest

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_REQUEST_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Z]+) ([!-~\x80-\xff]+) HTTP/1\.([01])")
_FIELD = re.compile(rb"(" + _TOKEN + rb"):([\t -~\x80-\xff]*)")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})[\t ]*(?:;[\t -~\x80-\xff]*)?")
_FIRST_BYTES = frozenset(b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")

MAX_CHUNK_LINE_BYTES = 1_024
"""The size of a chunk with its extensions, or a field after the last chunk."""
MAX_CHUNKS = 4_096
"""In one body. A chunk's cost does not depend on its size, which may be one byte."""


class IncomingRequest(HTTPRequestParser):  # type: ignore[misc]
    """One request as it arrives. Bytes after it are passed to `keep`, and not read here."""

    completed: bool
    error: Any
    path = ""
    """Waitress logs it when a client disconnects, also if no head was read."""

    def __init__(self, settings: Any, keep: Callable[[bytes], None]) -> None:
        super().__init__(settings)
        self._keep = keep

    def received(self, data: bytes) -> int:
        """How many of the bytes were consumed; all of them if they end the request."""
        size = len(data)
        in_head = self.body_rcv is None
        if in_head and not self.header_plus:
            data = data.lstrip(b"\r\n")  # RFC 9112 §2.2
            if not data:
                return size
            if data[0] not in _FIRST_BYTES:  # usually TLS: its hello never ends in a blank line
                self.error = BadRequest("This is not HTTP")
                self.completed = True
                return size
        taken: int = super().received(data)
        if not self.completed:
            return size - len(data) + taken
        # An answer follows at once, so no "100 Continue" is needed; waitress would send one, and
        # wait for a body that does not come.
        self.expect_continue = False
        self._keep(b"" if self.error else data[taken:])
        return size

    def parse_header(self, header_plus: bytes) -> None:
        """Read the head. Raises ParsingError."""
        request_line, *lines = header_plus.split(b"\r\n")
        start = _REQUEST_LINE.fullmatch(request_line)
        if start is None:
            raise ParsingError("The request line is not valid")
        fields = []
        for line in filter(None, lines):
            field = _FIELD.fullmatch(line)
            if field is None:
                raise ParsingError("A header line is not valid")
            fields.append((field[1], field[2].strip(b" \t")))
        _require_unambiguous(start[3], fields)
        written = [request_line, *(name + b":" + value for name, value in fields), b"", b""]
        try:
            super().parse_header(b"\r\n".join(written))
        except ValueError as error:  # an authority that is not valid, such as http://[
            raise ParsingError("The request target is not valid") from error
        if self.chunked:
            self.body_rcv = ChunkedReceiver(OverflowableBuffer(self.adj.inbuf_overflow))


def _require_unambiguous(minor: bytes, fields: list[tuple[bytes, bytes]]) -> None:
    """Refuse a head that makes the body's end ambiguous (RFC 9112 §6)."""
    said: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        said.setdefault(name.lower(), []).append(value)
    lengths, codings = said.get(b"content-length", []), said.get(b"transfer-encoding", [])
    if len(lengths) > 1 or (lengths and not _LENGTH.fullmatch(lengths[0])):
        raise ParsingError("Content-Length must be one number")
    if len(said.get(b"host", [])) > 1:
        raise ParsingError("The Host header is given twice")
    if codings:
        if lengths or minor == b"0":
            raise ParsingError(
                "Transfer-Encoding is not allowed with Content-Length, or in HTTP/1.0"
            )
        named = [name.strip(b" \t").lower() for name in b",".join(codings).split(b",")]
        if named != [b"chunked"] and set(named) <= {b"", b"chunked"}:
            raise ParsingError("Transfer-Encoding must name one coding")


class ChunkedReceiver:
    """The chunks of a body, without backtracking; extensions and trailers are dropped.

    It has what waitress requires of a receiver: `received`, `completed`, `error`, and the buffer.
    """

    def __init__(self, buffer: Any) -> None:
        self.completed = False
        self.error: BadRequest | None = None
        self._buffer = buffer
        self._line = b""
        """The beginning of a line whose end has not arrived."""
        self._left = 0
        """Bytes that the current chunk lacks."""
        self._count = 0
        self._take: Callable[[bytes], None] = self._read_size

    def received(self, data: bytes) -> int:
        """How many of the bytes belong to the body."""
        before = len(self._line)
        data = self._line + data
        self._line = b""
        at = 0
        pieces = []
        while at < len(data) and not self.completed and self.error is None:
            if self._left:
                piece = data[at : at + self._left]
                pieces.append(piece)
                self._left -= len(piece)
                at += len(piece)
                continue
            end = data.find(b"\r\n", at, at + MAX_CHUNK_LINE_BYTES + 2)
            if end >= 0:
                self._take(data[at:end])
                at = end + 2
            elif len(data) - at > MAX_CHUNK_LINE_BYTES + 1:
                self.error = BadRequest("A line between chunks is too long")
            else:
                self._line = data[at:]
                at = len(data)
        self._buffer.append(b"".join(pieces))
        return at - before

    def _read_size(self, line: bytes) -> None:
        found = _CHUNK.fullmatch(line)
        if found is None:
            self.error = BadRequest("A chunk size is not valid")
            return
        self._count += 1
        if self._count > MAX_CHUNKS:
            self.error = BadRequest("There are too many chunks")
        self._left = int(found[1], 16)
        self._take = self._read_chunk_end if self._left else self._read_trailer

    def _read_chunk_end(self, line: bytes) -> None:
        if line:
            self.error = BadRequest("A chunk is longer than its size")
        self._take = self._read_size

    def _read_trailer(self, line: bytes) -> None:
        if not line:
            self.completed = True
        elif not _FIELD.fullmatch(line):
            self.error = BadRequest("A trailer line is not valid")

    def __len__(self) -> int:
        return len(self._buffer)

    def getfile(self) -> Any:
        """The body as a file."""
        return self._buffer.getfile()

    def getbuf(self) -> Any:
        """The body's buffer."""
        return self._buffer
