"""A payout at a bank in a process of its own settles and is returned by webhook, and each review
before it is decided by one, though an answer is lost and each webhook comes twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.deployment.deployed import deployed_on, shop
from tests.deployment.installed import install
from tests.deployment.played_provider import Played, PlayedProvider, wait_until

STORAGES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))
ADAPTER = "from examples.custom_bank.adapter import open_url"
BANK_ACCOUNT = {
    "currency": "usd",
    "country": "US",
    "accountHolderName": "Eve",
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


class Partner(Played):
    """A partner whose bank is the example's."""

    def wait_for(self, path: str, seen: Callable[[Any], bool]) -> None:
        wait_until(lambda: seen(self.call("GET", path)))

    def wait_for_key(self, kind: str) -> str:
        """The key of the one request of a kind, once the bank has it."""
        wait_until(lambda: bool(self.provider.read()[kind]))
        [key] = self.provider.read()[kind]
        return str(key)


@pytest.mark.parametrize("storage", STORAGES)
def test_a_payout_settles_and_is_returned_by_webhook(
    storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, ADAPTER, {"banks:example": "open_url"})
    bank = PlayedProvider("bank", "examples.custom_bank.service")
    with deployed_on(storage, tmp_path) as deployed:
        deployed.configure(**{"providers.bank": {"url": bank.setting}})
        deployed.run("admin", "migrate")
        app, credential = shop(deployed)
        partner = Partner(deployed, bank, app["appId"], app["sandboxEnvironmentId"], credential)
        try:
            partner.start_serve()
            partner.start_worker()
            bank.order("faults", webhooks="twice", lost_answers=1)
            play(partner)
        finally:
            partner.end()
            bank.child.end()
        assert deployed.admin("jobs", "parked") == []
        assert deployed.admin("notices", "list") == []


def play(partner: Partner) -> None:
    """An account is paid out, and its payout comes back."""
    bank = partner.provider
    body: dict[str, Any] = {"externalUserId": "eve", "subjectType": "individual"}
    account = partner.call("POST", "/v2/accounts", body, "a")["accountId"]
    fund = {"chainId": 8453, "assetSymbol": "USDC", "amount": "100.00"}
    partner.call("POST", f"/v2/sandbox/accounts/{account}/fund", fund)
    partner.call("POST", f"/v2/sandbox/accounts/{account}/kyc", {"status": "approved"})

    path = f"/v2/accounts/{account}"
    partner.call("POST", f"{path}/capability-activations", {"capability": "us_bank_payout"}, "c")
    key = partner.wait_for_key("capabilities")
    bank.order("approve", kind="capabilities", key=key)
    needs = f"{path}/bank-account-requirements"
    partner.wait_for(needs, lambda found: bool(found["eligible"]))

    made = partner.call("POST", f"{path}/bank-accounts", BANK_ACCOUNT, "b")
    bank.order("approve", kind="recipients", key=partner.wait_for_key("recipients"))
    partner.wait_for(f"{path}/bank-accounts", lambda found: found["data"][0]["status"] == "active")

    to = {"type": "bank_account", "bankAccountId": made["id"], "rail": "ach"}
    body = {"intent": "send", "amount": "25.00", "destination": to}
    body["source"] = {"type": "vault", "accountId": account}
    payment = f"/v2/payments/{partner.call('POST', '/v2/payments', body, 'p')['paymentId']}"
    while not bank.read()["payouts"]:  # its tokens become final as the clock advances
        partner.call("POST", "/v2/sandbox/clock", {"advanceSeconds": 20})
        time.sleep(0.2)
    key = partner.wait_for_key("payouts")
    bank.order("settle", key=key)
    partner.wait_for(payment, lambda found: found["status"] == "succeeded")
    bank.order("return", key=key, code="R03")
    partner.wait_for(payment, lambda found: found["status"] == "action_required")
    payout = partner.call("GET", payment)["payout"]
    assert (payout["status"], payout["returnCode"]) == ("returned", "R03")
