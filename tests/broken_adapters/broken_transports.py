"""Transports that each break one promise of the transport port."""

from __future__ import annotations

import io
import os
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import attrs

from payments_core.webhooks.destinations import Destination
from payments_core.webhooks.transports.port import (
    MAX_RESPONSE_BODY_BYTES,
    Deadline,
    TransportResult,
    WebhookRequest,
)


class Plain:
    """Simple, slow and sound: a new connection for each request, and a watch for the deadline."""

    def __init__(self, authority: Path | None) -> None:
        self.tls = self.context(None if authority is None else str(authority))

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        data = self.packed(request)
        outcome = TransportResult(failure="the host has no address")
        for address, port in self.places(request.destination, addresses):
            try:
                connection = self.connected(request.destination, address, port, deadline)
            except OSError as error:
                outcome = TransportResult(failure=f"{type(error).__name__} while connecting")
                continue
            return self.exchanged(connection, request, data, deadline)
        return outcome

    def close(self) -> None:
        pass

    def context(self, authority: str | None) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=authority)

    def packed(self, request: WebhookRequest) -> bytes:
        headers = {
            "Host": request.destination.host_header,
            **request.headers,
            "Connection": "close",
        }
        lines = [f"{name}: {value}" for name, value in headers.items()]
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a line break")
        head = [f"POST {request.destination.path} HTTP/1.1", *lines]
        head += [f"Content-Length: {len(request.body)}", "", ""]
        return "\r\n".join(head).encode() + request.body

    def places(self, target: Destination, addresses: Sequence[str]) -> Iterator[tuple[str, int]]:
        for address in addresses:
            if address.replace(".", "").isdigit() or ":" in address:
                yield address, target.port

    def connected(
        self, target: Destination, address: str, port: int, deadline: Deadline
    ) -> socket.socket:
        if deadline.remaining_s() <= 0:
            raise TimeoutError
        connection = socket.create_connection((address, port), timeout=deadline.remaining_s())
        if target.scheme == "https":
            connection.settimeout(deadline.remaining_s())
            return self.tls.wrap_socket(connection, server_hostname=target.host)
        return connection

    def exchanged(
        self, connection: socket.socket, request: WebhookRequest, data: bytes, deadline: Deadline
    ) -> TransportResult:
        with connection, connection.makefile("rb") as file, self.watched(connection, deadline):
            try:
                connection.sendall(data)
                return self.read(cast(io.BufferedReader, file), deadline)
            except (OSError, HTTPException) as error:
                return TransportResult(failure=f"{type(error).__name__} while waiting")

    def watched(self, connection: socket.socket, deadline: Deadline) -> Watch:
        return Watch(connection, deadline)

    def read(self, file: io.BufferedReader, deadline: Deadline) -> TransportResult:
        response = HTTPResponse(cast(Any, Replayed(file)), method="POST")
        response.begin()
        if deadline.remaining_s() <= 0:  # `http.client` takes half a head for a whole one
            raise TimeoutError
        return TransportResult(
            response.status, self.body(response), response.getheader("Retry-After")
        )

    def body(self, response: HTTPResponse) -> bytes:
        kept = b""
        try:
            while len(kept) < MAX_RESPONSE_BODY_BYTES and (
                more := response.read1(MAX_RESPONSE_BODY_BYTES - len(kept))
            ):
                kept += more
        except (OSError, HTTPException):
            pass
        return kept


@attrs.define
class Replayed:
    """What HTTPResponse takes for a socket; the file stays open after the response."""

    file: io.BufferedReader

    def makefile(self, mode: str) -> Any:
        return Unclosed(self.file)


class Unclosed:
    def __init__(self, file: io.BufferedReader) -> None:
        self.file = file

    def close(self) -> None:
        pass

    def flush(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


class Watch:
    """Cuts a connection when the deadline comes."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self.connection = connection
        self.timer = threading.Timer(deadline.remaining_s(), self.cut)

    def cut(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> None:
        self.timer.start()

    def __exit__(self, *_: object) -> None:
        self.timer.cancel()


# Where it goes.


class FollowsRedirects(Plain):
    def read(self, file: io.BufferedReader, deadline: Deadline) -> TransportResult:
        response = HTTPResponse(cast(Any, Replayed(file)), method="POST")
        response.begin()
        location = response.getheader("Location")
        if location is None:
            return TransportResult(response.status, self.body(response))
        parts = urlsplit(location)
        target = Destination(parts.scheme, str(parts.hostname), int(parts.port or 80), "/")
        return self.send(WebhookRequest(target, {}, b""), (target.host,), deadline)


class ResolvesTheName(Plain):
    def places(self, target: Destination, addresses: Sequence[str]) -> Iterator[tuple[str, int]]:
        try:
            rows = socket.getaddrinfo(target.host, target.port, socket.AF_INET, socket.SOCK_STREAM)
        except OSError:
            return
        yield from ((str(row[4][0]), target.port) for row in rows)


class TakesNamesForAddresses(Plain):
    def places(self, target: Destination, addresses: Sequence[str]) -> Iterator[tuple[str, int]]:
        yield from ((address, target.port) for address in addresses)


class TakesHostsForAddresses(Plain):
    def places(self, target: Destination, addresses: Sequence[str]) -> Iterator[tuple[str, int]]:
        vetted = super().places(target, addresses)
        try:
            yield socket.inet_ntoa(socket.inet_aton(target.host)), target.port
        except OSError:
            yield from vetted


class UsesProxies(Plain):
    def places(self, target: Destination, addresses: Sequence[str]) -> Iterator[tuple[str, int]]:
        proxy = os.environ.get("http_proxy")
        if proxy is None:
            yield from super().places(target, addresses)
        else:
            yield str(urlsplit(proxy).hostname), int(urlsplit(proxy).port or 80)


class TriesOnlyTheFirstAddress(Plain):
    def places(self, target: Destination, addresses: Sequence[str]) -> Iterator[tuple[str, int]]:
        yield from list(super().places(target, addresses))[:1]


class SendsToEveryAddress(Plain):
    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        outcome = TransportResult(failure="the host has no address")
        for address in addresses:
            outcome = super().send(request, (address,), deadline)
            if outcome.status is not None:
                break
        return outcome


# How long and how much.


class ATimeoutForEachRead(Plain):
    def watched(self, connection: socket.socket, deadline: Deadline) -> Any:
        return threading.Lock()


class WaitsWithoutEnd(Plain):
    def connected(
        self, target: Destination, address: str, port: int, deadline: Deadline
    ) -> socket.socket:
        connection = socket.create_connection((address, port))
        connection.settimeout(6)  # it would last forever, and so would the test
        if target.scheme == "https":
            return self.tls.wrap_socket(connection, server_hostname=target.host)
        return connection


class ReadsTheWholeBody(Plain):
    def body(self, response: HTTPResponse) -> bytes:
        kept = super().body(response)
        try:
            while response.read1(65_536):
                pass
        except (OSError, HTTPException):
            pass
        return kept


class ReadsTrailers(Plain):
    """`http.client` does, and so all of these do."""


class KeepsTheWholeBody(Plain):
    def body(self, response: HTTPResponse) -> bytes:
        return response.read()


class StatusGoesWithTheBody(Plain):
    def body(self, response: HTTPResponse) -> bytes:
        return response.read()[:MAX_RESPONSE_BODY_BYTES]


class ErrorsComeOut(Plain):
    def exchanged(
        self, connection: socket.socket, request: WebhookRequest, data: bytes, deadline: Deadline
    ) -> TransportResult:
        with connection, connection.makefile("rb") as file:
            connection.sendall(data)
            return self.read(cast(io.BufferedReader, file), deadline)


class HeadersAreNotChecked(Plain):
    def packed(self, request: WebhookRequest) -> bytes:
        held = dict.fromkeys(request.headers, "held")
        data = super().packed(attrs.evolve(request, headers=held))
        for name, value in request.headers.items():
            data = data.replace(f"{name}: held".encode(), f"{name}: {value}".encode())
        return data


# TLS.


class NameNotVerified(Plain):
    def context(self, authority: str | None) -> ssl.SSLContext:
        context = super().context(authority)
        context.check_hostname = False
        return context


class NothingVerified(NameNotVerified):
    def context(self, authority: str | None) -> ssl.SSLContext:
        context = super().context(authority)
        context.verify_mode = ssl.CERT_NONE
        return context


# Connections used again.


class Keeping(Plain):
    """Keeps one connection for each key, and looks at nothing before it uses it again."""

    def __init__(self, authority: Path | None) -> None:
        super().__init__(authority)
        self.kept: dict[object, tuple[socket.socket, io.BufferedReader]] = {}
        self.lock = threading.Lock()

    def key(self, target: Destination, address: str) -> object:
        return target.scheme, target.host, target.port, address

    def packed(self, request: WebhookRequest) -> bytes:
        return super().packed(request).replace(b"Connection: close\r\n", b"")

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        with self.lock:
            return self.sent(request, addresses, deadline)

    def sent(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        target, data = request.destination, self.packed(request)
        key = self.key(target, addresses[0])
        try:
            if key not in self.kept:
                connection = self.connected(target, addresses[0], target.port, deadline)
                self.kept[key] = (connection, cast(io.BufferedReader, connection.makefile("rb")))
            connection, file = self.kept[key]
            connection.settimeout(deadline.remaining_s())
            connection.sendall(data)
            return self.read(file, deadline)
        except (OSError, HTTPException) as error:
            self.forget(key)
            return TransportResult(failure=type(error).__name__)

    def forget(self, key: object) -> None:
        if key in self.kept:
            connection, file = self.kept.pop(key)
            file.close()
            connection.close()

    def close(self) -> None:
        for key in tuple(self.kept):
            self.forget(key)


class SharesAnAddress(Keeping):
    """Two names on one address have one connection."""

    def key(self, target: Destination, address: str) -> object:
        return target.scheme, target.port, address


class KeepsToTheName(Keeping):
    """A name has one connection, wherever it led when that was made."""

    def key(self, target: Destination, address: str) -> object:
        return target.scheme, target.host, target.port


class ForgetsTheScheme(Keeping):
    def key(self, target: Destination, address: str) -> object:
        return target.host, target.port, address


class SharesAmongThreads(Keeping):
    """A connection is used for the next request before it has answered."""

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        return self.sent(request, addresses, deadline)
