"""A small HTTP client for the demo: its requests and answers can be shown, with short secrets.

It shows requests and answers as they are; partners' programs use `payments_core_http.client`
instead, which has operations and retries.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import attrs

SECRET_FIELDS = frozenset({
    "accessToken", "actionId", "appSecret", "clientSecret", "clientSessionToken", "signingSecret",
})  # fmt: skip
SECRET_HEADERS = frozenset({"Authorization", "X-Service-Payment-Secret"})
MAX_SHOWN_CHARACTERS = 12


Summarize = Callable[[Any], Any]


class NoResponse(Exception):
    """The connection failed or broke: it is not known whether the request had an effect."""


@attrs.frozen
class ApiResponse:
    """The answer of the service."""

    status: int
    headers: Mapping[str, str]
    body: bytes = attrs.field(repr=False)

    @property
    def document(self) -> Any:
        """The body, read as JSON; None if there is none."""
        return json.loads(self.body) if self.body else None


@attrs.frozen
class HttpExchange:
    """A request with its answer. `summarize` reduces the answer to what a person needs to see."""

    method: str
    path: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    body: Any
    answer: ApiResponse
    summarize: Summarize

    def render(self, *, whole: bool) -> dict[str, Any]:
        """The exchange as JSON, with secrets shortened; the answer's body in full or in brief."""
        document = self.answer.document
        if not whole and self.answer.status < 300:
            document = self.summarize(document)
        replayed = self.answer.headers.get("idempotent-replayed")
        return {
            "request": {
                "method": self.method,
                "path": self.path,
                "headers": {
                    name: shorten_secret(value, credential=True)
                    if name in SECRET_HEADERS
                    else value
                    for name, value in self.headers.items()
                    if name not in ("Connection", "Content-Type")
                },
                "body": shorten_secrets(self.body),
            },
            "answer": {
                "status": self.answer.status,
                **({"idempotentReplayed": True} if replayed == "true" else {}),
                "body": shorten_secrets(document),
            },
        }


@attrs.frozen
class ApiClient:
    """Calls one service. Each exchange is also passed to `on_exchange`.

    The path of `base_url` comes before the path of each call.
    """

    base_url: str
    on_exchange: Callable[[HttpExchange], None] = lambda exchange: None
    timeout_s: float = 20.0

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        authorization: str,
        key: str | None = None,
        payment_secret: str | None = None,
        summarize: Summarize = lambda document: document,
    ) -> ApiResponse:
        """Send one request on its own connection. Raises NoResponse."""
        headers = {"Authorization": authorization, "Connection": "close"}
        if key is not None:
            headers["Idempotency-Key"] = key
        if payment_secret is not None:
            headers["X-Service-Payment-Secret"] = payment_secret
        if body is not None:
            headers["Content-Type"] = "application/json"
        answer = self._send(method, path, headers, body)
        self.on_exchange(HttpExchange(method, path, headers, body, answer, summarize))
        return answer

    def _send(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> ApiResponse:
        address = urlsplit(self.base_url)
        connection = http.client.HTTPConnection(
            address.hostname or "", address.port, timeout=self.timeout_s
        )
        try:
            sent = None if body is None else json.dumps(body).encode()
            target = address.path.rstrip("/") + path
            connection.request(method, target, sent, dict(headers))
            response = connection.getresponse()
            received = {name.lower(): value for name, value in response.getheaders()}
            return ApiResponse(response.status, received, response.read())
        except (OSError, http.client.HTTPException) as error:
            raise NoResponse(f"{method} {path}: {type(error).__name__} {error}") from error
        finally:
            connection.close()


def basic_authorization(app_id: str, app_secret: str) -> str:
    """The Authorization of a backend."""
    return "Basic " + base64.b64encode(f"{app_id}:{app_secret}".encode()).decode()


def bearer_authorization(token: str) -> str:
    """The Authorization of a browser or mobile app."""
    return f"Bearer {token}"


def shorten_secrets(value: Any) -> Any:
    """A JSON value with its secrets shortened."""
    if isinstance(value, dict):
        return {
            name: shorten_secret(item)
            if name in SECRET_FIELDS and isinstance(item, str)
            else shorten_secrets(item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [shorten_secrets(item) for item in value]
    return value


def shorten_secret(text: str, *, credential: bool = False) -> str:
    """The start of a secret: enough to recognize it. A credential's scheme is kept."""
    scheme, space, value = text.partition(" ") if credential else ("", "", text)
    if credential and not space:
        scheme, value = "", text
    kept = value if len(value) <= MAX_SHOWN_CHARACTERS else value[:MAX_SHOWN_CHARACTERS] + "…"
    return f"{scheme}{space}{kept}"
