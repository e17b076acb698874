"""A sandbox over one SQLite file, its WSGI app, and the receiver of its webhooks."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import attrs

from payments_core.clock import FixedClock
from payments_core.credentials.keyring import KeyRing
from payments_core.public_url import LOCAL_URL
from payments_core.sandbox.clock import SandboxClock
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage_loader import open_storage
from payments_core.webhooks.transports.port import Deadline, TransportResult, WebhookRequest
from payments_core_http.app import create_app
from tests.http.seen import Seen

SYSTEM_MS = 1_790_000_000_000
"""What the machine's clock says all the while, Unix milliseconds; the sandbox's runs ahead."""

HOOK = "https://93.184.216.34/hook"
BUSY_HOOK = "https://93.184.216.34/busy"


@attrs.define
class Receiver:
    """The partner's webhook server: it keeps requests, and is out of order at some URLs."""

    busy: frozenset[str] = frozenset()
    received: list[WebhookRequest] = attrs.field(factory=list)

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        if request.destination.normalized_url in self.busy:
            return TransportResult(503, b"busy")
        self.received.append(request)
        return TransportResult(200, b"thanks")

    def close(self) -> None:
        """Nothing is open."""


class Shop:
    """The service on a file, opened as a process opens it."""

    def __init__(self, file: Path, key_ring: str, receiver: Receiver) -> None:
        self.storage = open_storage(f"sqlite:///{file}")
        self.storage.migrate()
        self.clock = SandboxClock(self.storage, FixedClock(SYSTEM_MS))
        self.service = PaymentsService(
            self.storage,
            KeyRing.parse(key_ring),
            clock=self.clock,
            transport=receiver,
            settings=Settings(public_url=LOCAL_URL),
        )
        self.service.refresh()
        self._app = create_app(self.service, mode="sandbox")

    def call(
        self,
        method: str,
        target: str,
        auth: str,
        body: Any = None,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Seen:
        """One request; `auth` is the Authorization header, and "" sends none."""
        path, _, query = target.partition("?")
        sent = b"" if body is None else json.dumps(body).encode()
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "SCRIPT_NAME": "",
            "CONTENT_LENGTH": str(len(sent)),
            "CONTENT_TYPE": "application/json",
            "wsgi.input": io.BytesIO(sent),
        }
        named = {"Authorization": auth, "Idempotency-Key": key, **(headers or {})}
        for name, value in named.items():
            if value:
                environ["HTTP_" + name.upper().replace("-", "_")] = value
        setup_testing_defaults(environ)
        return self._answer(environ)

    def close(self) -> None:
        self.service.close()

    def _answer(self, environ: Mapping[str, Any]) -> Seen:
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
            started.append((status, headers))

        body = b"".join(self._app(dict(environ), start_response))
        [(status, headers)] = started
        return Seen(int(status[:3]), {name.lower(): value for name, value in headers}, body)


def basic(app_id: str, secret: str) -> str:
    """The Authorization header of a server key."""
    return "Basic " + base64.b64encode(f"{app_id}:{secret}".encode()).decode()
