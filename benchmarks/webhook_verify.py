"""Verifying a delivery of 400 bytes, beside the verifiers of `stripe` and `standardwebhooks`.

    python -m benchmarks.webhook_verify

Each verifies the same delivery, signed just now, in the form that it takes: ours and `stripe`
the text of one header, ours and `standardwebhooks` the three headers of Standard Webhooks. Ours
also parses the envelope; `stripe`'s does not parse the body, `standardwebhooks`' makes a dict of
it. Rounds are interleaved, so that a busy machine is busy for all; medians are compared.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

from standardwebhooks import Webhook
from stripe import WebhookSignature

from payments_core.entropy import system_entropy
from payments_core.webhooks import signing, verify

BODY_BYTES = 400
ROUNDS = 25
CALLS = 2_000
AIM_STRIPE = 1.5
AIM_STANDARD = 3.0


def main() -> None:
    """Print microseconds, and how many times as fast ours is."""
    body = _body()
    secret = signing.new_secret(system_entropy)
    headers = signing.sign_headers([secret], "evt_bench", int(time.time()), body)
    text = body.decode()
    own = headers[signing.SIGNATURE_HEADER]
    standard = {name: value for name, value in headers.items() if name.startswith("webhook-")}
    webhook = Webhook(secret)
    times = _measured(
        {
            "ours": lambda: verify(body, own, secret),
            "stripe": lambda: WebhookSignature.verify_header(text, own, secret, tolerance=300),
            "stripe, json.loads": lambda: (
                WebhookSignature.verify_header(text, own, secret, tolerance=300),
                json.loads(text),
            ),
            "ours, standard": lambda: verify(body, standard, secret),
            "standardwebhooks": lambda: webhook.verify(body, standard),
            "ours, both": lambda: verify(body, headers, secret),
        }
    )
    print(f"{len(body)} bytes, median of {ROUNDS} interleaved rounds of {CALLS:,}")
    for name, us in times.items():
        print(f"  {name:18} {us:6.2f} us")
    for ours, theirs, aim in (
        ("ours", "stripe", AIM_STRIPE),
        ("ours", "stripe, json.loads", None),
        ("ours", "standardwebhooks", AIM_STANDARD),
        ("ours, standard", "standardwebhooks", AIM_STANDARD),
        ("ours, both", "standardwebhooks", None),
    ):
        aimed = "" if aim is None else f" (aim {aim})"
        print(f"  {ours}: {times[theirs] / times[ours]:.2f} x {theirs}{aimed}")


def _body() -> bytes:
    event = {
        "id": "evt_-P23J5k-D8QQDDBxu8rHlL0O",
        "name": "deposit.settled",
        "apiVersion": "2026-09-09",
        "createdAt": "2026-09-21T14:13:20.000Z",
        "payload": {
            "depositId": "deposit_-P23J5k-4hVqZ0bEwY7uRk1N",
            "accountId": "acct_-P23J5k-Wm5sXo8TgLc2aJ9e",
            "externalUserId": "customer-4711",
            "chainId": 137,
            "assetSymbol": "USDC",
            "amount": "125.50",
            "txHash": "0x",
            "status": "settled",
        },
    }
    payload: dict[str, object] = event["payload"]  # type: ignore[assignment]
    payload["txHash"] = "0x" + "9f" * ((BODY_BYTES - len(json.dumps(event))) // 2)
    return json.dumps(event).encode().ljust(BODY_BYTES)


def _measured(verifiers: dict[str, Callable[[], object]]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in verifiers}
    for _ in range(ROUNDS):
        for name, verifier in verifiers.items():
            began = time.perf_counter()
            for _ in range(CALLS):
                verifier()
            times[name].append((time.perf_counter() - began) / CALLS * 1_000_000)
    return {name: statistics.median(each) for name, each in times.items()}


if __name__ == "__main__":
    main()
