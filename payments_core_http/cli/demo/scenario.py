"""The parts of the demo's steps: the participants, the state, and the checks of answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from payments_core_http.cli.api_client import ApiClient, ApiResponse, Summarize, basic_authorization
from payments_core_http.cli.child_processes import ReceiverChild


class StepFailed(Exception):
    """A step did not show what it should; the text says what it showed instead."""


@attrs.frozen(kw_only=True)
class DemoState:
    """What the steps know so far. `run` names this run in users and idempotency keys."""

    run: str
    app_id: str
    app_secret: str = attrs.field(repr=False)
    environment_id: str
    alice_id: str = ""
    bob_id: str = ""
    webhook_id: str = ""
    payment_id: str = ""
    created: bytes = attrs.field(default=b"", repr=False)
    client_secret: str = attrs.field(default="", repr=False)
    access_token: str = attrs.field(default="", repr=False)
    option_id: str = ""
    action_id: str = attrs.field(default="", repr=False)

    @property
    def backend_authorization(self) -> str:
        """The Authorization of the partner's backend."""
        return basic_authorization(self.app_id, self.app_secret)

    @property
    def webhook_path(self) -> str:
        """The path of this run's webhook endpoint."""
        return f"/hooks/{self.run}"

    def idempotency_key(self, name: str) -> str:
        """The idempotency key of one request of this run."""
        return f"{self.run}-{name}"


@attrs.frozen
class DemoContext:
    """The participants: the service, through its client, and the webhook receiver."""

    client: ApiClient
    receiver: ReceiverChild


@attrs.frozen
class DemoStep:
    """A step, its name, and what it shows."""

    name: str
    shows: str
    run: Callable[[DemoContext, DemoState], DemoState]
    facts: Callable[[DemoContext, DemoState], Mapping[str, Any]] = lambda context, state: {}
    """What it shows besides requests and answers."""


def pick_fields(*names: str) -> Summarize:
    """A function that selects these fields of a document."""
    return lambda document: {name: document.get(name) for name in names}


def require_status(answer: ApiResponse, status: int) -> Any:
    """The answer's document. Raises StepFailed if the status is another one."""
    if answer.status != status:
        text = answer.body[:500].decode("utf-8", "replace")
        raise StepFailed(f"expected status {status}, got {answer.status}: {text}")
    return answer.document


def require_equal(name: str, seen: object, expected: object) -> None:
    """Raise StepFailed if they differ."""
    if seen != expected:
        raise StepFailed(f"{name} is {seen!r}, expected {expected!r}")
