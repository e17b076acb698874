"""When a call is retried, and after how long: only if that cannot have a second effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from payments_core_http.client.calls import Call
from payments_core_http.client.codes import IdempotencyInProgress, RateLimited
from payments_core_http.client.errors import (
    ApiError,
    ClientError,
    NoResponse,
    RequestMalformed,
)

Chance = Callable[[], float]
"""Returns a number from 0 to 1; a test passes a fixed one."""


@attrs.frozen(kw_only=True)
class Retries:
    """How often and after how long calls are retried. `Retries(attempts=1)` sends each call once.

    The wait doubles with each attempt up to `longest_wait_s`, minus a random part of up to half of
    it, so that many clients do not retry at the same time. A `Retry-After` is waited for in full;
    if it is more than `longest_wait_s`, the error is raised at once.

    >>> once = Retries(attempts=1)
    >>> client = Client("https://payments.example", "app_...", "sk_sandbox_...", retries=once)
    """

    attempts: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    first_wait_s: float = 0.5
    longest_wait_s: float = 20.0

    def wait_s(
        self, call: Call[Any], failure: ClientError, attempt: int, chance: Chance
    ) -> float | None:
        """Seconds to wait after the attempt of that number, the first is 1; None gives up."""
        if attempt >= self.attempts or not _can_be_sent_again(call, failure):
            return None
        asked = failure.retry_after_s if isinstance(failure, ApiError) else None
        if asked is not None and asked > self.longest_wait_s:
            return None
        backoff = min(self.first_wait_s * 2.0 ** (attempt - 1), self.longest_wait_s)
        return (asked or 0) + backoff * (0.5 + chance() / 2)


def _can_be_sent_again(call: Call[Any], failure: ClientError) -> bool:
    """Whether the failure may pass, and a second request has no second effect."""
    if isinstance(failure, RateLimited):  # refused before anything was done
        return failure.reason != "abuse_blocked"
    if isinstance(failure, NoResponse) and not failure.was_sent:
        return not isinstance(failure, RequestMalformed)
    repeatable = call.method == "GET" or call.idempotency_key is not None
    if isinstance(failure, IdempotencyInProgress):
        return repeatable
    if isinstance(failure, ApiError):
        return repeatable and failure.may_pass
    return repeatable and isinstance(failure, NoResponse)
