"""Reusable on-ramps, as a partner's backend calls them, with the bank routes of the sandbox."""

from __future__ import annotations

import logging
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from payments_core.onramps import operations
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from payments_core.storage.sqlite.backups import backup
from payments_core.storage_loader import open_storage
from tests.http.checkout import Checkout
from tests.http.v2.accounts.test_account_routes import NOBODY, Partner

BASE = 8453
WALLET = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
NO_ONRAMP = "onramp_account_" + "0" * 24
OTHER = {"externalUserId": "other", "subjectType": "business"}
FUNDING = {"capability": "us_bank_funding"}
ONRAMP: dict[str, Any] = {
    "currency": "usd",
    "destination": {"type": "vault", "chainId": BASE, "assetSymbol": "USDC"},
}


def sandbox(checkout: Checkout, path: str, body: Any, key: str | None = None) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    seen = checkout.api.call("POST", f"/v2/sandbox/{path}", body, headers=headers)
    assert seen.status < 300, seen.body
    return seen


def open_shop(storage: Storage) -> tuple[Checkout, Partner]:
    """A payer whose capability us_bank_funding is active."""
    checkout = Checkout(storage)
    payer = Partner(checkout)
    sandbox(checkout, f"accounts/{payer.id}/kyc", {"status": "approved"})
    assert payer.call("POST", "/capability-activations", FUNDING).status == 202
    sandbox(checkout, "run", {})
    sandbox(checkout, "clock", {"advanceSeconds": 60})
    return checkout, payer


@pytest.fixture
def checkout() -> Checkout:
    return open_shop(MemoryStorage())[0]


@pytest.fixture
def payer(checkout: Checkout) -> Partner:
    return Partner(checkout)


def changed(path: str, value: Any) -> dict[str, Any]:
    """The body with one field changed, or left out where the value is `...`."""
    body = deepcopy(ONRAMP)
    *parents, name = path.split(".")
    inner = body
    for parent in parents:
        inner = inner[parent]
    if value is ...:
        del inner[name]
    else:
        inner[name] = value
    return body


def add(checkout: Checkout, payer: Partner) -> str:
    made = payer.call("POST", "/onramp-bank-accounts", ONRAMP)
    assert made.status == 201, made.body
    sandbox(checkout, "run", {})
    id: str = made.json["id"]
    return id


def test_an_on_ramp_from_its_number_to_the_credit(checkout: Checkout, payer: Partner) -> None:
    made = payer.call("POST", "/onramp-bank-accounts", ONRAMP, key="o")
    assert made.status == 201, made.body
    onramp = made.json
    id = onramp["id"]
    assert onramp["onrampBankAccountId"] == id
    assert (onramp["status"], onramp["last4"]) == ("pending", None)
    again = payer.call("POST", "/onramp-bank-accounts", ONRAMP, key="o")
    assert (again.status, again.body) == (201, made.body)
    early = payer.call("GET", f"/onramp-bank-accounts/{id}/deposit-instructions")
    assert (early.status, early.code) == (409, "invalid_state")
    sandbox(checkout, "run", {})
    [found] = payer.call("GET", "/onramp-bank-accounts").json["data"]
    assert (found["id"], found["status"]) == (id, "active")
    seen = payer.call("GET", f"/onramp-bank-accounts/{id}/deposit-instructions")
    assert seen.headers["cache-control"] == "no-store"
    instructions = seen.json
    assert set(instructions) == {
        "bankName", "bankAddress", "beneficiaryName", "beneficiaryAddress", "accountNumber",
        "routingNumber", "rails", "reference",
    }  # fmt: skip
    assert instructions["accountNumber"].endswith(found["last4"])
    assert instructions["rails"] == ["ach_push", "wire"]

    deposit = {"onrampBankAccountId": id, "amount": "100.00", "rail": "wire"}
    sent = sandbox(checkout, "bank-deposits", deposit, key="d")
    assert (sent.json["amount"], sent.json["status"]) == ("100.00", "received")
    assert sandbox(checkout, "bank-deposits", deposit, key="d").body == sent.body
    sandbox(checkout, "clock", {"advanceSeconds": 60})
    listed = payer.call("GET", f"/onramp-bank-accounts/{id}/transactions").json
    [transaction] = listed["data"]
    assert transaction["id"].startswith("bank_txn_")
    assert (transaction["status"], transaction["type"]) == ("settled", "transfer")
    assert (transaction["amount"], transaction["amountAtomic"]) == ("100.00", "100000000")
    assert transaction["destination"] == found["destination"]
    assert transaction["transactionHash"].startswith("0x")
    events = checkout.api.call("GET", "/v2/console/events?limit=100").json["data"]
    reported = [event for event in events if event["name"].startswith("bank_funding.")]
    assert {event["payload"]["transactionId"] for event in reported} == {transaction["id"]}
    assert {event["payload"]["amount"] for event in reported} == {"100.00"}


def test_transactions_have_pages_newest_first(checkout: Checkout, payer: Partner) -> None:
    id = add(checkout, payer)
    for cents in range(3):
        deposit = {"onrampBankAccountId": id, "amount": f"1.0{cents}", "rail": "wire"}
        sandbox(checkout, "bank-deposits", deposit)
        sandbox(checkout, "clock", {"advanceSeconds": 5})
    path = f"/onramp-bank-accounts/{id}/transactions?limit=2"
    first = payer.call("GET", path).json
    rest = payer.call("GET", f"{path}&cursor={first['nextCursor']}").json
    amounts = [item["amount"] for item in first["data"] + rest["data"]]
    assert amounts == ["1.02", "1.01", "1.00"]
    assert (first["hasNextPage"], rest["hasNextPage"]) == (True, False)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("currency", "eur", "must be usd"),
        ("currency", ..., "is required"),
        ("destination", ..., "is required"),
        ("destination.type", "bank", "must be one of vault, wallet"),
        ("destination.chainId", "8453", "must be an integer"),
        ("destination.assetSymbol", ..., "is required"),
        ("destination.address", WALLET, "must be left out"),
        ("destination.iban", "US00", "is not a known field"),
    ],
)
def test_a_field_that_is_wrong_is_named_with_what_it_should_be(
    payer: Partner, path: str, value: Any, says: str
) -> None:
    seen = payer.call("POST", "/onramp-bank-accounts", changed(path, value))
    assert seen.status == 400
    assert set(seen.faults) == {path}
    assert says in seen.faults[path]


def test_a_wallet_needs_its_address(payer: Partner) -> None:
    body = changed("destination.type", "wallet")
    seen = payer.call("POST", "/onramp-bank-accounts", body)
    assert set(seen.faults) == {"destination.address"}
    body["destination"]["address"] = WALLET
    seen = payer.call("POST", "/onramp-bank-accounts", body)
    assert (seen.status, seen.json["destination"]["address"]) == (201, WALLET)


def test_the_requirements_say_what_is_missing() -> None:
    checkout = Checkout(MemoryStorage())
    found = Partner(checkout).call("GET", "/onramp-bank-account-requirements").json
    assert (found["eligible"], found["reasons"]) == (False, ["capability_not_active"])
    assert (found["rails"], found["wallets"]) == ([], [])
    seen = Partner(checkout).call("POST", "/onramp-bank-accounts", ONRAMP)
    assert (seen.status, seen.code) == (422, "capability_not_active")


def test_the_requirements_are_the_rules(payer: Partner) -> None:
    found = payer.call("GET", "/onramp-bank-account-requirements").json
    assert (found["eligible"], found["reasons"]) == (True, [])
    assert found["rails"] == ["ach_push", "wire"]
    fields = {field["name"]: field for field in found["fields"]}
    assert fields["destination.chainId"]["type"] == "integer"
    for name, field in fields.items():
        body = changed(name, ...) if field["required"] else ONRAMP
        expected = 400 if field["required"] else 201
        assert payer.call("POST", "/onramp-bank-accounts", body).status == expected, name


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/onramp-bank-account-requirements", None),
        ("POST", "/onramp-bank-accounts", ONRAMP),
        ("GET", "/onramp-bank-accounts", None),
        ("GET", f"/onramp-bank-accounts/{NO_ONRAMP}/deposit-instructions", None),
        ("GET", f"/onramp-bank-accounts/{NO_ONRAMP}/transactions", None),
    ],
)
def test_what_is_nobodys_is_not_found(
    checkout: Checkout, payer: Partner, method: str, path: str, body: Any
) -> None:
    seen = Partner(checkout, NOBODY).call(method, path, body)
    assert (seen.status, seen.code) == (404, "not_found")
    if NO_ONRAMP in path:
        seen = payer.call(method, path, body)
        assert (seen.status, seen.code) == (404, "not_found")


@pytest.mark.parametrize("amount", ["0.00", "1.001", "1000000000000.00"])
def test_the_route_refuses_what_no_rail_carries(
    checkout: Checkout, payer: Partner, amount: str
) -> None:
    body = {"onrampBankAccountId": add(checkout, payer), "amount": amount, "rail": "ach_push"}
    seen = checkout.api.call("POST", "/v2/sandbox/bank-deposits", body)
    assert seen.status == 400
    assert set(seen.faults) == {"amount"}


def test_no_file_log_event_or_backup_holds_the_number_of_an_on_ramp(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "payments.db"
    storage = open_storage(f"sqlite:///{file}", RECORD_TYPES)
    storage.migrate()
    checkout, payer = open_shop(storage)
    id = add(checkout, payer)
    seen = payer.call("GET", f"/onramp-bank-accounts/{id}/deposit-instructions")
    number = seen.json["accountNumber"]
    for outcome in ("receive", "review", "unmatched"):
        deposit = {
            "onrampBankAccountId": id, "amount": "5.00", "rail": "wire", "outcome": outcome,
        }  # fmt: skip
        sandbox(checkout, "bank-deposits", deposit)
    failing = {"dependency": "bank", "operation": "open_virtual_account", "times": 2}
    sandbox(checkout, "failures", failing)
    add(checkout, payer)
    sandbox(checkout, "clock", {"advanceSeconds": 2 * 3_600})
    answers = [
        payer.call("GET", "/onramp-bank-accounts"),
        payer.call("GET", f"/onramp-bank-accounts/{id}/transactions"),
        checkout.api.call("GET", "/v2/console/events?limit=100"),
    ]
    assert b"bank_funding.settled" in answers[2].body
    backup(file, tmp_path / "backup.db", RECORD_TYPES)
    texts = [answer.body for answer in answers] + [caplog.text.encode()]
    texts += [path.read_bytes() for path in tmp_path.iterdir()]
    assert len(texts) > len(answers) + 2
    assert not [text for text in texts if number.encode() in text]
    storage.close()


def test_an_account_has_so_many_on_ramps_at_most(
    checkout: Checkout, payer: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MAX_ONRAMPS", 2)
    for _ in range(2):
        add(checkout, payer)
    refused = payer.call("POST", "/onramp-bank-accounts", ONRAMP)
    assert (refused.status, refused.code) == (409, "conflict")
    assert "at most 2 on-ramps" in refused.body.decode()
    found = payer.call("GET", "/onramp-bank-account-requirements").json
    assert (found["eligible"], found["reasons"]) == (False, ["onramp_limit_reached"])
    assert (found["rails"], found["wallets"]) == ([], [])
    assert len(payer.call("GET", "/onramp-bank-accounts").json["data"]) == 2
    account = checkout.api.call("POST", "/v2/accounts", OTHER).json["accountId"]
    refused = Partner(checkout, account).call("POST", "/onramp-bank-accounts", ONRAMP)
    assert (refused.status, refused.code) == (422, "capability_not_active")
