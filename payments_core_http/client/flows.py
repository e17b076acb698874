"""What the flows of the synchronous and the asynchronous clients decide."""

from __future__ import annotations

from urllib.parse import urlsplit

from payments_core_http.client.responses import CheckoutState, Option

IN_PROCESS = "http://localhost"
"""The address of an application in this process; nothing connects to it."""

_UNDER_WAY = frozenset({"awaiting_payment", "processing", "accepted", "executing"})


class NothingToAuthorize(ValueError):
    """The option waits for no authorization: it was already authorized, or has expired."""


def approve(option: Option) -> str:
    """The one-time action that authorizes the option's transfer. Raises NothingToAuthorize."""
    if option.execution is None:
        raise NothingToAuthorize(f"option {option.id} is {option.status} and takes no action")
    return option.execution.action_id


def code_of_link(payment_url: str) -> str:
    """The code in a Payment's link. Raises ValueError."""
    _, slash, code = urlsplit(payment_url).path.rpartition("/pay/")
    if not slash or not code or "/" in code:
        raise ValueError("this is not the link of a Payment")
    return code


def step_key(idempotency_key: str | None, step: str) -> str | None:
    """The key of one call of a flow."""
    return None if idempotency_key is None else f"{idempotency_key} {step}"


def is_under_way(state: CheckoutState) -> bool:
    """Whether the Payment may still change by itself; an unknown status may not."""
    return state.status in _UNDER_WAY
