"""Operations that happen once per idempotency key, by the library or HTTP (contract §4).

HTTP makes an `IdempotentRequest` of a header and a body, and `once_per_key` one of a key and the
arguments of a call. From there on the path is the same: `engine/idempotency` and the committer.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from functools import cache, partial, wraps
from typing import Any, ParamSpec, TypeVar, cast, get_type_hints

import attrs

from payments_core.engine.committer import Committer
from payments_core.engine.idempotency.record import (
    PUBLIC_RETENTION_MS,
    AlreadyResponded,
    IdempotentRequest,
    Response,
    response_id,
)
from payments_core.errors import PaymentsError
from payments_core.storage import documents
from payments_core.tenants.authorization import Authority

P = ParamSpec("P")
T = TypeVar("T")

_NO_STATUS = 0
"""A result of the library has no HTTP status."""
_NOT_FINGERPRINTED = frozenset({"self", "authority", "idempotency_key"})


def once_per_key(operation: Callable[P, T]) -> Callable[P, T]:
    """An operation that happens once for an `idempotency_key`, and then returns the same result.

    Keys belong to the principal of the `authority`, as in HTTP, which shares them. A
    failure stores nothing, so the same key may be used again. An `IdempotentRequest` in place of
    a key means that the caller renders the response itself. Raises IdempotencyConflict for a key
    used with other arguments or another operation.
    """
    signature = inspect.signature(operation)

    @wraps(operation)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        key: object = kwargs.get("idempotency_key")
        if key is None or isinstance(key, IdempotentRequest):
            return operation(*args, **kwargs)
        call = signature.bind(*args, **kwargs).arguments
        authority: Authority = call["authority"]
        committer: Committer = call["self"]._committer
        request = build_request(
            authority,
            cast(str, key),
            _compute_fingerprint(operation, call),
            committer.response_retention_ms,
            partial(_render_result, operation, authority.api_version),
        )
        try:
            return respond_once(
                partial(committer.replay, authority, request),
                lambda: operation(*args, **{**kwargs, "idempotency_key": request}),  # type: ignore[arg-type]
            )
        except AlreadyResponded as earlier:
            result: T = documents.decode_value(_result_type(operation), earlier.response.body)
            return result

    return run


def build_request(
    authority: Authority,
    key: str,
    fingerprint: str,
    retention_ms: int,
    render: Callable[[Any], Response],
) -> IdempotentRequest:
    """The idempotent request of a call."""
    if authority.requirement.caller == "public":
        retention_ms = min(retention_ms, PUBLIC_RETENTION_MS)
    return IdempotentRequest(
        id=response_id(authority.partition, authority.principal, key),
        fingerprint=fingerprint,
        render=render,
        retention_ms=retention_ms,
    )


def respond_once(replay: Callable[[], None], handle: Callable[[], T]) -> T:
    """The result of `handle`, unless the call had a response before: then `replay` raises.

    Another call may store a response meanwhile. The commit checks again; and so does a refusal,
    which the other call may have caused.
    """
    replay()
    try:
        return handle()
    except PaymentsError:
        replay()
        raise


def _compute_fingerprint(operation: Callable[..., Any], call: Mapping[str, Any]) -> str:
    """The operation and its arguments, except those with their default values.

    So a parameter that a later release adds does not change the fingerprints of calls
    without it. The leading 1 is the recipe's number, as in HTTP, whose fingerprints never equal
    these.
    """
    parameters = inspect.signature(operation).parameters
    given = {
        name: _describe(value)
        for name, value in call.items()
        if name not in _NOT_FINGERPRINTED and value != parameters[name].default
    }
    text = json.dumps((operation.__qualname__, given), sort_keys=True, default=repr)
    return "1:" + hashlib.sha256(text.encode()).hexdigest()


def _describe(value: Any) -> Any:
    """The value as JSON; `repr` represents values that an operation will refuse."""
    if attrs.has(type(value)):
        fields = attrs.fields(type(value))
        given = {one.name: (getattr(value, one.name), one.default) for one in fields}
        return {
            type(value).__name__: {
                name: _describe(item) for name, (item, default) in given.items() if item != default
            }
        }
    if isinstance(value, Mapping):
        return {str(name): _describe(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_describe(item) for item in value]
    return value


def _render_result(operation: Callable[..., Any], api_version: str, result: Any) -> Response:
    return Response(
        _NO_STATUS, documents.encode_value(_result_type(operation), result), api_version
    )


@cache
def _result_type(operation: Callable[..., Any]) -> Any:
    """The operation's declared return type; read when all names are known."""
    return get_type_hints(operation, include_extras=True)["return"]
