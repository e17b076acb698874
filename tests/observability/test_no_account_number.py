"""Account numbers are in no trace, webhook, page, error or repr; `tests/http/v2/bank_accounts` and
`onramps` look into the files, logs, events and backups."""

from __future__ import annotations

from typing import Any
from wsgiref.validate import validator

import attrs
import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from payments_core.accounts.bank_accounts.fields import NewBankAccount, NewPostalAddress
from payments_core.accounts.bank_accounts.operations import open_details
from payments_core.accounts.bank_accounts.record import BankAccount
from payments_core.banks.port import AccountRegistration, PayoutOrder
from payments_core.errors import ValidationFailed
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.validation.readers import PYTHON
from payments_core_http.app import create_app
from payments_core_http.observability.metrics import Metrics
from payments_core_http.routes import ROUTES
from tests.http.checkout import Checkout
from tests.http.console import HOOK, Receiver
from tests.http.dashboard.operator_browser import open_browser
from tests.http.payment_bodies import BANK_ACCOUNT
from tests.http.v2.accounts.test_account_routes import Partner
from tests.observability.test_tracing import Spans

PLANTED = "73910264851"
REFUSED = "60473918255"
TOO_LONG = "604739182556047391825560473918255"


class Shop(Checkout):
    """A payer with both capabilities, whose requests and jobs are traced, and with a webhook."""

    def __init__(self, metrics: Metrics) -> None:
        self.spans = Spans(metrics)
        self.receiver = Receiver()
        super().__init__(MemoryStorage(), transport=self.receiver, telemetry=self.spans.traced)
        api = self.api
        api.app = create_app(
            api.service,  # type: ignore[arg-type]
            mode="sandbox",
            routes=ROUTES,
            observer=self.spans.traced,
        )
        api.validated = validator(api.app)
        environment = f"/v2/console/apps/{api.app_row.id}/environments/{api.partition}"
        self.call(f"{environment}/webhooks", {"url": HOOK})
        self.owner = Partner(self)
        self.call(f"/v2/sandbox/accounts/{self.owner.id}/kyc", {"status": "approved"})
        for capability in ("us_bank_payout", "us_bank_funding"):
            self.owner.call("POST", "/capability-activations", {"capability": capability})
        self.pass_time()

    def call(self, path: str, body: Any, **more: Any) -> Any:
        seen = self.api.call("POST", path, body, **more)
        assert seen.status < 300, seen.body
        return seen.json

    def pass_time(self) -> None:
        self.call("/v2/sandbox/clock", {"advanceSeconds": 120})

    def add(self, **changes: str) -> Any:
        return self.owner.call("POST", "/bank-accounts", {**BANK_ACCOUNT, **changes})


def test_no_trace_webhook_page_or_answer_holds_an_account_number(metrics: Metrics) -> None:
    shop = Shop(metrics)
    answers = [shop.add(accountNumber=number) for number in (PLANTED, TOO_LONG)]
    answers += [shop.add(accountNumber=REFUSED, routingNumber="021000022")]
    assert [answer.status for answer in answers] == [201, 400, 400]
    shop.pass_time()
    body = {
        "intent": "send",
        "amount": "5.00",
        "source": {"type": "vault", "accountId": shop.owner.id},
        "destination": {
            "type": "bank_account", "bankAccountId": answers[0].json["id"], "rail": "ach",
        },
    }  # fmt: skip
    payment_id = shop.call("/v2/payments", body, key="payout")["paymentId"]
    shop.pass_time()
    answers += [shop.api.call("GET", f"/v2/payments/{payment_id}")]
    for outcome in ({"outcome": "settle"}, {"outcome": "return", "code": "R03"}):
        shop.call(f"/v2/sandbox/payouts/{payment_id}", outcome)
    destination = {"type": "vault", "chainId": 8453, "assetSymbol": "USDC"}
    onramp = {"currency": "usd", "destination": destination}
    id = shop.owner.call("POST", "/onramp-bank-accounts", onramp).json["id"]
    shop.pass_time()
    path = f"/onramp-bank-accounts/{id}"
    number = shop.owner.call("GET", f"{path}/deposit-instructions").json["accountNumber"]
    shop.call(
        "/v2/sandbox/bank-deposits",
        {"onrampBankAccountId": id, "amount": "7.00", "rail": "wire"},
    )
    shop.pass_time()
    answers += [
        shop.owner.call("GET", f"{path}/transactions"),
        shop.owner.call("GET", "/onramp-bank-accounts"),
        shop.owner.call("GET", "/bank-accounts"),
    ]
    browser = open_browser(shop)
    pages = [browser.get("/dashboard/payments"), browser.get(f"/dashboard/payments/{payment_id}")]
    pages += [browser.get("/dashboard/webhooks")]
    assert [page.status for page in pages] == [200, 200, 200]
    assert payment_id.encode() in pages[1].body

    sent = [repr(request) + request.body.decode() for request in shop.receiver.sent]
    traces = [span.to_json() for span in shop.spans.all]  # type: ignore[attr-defined]
    assert any("payment.action_required" in text for text in sent)
    assert any("bank_funding.settled" in text for text in sent)
    names = {span.name for span in shop.spans.all}  # type: ignore[attr-defined]
    assert "POST /v2/accounts/{accountId}/bank-accounts" in names
    assert any("payouts.follow" in name for name in names)
    texts = [*sent, *traces, *(seen.body.decode() for seen in (*answers, *pages))]
    for planted in (PLANTED, REFUSED, TOO_LONG, number):
        assert not [text for text in texts if planted in text], planted

    row = shop.api.service.parts.ports.storage.read(
        shop.api.partition, lambda snapshot: snapshot.get(BankAccount, answers[0].json["id"])
    )
    assert row is not None
    details = open_details(shop.api.service.parts.ports.key_ring, row)
    assert details.account_number == PLANTED
    order = PayoutOrder(key="k", rail="ach", amount_cents=1, recipient=details)
    registration = AccountRegistration(
        key="k", account=details, bank_name=None, address=row.address
    )
    authority = shop.api.service.tenants.system_authority(shop.api.partition)
    opened = shop.api.service.acting_as(authority).onramps.read_instructions(shop.owner.id, id)
    assert opened.account_number == number
    for value in (row, details, order, registration, opened):
        assert PLANTED not in repr(value), type(value)
        assert number not in repr(value), type(value)


@pytest.mark.parametrize("number", [TOO_LONG, f"{REFUSED} ", f"{REFUSED}x"])
def test_no_error_or_input_of_the_library_shows_the_number(number: str) -> None:
    home = NewPostalAddress(line1="1 Main", city="New York", state="NY", postal_code="10001",
                            country="US")  # fmt: skip
    new = NewBankAccount(
        currency="usd", country="US", account_holder_name="Ada", account_holder_type="individual",
        account_number=number, routing_number="021000021", account_type="checking", address=home,
    )  # fmt: skip
    with pytest.raises(ValidationFailed) as refused:
        PYTHON.read(new, type(new))
    [fault] = refused.value.fields
    assert (fault.path, fault.message) == ("account_number", "must be 4 to 17 digits")
    for value in (new, attrs.evolve(new, bank_name="A"), refused.value):
        assert REFUSED not in f"{value!r} {value}"
