"""Where a request begins and ends: strict, and in time linear in its bytes.

A request that two servers in a row could understand in two ways is refused: that is how request
smuggling works. No expression here backtracks: a head of 16 KB with the wrong bytes would keep the
only loop busy for seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote_to_bytes, urlsplit

import attrs

from payments_core_http.server.hosting import MAX_HEADER_BYTES

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_REQUEST_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Z]+) ([!-~]+) HTTP/(1\.[01])")
_FIELD = re.compile(rb"(" + _TOKEN + rb"):([\t -~\x80-\xff]*)")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[\t ]*;[\t -~\x80-\xff]*)?")
_FIRST_BYTES = frozenset(b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_HEAD_END = b"\r\n\r\n"

MAX_CHUNK_LINE_BYTES = 1_024
"""The size of a chunk with its extensions, or a field after the last chunk."""
MAX_CHUNKS = 4_096
"""In one body. A chunk's cost does not depend on its size, which may be one byte."""


@attrs.frozen
class Fault(Exception):
    """Why a request is refused, and the status of the refusal."""

    code: int
    why: str


class IncomingRequest:
    """One request as it arrives, with a body of less than `max_body_bytes`."""

    def __init__(self, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        self._head = b""
        self._has_head = False
        self._receiver: SizedReceiver | ChunkedReceiver | None = None
        self._received_bytes = 0
        """Of the body, with the sizes of chunks."""
        self.body = bytearray()
        self.completed = False
        self.awaits_continue = False
        """Whether the client sends the body only after "100 Continue"."""
        self.error: Fault | None = None
        """Why it is refused; None if it is valid."""
        self.headers: dict[str, str] = {}
        """The names are in capitals, with underscores."""
        self.version = "1.0"
        self.command = self.path = self.query = self.request_uri = ""

    def receive(self, data: bytes) -> bytes:
        """Take the bytes of this request; returns those after it."""
        try:
            if not self._has_head:
                data = self._receive_head(data)
            if self._receiver is not None:
                data = self._receive_body(self._receiver, data)
        except Fault as fault:
            self.error, self.completed, data = fault, True, b""
            if not self._has_head:
                self.headers = {}  # as what they say may be wrong: the connection is not kept
        return data

    def _receive_head(self, data: bytes) -> bytes:
        """Add to the head; returns the bytes after it. Raises Fault."""
        if not self._head:
            data = data.lstrip(b"\r\n")  # RFC 9112 §2.2
            if not data:
                return b""
            if data[0] not in _FIRST_BYTES:  # usually TLS: its hello never ends in a blank line
                raise Fault(400, "This is not HTTP")
        looked = max(0, len(self._head) - len(_HEAD_END) + 1)
        head = self._head = self._head + data
        end = head.find(_HEAD_END, looked)
        size = len(head) if end < 0 else end + len(_HEAD_END)
        if size >= MAX_HEADER_BYTES:
            raise Fault(431, "The head is too large")
        if end >= 0:
            self._head = b""
            self._read_head(head[:end])
            self._has_head = True
        return head[size:]

    def _read_head(self, head: bytes) -> None:
        """Read a whole head. Raises Fault."""
        request_line, *lines = head.split(b"\r\n")
        start = _REQUEST_LINE.fullmatch(request_line)
        if start is None:
            raise Fault(400, "The request line is not valid")
        fields = []
        for line in lines:
            field = _FIELD.fullmatch(line)
            if field is None:
                raise Fault(400, "A header line is not valid")
            fields.append((field[1].upper(), field[2].strip(b" \t")))
        method, target, version = (part.decode("ascii") for part in start.groups())
        self.command, self.version = method, version
        for key, field_value in fields:
            if b"_" not in key:  # which would be another header's name in WSGI
                name, value = key.decode("ascii").replace("-", "_"), field_value.decode("latin-1")
                before = self.headers.get(name)
                self.headers[name] = value if before is None else f"{before}, {value}"
        self._read_target(target)
        self._choose_receiver(fields)
        expects = self.headers.get("EXPECT", "").lower()
        self.awaits_continue = version == "1.1" and expects == "100-continue"

    def _read_target(self, target: str) -> None:
        self.request_uri = target
        if target.startswith("/"):
            path, _, self.query = target.partition("#")[0].partition("?")
        else:
            try:
                parts = urlsplit(target)
            except ValueError as error:  # an authority that is not valid, such as http://[
                raise Fault(400, "The request target is not valid") from error
            path, self.query = parts.path, parts.query
        self.path = unquote_to_bytes(path).decode("latin-1")

    def _choose_receiver(self, fields: list[tuple[bytes, bytes]]) -> None:
        """Find out where the body ends (RFC 9112 §6). Raises Fault if it is ambiguous."""
        lengths = [value for name, value in fields if name == b"CONTENT-LENGTH"]
        codings = [value for name, value in fields if name == b"TRANSFER-ENCODING"]
        if len(lengths) > 1 or (lengths and not _LENGTH.fullmatch(lengths[0])):
            raise Fault(400, "Content-Length must be one number")
        hosts = sum(name == b"HOST" for name, _ in fields)
        if hosts > 1 or (self.version == "1.1" and not hosts):  # RFC 9112 §3.2
            raise Fault(400, "The Host header must be given once")
        if codings:
            if lengths or self.version == "1.0":
                raise Fault(
                    400, "Transfer-Encoding is not allowed with Content-Length, or in HTTP/1.0"
                )
            named = [name.strip(b" \t").lower() for name in b",".join(codings).split(b",")]
            if set(named) - {b"", b"chunked"}:
                raise Fault(501, "The transfer coding is not known")
            if named != [b"chunked"]:
                raise Fault(400, "Transfer-Encoding must name one coding")
            del self.headers["TRANSFER_ENCODING"]  # the application reads a body of known length
            self._receiver = ChunkedReceiver(self.body)
            return
        length = int(lengths[0]) if lengths else 0
        if length >= self._max_body_bytes:
            raise Fault(413, "The body is too large")
        if length:
            self._receiver = SizedReceiver(length, self.body)
        else:
            self.completed = True

    def _receive_body(self, receiver: SizedReceiver | ChunkedReceiver, data: bytes) -> bytes:
        """Add to the body; returns the bytes after it. Raises Fault."""
        taken = receiver.received(data)
        self._received_bytes += taken
        if self._received_bytes >= self._max_body_bytes:
            raise Fault(413, "The body is too large")
        if receiver.completed:
            self.completed = True
            if isinstance(receiver, ChunkedReceiver):
                self.headers["CONTENT_LENGTH"] = str(len(self.body))
        return data[taken:]


class SizedReceiver:
    """A body of so many bytes."""

    def __init__(self, length: int, body: bytearray) -> None:
        self._left = length
        self._body = body
        self.completed = False

    def received(self, data: bytes) -> int:
        """Take the body's bytes; returns how many of these belong to it."""
        piece = data[: self._left]
        self._body += piece
        self._left -= len(piece)
        self.completed = not self._left
        return len(piece)


class ChunkedReceiver:
    """The chunks of a body, without backtracking; extensions and trailers are dropped."""

    def __init__(self, body: bytearray) -> None:
        self.completed = False
        self._body = body
        self._line = b""
        """The beginning of a line whose end has not arrived."""
        self._left = 0
        """Bytes that the current chunk lacks."""
        self._count = 0
        self._take: Callable[[bytes], None] = self._read_size

    def received(self, data: bytes) -> int:
        """Take the body's bytes; returns how many of these belong to it. Raises Fault."""
        before = len(self._line)
        data = self._line + data
        self._line = b""
        at = 0
        while at < len(data) and not self.completed:
            if self._left:
                piece = data[at : at + self._left]
                self._body += piece
                self._left -= len(piece)
                at += len(piece)
                continue
            end = data.find(b"\r\n", at, at + MAX_CHUNK_LINE_BYTES + 2)
            if end >= 0:
                self._take(data[at:end])
                at = end + 2
            elif len(data) - at > MAX_CHUNK_LINE_BYTES + 1:
                raise Fault(400, "A line between chunks is too long")
            else:
                self._line = data[at:]
                at = len(data)
        return at - before

    def _read_size(self, line: bytes) -> None:
        found = _CHUNK.fullmatch(line)
        if found is None:
            raise Fault(400, "A chunk size is not valid")
        self._count += 1
        if self._count > MAX_CHUNKS:
            raise Fault(400, "There are too many chunks")
        self._left = int(found[1], 16)
        self._take = self._read_chunk_end if self._left else self._read_trailer

    def _read_chunk_end(self, line: bytes) -> None:
        if line:
            raise Fault(400, "A chunk is longer than its size")
        self._take = self._read_size

    def _read_trailer(self, line: bytes) -> None:
        if not line:
            self.completed = True
        elif not _FIELD.fullmatch(line):
            raise Fault(400, "A trailer line is not valid")
