"""A transport over libcurl, for the extra `curl`.

Each connection keeps its own libcurl handle: it is made for one scheme, name, port
and vetted address, and waits with it for its next request (`http/connection_pool.py`). So
libcurl never has to choose among connections. (By default it takes a connection on which data has
come meanwhile, and takes that for the answer.) Our own function opens its sockets,
only to that address. `perform` releases the interpreter's lock until the answer is there.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from payments_core.extras import naming_extra
from payments_core.http.connection_pool import IDLE_TIMEOUT_S, ConnectionKey, ConnectionPool
from payments_core.http.response import MAX_HEAD_BYTES, MAX_HEAD_LINES, MAX_INTERIM_RESPONSES
from payments_core.requirements import find_version_fault
from payments_core.webhooks.transports.http_request import header_lines
from payments_core.webhooks.transports.port import (
    MAX_RESPONSE_BODY_BYTES,
    Deadline,
    TransportResult,
    WebhookRequest,
)

READ_BYTES = 4 * MAX_RESPONSE_BODY_BYTES


class CurlTransport:
    """Sends requests through libcurl.

    Raises ImportError if pycurl is not installed, or was built with a libcurl that is too old.
    """

    def __init__(self, ca_file: Path | None = None, *, idle_s: float = IDLE_TIMEOUT_S) -> None:
        """`ca_file`: a file of certificates to trust; by default the system's.

        `idle_s`: how long a connection waits for its next request before it is closed.
        """
        with naming_extra("CurlTransport"):
            import pycurl

        number = pycurl.version_info()[2]  # three bytes
        if fault := find_version_fault("libcurl", tuple(number.to_bytes(3, "big"))):
            raise ImportError(fault)
        self._pycurl = pycurl
        self._ca_file = ca_file
        self._idle: ConnectionPool[_Handle] = ConnectionPool(idle_s)

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        lines = header_lines(request)
        destination = request.destination
        keys = [
            ConnectionKey(destination.scheme, destination.host, destination.port, address)
            for address in addresses
        ]
        if deadline.remaining_s() <= 0:
            return TransportResult(failure="timed out while connecting")
        if (waiting := self._idle.take(keys)) is not None:
            # libcurl replaces a connection that turns out to be closed, and sends the request again
            # if nothing had come. Deliveries are made at least once, and carry their id for that.
            outcome, connected = self._post_once(*waiting, request, lines, deadline, shares=1)
            if connected or deadline.remaining_s() <= 0:
                return outcome
        outcome = TransportResult(failure="the host has no address")
        for tried, key in enumerate(keys):
            family = socket.AF_INET6 if ":" in key.address else socket.AF_INET
            try:
                socket.inet_pton(family, key.address)  # a name would be looked up again
            except OSError:
                continue
            handle = _Handle(self._pycurl, self._ca_file, request, key)
            shares = len(keys) - tried
            outcome, connected = self._post_once(key, handle, request, lines, deadline, shares)
            if connected or deadline.remaining_s() <= 0:
                break
        return outcome

    def close(self) -> None:
        """Close the connections that wait; those in use end with their request."""
        self._idle.close()

    def _post_once(
        self,
        key: ConnectionKey,
        handle: _Handle,
        request: WebhookRequest,
        lines: Sequence[str],
        deadline: Deadline,
        shares: int,
    ) -> tuple[TransportResult, bool]:
        """The outcome, and whether the address accepted a connection."""
        open_still = False  # nor after an exception
        try:
            outcome, connected = handle.post(request, lines, deadline, shares)
            open_still = handle.intact and handle.fileno() >= 0
        finally:
            if open_still:
                self._idle.put(key, handle)
            else:
                handle.close()
        return outcome, connected


@attrs.define
class _Response:
    """The response received so far. The callbacks return -1 to end the transfer."""

    lines: int = 0
    head_bytes: int = 0
    heads: int = 0
    status: int | None = None
    retry_after: list[str] = attrs.field(factory=list)
    complete: bool = False
    too_large: bool = False
    body: bytearray = attrs.field(factory=bytearray)

    def take_header(self, line: bytes) -> int | None:
        if self.complete:  # trailers, which nobody reads, and which need not end
            return -1
        self.lines += 1
        self.head_bytes += len(line)
        if line.startswith(b"HTTP/"):
            self.lines, self.status, self.heads = 1, None, self.heads + 1
            self.retry_after.clear()
            words = line.split(None, 2)
            if len(words) > 1 and words[1].isdigit():
                self.status = int(words[1])
        elif line in {b"\r\n", b"\n"}:
            self.complete = self.status is not None and (self.status >= 200 or self.status == 101)
        elif line[:12].lower() == b"retry-after:":
            self.retry_after.append(line[12:].strip().decode("latin-1"))
        self.too_large = (
            self.head_bytes > MAX_HEAD_BYTES
            or self.lines > MAX_HEAD_LINES + 1
            or self.heads > MAX_INTERIM_RESPONSES
        )
        return -1 if self.too_large else None

    def take_body(self, data: bytes) -> int | None:
        self.body += data[: MAX_RESPONSE_BODY_BYTES - len(self.body)]
        return -1 if len(self.body) == MAX_RESPONSE_BODY_BYTES else None

    def to_result(self) -> TransportResult:
        return TransportResult(self.status, bytes(self.body), ", ".join(self.retry_after) or None)


class _Handle:
    """An easy handle with the one connection that it keeps, used by one thread at a time."""

    def __init__(
        self, pycurl: Any, ca_file: Path | None, request: WebhookRequest, key: ConnectionKey
    ) -> None:
        self._pycurl = pycurl
        self._key = key
        self.intact = True
        self._opened: list[socket.socket] = []
        self._curl = curl = pycurl.Curl()
        address = f"[{key.address}]" if ":" in key.address else key.address
        for option, value in (
            (pycurl.URL, f"{key.scheme}://{request.destination.host_header}/"),
            # Without a name and a port it applies to any, and so to every form that libcurl may
            # make of the name: nothing is ever looked up.
            (pycurl.CONNECT_TO, [f"::{address}:{key.port}"]),
            (pycurl.OPENSOCKETFUNCTION, self._open_socket),
            (pycurl.MAXCONNECTS, 1),
            (pycurl.NOSIGNAL, 1),
            (pycurl.POST, 1),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.PROXY, ""),
            (pycurl.NOPROXY, "*"),
            (pycurl.USERAGENT, ""),  # otherwise pycurl adds its own
            (pycurl.SSL_VERIFYPEER, 1),
            (pycurl.SSL_VERIFYHOST, 2),
            (pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2),
            (pycurl.SSL_SESSIONID_CACHE, 0),
            (pycurl.BUFFERSIZE, READ_BYTES),
        ):
            curl.setopt(option, value)
        if key.scheme == "https":
            self._set_ca_certificates(ca_file)

    def post(
        self, request: WebhookRequest, lines: Sequence[str], deadline: Deadline, shares: int
    ) -> tuple[TransportResult, bool]:
        """The outcome, and whether the address accepted a connection."""
        pycurl, curl = self._pycurl, self._curl
        left_ms = int(deadline.remaining_s() * 1000)
        if left_ms <= 0:  # 0 would mean no limit
            return TransportResult(failure="timed out while connecting"), False
        response = _Response()
        curl.setopt(pycurl.REQUEST_TARGET, request.destination.path)
        # Headers that libcurl would add are named without a value, and so left out.
        curl.setopt(pycurl.HTTPHEADER, [*lines, "Accept:", "Expect:"])
        curl.setopt(pycurl.POSTFIELDS, request.body)
        curl.setopt(pycurl.TIMEOUT_MS, left_ms)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, left_ms // shares))
        curl.setopt(pycurl.HEADERFUNCTION, response.take_header)
        curl.setopt(pycurl.WRITEFUNCTION, response.take_body)
        code = pycurl.E_OK
        try:
            curl.perform()
        except pycurl.error as error:
            self.intact, code = False, error.args[0]
        finally:
            while self._opened:
                self._opened.pop().close()
        if response.head_bytes + len(response.body) >= READ_BYTES:
            self.intact = False  # a read was full: TLS may have more, and no poll would show it
        if response.complete:
            return response.to_result(), True
        signs = (curl.getinfo(pycurl.CONNECT_TIME), curl.getinfo(pycurl.REQUEST_SIZE))
        connected = any(signs) and code != pycurl.E_COULDNT_CONNECT
        return TransportResult(failure=self._describe_failure(code, response)), connected

    def fileno(self) -> int:
        """The socket of the kept connection; -1 if there is none."""
        return int(self._curl.getinfo(self._pycurl.ACTIVESOCKET))

    def close(self) -> None:
        """Close the kept connection."""
        self._curl.close()

    def _set_ca_certificates(self, ca_file: Path | None) -> None:
        system = ssl.get_default_verify_paths()
        files = system.cafile if ca_file is None else str(ca_file)
        folder = system.capath if ca_file is None else None
        for option, value in ((self._pycurl.CAINFO, files), (self._pycurl.CAPATH, folder)):
            if value is None:
                self._curl.unsetopt(option)
            else:
                self._curl.setopt(option, value)

    def _open_socket(self, purpose: int, address: Any) -> Any:
        """A socket for libcurl, if it is about to connect it to the right address."""
        family, kind, protocol, place = address
        if not _is_same_address(family, place[0], self._key.address) or place[1] != self._key.port:
            return self._pycurl.SOCKET_BAD
        # pycurl gives libcurl a duplicate of it.
        self._opened.append(socket.socket(family, kind, protocol))
        return self._opened[-1]

    def _describe_failure(self, code: int, response: _Response) -> str:
        """Why no answer came, in our words: libcurl's may contain text of the other side."""
        pycurl = self._pycurl
        if response.too_large:
            return "the response headers are too large"
        if code == pycurl.E_OPERATION_TIMEDOUT:
            sent = self._curl.getinfo(pycurl.REQUEST_SIZE) > 0
            return f"timed out while {'waiting for the response' if sent else 'connecting'}"
        words = {
            pycurl.E_PEER_FAILED_VERIFICATION: "the TLS certificate was refused",
            pycurl.E_COULDNT_CONNECT: "the connection was refused",
            pycurl.E_GOT_NOTHING: "the connection was closed before the response",
            pycurl.E_SSL_CONNECT_ERROR: "the TLS handshake failed",
            pycurl.E_OK: "the response is not valid HTTP",
            pycurl.E_UNSUPPORTED_PROTOCOL: "the response is not valid HTTP",
        }
        return words.get(code, f"libcurl's error {code}")


def _is_same_address(family: int, opened: str | bytes, vetted: str) -> bool:
    """Whether two texts are the same address."""
    text = opened.decode() if isinstance(opened, bytes) else opened
    try:
        return socket.inet_pton(family, text) == socket.inet_pton(family, vetted)
    except OSError:
        return False
