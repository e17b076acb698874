"""Errors on the wire: the one table of HTTP statuses, and the envelope (contract §3).

The library's errors say whose fault it is; only here does that become a number. An exception that
no error class describes is an `internal_error`: logged with its trace, answered without it.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Literal

import attrs
import msgspec

from payments_core.clock import Instant
from payments_core.errors import (
    BadInput,
    ConfigurationError,
    ConflictError,
    DependencyError,
    DependencyFailed,
    Forbidden,
    LimitReached,
    Missing,
    PaymentsError,
    ServiceUnavailable,
    Unauthenticated,
    Unavailable,
    Unprocessable,
)
from payments_core.storage.port import StorageUnavailable
from payments_core_http.redaction import redact

ErrorForm = Literal["nested", "flat"]
"""`{error: {code, message, details}}`, and the legacy interface's `{success, error, code}`."""

LEGACY_PREFIX = "/sdk/v1/"
"""The prefix of the paths of the legacy interface, also of those that it does not have."""

RateLimitReason = Literal["rate_limit_exceeded", "rate_limiter_unavailable", "abuse_blocked"]

logger: logging.Logger = logging.getLogger("payments_core_http")


@attrs.frozen
class RouteNotFound(Missing):
    """No route has this path."""

    code = "route_not_found"
    sentence = "This route does not exist."


@attrs.frozen
class MethodNotAllowed(BadInput):
    """The path exists, but does not allow this method."""

    code = "method_not_allowed"
    sentence = "This path allows {allowed}."
    allowed: tuple[str, ...]


@attrs.frozen
class LengthRequired(BadInput):
    """Nobody stated the body's length, and nothing shows whether there is a body; it is not taken
    to be empty."""

    code = "length_required"
    sentence = "Send the header Content-Length; for an empty body, it is 0."


@attrs.frozen
class PayloadTooLarge(BadInput):
    """The body is larger than the limit."""

    code = "payload_too_large"
    sentence = "The body must have at most {limit_bytes} bytes."
    limit_bytes: int


@attrs.frozen
class UnsupportedMediaType(BadInput):
    """The body is not sent as `application/json`, or is compressed."""

    code = "unsupported_media_type"
    sentence = "The body must be sent as Content-Type: application/json, without an encoding."


@attrs.frozen
class UnsupportedFormType(UnsupportedMediaType):
    """Forms of the pages must have the content type that browsers send by default."""

    sentence = "A form must be sent as Content-Type: application/x-www-form-urlencoded."


@attrs.frozen
class MalformedRequest(BadInput):
    """The server cannot read the request as HTTP/1.1."""

    code = "malformed_request"
    sentence = "This is not an HTTP/1.1 request that the server can read."


@attrs.frozen
class RequestTimedOut(BadInput):
    """The request was not complete in time; nothing was changed."""

    code = "request_timeout"
    sentence = "The request did not arrive in time."


@attrs.frozen
class HeadersTooLarge(BadInput):
    """The request line and headers are larger than the limit."""

    code = "headers_too_large"
    sentence = "The request line and headers must have at most {limit_bytes} bytes."
    limit_bytes: int


@attrs.frozen
class UnsupportedTransferCoding(BadInput):
    """The request has a `Transfer-Encoding` other than `chunked`."""

    code = "transfer_encoding_not_supported"
    sentence = "The only supported Transfer-Encoding is chunked."


@attrs.frozen
class FormRefused(Forbidden):
    """The browser did not get this form from the dashboard in its current session."""

    code = "form_refused"
    sentence = "This form is no longer valid; open the page again and send it once more."


@attrs.frozen
class RateLimited(LimitReached):
    """A rate policy refuses the request, the address is blocked, or the limiter fails.

    `rule` names the policy, except for the one that counts by address.
    """

    code = "rate_limited"
    sentence = "Too many requests; try again in {retry_after_s} s."
    rule: str | None
    limit: int
    remaining: int
    reset_at: Instant
    retry_after_s: int
    reason: RateLimitReason

    @property
    def details(self) -> Mapping[str, Any]:
        """The facts; `rule` only if there is one."""
        return {name: value for name, value in super().details.items() if value is not None}


class AddressBlocked(RateLimited):
    """The address requested too many unknown paths (contract §9)."""

    sentence = (
        "This address is blocked after too many requests for unknown paths; try again in "
        "{retry_after_s} s."
    )


class RateLimiterUnavailable(RateLimited):
    """The limiter does not answer, so nobody is admitted; the caller has reached no limit."""

    sentence = (
        "The service cannot count requests at present, so it admits none. You have reached no "
        "limit; try again in {retry_after_s} s."
    )


REFUSALS: Mapping[RateLimitReason, type[RateLimited]] = {
    "rate_limit_exceeded": RateLimited,
    "rate_limiter_unavailable": RateLimiterUnavailable,
    "abuse_blocked": AddressBlocked,
}
"""The error of each reason: all have one code, and each says what happened."""


@attrs.frozen
class InternalError(PaymentsError):
    """An internal error occurred; the response contains only the request id."""

    code = "internal_error"
    sentence = "An internal error occurred; include the request id when you report it."


STATUSES: Mapping[type[PaymentsError], int] = {
    BadInput: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    Missing: 404,
    MethodNotAllowed: 405,
    RequestTimedOut: 408,
    ConflictError: 409,
    LengthRequired: 411,
    PayloadTooLarge: 413,
    UnsupportedMediaType: 415,
    Unprocessable: 422,
    DependencyError: 424,
    LimitReached: 429,
    HeadersTooLarge: 431,
    InternalError: 500,
    ConfigurationError: 500,
    UnsupportedTransferCoding: 501,
    ServiceUnavailable: 503,
}
"""The nearest superclass of an error gives its status."""


def status_of(kind: type[PaymentsError]) -> int:
    """The HTTP status of an error class."""
    return next(STATUSES[ancestor] for ancestor in kind.__mro__ if ancestor in STATUSES)


def encode_error(error: PaymentsError, request_id: str, doc_url: str | None = None) -> bytes:
    """The body `{error: {code, message, details}}`; the request id is always among the details,
    and the page about the error if there is one."""
    details = dict(error.details)
    if "retryAfterS" in details:
        details["retryAfterSeconds"] = details.pop("retryAfterS")
    details["requestId"] = request_id
    if doc_url is not None:
        details["docUrl"] = doc_url
    body = {"error": {"code": error.code, "message": error.message, "details": details}}
    return msgspec.json.encode(body)


def encode_flat_error(error: PaymentsError, request_id: str, doc_url: str | None = None) -> bytes:
    """The body `{success: false, error, code, requestId}`: the message, and no details."""
    body = {
        "success": False,
        "error": error.message,
        "code": error.code,
        "requestId": request_id,
    }
    return msgspec.json.encode(body)


def error_form_of(path: str) -> ErrorForm:
    """The form of errors at a path, whether it has a route or not."""
    return "flat" if path.startswith(LEGACY_PREFIX) else "nested"


ENCODERS: Mapping[ErrorForm, Callable[[PaymentsError, str, str | None], bytes]] = {
    "nested": encode_error,
    "flat": encode_flat_error,
}


def headers_of(error: PaymentsError, challenge: str) -> dict[str, str]:
    """The headers of an error; `challenge` is the scheme for a 401."""
    headers = {}
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = challenge
    if isinstance(error, MethodNotAllowed):
        headers["Allow"] = ", ".join(error.allowed)
    retry_after_s = getattr(error, "retry_after_s", None)
    if retry_after_s is not None:
        headers["Retry-After"] = str(retry_after_s)
    return headers


def to_payments_error(error: Exception, request_id: str, place: str) -> PaymentsError:
    """The error for the caller.

    What the caller is not told is written to the log: why a dependency failed, and an unexpected
    exception.
    """
    if isinstance(error, DependencyFailed) and error.__cause__ is not None:
        why = redact(str(error.__cause__))
        logger.warning("%s at %s: the %s failed: %s", request_id, place, error.dependency, why)
    if isinstance(error, PaymentsError):
        return error
    if isinstance(error, StorageUnavailable):
        logger.warning("%s at %s: storage is unavailable", request_id, place)
        return Unavailable()
    trace = "".join(traceback.format_exception(error))
    logger.error("%s at %s failed\n%s", request_id, place, redact(trace))
    return InternalError()
