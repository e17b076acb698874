"""The host names to which a sandbox on loopback answers.

A page may make its own name resolve to this machine after it is loaded (DNS rebinding). The browser
then takes the sandbox for the page's own server, and lets the page read and write it. The `Host`
header shows this: it has the page's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from payments_core.contracts.versions import CURRENT_VERSION
from payments_core.engine.identifiers import Identifiers
from payments_core.errors import BadInput
from payments_core_http.client_address import is_loopback_host
from payments_core_http.errors import encode_error

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::[0-9]{1,5})?", re.ASCII)


@attrs.frozen
class HostNotAllowed(BadInput):
    """The request is for a server of another name."""

    code = "malformed_request"
    sentence = (
        "A sandbox on loopback answers only to localhost and to loopback addresses, and the Host "
        "header names another server."
    )


@attrs.frozen
class LoopbackHosts:
    """The application, for requests whose `Host` is a name of this machine."""

    application: WSGIApplication
    identifiers: Identifiers

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if is_name_of_loopback(environ.get("HTTP_HOST", "")):
            return self.application(environ, start_response)
        request_id = self.identifiers.new("req")
        body = encode_error(HostNotAllowed(), request_id)
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "X-Request-Id": request_id,
            "Service-Version": CURRENT_VERSION,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
        start_response("400 Bad Request", list(headers.items()))
        return [body]


def is_name_of_loopback(host: str) -> bool:
    """Whether a `Host` header names this machine itself, with any port: it may be forwarded.

    A request without one is not from a browser.
    """
    if not host:
        return True
    match = _HOST.fullmatch(host.lower())
    if match is None:
        return False
    return is_loopback_host(match[1] or match[2].removesuffix("."))
