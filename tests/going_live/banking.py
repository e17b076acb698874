"""What customers and their backend do with the bank, and what the bank does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.going_live.customers import SYMBOL, Customer, Stage
from tests.going_live.deployment import wait_until

SEEN_S = 120.0
CENTS = 100
ATOMS_OF_A_CENT = 10_000
CAPABILITIES = ("us_bank_payout", "us_bank_funding")
RETURN_CODE = "R03"
BANK_ACCOUNT = {
    "currency": "usd",
    "country": "US",
    "accountHolderName": "Ada",
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

Row = Mapping[str, Any]


def _wait_for_row(
    stage: Stage, kind: str, has: Callable[[str, Row], bool], number: int = 1
) -> list[str]:
    """The keys of the bank's rows of a kind, once it has so many of these."""
    found: list[str] = []

    def look() -> bool:
        rows = stage.live.bank.read()[kind]
        found[:] = [key for key, row in rows.items() if has(key, row)]
        return len(found) >= number

    wait_until(look, SEEN_S, f"the bank has {kind}")
    return found


def activate(stage: Stage, customer: Customer) -> None:
    """The customer may use the bank: its two services are asked for, and the bank agrees."""
    path = f"/v2/accounts/{customer.account_id}/capability-activations"
    for name in CAPABILITIES:
        stage.ask("POST", path, {"capability": name}, f"{name}-{customer.name}")
    asked_by, number = customer.account_id, len(CAPABILITIES)
    keys = _wait_for_row(stage, "capabilities", lambda key, row: row["account"] == asked_by, number)
    for key in keys:
        stage.live.bank.order("approve", kind="capabilities", key=key)


def add_bank_account(stage: Stage, customer: Customer) -> None:
    """The customer's account at another bank, which ours agrees to pay."""
    path = f"/v2/accounts/{customer.account_id}/bank-accounts"
    made = stage.ask("POST", path, BANK_ACCOUNT, f"bank-account-{customer.name}")
    customer.bank_account_id = made["id"]
    [key] = _wait_for_row(stage, "recipients", lambda key, row: key == made["id"])
    stage.live.bank.order("approve", kind="recipients", key=key)


def open_onramp(stage: Stage, customer: Customer) -> None:
    """A number at the bank, whose dollars become tokens in the customer's vault."""
    destination = {"type": "vault", "chainId": customer.chain_id, "assetSymbol": SYMBOL}
    path = f"/v2/accounts/{customer.account_id}/onramp-bank-accounts"
    body = {"currency": "usd", "destination": destination}
    customer.onramp_id = stage.ask("POST", path, body, f"onramp-{customer.name}")["id"]


def transfer_to_onramp(stage: Stage, customer: Customer) -> None:
    """Somebody sends dollars to the number; the bank buys tokens and delivers them."""
    bank = stage.live.bank
    cents = customer.bought * CENTS
    made = bank.order("transfer", account=customer.onramp_id, cents=cents)
    bank.order("receive", id=made["id"])
    [key] = _wait_for_row(stage, "deliveries", lambda key, row: row["transfer"] == made["id"])
    delivery = bank.read()["deliveries"][key]
    stage.live.chains[delivery["chain"]].pay(delivery["to"], int(delivery["atomic"]))


def pay_out(stage: Stage, customer: Customer) -> None:
    """The vault pays the customer's bank account, and the payout settles."""
    source = {"type": "vault", "accountId": customer.account_id, "chainId": customer.chain_id}
    to = {"type": "bank_account", "bankAccountId": customer.bank_account_id, "rail": "ach"}
    body = {
        "intent": "send",
        "amount": f"{customer.paid_out}.00",
        "source": {**source, "assetSymbol": SYMBOL},
        "destination": to,
    }
    made = stage.ask("POST", "/v2/payments", body, f"payout-{customer.name}")
    customer.payout_id = made["id"]
    [key] = _wait_for_row(stage, "payouts", lambda key, row: customer.payout_id in key)
    stage.live.bank.order("settle", key=key)


def return_payout(stage: Stage, customer: Customer) -> None:
    """The payout comes back after it has settled; the partner has it refunded to the vault."""
    [key] = _wait_for_row(stage, "payouts", lambda key, row: customer.payout_id in key)
    stage.live.bank.order("return", key=key, code=RETURN_CODE)
    payments, id = stage.books.payments, customer.payout_id
    wait_until(
        lambda: payments.read(id).payment.status == "action_required",
        SEEN_S,
        "the return is seen",
    )
    body = {"action": "refund", "note": "the bank account was closed"}
    stage.ask("POST", f"/v2/payments/{id}/reconcile", body, f"return-{customer.name}")
