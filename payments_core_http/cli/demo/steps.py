"""The steps of the demo: one Payment, start to end, seen from outside.

A step is a function from what is known to what is known afterwards. Each may be run again after
its answer was lost: its requests carry idempotency keys made from the run's name, or repeat
harmlessly. So a caller may kill the service anywhere and go on with the same step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from payments_core_http.cli.client import Answer, Brief, bearer
from payments_core_http.cli.demo.stage import Known, Stage, Step, StepFailed, expect, only, same

CHAIN_ID = 8453
ASSET = "USDC"
FUNDS = "100.00"
AMOUNT = "25.00"
FINAL_BLOCKS = 3

STATUSES = ("awaiting_payment", "processing", "accepted", "executing", "succeeded")
"""What a Payment goes through when all is well."""

EVENTS = frozenset({
    "payment.created", "payment.processing", "payment.accepted", "payment.executing",
    "payment.succeeded", "vault_funding.authorized", "vault_funding.broadcast",
    "vault_funding.confirmed",
})  # fmt: skip
"""The events of such a Payment."""

ADVANCES_S = (2, 2, 2, 10, 61, 61, 61, 61)
"""How far the clock is moved, time after time, until the Payment has succeeded. Two seconds are
enough for each transfer; a minute lets the leases of a worker that was killed run out."""

DELIVERY_S = 3.0


def read_config(stage: Stage, known: Known) -> Known:
    """The credential opens its own environment."""
    shown = ("appId", "environmentId", "mode", "credentialType", "apiVersion", "capabilities")
    answer = stage.client.call(
        "GET", "/v2/partners/config", authorization=known.backend, brief=only(*shown)
    )
    config = expect(answer, 200)
    same("appId", config["appId"], known.app_id)
    same("environmentId", config["environmentId"], known.environment_id)
    return known


def create_payer(stage: Stage, known: Known) -> Known:
    """Alice, who pays."""
    return attrs.evolve(known, alice_id=_account(stage, known, "alice"))


def create_recipient(stage: Stage, known: Known) -> Known:
    """Bob, who is paid."""
    return attrs.evolve(known, bob_id=_account(stage, known, "bob"))


def fund_vault(stage: Stage, known: Known) -> Known:
    """Test funds in alice's vault."""
    answer = stage.client.call(
        "POST",
        f"/v2/sandbox/accounts/{known.alice_id}/fund",
        {"chainId": CHAIN_ID, "assetSymbol": ASSET, "amount": FUNDS},
        authorization=known.backend,
        key=known.key("fund"),
    )
    expect(answer, 200)
    return known


def balances_before(stage: Stage, known: Known) -> Known:
    """All of the funds are alice's."""
    same("alice's available", _available(stage, known, known.alice_id), "100000000")
    same("bob's available", _available(stage, known, known.bob_id), "0")
    return known


def register_webhook(stage: Stage, known: Known) -> Known:
    """An endpoint for every event, and its signing secret, which the receiver is given."""
    made = expect(
        stage.client.call(
            "POST",
            f"/v2/console/apps/{known.app_id}/environments/{known.environment_id}/webhooks",
            {"url": stage.receiver.url + known.hook, "description": "the demo's receiver"},
            authorization=known.backend,
            key=known.key("webhook"),
        ),
        201,
    )
    stage.receiver.expect(known.hook, made["signingSecret"])
    return attrs.evolve(known, webhook_id=made["webhookEndpoint"]["id"])


def create_payment(stage: Stage, known: Known) -> Known:
    """A receive Payment to bob."""
    answer = _creation(stage, known)
    created = expect(answer, 201)
    same("status", created["status"], "awaiting_payment")
    return attrs.evolve(
        known,
        payment_id=created["paymentId"],
        client_secret=created["clientSecret"],
        created=answer.body,
    )


def repeat_creation(stage: Stage, known: Known) -> Known:
    """The same request with the same key: the same answer, byte for byte, and no second Payment."""
    answer = _creation(stage, known, brief=only("paymentId", "status", "clientSecret"))
    expect(answer, 201)
    same("Idempotent-Replayed", answer.headers.get("idempotent-replayed"), "true")
    if answer.body != known.created:
        raise StepFailed("the replayed body differs from the first one")
    return known


def open_session(stage: Stage, known: Known) -> Known:
    """A token of alice's own, as a browser would hold it: the session's token works once.

    Without an idempotency key: where the exchange's answer was lost, a new session is needed.
    """
    session = expect(
        stage.client.call(
            "POST",
            "/v2/client-sessions",
            {
                "accountId": known.alice_id,
                "permissions": ["payments:read", "vault_payments:write"],
                "expiresInSeconds": 3600,
            },
            authorization=known.backend,
        ),
        201,
    )
    exchanged = expect(
        stage.client.call(
            "POST", "/v2/client/auth/exchange", authorization=bearer(session["clientSessionToken"])
        ),
        200,
    )
    return attrs.evolve(known, access_token=exchanged["accessToken"])


def create_option(stage: Stage, known: Known) -> Known:
    """The offer to pay from alice's vault, with its one-time action."""
    made = expect(
        stage.client.call(
            "POST",
            f"/v2/client/me/payments/{known.payment_id}/options",
            {"providerCode": "vault"},
            authorization=bearer(known.access_token),
            payment_secret=known.client_secret,
            key=known.key("option"),
            brief=lambda document: {
                "option": only("id", "providerCode", "status", "requiredAmountAtomic", "execution")(
                    document["option"]
                )
            },
        ),
        201,
    )
    option = made["option"]
    return attrs.evolve(known, option_id=option["id"], action_id=option["execution"]["actionId"])


def authorize(stage: Stage, known: Known) -> Known:
    """Alice's authorization is recorded, and her funds are reserved; nothing has moved yet."""
    done = expect(
        stage.client.call(
            "POST",
            f"/v2/client/me/payments/{known.payment_id}/options/{known.option_id}/authorize",
            {
                "actionId": known.action_id,
                "proof": {"type": "managed_authorization", "authorization": "approved"},
            },
            authorization=bearer(known.access_token),
            payment_secret=known.client_secret,
            key=known.key("authorize"),
            brief=lambda document: {
                "option": only("id", "status", "execution")(document["option"]),
                "fundingOperation": document["fundingOperation"],
            },
        ),
        200,
    )
    same("fundingOperation.status", done["fundingOperation"]["status"], "authorized")
    return known


def watch(stage: Stage, known: Known) -> Known:
    """Work is done and blocks are added until the Payment has succeeded.

    The transfer to the escrow becomes final and is proven, then the release to bob.
    """
    seen = ""
    for advance_s in ADVANCES_S:
        _sandbox(stage, known, "run")
        _sandbox(
            stage,
            known,
            "blocks",
            {"chainId": CHAIN_ID, "count": FINAL_BLOCKS},
            brief=lambda document: {name: document[name]["number"] for name in ("latest", "final")},
        )
        _sandbox(stage, known, "clock", {"advanceSeconds": advance_s})
        seen = _payment(stage, known, only("status", "statusVersion"))["status"]
        if seen == STATUSES[-1]:
            return known
        if seen not in STATUSES:
            break
    raise StepFailed(f"the Payment did not succeed; it is {seen}")


def read_payment(stage: Stage, known: Known) -> Known:
    """Every status once, in order, and a receipt verified against the chain."""
    fields = ("status", "timeline", "receipts", "settledAmountAtomic", "succeededAt")
    payment = _payment(stage, known, only(*fields))
    same("timeline", tuple(entry["status"] for entry in payment["timeline"]), STATUSES)
    same("receipts", [receipt["status"] for receipt in payment["receipts"]], ["verified"])
    same("settledAmountAtomic", payment["settledAmountAtomic"], "25000000")
    return known


def balances_after(stage: Stage, known: Known) -> Known:
    """The amount has gone from alice to bob, and nothing is reserved."""
    same("alice's available", _available(stage, known, known.alice_id), "75000000")
    same("bob's available", _available(stage, known, known.bob_id), "25000000")
    return known


def receive_webhooks(stage: Stage, known: Known) -> Known:
    """The receiver has verified a delivery of every event of the Payment."""

    def missing(deliveries: list[dict[str, Any]]) -> set[str]:
        return set(EVENTS) - {facts["name"] for facts in verified(deliveries, known)}

    for advance_s in (0, 61, 61):
        if advance_s:  # attempts that failed, or whose worker was killed, fall due again
            _sandbox(stage, known, "clock", {"advanceSeconds": advance_s})
        if stage.receiver.wait_for(lambda deliveries: not missing(deliveries), DELIVERY_S):
            return known
    lacking = ", ".join(sorted(missing(stage.receiver.deliveries())))
    raise StepFailed(f"the receiver has not verified {lacking}")


STEPS = (
    Step("config", "The key opens its environment", read_config),
    Step("create-payer", "Alice's account, with a vault on every chain", create_payer),
    Step("create-recipient", "Bob's account", create_recipient),
    Step("fund", "Test funds for alice's vault", fund_vault),
    Step("balances-before", "Both balances, before", balances_before),
    Step("webhook", "A webhook endpoint; its secret goes to the receiver", register_webhook),
    Step("create-payment", "A receive Payment to bob, with an escrow of its own", create_payment),
    Step("repeat", "The same request again: replayed, not repeated", repeat_creation),
    Step("client-session", "A client session for alice, exchanged for a token", open_session),
    Step("option", "The Vault option, with its one-time action", create_option),
    Step("authorize", "Alice authorizes; her funds are reserved", authorize),
    Step("watch", "Work, blocks and time, until the Payment has succeeded", watch),
    Step("read-payment", "The Payment's timeline and its verified receipt", read_payment),
    Step("balances-after", "Both balances, after", balances_after),
    Step(
        "webhooks",
        "Every event was delivered, and its signature verified",
        receive_webhooks,
        facts=lambda stage, known: {"verified": _event_ids(stage, known)},
    ),
)
"""The demo."""


def verified(deliveries: list[dict[str, Any]], known: Known) -> list[dict[str, Any]]:
    """The verified deliveries of this run's Payment."""
    return [
        facts
        for facts in deliveries
        if facts["verified"]
        and facts["path"] == known.hook
        and facts["payload"].get("paymentId") == known.payment_id
    ]


def _event_ids(stage: Stage, known: Known) -> dict[str, str]:
    """The verified events of the Payment, by name."""
    return {
        facts["name"]: facts["eventId"] for facts in verified(stage.receiver.deliveries(), known)
    }


def _account(stage: Stage, known: Known, name: str) -> str:
    created = expect(
        stage.client.call(
            "POST",
            "/v2/accounts",
            {"externalUserId": f"{name}-{known.run}", "subjectType": "individual"},
            authorization=known.backend,
            key=known.key(name),
            brief=only("accountId", "externalUserId", "subjectType", "status", "createdAt"),
        ),
        201,
    )
    return str(created["accountId"])


def _available(stage: Stage, known: Known, account_id: str) -> str:
    """The account's available balance of the demo's asset, in atomic units."""
    answer = stage.client.call(
        "GET",
        f"/v2/accounts/{account_id}/balances",
        authorization=known.backend,
        brief=lambda document: {"balances": [row for row in document["balances"] if _ours(row)]},
    )
    for balance in expect(answer, 200)["balances"]:
        if _ours(balance):
            return str(balance["availableAtomic"])
    return "0"


def _ours(balance: Mapping[str, Any]) -> bool:
    return (balance["chainId"], balance["assetSymbol"]) == (CHAIN_ID, ASSET)


def _creation(stage: Stage, known: Known, brief: Brief = lambda document: document) -> Answer:
    return stage.client.call(
        "POST",
        "/v2/payments",
        {
            "intent": "receive",
            "amount": AMOUNT,
            "chainId": CHAIN_ID,
            "assetSymbol": ASSET,
            "destination": {"type": "account", "accountId": known.bob_id},
            "reference": f"order {known.run}",
        },
        authorization=known.backend,
        key=known.key("payment"),
        brief=brief,
    )


def _payment(stage: Stage, known: Known, brief: Brief) -> Mapping[str, Any]:
    answer = stage.client.call(
        "GET", f"/v2/payments/{known.payment_id}", authorization=known.backend, brief=brief
    )
    payment: Mapping[str, Any] = expect(answer, 200)
    return payment


def _sandbox(
    stage: Stage,
    known: Known,
    door: str,
    body: Any = None,
    brief: Brief = lambda document: document,
) -> None:
    answer = stage.client.call(
        "POST", f"/v2/sandbox/{door}", body, authorization=known.backend, brief=brief
    )
    expect(answer, 200)
