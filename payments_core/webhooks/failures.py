"""Why a delivery failed, in a sentence for the partner."""

from __future__ import annotations

from collections.abc import Mapping

MAX_FAILURE_CHARACTERS = 200

ENDS_UNASKED: Mapping[str, str] = {
    "forbid": "The URL leads to an address that webhooks must not use.",
    "close": "The endpoint was disabled or archived.",
    "unsubscribe": "The endpoint no longer wants such events.",
}
"""By the trigger that ends a delivery without the endpoint's word."""


def explain_attempt(trigger: str, status: int | None, failure: str | None) -> str:
    """Why an attempt failed: what the endpoint answered, or why no answer came."""
    if status is None:
        why = failure or "The endpoint did not answer."
        return (
            why if len(why) <= MAX_FAILURE_CHARACTERS else why[: MAX_FAILURE_CHARACTERS - 1] + "…"
        )
    end = ", which is not tried again" if trigger == "refuse" else ""
    return f"The endpoint answered {status}{end}."
