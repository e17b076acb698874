"""Bodies that create Payments of every intent, and what there is after they were sent."""

from __future__ import annotations

from typing import Any

from payments_core.engine.idempotency.record import StoredResponse
from payments_core.payments.record import Payment
from tests.http.api_harness import Seen
from tests.http.checkout import BASE, Checkout

OUTSIDE = "0x00000000000000000000000000000000000E0e0E"
WALLET = {"type": "wallet", "address": OUTSIDE}
BANK_ACCOUNT = {
    "currency": "usd",
    "country": "US",
    "accountHolderName": "Ada Lovelace",
    "accountHolderType": "individual",
    "accountNumber": "000123456789",
    "routingNumber": "021000021",
    "accountType": "checking",
    "address": {
        "line1": "1 Main St",
        "city": "New York",
        "state": "NY",
        "postalCode": "10001",
        "country": "US",
    },
}
BANK = {"type": "bank_account", "bankAccountId": "bank_account_1", "rail": "ach"}
NO_ACCOUNT = "acct_" + "A" * 24
NO_PAYMENT = "payment_" + "A" * 24


def create(checkout: Checkout, body: Any, *, key: str | None = "k", **more: Any) -> Seen:
    return checkout.api.call("POST", "/v2/payments", body, key=key, **more)


def send(checkout: Checkout, amount: str = "5", **changes: Any) -> dict[str, Any]:
    source = {"type": "vault", "accountId": checkout.payer}
    body = {"intent": "send", "amount": amount, "source": source, "destination": WALLET}
    return {**body, **changes}


def mandate(checkout: Checkout, amount: str = "20") -> str:
    vaults = checkout.api.call("GET", f"/v2/accounts/{checkout.payer}").json["vaults"]
    [vault_id] = [vault["vaultId"] for vault in vaults if vault["chainId"] == BASE]
    body = {"vaultId": vault_id, "amountPerPeriod": amount, "period": "month"}
    seen = checkout.api.call("POST", f"/v2/accounts/{checkout.payer}/mandates", body)
    assert seen.status == 201, seen.body
    return str(seen.json["id"])


def collect(checkout: Checkout, mandate_id: str, **changes: Any) -> dict[str, Any]:
    to = {"type": "account", "accountId": checkout.merchant}
    body = {"intent": "collect", "amount": "5", "mandateId": mandate_id, "destination": to}
    return {**body, **changes}


def receive(checkout: Checkout, **changes: Any) -> dict[str, Any]:
    to = {"type": "account", "accountId": checkout.merchant}
    return {"intent": "receive", "amount": "5", "destination": to, **changes}


def stored(checkout: Checkout) -> tuple[int, int]:
    """How many Payments there are, and how many stored answers."""
    partition, read = checkout.api.partition, checkout.api.service.parts.ports.storage.read
    payments = read(partition, lambda s: s.find(Payment, "by_created", limit=100)).records
    answers = read(partition, lambda s: s.find(StoredResponse, "by_expiry", limit=100)).records
    return len(payments), len(answers)


def error_of(seen: Seen) -> Any:
    """The error without what differs from call to call."""
    error = seen.json["error"]
    del error["details"]["requestId"]
    return seen.status, error
