"""An account with business at banks: payouts to its bank account, transfers to its on-ramp."""

from __future__ import annotations

from typing import Any

import attrs

from tests.http.checkout import BASE, Checkout
from tests.http.payment_bodies import BANK, BANK_ACCOUNT, send

ONRAMP = {
    "currency": "usd",
    "destination": {"type": "vault", "chainId": BASE, "assetSymbol": "USDC"},
}


@attrs.frozen
class BankBusiness:
    """The payer of a checkout, its bank account, and its on-ramp."""

    checkout: Checkout
    bank_account: str
    onramp: str

    def pay_out(self, amount: str = "25.00", **more: Any) -> str:
        """The Payment of a payout that the bank has."""
        to = {**BANK, "bankAccountId": self.bank_account}
        body = send(self.checkout, amount=amount, destination=to, **more)
        seen = self.checkout.api.call("POST", "/v2/payments", body, key=f"out-{amount}-{more}")
        assert seen.status == 201, seen.body
        self.checkout.run()
        self.checkout.advance(30)
        return str(seen.json["id"])

    def decide(self, payment_id: str, **outcome: Any) -> None:
        _post(self.checkout, f"/v2/sandbox/payouts/{payment_id}", outcome)

    def receive(self, amount: str = "100.00", **more: Any) -> str:
        """The id of a bank transfer to the on-ramp, which is not credited yet."""
        body = {"onrampBankAccountId": self.onramp, "amount": amount, "rail": "wire", **more}
        _post(self.checkout, "/v2/sandbox/bank-deposits", body)
        self.checkout.run()
        path = f"/v2/accounts/{self.checkout.payer}/onramp-bank-accounts/{self.onramp}/transactions"
        return str(self.checkout.api.call("GET", path).json["data"][0]["id"])


def open_bank_business(checkout: Checkout) -> BankBusiness:
    """The payer, whom banks know."""
    account = f"/v2/accounts/{checkout.payer}"
    _post(checkout, f"/v2/sandbox/accounts/{checkout.payer}/kyc", {"status": "approved"})
    for capability in ("us_bank_payout", "us_bank_funding"):
        _post(checkout, f"{account}/capability-activations", {"capability": capability})
    checkout.run()
    checkout.advance(60)
    bank_account = _post(checkout, f"{account}/bank-accounts", BANK_ACCOUNT)["id"]
    onramp = _post(checkout, f"{account}/onramp-bank-accounts", ONRAMP)["id"]
    checkout.run()
    checkout.advance(60)
    return BankBusiness(checkout, bank_account, onramp)


def _post(checkout: Checkout, path: str, body: Any) -> Any:
    seen = checkout.api.call("POST", path, body)
    assert seen.status < 300, seen.body
    return seen.json
