"""The application on our server: refusals in our form, turns by credential, body limits.

For every command that serves, and for the tests.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any
from wsgiref.types import WSGIApplication

import attrs

from payments_core.contracts.versions import CURRENT_VERSION
from payments_core.engine.identifiers import Identifiers
from payments_core.errors import PaymentsError
from payments_core_http.app import DEFAULT_THREADS
from payments_core_http.authentication import ENVIRONMENT_KEY
from payments_core_http.errors import (
    HeadersTooLarge,
    InternalError,
    MalformedRequest,
    PayloadTooLarge,
    RequestTimedOut,
    UnsupportedTransferCoding,
    encode_error,
    status_of,
)
from payments_core_http.server.hosting import MAX_HEADER_BYTES, HostedApp, Refusal
from payments_core_http.server.server import Server
from payments_core_http.server.thread_pool import ThreadPool
from payments_core_http.wire.limits import MAX_BODY_BYTES

MAX_RECEIVED_BYTES = 2 * MAX_BODY_BYTES
"""Up to here the application reads and refuses a body that is too large."""

_RESERVED_PATHS = frozenset({"/healthz"})
"""A supervisor that restarts a process that does not answer must not restart a busy one."""

_REFUSALS: Mapping[int, PaymentsError] = {
    400: MalformedRequest(),
    408: RequestTimedOut(),
    413: PayloadTooLarge(MAX_BODY_BYTES),
    431: HeadersTooLarge(MAX_HEADER_BYTES),
    501: UnsupportedTransferCoding(),
}
_MAX_KEY_CHARACTERS = 400
_MAX_TOKENS = 10_000
"""The maximum number of tokens that are remembered; then they are learned again."""


def new_pool(threads: int = DEFAULT_THREADS) -> ThreadPool:
    """The threads of a server, and where the storage and the service announce their waits."""
    return ThreadPool(threads, _RESERVED_PATHS)


def build_server(
    app: WSGIApplication,
    identifiers: Identifiers,
    *,
    threads: int = DEFAULT_THREADS,
    pool: ThreadPool | None = None,
    api_version: str = CURRENT_VERSION,
    **more: Any,
) -> Server:
    """A server that listens, with its own `threads` or on a `pool`. `more` is passed to `Server`.

    `api_version` is the version in refusals that the application does not see: the current one.
    Raises OSError if it cannot listen.
    """
    refusals = Refusals(identifiers, api_version)
    hosted = HostedApp(
        app=app, refuse=refusals.make, callers=Callers(), max_body_bytes=MAX_RECEIVED_BYTES
    )
    return Server(hosted, pool or new_pool(threads), **more)


@attrs.frozen
class Refusals:
    """Our responses to requests that the application does not see."""

    _identifiers: Identifiers
    _api_version: str

    def make(self, status: int) -> Refusal:
        """The response with this status, or 500 if it is not one of a client's mistakes."""
        error = _REFUSALS.get(status, InternalError())
        request_id = self._identifiers.new("req")
        headers = [
            ("Content-Type", "application/json"),
            ("X-Request-Id", request_id),
            ("Service-Version", self._api_version),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ]
        return Refusal(status_of(type(error)), headers, encode_error(error, request_id))


class Callers:
    """Identifies the caller, as far as it is known without the storage.

    A server key is identified by its app id, without its secret; a token that was used before, by
    its environment; everybody else, by the address that the last proxy reports. So tokens give
    nobody more turns, and neither do invented credentials: an invented app id has its own turn, but
    its refusal takes no time.
    """

    def __init__(self) -> None:
        self._environments: dict[int, str] = {}
        """By the hash of the token; the token itself is not kept."""

    def name(self, headers: Mapping[str, str], peer: str) -> str:
        """The caller of a request with these headers, on a connection from that address."""
        scheme, credential = _read_credential(headers)
        if scheme == "basic":
            try:
                decoded = binascii.a2b_base64(credential[:_MAX_KEY_CHARACTERS])
            except (binascii.Error, ValueError):
                decoded = b""
            return "app " + decoded.partition(b":")[0].decode("latin-1")
        environment = self._environments.get(hash(credential)) if scheme else None
        if environment is not None:
            return "environment " + environment
        forwarded = headers.get("X_FORWARDED_FOR", "").rpartition(",")[2].strip()
        return f"{peer} {forwarded[:_MAX_KEY_CHARACTERS]}"

    def learn(self, headers: Mapping[str, str], environ: Mapping[str, Any]) -> None:
        """Remember to which environment the token in these headers belongs, and to no other."""
        environment = environ.get(ENVIRONMENT_KEY)
        if environment is None:
            return
        scheme, credential = _read_credential(headers)
        token = hash(credential)
        if scheme and scheme != "basic" and token not in self._environments:
            if len(self._environments) >= _MAX_TOKENS:
                self._environments.clear()
            self._environments[token] = environment


def _read_credential(headers: Mapping[str, str]) -> tuple[str, str]:
    scheme, _, credential = headers.get("AUTHORIZATION", "").strip().partition(" ")
    return scheme.lower(), credential.strip()
