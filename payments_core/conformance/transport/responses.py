"""The request that is sent, and the outcome of a response."""

from __future__ import annotations

import os
import socket

from payments_core.conformance.transport.harness import Harness, require_failure, require_response
from payments_core.conformance.transport.servers import (
    LocalServer,
    find_header,
    reset_connection,
    respond_with,
)
from payments_core.webhooks.transports.port import MAX_RESPONSE_BODY_BYTES, TransportResult

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
VALID_RESPONSES = (
    (b"HTTP/1.1 204 No Content\r\n\r\n", TransportResult(204)),
    (b"HTTP/1.1 500\r\nContent-Length: 0\r\n\r\n", TransportResult(500)),
    (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", TransportResult(200, b"until the end")),
    (b"HTTP/1.1 200 OK\r\nCONTENT-LENGTH:2\r\n\r\nok", TransportResult(200, b"ok")),
    (CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", TransportResult(200, b"abcde")),
    (CHUNKED + b"3;a=b\r\nabc\r\n0\r\nx-trailer: y\r\n\r\n", TransportResult(200, b"abc")),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n\r\n", TransportResult(201)),
    (EARLY_HINTS + EARLY_HINTS + b"HTTP/1.1 200 OK\r\n\r\nk", TransportResult(200, b"k")),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\ncut", TransportResult(200, b"cut")),
    (
        b"HTTP/1.1 429 Slow Down\r\nretry-after: 7 \r\nContent-Length: 0\r\n\r\n",
        TransportResult(429, b"", "7"),
    ),
)
INVALID_RESPONSES = (
    b"",
    b"HTTP/1.1 ",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
    b"SSH-2.0-OpenSSH\r\n",
    b"<html>hello</html>",
    b"HTTP/1.1 abc\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"x-header: y\r\n" * 200 + b"\r\n",
    b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n",
    b"HTTP/1.1 103 Hints\r\n\r\n" * 20 + b"HTTP/1.1 200 OK\r\n\r\n",
)
REDIRECTS = (300, 301, 302, 303, 305, 307, 308)


class ResponseChecks(Harness):
    """One request, one answer."""

    def test_the_request_arrives_as_it_was_given(self) -> None:
        server = self.start_server()
        body = bytes(range(256)) * 300
        require_response(self.post(self.open_transport(), server, body=body))
        (request,) = server.requests
        head, _, arrived = request.partition(b"\r\n\r\n")
        assert arrived == body
        lines = head.split(b"\r\n")
        assert lines[0] == b"POST /hook?a=b HTTP/1.1"
        assert find_header(request, "Host") == f"partner.example:{server.port}"
        assert find_header(request, "Content-Length") == str(len(body))
        assert find_header(request, "Content-Type") == "application/json"
        assert find_header(request, "x-service-event") == "e"
        expected = {"host", "content-length", "content-type", "x-service-event", "connection"}
        names = {line.split(b":")[0].decode().lower() for line in lines[1:]}
        assert names <= expected, f"{names - expected} was added"

    def test_an_empty_body_arrives(self) -> None:
        server = self.start_server()
        require_response(self.post(self.open_transport(), server, body=b""))
        assert find_header(server.requests[0], "Content-Length") == "0"

    def test_every_valid_form_of_response_is_read(self) -> None:
        transport = self.open_transport()
        for response, outcome in VALID_RESPONSES:
            found = self.post(transport, self.start_server(respond_with(response)))
            assert found == outcome, f"{response!r} is read as {found}"

    def test_what_is_no_http_response_is_a_failure(self) -> None:
        transport = self.open_transport()
        for response in INVALID_RESPONSES:
            require_failure(self.post(transport, self.start_server(respond_with(response))))

    def test_a_reset_is_a_failure(self) -> None:
        def serve(connection: socket.socket, request: bytes) -> bool:
            reset_connection(connection)
            return False

        require_failure(self.post(self.open_transport(), self.start_server(serve)))

    def test_a_reset_in_the_middle_of_the_head_is_a_failure(self) -> None:
        def serve(connection: socket.socket, request: bytes) -> bool:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")
            reset_connection(connection)
            return False

        require_failure(self.post(self.open_transport(), self.start_server(serve)))

    def test_a_status_counts_though_its_body_is_cut_short(self) -> None:
        server = self.start_server(respond_with(b"HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\nha"))
        assert self.post(self.open_transport(), server) == TransportResult(503, b"ha")

    def test_a_connection_that_is_refused_is_a_failure(self) -> None:
        server = self.start_server()
        server.close()
        require_failure(self.post(self.open_transport(), server))

    def test_a_redirect_is_the_answer(self) -> None:
        transport, elsewhere = self.open_transport(), self.start_server()
        for status in REDIRECTS:
            server = self.start_server(respond_with(_redirect(status, elsewhere)))
            require_response(self.post(transport, server), status)
        assert elsewhere.connections == 0, "a redirect must not be followed"

    def test_a_redirect_to_itself_is_the_answer(self) -> None:
        server = self.start_server(respond_with(b"HTTP/1.1 307 Again\r\nLocation: /\r\n\r\n"))
        require_response(self.post(self.open_transport(), server), 307)
        assert len(server.requests) == 1, "a redirect must not be followed"

    def test_no_more_of_a_body_is_kept_than_the_limit(self) -> None:
        body = b"x" * (MAX_RESPONSE_BODY_BYTES + 1)
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
        outcome = self.post(self.open_transport(), self.start_server(respond_with(head + body)))
        assert outcome == TransportResult(200, body[:MAX_RESPONSE_BODY_BYTES])

    def test_the_environments_proxies_are_not_used(self) -> None:
        proxy, server = self.start_server(), self.start_server()
        names = [f"{scheme}_proxy" for scheme in ("http", "https", "all")]
        names += [name.upper() for name in names]
        before = {name: os.environ.get(name) for name in names}
        os.environ.update(dict.fromkeys(names, f"http://127.0.0.1:{proxy.port}"))
        try:
            require_response(self.post(self.open_transport(), server))
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
        assert proxy.connections == 0, "proxies of the environment must not be used"

    def test_a_line_break_in_a_header_sends_nothing(self) -> None:
        server, transport = self.start_server(), self.open_transport()
        for bad in ("a\r\nHost: b", "a\nb", "a\rb"):
            try:
                self.post(transport, server, headers={"x": bad})
            except ValueError:
                continue
            raise AssertionError(f"{bad!r} was taken for a header")
        assert server.requests == []


def _redirect(status: int, to: LocalServer) -> bytes:
    location = f"http://127.0.0.1:{to.port}/"
    return (
        f"HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
    ).encode()
