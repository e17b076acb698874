"""The errors of a call: a refusal, no response, or a response that cannot be read.

An error's class says whose fault it is; `codes.py` has a class below them for each error code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs


class ClientError(Exception):
    """The call had no response that could be returned."""

    idempotency_key: str | None = None
    """The key that the request was sent with: send it again with this key to learn what it did."""


class NoResponse(ClientError):
    """The connection failed or broke, or the response took too long.

    Whether the request had an effect is not known, unless `was_sent` is False. With the same
    `idempotency_key` it can be sent again without a second effect.
    """

    def __init__(self, operation: str, reason: str, *, was_sent: bool) -> None:
        super().__init__(f"{operation}: {reason}")
        self.operation = operation
        self.was_sent = was_sent


class RequestMalformed(NoResponse, ValueError):
    """The request cannot be sent: its host or an argument has characters that HTTP cannot carry.

    Nothing was sent, and the same request would fail again.
    """

    def __init__(self, operation: str, reason: str) -> None:
        super().__init__(operation, reason, was_sent=False)


class TransportUsedElsewhere(RuntimeError):
    """The transport that was passed to the client has connections of another place.

    A client without `transport` opens its own there.
    """

    def __init__(self, place: str) -> None:
        super().__init__(
            f"the client's transport was first used in another {place}, and its connections do not "
            f"work in this one; create the client and its transport here"
        )


class ResponseMalformed(ClientError):
    """A response of success whose body this release does not understand.

    The request had its effect.
    """

    def __init__(self, operation: str, reason: str, body: bytes) -> None:
        super().__init__(f"{operation}: {reason}")
        self.operation = operation
        self.body = body


@attrs.frozen
class FieldError:
    """A wrong field of a body or query: its path, and what is expected."""

    path: str
    message: str


class ApiError(ClientError):
    """The service refused the request, or could not serve it. Nothing else happened.

    A class of `codes.py` has the facts of its code as attributes; `details` has all of them.
    A fact that an older service does not send is None.
    """

    code: str = ""

    def __init__(
        self,
        *,
        http_status: int,
        code: str,
        message: str,
        details: Mapping[str, Any],
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(f"{message} ({http_status} {code}, {details.get('requestId')})")
        self.http_status = http_status
        self.code = code
        self.message = message
        self.details = details
        self.retry_after_s = retry_after_s
        self.request_id: str | None = details.get("requestId")
        self.fields: tuple[FieldError, ...] = tuple(
            FieldError(str(one.get("path")), str(one.get("message")))
            for one in _list(details.get("fields"))
            if isinstance(one, Mapping)
        )
        for name in self._facts():
            setattr(self, name, details.get(_wire_name(name)))

    @classmethod
    def _facts(cls) -> tuple[str, ...]:
        """The attributes that a class of `codes.py` declares itself."""
        if cls.__module__ == __name__:
            return ()
        return tuple(name for name in cls.__annotations__ if name != "code")

    may_pass: ClassVar[bool] = False
    """Whether the same request may succeed a moment later."""


class InvalidRequest(ApiError):
    """The request itself is wrong; `fields` names each wrong field."""


class Unauthenticated(ApiError):
    """The credential is missing, wrong, expired or already used."""


class Forbidden(ApiError):
    """The credential is valid, but does not allow this."""


class Missing(ApiError):
    """There is no such resource for this credential."""


class Conflicting(ApiError):
    """The request conflicts with the current state of the resource."""


class Unprocessable(ApiError):
    """The request is well formed, but cannot be carried out."""


class DependencyError(ApiError):
    """A chain, bank or other service did not respond; nothing was changed."""

    may_pass = True


class LimitReached(ApiError):
    """More than a limit allows. After a rate limit, retry after `retry_after_s`."""


class ServiceError(ApiError):
    """The service failed, or something between the client and it."""

    may_pass = True


STATUS_CLASSES: Mapping[int, type[ApiError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: Missing,
    409: Conflicting,
    422: Unprocessable,
    424: DependencyError,
    429: LimitReached,
    501: InvalidRequest,
}
"""For an unknown code with a status other than 4xx and 5xx."""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _wire_name(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)
