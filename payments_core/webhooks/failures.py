"""Why a delivery failed, in a sentence for the partner."""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.clock import Instant
from payments_core.webhooks.record import Delivery, FailedAttempt

FAILED_ATTEMPTS_KEPT = 20
"""A delivery keeps so many failed attempts: those of two rounds of ten."""

ANSWER_CHARACTERS = 400
"""The length to which the answer of a failed attempt is kept; the last answer is kept in full."""

MAX_FAILURE_CHARACTERS = 200

ENDS_UNASKED: Mapping[str, str] = {
    "forbid": "The URL leads to an address that webhooks must not use.",
    "close": "The endpoint was disabled or archived.",
    "unsubscribe": "The endpoint is no longer subscribed to such events.",
}
"""The reason, by the trigger that ends a delivery without an answer of the endpoint."""


def explain_attempt(trigger: str, status: int | None, failure: str | None) -> str:
    """Why an attempt failed: the endpoint's answer, or why there was none."""
    if status is None:
        why = failure or "The endpoint did not answer."
        return (
            why if len(why) <= MAX_FAILURE_CHARACTERS else why[: MAX_FAILURE_CHARACTERS - 1] + "…"
        )
    end = ", which is not tried again" if trigger == "refuse" else ""
    return f"The endpoint answered {status}{end}."


def add_failed(
    delivery: Delivery, status: int | None, body: str | None, failure: str, now: Instant
) -> tuple[FailedAttempt, ...]:
    """The delivery's failed attempts with one more, as they are kept."""
    answer = None if body is None else body[:ANSWER_CHARACTERS]
    failed = FailedAttempt(at_ms=now, status=status, failure=failure, answer=answer)
    return (*delivery.failed_attempts, failed)[-FAILED_ATTEMPTS_KEPT:]
