"""What the synchronous and the asynchronous client share: a call as a request, and its response."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import attrs
import httpx2
import msgspec

from payments_core.entropy import system_entropy
from payments_core.evolve import evolve
from payments_core.http.deadline import Deadline
from payments_core_http.client.calls import Call
from payments_core_http.client.codes import BY_CODE
from payments_core_http.client.contract import API_VERSION
from payments_core_http.client.errors import (
    STATUS_CLASSES,
    ApiError,
    ClientError,
    InvalidRequest,
    NoResponse,
    RequestMalformed,
    ResponseMalformed,
    ServiceError,
)
from payments_core_http.client_address import is_loopback_host

T = TypeVar("T")

_USER_AGENT = "payments-core-client"
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
SEND_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError)
"""What a transport raises instead of a response; a host that IDNA refuses is a UnicodeError."""
_encoder = msgspec.json.Encoder(decimal_format="number")
_KEY_BYTES = 24


def _stripped(text: str | None) -> str | None:
    return None if text is None else text.strip()


_HEADER_VALUE = re.compile("[!-~]([ -~]*[!-~])?|")
_SECONDS = re.compile("[0-9]{1,9}")


@attrs.frozen(kw_only=True)
class Credentials:
    """The client's credentials, without the newline of a file. No repr shows them."""

    app_id: str | None = attrs.field(default=None, converter=_stripped)
    app_secret: str | None = attrs.field(default=None, converter=_stripped, repr=False)
    access_token: str | None = attrs.field(default=None, converter=_stripped, repr=False)
    sdk_key: str | None = attrs.field(default=None, converter=_stripped, repr=False)
    origin: str | None = attrs.field(default=None, converter=_stripped)

    def headers(self, call: Call[Any]) -> dict[str, str]:
        """The call's headers with credentials. Raises ValueError for a missing credential."""
        if call.bearer is not None:
            return {"Authorization": f"Bearer {call.bearer}"}
        match call.credential:
            case "app_secret":
                return _basic(self._need("app_id"), self._need("app_secret"))
            case "app_secret_as_bearer":
                return {"Authorization": f"Bearer {self._need('app_secret')}"}
            case "app_id":
                return _basic(self._need("app_id"), "")
            case "access_token":
                return {"Authorization": f"Bearer {self._need('access_token')}"}
            case "sdk_key":
                return {"x-sdk-key": self._need("sdk_key")}
            case "none":
                return {} if self.origin is None else {"Origin": self.origin}

    def _need(self, name: str) -> str:
        value: str | None = getattr(self, name)
        if value is None:
            raise ValueError(f"this operation needs {name}, and the client has none")
        return value


def _basic(user: str, password: str) -> dict[str, str]:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def check_url(url: str) -> str:
    """The URL of a service, without spaces around it and a trailing slash. Raises ValueError."""
    url = url.strip()
    try:
        httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise ValueError(f"the url cannot be read: {error}") from None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the url must start with https:// or http://, and name a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("the url must not contain a user, a query or a fragment")
    return url.rstrip("/")


def require_encryption(url: str, allow_http: bool) -> None:
    """Refuse `http://` to another machine: who is between reads the secrets. Raises ValueError."""
    parts = urlsplit(url.strip())
    if parts.scheme == "http" and not allow_http and not is_loopback_host(parts.hostname or ""):
        raise ValueError(
            "the url must start with https://, since http:// shows secrets to the network; "
            "for a network that you trust, pass allow_http=True"
        )


def with_key(call: Call[T]) -> Call[T]:
    """The call with a new idempotency key, if it accepts one and has none."""
    if not call.takes_key or call.idempotency_key is not None:
        return call
    key = base64.urlsafe_b64encode(system_entropy(_KEY_BYTES)).decode()
    return evolve(call, idempotency_key=key)


def make_request(call: Call[Any], url: str, credentials: Credentials) -> httpx2.Request:
    """The request of a call.

    Raises ValueError and TypeError for wrong arguments, and RequestMalformed for an argument with
    characters that cannot be sent.
    """
    try:
        return _build_request(call, url, credentials)
    except (UnicodeError, httpx2.InvalidURL):  # their texts quote arguments
        raise _malformed(call, "an argument is not valid Unicode") from None


def _build_request(call: Call[Any], url: str, credentials: Credentials) -> httpx2.Request:
    headers = {
        "Accept": "application/json",
        "User-Agent": _USER_AGENT,
        "Service-Version": API_VERSION,
        **credentials.headers(call),
        **call.headers,
    }
    if call.idempotency_key is not None:
        headers["Idempotency-Key"] = call.idempotency_key
    for name, value in headers.items():
        if not _HEADER_VALUE.fullmatch(value):
            raise _malformed(call, f"{name} must be printable ASCII, without spaces around it")
    content = None
    if call.body is not None:
        headers["Content-Type"] = "application/json"
        content = _encoder.encode(call.body)
    return httpx2.Request(
        call.method,
        url + call.fill_path(),
        params=_query(call.query),
        headers=headers,
        content=content,
    )


def limit_time(request: httpx2.Request, deadline: Deadline) -> None:
    """Have each of httpx2's waits end at the deadline at the latest."""
    request.extensions["timeout"] = httpx2.Timeout(deadline.remaining_s()).as_dict()


def _query(arguments: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in arguments.items() if value is not None}


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def read_response(call: Call[T], response: httpx2.Response) -> T | ClientError:
    """The result of a complete response: its value, or the error to raise."""
    if response.is_success:
        try:
            return msgspec.json.decode(response.content, type=call.response)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return ResponseMalformed(call.operation, str(error), response.content)
    return _read_error(response)


def _read_error(response: httpx2.Response) -> ApiError:
    """The error of a refusal, also if a proxy before the service wrote it."""
    status = response.status_code
    try:
        document = msgspec.json.decode(response.content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    error = document.get("error") if isinstance(document, dict) else None
    if isinstance(error, str):  # the legacy interface: {success, error, code, requestId}
        error = {**document, "message": error, "details": {"requestId": document.get("requestId")}}
    if not isinstance(error, dict):
        error = {}
    code = str(error.get("code", ""))
    details = error.get("details")
    kind = BY_CODE.get(code) or STATUS_CLASSES.get(status)
    kind = kind or (ServiceError if status >= 500 else InvalidRequest)
    return kind(
        http_status=status,
        code=code,
        message=str(error.get("message", "The response is not the service's own.")),
        details=details if isinstance(details, dict) else {},
        retry_after_s=_seconds(response.headers.get("Retry-After")),
    )


def _seconds(header: str | None) -> int | None:
    """The service writes seconds; a date, which a proxy may write, is ignored."""
    return int(header) if header is not None and _SECONDS.fullmatch(header) else None


def no_response(call: Call[Any], error: Exception) -> NoResponse:
    """The error of a connection that failed.

    Its text names no address and no path, and it has no cause: h11's errors quote header values.
    """
    if _never_left(error):
        return _malformed(call, type(error).__name__)
    return NoResponse(
        call.operation, type(error).__name__, was_sent=not isinstance(error, _NOT_SENT)
    )


def _never_left(error: Exception) -> bool:
    """Whether the request itself was refused, before a byte was written.

    h11 refuses what we would send; h2 raises the same class also for what a server has sent.
    """
    if isinstance(error, httpx2.LocalProtocolError):
        reasons = getattr(error.__cause__, "args", ())
        return not any(type(reason).__module__.startswith("h2.") for reason in reasons)
    return isinstance(error, (UnicodeError, httpx2.InvalidURL, httpx2.UnsupportedProtocol))


def _malformed(call: Call[Any], reason: str) -> RequestMalformed:
    error = RequestMalformed(call.operation, reason)
    error.idempotency_key = call.idempotency_key
    return error
