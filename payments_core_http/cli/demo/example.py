"""The open Payment at the end of the demo, for a person to open its checkout page."""

from __future__ import annotations

from payments_core_http.cli.api_client import ApiClient
from payments_core_http.cli.demo.scenario import DemoState, require_status
from payments_core_http.cli.demo.steps import AMOUNT


def create_example(client: ApiClient, state: DemoState) -> str:
    """The checkout page of another, open Payment. Raises StepFailed."""
    answer = client.call(
        "POST",
        "/v2/payments",
        {
            "intent": "receive",
            "amount": AMOUNT,
            "destination": {"type": "account", "accountId": state.bob_id},
            "allowedMethods": ["direct"],
            "description": "An order to pay in your browser",
        },
        authorization=state.backend_authorization,
        key=state.idempotency_key("example"),
    )
    return str(require_status(answer, 201)["paymentUrl"])
