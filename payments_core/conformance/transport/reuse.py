"""Connections for more than one request: a transport that keeps none passes, slowly."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from payments_core.conformance.transport.certificates import NAME, OTHER_NAME, certificates
from payments_core.conformance.transport.harness import Harness, require_failure, require_response
from payments_core.conformance.transport.servers import (
    LOOPBACK_ADDRESS,
    OK,
    OTHER_LOOPBACK_ADDRESS,
    SOCKET_TIMEOUT_S,
    RequestHandler,
    find_header,
    reset_connection,
    respond_with,
)
from payments_core.webhooks.transports.port import MAX_RESPONSE_BODY_BYTES

FORGED = b"HTTP/1.1 299 Forged\r\nContent-Length: 0\r\n\r\n"
THREADS = 8
REQUESTS_PER_THREAD = 20


class ReuseChecks(Harness):
    """A connection is never used for an unverified target, nor an answer for another request."""

    def test_a_connection_for_one_name_is_not_used_for_another(self) -> None:
        server = self.start_server(respond_with(OK, keep=True), certificate=certificates().good)
        transport = self.open_trusting_transport()
        require_response(self.post(transport, server, scheme="https", name=NAME))
        require_failure(self.post(transport, server, scheme="https", name=OTHER_NAME))
        assert [find_header(request, "Host") for request in server.requests] == [
            f"{NAME}:{server.port}"
        ], "a connection must not be reused for a host name that it was not verified for"

    def test_names_on_one_address_have_connections_of_their_own(self) -> None:
        names: dict[socket.socket, set[str | None]] = {}

        def serve(connection: socket.socket, request: bytes) -> bool:
            names.setdefault(connection, set()).add(find_header(request, "Host"))
            connection.sendall(OK)
            return True

        server, transport = self.start_server(serve), self.open_transport()
        for name in (NAME, OTHER_NAME, NAME, OTHER_NAME):
            require_response(self.post(transport, server, name=name))
        assert all(len(found) == 1 for found in names.values()), (
            "two host names must not share a connection"
        )

    def test_a_connection_to_an_address_no_longer_vetted_is_not_used(self) -> None:
        first, second = self.start_pair(respond_with(OK, keep=True), respond_with(OK, keep=True))
        transport = self.open_transport()
        for vetted, there, other in (
            (OTHER_LOOPBACK_ADDRESS, first, second),
            (LOOPBACK_ADDRESS, second, first),
        ) * 2:
            before = len(there.requests), len(other.requests)
            require_response(self.post(transport, there, addresses=(vetted,)))
            after = len(there.requests), len(other.requests)
            assert after == (before[0] + 1, before[1]), "a request must go only to a vetted address"

    def test_a_plain_connection_is_not_used_for_tls(self) -> None:
        server, transport = (
            self.start_server(respond_with(OK, keep=True)),
            self.open_trusting_transport(),
        )
        require_response(self.post(transport, server))
        require_failure(self.post(transport, server, scheme="https", timeout_s=0.5))
        assert len(server.requests) == 1, "an https request must not use a plain connection"

    def test_a_response_behind_a_response_answers_no_request(self) -> None:
        """Both come in one TLS record, the first as long as a read might be: no poll of the
        connection shows that something is left."""
        for length in (4_096, 8_192, 12_288, 16_384 - len(FORGED)):
            self._send_forged_after(length)

    def _send_forged_after(self, length: int) -> None:
        start = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Padding: "
        answer = start + b"p" * (length - len(start) - 6) + b"\r\n\r\n{}"

        def serve(connection: socket.socket, request: bytes) -> bool:
            connection.sendall(answer + FORGED)
            return True

        server = self.start_server(serve, certificate=certificates().good)
        transport = self.open_trusting_transport()
        for _ in range(3):
            outcome = self.post(transport, server, scheme="https", name=NAME)
            assert outcome.status != 299, (
                "a late response must not be taken for the response to the next request"
            )

    def test_a_connection_closed_between_two_requests_is_no_failure(self) -> None:
        transport = self.open_transport()
        closings: tuple[RequestHandler, ...] = (
            respond_with(OK),
            _respond_then_reset,
            _respond_then_half_close,
        )
        for serve in closings:
            server = self.start_server(serve)
            for _ in range(4):
                require_response(self.post(transport, server))
            assert len(server.requests) == 4

    def test_a_connection_that_breaks_at_the_next_request_is_no_failure(self) -> None:
        """The other side closes it as the request arrives; because of its id it may come twice."""
        served: set[socket.socket] = set()

        def serve(connection: socket.socket, request: bytes) -> bool:
            if connection in served:
                return False
            served.add(connection)
            connection.sendall(OK)
            return True

        server, transport = self.start_server(serve), self.open_transport()
        for _ in range(4):
            require_response(self.post(transport, server))

    def test_what_is_left_over_answers_no_other_request(self) -> None:
        """An unrequested response must not be taken for the next request's answer."""
        transport = self.open_transport()
        begin = b"HTTP/1.1 200 OK\r\n"
        chunks = b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        for left_over in (
            OK + FORGED,
            begin + b"Content-Length: 0\r\n\r\n" + FORGED,
            begin + b"Content-Length: 2\r\nContent-Length: 0\r\n\r\nok" + FORGED,
            begin + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + FORGED,
            begin + chunks + FORGED,
            b"HTTP/1.1 204 None\r\n\r\n" + FORGED,
            b"HTTP/1.1 204 None\r\nContent-Length: 3\r\n\r\n" + FORGED,
            b"HTTP/1.1 304 Same\r\nContent-Length: 0\r\n\r\n" + FORGED,
        ):
            server = self.start_server(respond_with(left_over, keep=True))
            for _ in range(3):
                outcome = self.post(transport, server)
                assert outcome.status != 299, f"{left_over!r} answered the next request"

    def test_what_was_not_read_to_its_end_answers_no_other_request(self) -> None:
        """The rest of an answer comes with the next request, if that uses the same connection."""
        transport = self.open_transport()
        length = b"Content-Length: %d\r\n\r\n" % (MAX_RESPONSE_BODY_BYTES + len(FORGED))
        chunk = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % (
            MAX_RESPONSE_BODY_BYTES + len(FORGED)
        )
        for unfinished in (
            b"HTTP/1.1 200 OK\r\n" + length + b"x" * MAX_RESPONSE_BODY_BYTES,
            b"HTTP/1.1 200 OK\r\n" + chunk + b"x" * MAX_RESPONSE_BODY_BYTES,
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
            b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        ):
            begun: set[socket.socket] = set()

            def serve(
                connection: socket.socket,
                request: bytes,
                begun: set[socket.socket] = begun,
                unfinished: bytes = unfinished,
            ) -> bool:
                connection.sendall(FORGED if connection in begun else unfinished)
                begun.add(connection)
                return True

            server = self.start_server(serve)
            for _ in range(3):
                require_response(self.post(transport, server))

    def test_what_comes_between_two_requests_answers_neither(self) -> None:
        """Servers send 408 on an idle connection before they close it."""
        answered, sent = threading.Event(), threading.Event()

        def serve(connection: socket.socket, request: bytes) -> bool:
            connection.sendall(OK)
            if not answered.wait(SOCKET_TIMEOUT_S):  # the other side has failed, and reports it
                return False
            with suppress(OSError):  # it may already be closed, which is also fine
                connection.sendall(FORGED)
            sent.set()
            return True

        server, transport = self.start_server(serve), self.open_transport()
        for _ in range(3):
            require_response(self.post(transport, server))
            answered.set()
            assert sent.wait(SOCKET_TIMEOUT_S)
            answered.clear()
            sent.clear()

    def test_each_of_many_threads_gets_its_own_answer(self) -> None:
        def serve(connection: socket.socket, request: bytes) -> bool:
            body = request.partition(b"\r\n\r\n")[2]
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
            connection.sendall(head + body)
            return True

        server, transport = self.start_server(serve), self.open_transport()
        wrong: list[str] = []

        def send(thread: int) -> None:
            for turn in range(REQUESTS_PER_THREAD):
                body = f"{thread}/{turn}".encode()
                outcome = self.post(transport, server, body=body, timeout_s=4)
                if outcome.status != 200 or outcome.body != body:
                    wrong.append(f"{body!r} was answered by {outcome}")
                if wrong:
                    return

        threads = [threading.Thread(target=send, args=(thread,)) for thread in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[:3]
        assert len(server.requests) == THREADS * REQUESTS_PER_THREAD


def _respond_then_reset(connection: socket.socket, request: bytes) -> bool:
    connection.sendall(OK)
    threading.Event().wait(0.05)  # otherwise the answer may be lost with the data after it
    reset_connection(connection)
    return False


def _respond_then_half_close(connection: socket.socket, request: bytes) -> bool:
    """Send nothing more, but leave the close to the other side."""
    connection.sendall(OK)
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(65536):
        pass
    return False
