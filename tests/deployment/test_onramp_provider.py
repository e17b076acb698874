"""A payer buys at an on-ramp in a process of its own, on its page, and the escrow's receipt ends
the Payment, though an answer is lost and each webhook comes twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from payments_core_http.cli.api_client import bearer_authorization
from tests.deployment.deployed import deployed_on, shop
from tests.deployment.installed import install
from tests.deployment.played_provider import Played, PlayedProvider, wait_until

STORAGES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))
ADAPTER = "from examples.custom_onramp.adapter import open_url"


class Checkout(Played):
    """A shop whose payers buy at the on-ramp, which delivers on the sandbox's chains."""

    def open(self) -> None:
        self.start_serve()
        self.start_worker()
        body = {"externalUserId": "bakery", "subjectType": "business"}
        self.account = self.call("POST", "/v2/accounts", body, "bakery")["accountId"]
        credential = f"{self.app_id}:{self.app_secret}"
        self.provider.order("chain", url=self.client().base_url, credential=credential)

    app_secret: str = ""
    account: str = ""


@pytest.fixture
def checkout(storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Checkout]:
    install(tmp_path, monkeypatch, ADAPTER, {"onramps:example": "open_url"})
    provider = PlayedProvider("onramp", "examples.custom_onramp.service")
    with deployed_on(storage, tmp_path) as deployed:
        deployed.configure(**{"providers.onramp": {"url": provider.setting}})
        deployed.run("admin", "migrate")
        app, credential = shop(deployed)
        key = deployed.admin("keys", "create", "shop", "--name", "chain")
        made = Checkout(deployed, provider, app["appId"], app["sandboxEnvironmentId"], credential)
        made.app_secret = key["secret"]
        try:
            made.open()
            yield made
        finally:
            made.end()
            provider.child.end()


class Purchase:
    """A Payment of 25.00 USDC that is bought, by its client secret."""

    def __init__(self, checkout: Checkout) -> None:
        self.checkout = checkout
        destination = {"type": "account", "accountId": checkout.account}
        body = {"intent": "receive", "amount": "25.00", "destination": destination}
        body["allowedMethods"] = ["hosted_onramp"]
        made = checkout.call("POST", "/v2/payments", body, "payment")
        self.path = f"/v2/public/payments/{made['paymentId']}"
        link = made["paymentUrl"].rpartition("/")[2]
        exchanged = checkout.client().call(
            "POST", f"/v2/public/payment-links/{link}/exchange", authorization=""
        )
        self.secret = exchanged.document["clientSecret"]

    def call(self, method: str, path: str, body: Any = None) -> Any:
        authorization = bearer_authorization(self.secret)
        return self.checkout.client().call(
            method, f"{self.path}{path}", body, authorization=authorization
        )

    def select(self) -> str:
        """Have an option offered; the URL of its execution."""
        created = self.call("POST", "/options", {"providerCode": "hosted_onramp"})
        assert created.status == 201, created.body
        self.option = f"/options/{created.document['option']['id']}"
        selected = self.call("POST", f"{self.option}/select").document["option"]
        assert selected["execution"]["type"] == "redirect"
        return str(selected["execution"]["url"])

    def status(self) -> str:
        return str(self.call("GET", "/state").document["status"])


def press(url: str, button: str, card: str = "4242 4242 4242 4242") -> None:
    """What the payer does on the provider's page."""
    with urlopen(url) as page:
        assert b"Pay 25.50 USD" in page.read()
    with urlopen(Request(url, urlencode({"card": card, "do": button}).encode())) as page:
        page.read()


@pytest.mark.parametrize("storage", STORAGES)
def test_a_purchase_pays_the_escrow_and_ends_the_payment(checkout: Checkout) -> None:
    checkout.provider.order("faults", webhooks="twice", lost_answers=1)
    purchase = Purchase(checkout)
    lost = purchase.call("POST", "/options", {"providerCode": "hosted_onramp"})
    assert lost.status == 424, lost.body
    press(purchase.select(), "pay")
    wait_until(lambda: purchase.status() in ("processing", "succeeded"))
    checkout.call("POST", "/v2/sandbox/clock", {"advanceSeconds": 60})
    wait_until(lambda: purchase.status() == "succeeded")
    assert len(checkout.provider.read()) == 1
    assert checkout.deployed.admin("jobs", "parked") == []
    assert checkout.deployed.admin("notices", "list") == []


@pytest.mark.parametrize("storage", STORAGES)
def test_a_payer_who_gives_up_may_choose_again(checkout: Checkout) -> None:
    purchase = Purchase(checkout)
    press(purchase.select(), "cancel")

    def option() -> Any:
        return purchase.call("GET", purchase.option).document["option"]

    wait_until(lambda: option()["status"] == "failed")
    assert purchase.status() == "awaiting_payment"
    press(purchase.select(), "pay")
    wait_until(lambda: purchase.status() in ("processing", "succeeded"))
    assert len(checkout.provider.read()) == 2


@pytest.mark.parametrize("storage", STORAGES)
def test_a_short_delivery_is_an_underpayment_whatever_the_provider_says(checkout: Checkout) -> None:
    checkout.provider.order("faults", deliveries="short", webhooks="late")
    purchase = Purchase(checkout)
    press(purchase.select(), "pay")

    def option() -> Any:
        return purchase.call("GET", purchase.option).document["option"]

    wait_until(lambda: option()["offer"]["status"] == "delivered")
    checkout.call("POST", "/v2/sandbox/clock", {"advanceSeconds": 60})
    wait_until(lambda: option()["paidAmountAtomic"] == "12500000")
    assert option()["remainingAmountAtomic"] == "12500000"
    assert purchase.status() in ("awaiting_payment", "processing")
