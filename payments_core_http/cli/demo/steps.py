"""The steps of the demo: one Payment, start to end, seen from outside.

A step is a function from a state to the next. Each may be run again after its answer was lost: its
requests carry idempotency keys made from the run's name, or are safe to repeat. So a caller may
kill the service anywhere and continue with the same step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payments_core.evolve import evolve
from payments_core_http.cli.api_client import ApiResponse, Summarize, bearer_authorization
from payments_core_http.cli.demo.scenario import (
    DemoContext,
    DemoState,
    DemoStep,
    StepFailed,
    pick_fields,
    require_equal,
    require_status,
)

CHAIN_ID = 8453
ASSET = "USDC"
FUNDS = "100.00"
AMOUNT = "25.00"
FINAL_BLOCKS = 3

STATUSES = ("awaiting_payment", "processing", "accepted", "executing", "succeeded")
"""The statuses of a Payment that succeeds."""

EVENTS = frozenset({
    "payment.created", "payment.processing", "payment.accepted", "payment.executing",
    "payment.succeeded", "vault_funding.authorized", "vault_funding.broadcast",
    "vault_funding.confirmed",
})  # fmt: skip
"""The events of such a Payment."""

CLOCK_ADVANCES_S = (2, 2, 2, 10, 61, 61, 61, 61)
"""How far the clock is moved each time, until the Payment has succeeded. Two seconds are enough for
each transfer; a minute lets the leases of a killed worker expire."""

DELIVERY_TIMEOUT_S = 3.0


def read_config(context: DemoContext, state: DemoState) -> DemoState:
    """The credential is valid for its own environment."""
    shown = ("appId", "environmentId", "mode", "credentialType", "apiVersion", "capabilities")
    answer = context.client.call(
        "GET",
        "/v2/partners/config",
        authorization=state.backend_authorization,
        summarize=pick_fields(*shown),
    )
    config = require_status(answer, 200)
    require_equal("appId", config["appId"], state.app_id)
    require_equal("environmentId", config["environmentId"], state.environment_id)
    return state


def create_payer(context: DemoContext, state: DemoState) -> DemoState:
    """Alice, who pays."""
    return evolve(state, alice_id=_create_account(context, state, "alice"))


def create_recipient(context: DemoContext, state: DemoState) -> DemoState:
    """Bob, who is paid."""
    return evolve(state, bob_id=_create_account(context, state, "bob"))


def fund_vault(context: DemoContext, state: DemoState) -> DemoState:
    """Test funds in alice's vault."""
    answer = context.client.call(
        "POST",
        f"/v2/sandbox/accounts/{state.alice_id}/fund",
        {"chainId": CHAIN_ID, "assetSymbol": ASSET, "amount": FUNDS},
        authorization=state.backend_authorization,
        key=state.idempotency_key("fund"),
    )
    require_status(answer, 200)
    return state


def check_balances_before(context: DemoContext, state: DemoState) -> DemoState:
    """Alice has all of the funds."""
    require_equal("alice's available", _read_available(context, state, state.alice_id), "100000000")
    require_equal("bob's available", _read_available(context, state, state.bob_id), "0")
    return state


def register_webhook(context: DemoContext, state: DemoState) -> DemoState:
    """An endpoint for every event; its signing secret is passed to the receiver."""
    made = require_status(
        context.client.call(
            "POST",
            f"/v2/console/apps/{state.app_id}/environments/{state.environment_id}/webhooks",
            {
                "url": context.receiver.url + state.webhook_path,
                "description": "the demo's receiver",
            },
            authorization=state.backend_authorization,
            key=state.idempotency_key("webhook"),
        ),
        201,
    )
    context.receiver.expect(state.webhook_path, made["signingSecret"])
    return evolve(state, webhook_id=made["webhookEndpoint"]["id"])


def create_payment(context: DemoContext, state: DemoState) -> DemoState:
    """A receive Payment to bob."""
    answer = _send_creation(context, state)
    created = require_status(answer, 201)
    require_equal("status", created["status"], "awaiting_payment")
    return evolve(
        state,
        payment_id=created["paymentId"],
        client_secret=created["clientSecret"],
        created=answer.body,
    )


def repeat_creation(context: DemoContext, state: DemoState) -> DemoState:
    """Repeat the request and its key: the answer is the same to the byte, and no Payment is new."""
    answer = _send_creation(
        context, state, summarize=pick_fields("paymentId", "status", "clientSecret")
    )
    require_status(answer, 201)
    require_equal("Idempotent-Replayed", answer.headers.get("idempotent-replayed"), "true")
    if answer.body != state.created:
        raise StepFailed("the replayed body differs from the first one")
    return state


def open_session(context: DemoContext, state: DemoState) -> DemoState:
    """A token for alice, as a browser would hold it: the session's token works once.

    Without an idempotency key: if the exchange's answer was lost, a new session is needed.
    """
    session = require_status(
        context.client.call(
            "POST",
            "/v2/client-sessions",
            {
                "accountId": state.alice_id,
                "permissions": ["payments:read", "vault_payments:write"],
                "expiresInSeconds": 3600,
            },
            authorization=state.backend_authorization,
        ),
        201,
    )
    exchanged = require_status(
        context.client.call(
            "POST",
            "/v2/client/auth/exchange",
            authorization=bearer_authorization(session["clientSessionToken"]),
        ),
        200,
    )
    return evolve(state, access_token=exchanged["accessToken"])


def create_option(context: DemoContext, state: DemoState) -> DemoState:
    """The offer to pay from alice's vault, with its one-time action."""
    made = require_status(
        context.client.call(
            "POST",
            f"/v2/client/me/payments/{state.payment_id}/options",
            {"providerCode": "vault"},
            authorization=bearer_authorization(state.access_token),
            payment_secret=state.client_secret,
            key=state.idempotency_key("option"),
            summarize=lambda document: {
                "option": pick_fields(
                    "id", "providerCode", "status", "requiredAmountAtomic", "execution"
                )(document["option"])
            },
        ),
        201,
    )
    option = made["option"]
    return evolve(state, option_id=option["id"], action_id=option["execution"]["actionId"])


def authorize(context: DemoContext, state: DemoState) -> DemoState:
    """Alice's authorization is recorded, and her funds are reserved; nothing has moved yet."""
    done = require_status(
        context.client.call(
            "POST",
            f"/v2/client/me/payments/{state.payment_id}/options/{state.option_id}/authorize",
            {
                "actionId": state.action_id,
                "proof": {"type": "managed_authorization", "authorization": "approved"},
            },
            authorization=bearer_authorization(state.access_token),
            payment_secret=state.client_secret,
            key=state.idempotency_key("authorize"),
            summarize=lambda document: {
                "option": pick_fields("id", "status", "execution")(document["option"]),
                "fundingOperation": document["fundingOperation"],
            },
        ),
        200,
    )
    require_equal("fundingOperation.status", done["fundingOperation"]["status"], "authorized")
    return state


def wait_until_succeeded(context: DemoContext, state: DemoState) -> DemoState:
    """Work is done and blocks are added until the Payment has succeeded.

    The transfer to the escrow becomes final and is proven, then the release to bob.
    """
    seen = ""
    for advance_s in CLOCK_ADVANCES_S:
        _call_sandbox(context, state, "run")
        _call_sandbox(
            context,
            state,
            "blocks",
            {"chainId": CHAIN_ID, "count": FINAL_BLOCKS},
            summarize=lambda document: {
                name: document[name]["number"] for name in ("latest", "final")
            },
        )
        _call_sandbox(context, state, "clock", {"advanceSeconds": advance_s})
        seen = _get_payment(context, state, pick_fields("status", "statusVersion"))["status"]
        if seen == STATUSES[-1]:
            return state
        if seen not in STATUSES:
            break
    raise StepFailed(f"the Payment did not succeed; it is {seen}")


def read_payment(context: DemoContext, state: DemoState) -> DemoState:
    """Every status once, in order, and a receipt verified against the chain."""
    fields = ("status", "timeline", "receipts", "settledAmountAtomic", "succeededAt")
    payment = _get_payment(context, state, pick_fields(*fields))
    require_equal("timeline", tuple(entry["status"] for entry in payment["timeline"]), STATUSES)
    require_equal("receipts", [receipt["status"] for receipt in payment["receipts"]], ["verified"])
    require_equal("settledAmountAtomic", payment["settledAmountAtomic"], "25000000")
    return state


def check_balances_after(context: DemoContext, state: DemoState) -> DemoState:
    """The amount has moved from alice to bob, and nothing is reserved."""
    require_equal("alice's available", _read_available(context, state, state.alice_id), "75000000")
    require_equal("bob's available", _read_available(context, state, state.bob_id), "25000000")
    return state


def receive_webhooks(context: DemoContext, state: DemoState) -> DemoState:
    """The receiver has verified a delivery of every event of the Payment."""

    def find_missing(deliveries: list[dict[str, Any]]) -> set[str]:
        return set(EVENTS) - {facts["name"] for facts in select_verified(deliveries, state)}

    for advance_s in (0, 61, 61):
        if advance_s:  # attempts that failed, or whose worker was killed, become due again
            _call_sandbox(context, state, "clock", {"advanceSeconds": advance_s})
        if context.receiver.wait_for(
            lambda deliveries: not find_missing(deliveries), DELIVERY_TIMEOUT_S
        ):
            return state
    lacking = ", ".join(sorted(find_missing(context.receiver.read_deliveries())))
    raise StepFailed(f"the receiver has not verified {lacking}")


STEPS = (
    DemoStep("config", "The key opens its environment", read_config),
    DemoStep("create-payer", "Alice's account, with a vault on every chain", create_payer),
    DemoStep("create-recipient", "Bob's account", create_recipient),
    DemoStep("fund", "Test funds for alice's vault", fund_vault),
    DemoStep("balances-before", "Both balances, before", check_balances_before),
    DemoStep("webhook", "A webhook endpoint; its secret goes to the receiver", register_webhook),
    DemoStep("create-payment", "A receive Payment to bob, with its own escrow", create_payment),
    DemoStep("repeat", "The same request again: replayed, not repeated", repeat_creation),
    DemoStep("client-session", "A client session for alice, exchanged for a token", open_session),
    DemoStep("option", "The Vault option, with its one-time action", create_option),
    DemoStep("authorize", "Alice authorizes; her funds are reserved", authorize),
    DemoStep(
        "watch", "Work, blocks and time, until the Payment has succeeded", wait_until_succeeded
    ),
    DemoStep("read-payment", "The Payment's timeline and its verified receipt", read_payment),
    DemoStep("balances-after", "Both balances, after", check_balances_after),
    DemoStep(
        "webhooks",
        "Every event was delivered, and its signature verified",
        receive_webhooks,
        facts=lambda context, state: {"verified": _map_event_ids(context, state)},
    ),
)
"""The demo."""


def select_verified(deliveries: list[dict[str, Any]], state: DemoState) -> list[dict[str, Any]]:
    """The verified deliveries of this run's Payment."""
    return [
        facts
        for facts in deliveries
        if facts["verified"]
        and facts["path"] == state.webhook_path
        and facts["payload"].get("paymentId") == state.payment_id
    ]


def _map_event_ids(context: DemoContext, state: DemoState) -> dict[str, str]:
    """The verified events of the Payment, by name."""
    return {
        facts["name"]: facts["eventId"]
        for facts in select_verified(context.receiver.read_deliveries(), state)
    }


def _create_account(context: DemoContext, state: DemoState, name: str) -> str:
    created = require_status(
        context.client.call(
            "POST",
            "/v2/accounts",
            {"externalUserId": f"{name}-{state.run}", "subjectType": "individual"},
            authorization=state.backend_authorization,
            key=state.idempotency_key(name),
            summarize=pick_fields(
                "accountId", "externalUserId", "subjectType", "status", "createdAt"
            ),
        ),
        201,
    )
    return str(created["accountId"])


def _read_available(context: DemoContext, state: DemoState, account_id: str) -> str:
    """The account's available balance of the demo's asset, in atomic units."""
    answer = context.client.call(
        "GET",
        f"/v2/accounts/{account_id}/balances",
        authorization=state.backend_authorization,
        summarize=lambda document: {
            "balances": [row for row in document["balances"] if _is_demo_asset(row)]
        },
    )
    for balance in require_status(answer, 200)["balances"]:
        if _is_demo_asset(balance):
            return str(balance["availableAtomic"])
    return "0"


def _is_demo_asset(balance: Mapping[str, Any]) -> bool:
    return (balance["chainId"], balance["assetSymbol"]) == (CHAIN_ID, ASSET)


def _send_creation(
    context: DemoContext, state: DemoState, summarize: Summarize = lambda document: document
) -> ApiResponse:
    return context.client.call(
        "POST",
        "/v2/payments",
        {
            "intent": "receive",
            "amount": AMOUNT,
            "chainId": CHAIN_ID,
            "assetSymbol": ASSET,
            "destination": {"type": "account", "accountId": state.bob_id},
            "reference": f"order {state.run}",
        },
        authorization=state.backend_authorization,
        key=state.idempotency_key("payment"),
        summarize=summarize,
    )


def _get_payment(context: DemoContext, state: DemoState, summarize: Summarize) -> Mapping[str, Any]:
    answer = context.client.call(
        "GET",
        f"/v2/payments/{state.payment_id}",
        authorization=state.backend_authorization,
        summarize=summarize,
    )
    payment: Mapping[str, Any] = require_status(answer, 200)
    return payment


def _call_sandbox(
    context: DemoContext,
    state: DemoState,
    path: str,
    body: Any = None,
    summarize: Summarize = lambda document: document,
) -> None:
    answer = context.client.call(
        "POST",
        f"/v2/sandbox/{path}",
        body,
        authorization=state.backend_authorization,
        summarize=summarize,
    )
    require_status(answer, 200)
