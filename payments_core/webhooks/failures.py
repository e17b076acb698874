"""Why a delivery failed, in a sentence for the partner."""

from __future__ import annotations

from collections.abc import Mapping

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
