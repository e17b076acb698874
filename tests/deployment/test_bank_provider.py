"""A payout at a bank in a process of its own settles and is returned by webhook, and each review
before it is decided by one, though each webhook comes twice and an answer is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from payments_core_http.cli.api_client import ApiClient
from payments_core_http.cli.child_processes import ChildProcess
from tests.deployment.deployed import client_of, deployed_on, shop
from tests.deployment.installed import install

STORAGES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))
SEEN_S = 60.0
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


class Bank:
    """The example's bank."""

    def __init__(self) -> None:
        self.child = ChildProcess("bank", "examples.custom_bank.service")
        self.url = str(self.child.wait_until_ready()["url"])

    @property
    def setting(self) -> str:
        return "example+" + self.url.replace("://", "://example-key:example-secret@")

    def order(self, name: str, **said: Any) -> None:
        with urlopen(Request(f"{self.url}/orders/{name}", json.dumps(said).encode())) as answer:
            answer.read()

    def wait_for_key(self, kind: str) -> str:
        """The key of the one request of a kind, once the bank has it."""

        wait_until(lambda: bool(self.keys(kind)))
        [key] = self.keys(kind)
        return key

    def keys(self, kind: str) -> list[str]:
        with urlopen(f"{self.url}/orders") as answer:
            return list(json.load(answer)[kind])


def wait_until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SEEN_S
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Partner:
    """A partner's calls."""

    def __init__(self, client: ApiClient, credential: str) -> None:
        self.client, self.credential = client, credential

    def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        answer = self.client.call(method, path, body, authorization=self.credential, key=key)
        assert answer.status in (200, 201, 202), answer.body
        return answer.document

    def wait_for(self, path: str, seen: Callable[[Any], bool]) -> None:
        wait_until(lambda: seen(self.call("GET", path)))


@pytest.mark.parametrize("storage", STORAGES)
def test_a_payout_settles_and_is_returned_by_webhook(
    storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, ADAPTER, {"banks:example": "open_url"})
    bank = Bank()
    try:
        with deployed_on(storage, tmp_path) as deployed:
            deployed.configure(**{"providers.bank": {"url": bank.setting}})
            deployed.run("admin", "migrate")
            _, credential = shop(deployed)
            with deployed.started("serve") as serve, deployed.started("worker"):
                client = client_of(serve)
                bank.order("webhooks", url=f"{client.base_url}/providers/bank/example")
                bank.order("faults", webhooks="twice", lost_answers=1)
                play(Partner(client, credential), bank)
            assert deployed.admin("jobs", "parked") == []
            assert deployed.admin("notices", "list") == []
    finally:
        bank.child.end()


def play(partner: Partner, bank: Bank) -> None:
    """An account is paid out, and its payout comes back."""
    body = {"externalUserId": "eve", "subjectType": "individual"}
    account = partner.call("POST", "/v2/accounts", body, "a")["accountId"]
    fund = {"chainId": 8453, "assetSymbol": "USDC", "amount": "100.00"}
    partner.call("POST", f"/v2/sandbox/accounts/{account}/fund", fund)
    partner.call("POST", f"/v2/sandbox/accounts/{account}/kyc", {"status": "approved"})

    path = f"/v2/accounts/{account}"
    partner.call("POST", f"{path}/capability-activations", {"capability": "us_bank_payout"}, "c")
    key = bank.wait_for_key("capabilities")
    bank.order("approve", kind="capabilities", key=key)
    needs = f"{path}/bank-account-requirements"
    partner.wait_for(needs, lambda found: bool(found["eligible"]))

    made = partner.call("POST", f"{path}/bank-accounts", BANK_ACCOUNT, "b")
    bank.order("approve", kind="recipients", key=bank.wait_for_key("recipients"))
    partner.wait_for(f"{path}/bank-accounts", lambda found: found["data"][0]["status"] == "active")

    to = {"type": "bank_account", "bankAccountId": made["id"], "rail": "ach"}
    body = {"intent": "send", "amount": "25.00", "destination": to}
    body["source"] = {"type": "vault", "accountId": account}
    payment = f"/v2/payments/{partner.call('POST', '/v2/payments', body, 'p')['paymentId']}"
    while not bank.keys("payouts"):  # its tokens become final as the clock advances
        partner.call("POST", "/v2/sandbox/clock", {"advanceSeconds": 20})
        time.sleep(0.2)
    [key] = bank.keys("payouts")
    bank.order("settle", key=key)
    partner.wait_for(payment, lambda found: found["status"] == "succeeded")
    bank.order("return", key=key, code="R03")
    partner.wait_for(payment, lambda found: found["status"] == "action_required")
    payout = partner.call("GET", payment)["payout"]
    assert (payout["status"], payout["returnCode"]) == ("returned", "R03")
