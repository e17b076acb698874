"""Creating Payments of every intent, and reading what they received, over the WSGI door."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.clock import iso
from payments_core.idempotency.record import StoredAnswer
from payments_core.payments.record import Payment
from payments_core.storage.memory import MemoryStorage
from payments_core.storage.port import Storage
from tests.http.checkout import BASE, Checkout
from tests.http.door import Seen
from tests.http.test_checkout import PAYMENT_FIELDS

OUTSIDE = "0x00000000000000000000000000000000000E0e0E"
WALLET = {"type": "wallet", "address": OUTSIDE}
BANK = {"type": "bank_account", "bankAccountId": "bank_account_1", "rail": "ach"}
NO_ACCOUNT = "acct_" + "A" * 24
NO_PAYMENT = "payment_" + "A" * 24


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


def create(checkout: Checkout, body: Any, *, key: str | None = "k", **more: Any) -> Seen:
    return checkout.door.call("POST", "/v2/payments", body, key=key, **more)


def send(checkout: Checkout, amount: str = "5", **changes: Any) -> dict[str, Any]:
    source = {"type": "vault", "accountId": checkout.payer}
    body = {"intent": "send", "amount": amount, "source": source, "destination": WALLET}
    return {**body, **changes}


def mandate(checkout: Checkout, amount: str = "20") -> str:
    vaults = checkout.door.call("GET", f"/v2/accounts/{checkout.payer}").json["vaults"]
    [vault_id] = [vault["vaultId"] for vault in vaults if vault["chainId"] == BASE]
    body = {"vaultId": vault_id, "amountPerPeriod": amount, "period": "month"}
    seen = checkout.door.call("POST", f"/v2/accounts/{checkout.payer}/mandates", body)
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
    partition, read = checkout.door.partition, checkout.door.service.storage.read
    payments = read(partition, lambda s: s.find(Payment, "by_created", limit=100)).records
    answers = read(partition, lambda s: s.find(StoredAnswer, "by_expiry", limit=100)).records
    return len(payments), len(answers)


def error_of(seen: Seen) -> Any:
    """The error without what differs from call to call."""
    error = seen.json["error"]
    del error["details"]["requestId"]
    return seen.status, error


@pytest.mark.parametrize(
    "url",
    [
        "https://user:word@shop.example/",
        "https://shop.example/a\\b",
        "https://sh op.example/",
        "http://shop.example/",
        "https://",
        "https://[v1.x]/",
        "https://shop.example:443443/",
    ],
)
def test_a_payer_is_sent_to_a_good_url_or_to_none(storage: Storage, url: str) -> None:
    checkout = Checkout(storage)
    before = stored(checkout)
    seen = create(checkout, receive(checkout, successUrl=url, cancelUrl=url))
    assert seen.status == 400, seen.body
    fields = seen.json["error"]["details"]["fields"]
    assert {field["path"] for field in fields} == {"successUrl", "cancelUrl"}
    assert stored(checkout) == before


# Sends


def test_a_send_answers_exactly_a_payment_without_escrow_secret_or_link(storage: Storage) -> None:
    checkout = Checkout(storage)
    seen = create(checkout, send(checkout, reference="r-1", metadata={"a": [1]}))
    assert seen.status == 201, seen.body
    now = iso(checkout.clock.now())
    payment = seen.json
    id, source = payment["id"], payment["source"]
    assert payment == {
        "id": id,
        "paymentId": id,
        "intent": "send",
        "status": "processing",
        "statusVersion": 1,
        "accountId": checkout.payer,
        "externalUserId": "payer",
        "amount": "5.00",
        "amountAtomic": "5000000",
        "assetSymbol": "USDC",
        "decimals": 6,
        "chainId": BASE,
        "tokenAddress": payment["tokenAddress"],
        "receivedAmountAtomic": "0",
        "remainingAmountAtomic": "0",
        "excessAmountAtomic": "0",
        "settledAmountAtomic": "0",
        "refundedAmountAtomic": "0",
        "fees": {"feeBps": 0, "feeAmountAtomic": "0", "paidBy": "recipient"},
        "source": {
            "type": "vault",
            "accountId": checkout.payer,
            "externalUserId": "payer",
            "vaultId": source["vaultId"],
            "address": source["address"],
            "mandateId": None,
            "policyVersion": 1,
        },
        "destination": {
            "type": "wallet",
            "accountId": None,
            "externalUserId": None,
            "paymentAddress": None,
            "address": OUTSIDE,
        },
        "escrow": None,
        "releaseTransactionHash": None,
        "selectedOptionId": None,
        "options": [],
        "receipts": [],
        "refunds": [],
        "reconciliation": {"status": "none", "labels": [], "resolution": None, "resolvedAt": None},
        "sessionId": None,
        "timeline": [{"status": "processing", "at": now, "reason": None}],
        "failure": None,
        "reference": "r-1",
        "description": None,
        "metadata": {"a": [1]},
        "apiVersion": "2026-09-09",
        "paymentUrl": None,
        "successUrl": None,
        "cancelUrl": None,
        "expiresAt": None,
        "monitoringExpiresAt": None,
        "succeededAt": None,
        "cancelledAt": None,
        "createdAt": now,
        "updatedAt": now,
    }
    assert checkout.available(checkout.payer) == ("95.00", "5000000")
    checkout.advance(20)
    done = checkout.read(id)
    assert set(done) == PAYMENT_FIELDS
    assert (done["status"], done["settledAmountAtomic"]) == ("succeeded", "5000000")
    assert [entry["status"] for entry in done["timeline"]] == [
        "processing", "executing", "succeeded",
    ]  # fmt: skip
    assert checkout.available(checkout.payer) == ("95.00", "0")


@pytest.mark.parametrize(
    "destination",
    [
        {"type": "account", "externalUserId": "merchant"},
        {"type": "payment_address", "paymentAddress": "merchant@shop"},
    ],
)
def test_a_send_pays_an_account_by_any_of_its_names(
    checkout: Checkout, destination: dict[str, str]
) -> None:
    seen = create(checkout, send(checkout, destination=destination))
    assert seen.status == 201, seen.body
    assert seen.json["destination"]["accountId"] == checkout.merchant
    assert seen.json["destination"]["type"] == destination["type"]
    checkout.advance(20)
    assert checkout.available(checkout.merchant) == ("5.00", "0")


def test_a_send_bridges_nothing(checkout: Checkout) -> None:
    same = send(checkout, destination={**WALLET, "chainId": BASE})
    assert create(checkout, same, key="same").status == 201
    bridged = send(checkout, destination={**WALLET, "chainId": 137})
    bridged["source"] = {**bridged["source"], "chainId": BASE}
    other = create(checkout, bridged, key="other")
    assert (other.status, other.code) == (422, "destination_not_allowed")
    named = send(checkout)
    named["source"] = {**named["source"], "chainId": BASE, "assetSymbol": "USDC"}
    assert create(checkout, named, key="named").status == 201
    named["source"]["assetSymbol"] = "DOGE"
    assert create(checkout, named, key="doge").code == "unsupported_asset"


def test_a_send_beyond_the_balance_is_refused_and_keeps_nothing(checkout: Checkout) -> None:
    seen = create(checkout, send(checkout, "100.000001"))
    assert (seen.status, seen.code) == (422, "insufficient_balance")
    assert stored(checkout) == (0, 0)
    assert checkout.available(checkout.payer) == ("100.00", "0")


def test_a_retried_send_is_answered_from_the_store_when_its_funds_are_gone(
    checkout: Checkout,
) -> None:
    body = send(checkout, "100")
    first = create(checkout, body)
    checkout.advance(20)
    again = create(checkout, body)
    assert (again.status, again.body) == (201, first.body)
    assert again.headers["idempotent-replayed"] == "true"
    assert create(checkout, send(checkout, "1")).code == "idempotency_conflict"
    assert create(checkout, send(checkout, "1"), key="other").code == "insufficient_balance"
    assert stored(checkout) == (1, 1)


def test_a_send_can_be_cancelled_before_it_is_sent(checkout: Checkout) -> None:
    payment = create(checkout, send(checkout)).json
    seen = checkout.door.call("POST", f"/v2/payments/{payment['id']}/cancel")
    assert (seen.status, seen.json["status"]) == (200, "cancelled")
    assert set(seen.json) == PAYMENT_FIELDS
    assert seen.json["source"] == payment["source"]
    assert checkout.available(checkout.payer) == ("100.00", "0")


# Collects


def test_a_collect_draws_on_its_mandate_and_goes_on_as_a_receive_payment(
    storage: Storage,
) -> None:
    checkout = Checkout(storage)
    mandate_id = mandate(checkout)
    seen = create(checkout, collect(checkout, mandate_id, description="June"))
    assert seen.status == 201, seen.body
    payment = seen.json
    assert set(payment) == PAYMENT_FIELDS
    assert (payment["intent"], payment["status"]) == ("collect", "processing")
    assert payment["accountId"] == checkout.merchant
    assert payment["source"]["accountId"] == checkout.payer
    assert payment["source"]["mandateId"] == mandate_id
    assert payment["source"]["policyVersion"] == 1
    assert (payment["paymentUrl"], payment["sessionId"]) == (None, None)
    assert payment["escrow"]["chainId"] == BASE
    assert payment["description"] == "June"
    [entry] = payment["options"]
    assert entry["option"]["id"] == payment["selectedOptionId"]
    assert entry["option"]["status"] == "processing"
    assert entry["fundingOperation"]["status"] == "authorized"
    assert checkout.available(checkout.payer) == ("95.00", "5000000")
    checkout.advance(20)
    done = checkout.read(payment["id"])
    assert done["status"] == "succeeded"
    assert done["source"] == payment["source"]
    assert done["receipts"][0]["optionId"] == payment["selectedOptionId"]
    assert checkout.available(checkout.merchant) == ("5.00", "0")


def test_a_retried_collect_draws_once(checkout: Checkout) -> None:
    mandate_id = mandate(checkout, "5")
    body = collect(checkout, mandate_id)
    first = create(checkout, body)
    assert create(checkout, body).body == first.body
    beyond = create(checkout, body, key="other")
    assert (beyond.status, beyond.code) == (422, "policy_denied")
    assert checkout.available(checkout.payer) == ("95.00", "5000000")


def test_a_collect_has_its_mandates_chain_and_asset_and_no_other(checkout: Checkout) -> None:
    mandate_id = mandate(checkout)
    same = collect(checkout, mandate_id, chainId=BASE, assetSymbol="USDC")
    assert create(checkout, same, key="same").status == 201
    chain = create(checkout, collect(checkout, mandate_id, chainId=137), key="chain")
    assert (chain.status, chain.code) == (422, "unsupported_chain")
    asset = create(checkout, collect(checkout, mandate_id, assetSymbol="USDT"), key="asset")
    assert (asset.status, asset.code) == (422, "unsupported_asset")


# What is refused


@pytest.mark.parametrize(
    "destination",
    [
        BANK,
        {**BANK, "achReference": "INV 7"},
        {**BANK, "rail": "wire", "wireMessage": "Invoice 7"},
    ],
)
def test_a_send_to_a_bank_account_is_not_possible_yet(
    checkout: Checkout, destination: dict[str, str]
) -> None:
    seen = create(checkout, send(checkout, destination=destination))
    assert (seen.status, seen.code) == (422, "capability_not_active")
    assert stored(checkout) == (0, 0)


def test_what_is_received_or_collected_never_goes_to_a_bank_account(checkout: Checkout) -> None:
    for body in (
        receive(checkout, destination=BANK),
        collect(checkout, "mandate_" + "A" * 24, destination=BANK),
    ):
        seen = create(checkout, body)
        assert (seen.status, seen.code) == (400, "validation_error")
        assert seen.faults == {
            "destination.type": "must be one of account, payment_address, wallet"
        }
    assert stored(checkout) == (0, 0)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"rail": "sepa"}, "destination.rail"),
        ({"rail": "wire", "achReference": "x"}, "destination.achReference"),
        ({"wireMessage": "x"}, "destination.wireMessage"),
        ({"achReference": "x" * 81}, "destination.achReference"),
        ({"bankAccountId": ""}, "destination.bankAccountId"),
        ({"accountNumber": "1"}, "destination.accountNumber"),
    ],
)
def test_a_malformed_bank_destination_names_its_path(
    checkout: Checkout, changes: dict[str, str], path: str
) -> None:
    seen = create(checkout, send(checkout, destination={**BANK, **changes}))
    assert (seen.status, list(seen.faults)) == (400, [path])


@pytest.mark.parametrize("intent", ["spend", "", None, 7, ["send"]])
def test_an_unknown_intent_is_told_which_there_are(checkout: Checkout, intent: Any) -> None:
    seen = create(checkout, send(checkout, intent=intent))
    assert (seen.status, seen.faults) == (400, {"intent": "must be one of receive, send, collect"})
    absent = send(checkout)
    del absent["intent"]
    assert create(checkout, absent).faults == {"intent": "is required"}


def test_the_fields_of_another_intent_are_unknown(checkout: Checkout) -> None:
    source = send(checkout)["source"]
    cases: dict[str, tuple[dict[str, Any], set[str]]] = {
        "receive": (
            receive(checkout, source=source, mandateId="m", destination={**WALLET, "chainId": 1}),
            {"source", "mandateId", "destination.chainId"},
        ),
        "send": (
            send(checkout, mandateId="m", expiresInSeconds=300, successUrl="https://a.example"),
            {"mandateId", "expiresInSeconds", "successUrl"},
        ),
        "collect": (
            collect(checkout, "m", source=source, allowedMethods=["vault"]),
            {"source", "allowedMethods"},
        ),
    }
    for intent, (body, paths) in cases.items():
        seen = create(checkout, body)
        assert (seen.status, set(seen.faults)) == (400, paths), intent


def test_five_faults_of_a_send_are_named_by_five_paths(checkout: Checkout) -> None:
    body = {
        "intent": "send",
        "amount": 5,
        "source": {"type": "wallet", "chainId": 0, "more": 1},
        "destination": {"type": "account", "accountId": "a", "externalUserId": "b"},
        "metadata": [],
    }
    seen = create(checkout, body)
    assert set(seen.faults) == {
        "amount", "source.type", "source.accountId", "source.chainId", "source.more",
        "destination.externalUserId", "metadata",
    }  # fmt: skip
    assert stored(checkout) == (0, 0)


def test_every_payment_needs_a_key(checkout: Checkout) -> None:
    mandate_id = mandate(checkout)
    for body in (send(checkout), collect(checkout, mandate_id), receive(checkout)):
        seen = create(checkout, body, key=None)
        assert (seen.status, seen.code) == (400, "idempotency_key_required")
    assert stored(checkout) == (0, 0)


def test_what_another_tenant_has_does_not_exist(checkout: Checkout) -> None:
    mandate_id = mandate(checkout)
    payment = create(checkout, receive(checkout), key="own").json
    tenants = checkout.door.service.tenants
    other = tenants.create_app("Other", "other")
    _, secret = tenants.create_key(other.environments["sandbox"], "standard", "k")
    auth = checkout.door.basic(secret, other.id)
    unknown = {"type": "vault", "accountId": NO_ACCOUNT}
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (send(checkout), send(checkout, source=unknown)),
        (collect(checkout, mandate_id), collect(checkout, "mandate_" + "A" * 24)),
        (
            receive(checkout),
            receive(checkout, destination={"type": "account", "accountId": NO_ACCOUNT}),
        ),
    ]
    for theirs, nobodys in pairs:
        answers = [error_of(create(checkout, body, auth=auth)) for body in (theirs, nobodys)]
        assert answers[0] == answers[1]
        assert (answers[0][0], answers[0][1]["code"]) == (404, "not_found")
    for path, method, body in (
        ("", "GET", None),
        ("/receipts", "GET", None),
        ("/refunds", "GET", None),
        ("/refunds", "POST", {}),
        ("/reconcile", "POST", {"action": "accept"}),
        ("/cancel", "POST", None),
    ):
        answers = [
            error_of(
                checkout.door.call(
                    method, f"/v2/payments/{id}{path}", body, auth=auth, key=f"{path}-{id}"
                )
            )
            for id in (payment["id"], NO_PAYMENT, "payment_x")
        ]
        assert answers[0] == answers[1] == answers[2], path
        assert (answers[0][0], answers[0][1]["code"]) == (404, "not_found")
    assert checkout.available(checkout.payer) == ("100.00", "0")


def test_payments_need_their_scope(checkout: Checkout) -> None:
    payment = create(checkout, receive(checkout), key="own").json
    narrow = checkout.door.basic(checkout.door.restricted_secret)
    for method, path, body in (
        ("POST", "", send(checkout)),
        ("GET", f"/{payment['id']}/receipts", None),
        ("GET", f"/{payment['id']}/refunds", None),
        ("POST", f"/{payment['id']}/refunds", {}),
        ("POST", f"/{payment['id']}/reconcile", {"action": "accept"}),
    ):
        target = f"/v2/payments{path}"
        seen = checkout.door.call(method, target, body, auth=narrow, key="k")
        assert (seen.status, seen.code) == (403, "insufficient_permissions"), path
        assert checkout.door.call(method, target, body, auth=None, key="k").status == 401


# What came


def test_receipts_come_page_by_page_with_the_whole_journal(checkout: Checkout) -> None:
    payment = create(checkout, receive(checkout, amount="25")).json
    escrow = payment["escrow"]["address"]
    for amount in ("10", "5", "12"):
        checkout.transfer(escrow, amount)
    path = f"/v2/payments/{payment['id']}/receipts"
    seen = checkout.door.call("GET", path)
    assert seen.status == 200
    assert list(seen.json) == ["data", "limit", "hasNextPage", "nextCursor", "journal"]
    assert [item["amountAtomic"] for item in seen.json["data"]] == [
        "10000000", "5000000", "12000000",
    ]  # fmt: skip
    assert all(item["optionId"] is None for item in seen.json["data"])
    assert seen.json["data"] == checkout.read(payment["id"])["receipts"]
    journal = seen.json["journal"]
    assert journal["balances"] == {
        "payer": "-27000000", "escrow": "0", "excess": "2000000", "recipient": "25000000",
        "fees": "0",
    }  # fmt: skip
    assert [(entry["number"], entry["cause"]) for entry in journal["entries"]] == [
        (1, "receipt"), (2, "receipt"), (3, "receipt"), (4, "release"),
    ]  # fmt: skip
    last = journal["entries"][2]
    assert last == {
        "number": 3,
        "cause": "receipt",
        "subject": seen.json["data"][2]["id"],
        "postings": {"payer": "-12000000", "escrow": "10000000", "excess": "2000000"},
        "createdAt": seen.json["data"][2]["verifiedAt"],
    }
    for entry in journal["entries"]:
        assert sum(int(amount) for amount in entry["postings"].values()) == 0

    first = checkout.door.call("GET", f"{path}?limit=2").json
    assert (first["limit"], first["hasNextPage"]) == (2, True)
    second = checkout.door.call("GET", f"{path}?limit=2&cursor={first['nextCursor']}").json
    assert (second["hasNextPage"], second["nextCursor"]) == (False, None)
    assert first["data"] + second["data"] == seen.json["data"]
    assert first["journal"] == second["journal"] == journal


def test_a_payment_that_received_nothing_has_an_empty_journal(checkout: Checkout) -> None:
    payment = create(checkout, receive(checkout)).json
    seen = checkout.door.call("GET", f"/v2/payments/{payment['id']}/receipts").json
    assert seen["data"] == []
    assert seen["journal"] == {
        "balances": dict.fromkeys(("payer", "escrow", "excess", "recipient", "fees"), "0"),
        "entries": [],
    }
