"""What a browser does with a client token alone: its account, and the Payments that it receives
or, with a Payment's secret, pays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from tests.http.api_harness import Seen
from tests.http.checkout import BASE, Checkout
from tests.http.payer_page import Page
from tests.http.v2.options.test_checkout import OPTION_FIELDS, PAYMENT_FIELDS

ME = "/v2/client/me"
PAYMENTS = f"{ME}/payments"
NO_PAYMENT = "payment_" + "A" * 24
READS = "payments:read"
PAYER_FIELDS = {
    "id", "paymentId", "intent", "status", "statusVersion", "amount", "amountAtomic",
    "assetSymbol", "decimals", "chainId", "tokenAddress", "receivedAmountAtomic",
    "remainingAmountAtomic", "excessAmountAtomic", "refundedAmountAtomic", "destination", "escrow",
    "allowedMethods", "selectedOptionId", "options", "receipts", "timeline", "reference",
    "description", "apiVersion", "paymentUrl", "successUrl", "cancelUrl", "createdBy",
    "expiresAt",
    "succeededAt", "cancelledAt", "createdAt", "updatedAt",
}  # fmt: skip


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


def client(
    checkout: Checkout,
    name: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    may: tuple[str, ...] = (READS,),
    secret: str | None = None,
    **more: Any,
) -> Seen:
    """A call with a new token of that account, and with a Payment's secret where one is given."""
    auth = f"Bearer {checkout.access_token(name, *may)}"
    headers = {} if secret is None else {"X-Service-Payment-Secret": secret}
    return checkout.api.call(method, path, body, auth=auth, headers=headers, **more)


def read(checkout: Checkout, name: str, payment: Any, secret: str | None = None) -> Seen:
    id = payment if isinstance(payment, str) else payment["id"]
    return client(checkout, name, "GET", f"{PAYMENTS}/{id}", secret=secret)


def ask(checkout: Checkout, body: Any, name: str = "merchant", **more: Any) -> Seen:
    more.setdefault("key", "ask")
    return client(checkout, name, "POST", PAYMENTS, body, may=("payments:write",), **more)


def error_of(seen: Seen) -> Any:
    error = seen.json["error"]
    del error["details"]["requestId"]
    return seen.status, error


# The account


def test_an_account_sees_itself_and_what_its_token_may_do(checkout: Checkout) -> None:
    body = {
        "externalUserId": "alice", "subjectType": "business", "username": "alice",
        "email": "alice@example.com", "metadata": {"tier": "gold"},
        "settlement": {"chainId": BASE, "assetSymbol": "USDC"},
        "wallets": [{"address": "0xe0dA8Ca1c0C4FE1e95cD7Ea0736DD09dE9201032", "chainType": "evm"}],
    }  # fmt: skip
    account = checkout.api.call("POST", "/v2/accounts", body).json
    may = ("account:read", READS)
    seen = client(checkout, "alice", "GET", ME, may=may)
    assert seen.status == 200
    hidden = ("email", "metadata", "labels")  # for the partner
    shown = {name: value for name, value in account.items() if name not in hidden}
    assert seen.json == {**shown, "permissions": sorted(may)}
    assert seen.headers["cache-control"] == "no-store"


def test_the_permissions_shown_are_those_whose_products_are_on(checkout: Checkout) -> None:
    auth = f"Bearer {checkout.access_token('merchant', 'account:read', 'deposits:read')}"
    call, tenants = checkout.api.call, checkout.api.service.tenants
    assert call("GET", ME, auth=auth).json["permissions"] == ["account:read", "deposits:read"]
    kept = [name for name in checkout.api.environment.products if name != "deposit_addresses"]
    tenants.set_products(checkout.api.partition, kept)
    assert call("GET", ME, auth=auth).json["permissions"] == ["account:read"]


@pytest.mark.parametrize(
    ("method", "path", "needed", "product"),
    [
        ("GET", ME, "account:read", "accounts"),
        ("GET", PAYMENTS, "payments:read", "payments"),
        ("POST", PAYMENTS, "payments:write", "payments"),
        ("GET", f"{PAYMENTS}/{NO_PAYMENT}", "payments:read", "payments"),
    ],
)
def test_every_route_needs_its_permission_and_its_product(
    checkout: Checkout, method: str, path: str, needed: str, product: str
) -> None:
    every = ("account:read", "payments:read", "payments:write", "deposits:read")
    others = tuple(name for name in every if name != needed)
    body = {"amount": "1"} if method == "POST" else None
    seen = client(checkout, "merchant", method, path, body, may=others, key="k")
    assert (seen.status, seen.code) == (403, "insufficient_permissions")
    for auth in (None, "", f"Bearer {checkout.api.secret}"):
        seen = checkout.api.call(method, path, body, auth=auth, key="k")
        assert (seen.status, seen.code) == (401, "unauthorized")
        assert seen.headers["www-authenticate"] == "Bearer"
    access = checkout.access_token("merchant", needed)
    kept = [name for name in checkout.api.environment.products if name != product]
    checkout.api.service.tenants.set_products(checkout.api.partition, kept)
    seen = checkout.api.call(method, path, body, auth=f"Bearer {access}", key="k")
    assert (seen.status, seen.code) == (403, "entitlement_required")


# Asking to be paid


@pytest.mark.parametrize("status", ["suspended", "closed"])
def test_an_account_that_is_not_active_cannot_ask_to_be_paid(
    checkout: Checkout, status: str
) -> None:
    path = f"/v2/accounts/{checkout.merchant}"
    auth = f"Bearer {checkout.access_token('merchant', 'payments:write')}"
    assert checkout.api.call("PATCH", path, {"status": status}).status == 200
    seen = checkout.api.call("POST", PAYMENTS, {"amount": "1"}, auth=auth, key="ask")
    assert (seen.status, seen.code) == (403, "account_suspended")
    assert seen.json["error"]["details"]["status"] == status
    other = checkout.create()  # to the partner's backend it is a destination
    assert (other.status, other.code) == (422, "destination_not_allowed")
    assert checkout.api.call("GET", "/v2/payments").json["data"] == []


def test_a_payment_to_the_own_account_is_answered_as_the_server_answers(storage: Storage) -> None:
    checkout = Checkout(storage)
    body = {
        "amount": "7.5", "assetSymbol": "USDC", "chainId": BASE, "reference": "r",
        "description": "Lunch", "expiresInSeconds": 600, "allowedMethods": ["vault"],
        "successUrl": "https://a.example/ok", "cancelUrl": "https://a.example/no",
    }  # fmt: skip
    seen = ask(checkout, body)
    assert seen.status == 201, seen.body
    payment = seen.json
    assert set(payment) == {*PAYMENT_FIELDS, "clientSecret"}
    assert (payment["intent"], payment["status"]) == ("receive", "awaiting_payment")
    assert (payment["accountId"], payment["amount"]) == (checkout.merchant, "7.50")
    assert payment["destination"]["accountId"] == checkout.merchant
    assert (payment["createdBy"], payment["metadata"]) == ("client", None)
    secret = payment.pop("clientSecret")
    assert payment == checkout.read(payment["id"])

    again = ask(checkout, body)  # with another token of the same account
    assert (again.status, again.body) == (201, seen.body)
    assert again.headers["idempotent-replayed"] == "true"
    assert ask(checkout, {"amount": "1"}).code == "idempotency_conflict"

    payment["clientSecret"] = secret
    option = checkout.option(payment)
    assert checkout.authorize(payment, option).status == 200
    checkout.advance(20)
    assert read(checkout, "merchant", payment).json["status"] == "succeeded"


def test_the_own_account_may_be_named_and_no_other(checkout: Checkout) -> None:
    own = {"type": "account", "accountId": checkout.merchant}
    body = {"intent": "receive", "amount": "1", "destination": own}
    assert ask(checkout, body, key="own").status == 201
    for account_id in (checkout.payer, "acct_" + "A" * 24):
        other = {**own, "accountId": account_id}
        seen = ask(checkout, {**body, "destination": other}, key="other")
        assert (seen.status, list(seen.faults)) == (400, ["destination.accountId"])
    assert len(checkout.api.call("GET", "/v2/payments").json["data"]) == 1


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"intent": "send"}, ["intent"]),
        ({"intent": "collect", "mandateId": "mandate_x"}, ["intent", "mandateId"]),
        ({"source": {"type": "vault", "accountId": "acct_x"}}, ["source"]),
        ({"mandateId": "mandate_x"}, ["mandateId"]),
        ({"destination": {"type": "wallet", "address": "0x1"}},
         ["destination.type", "destination.accountId", "destination.address"]),
        ({"destination": {"type": "account", "externalUserId": "merchant"}},
         ["destination.accountId", "destination.externalUserId"]),
        ({"amount": 1, "expiresInSeconds": 299, "allowedMethods": []},
         ["amount", "expiresInSeconds", "allowedMethods"]),
    ],
)  # fmt: skip
def test_a_token_never_spends_a_vault_nor_names_another_recipient(
    checkout: Checkout, changes: dict[str, Any], paths: list[str]
) -> None:
    seen = ask(checkout, {"amount": "1", **changes})
    assert (seen.status, list(seen.faults)) == (400, paths)
    assert checkout.api.call("GET", "/v2/payments").json["data"] == []


def test_a_browser_sets_no_metadata(checkout: Checkout) -> None:
    for metadata in ({"orderId": "1042"}, {}):
        seen = ask(checkout, {"amount": "1", "metadata": metadata})
        assert (seen.status, list(seen.faults)) == (400, ["metadata"])
    assert checkout.api.call("GET", "/v2/payments").json["data"] == []
    assert ask(checkout, {"amount": "1", "metadata": None}).status == 201


def test_asking_needs_a_key(checkout: Checkout) -> None:
    seen = ask(checkout, {"amount": "1"}, key=None)
    assert (seen.status, seen.code) == (400, "idempotency_key_required")


def test_one_key_of_two_accounts_makes_two_payments(checkout: Checkout) -> None:
    made = [ask(checkout, {"amount": "1"}, name).json for name in ("merchant", "payer")]
    assert [item["accountId"] for item in made] == [checkout.merchant, checkout.payer]
    assert made[0]["id"] != made[1]["id"]


# Reading


def test_the_recipient_reads_its_payment_with_its_token_alone(checkout: Checkout) -> None:
    payment = checkout.create(metadata={"margin": "secret"}, reference="r").json
    option = checkout.option(payment)
    checkout.authorize(payment, option, metadata={"device": "private"})
    seen = read(checkout, "merchant", payment)
    assert seen.status == 200, seen.body
    assert set(seen.json) == PAYMENT_FIELDS - {"metadata"}
    whole = checkout.read(payment["id"])
    differing = {name for name in seen.json if seen.json[name] != whole[name]}
    assert differing == {"options", "reconciliation", "selectedOptionId"}
    for hidden in ("margin", "private", payment["clientSecret"], checkout.payer, option["id"]):
        assert hidden not in seen.body.decode()


def test_the_recipient_is_not_shown_how_strangers_pay_nor_why_a_refund_was_made(
    checkout: Checkout,
) -> None:
    page = Page(checkout)
    payment, direct = page.payment, page.option()
    vault = checkout.option(payment)
    checkout.authorize(payment, vault)
    checkout.advance(60)
    path = f"/v2/payments/{payment['id']}/refunds"
    body = {"amount": "5", "reason": "suspected fraud"}
    assert checkout.api.call("POST", path, body, key="refund").status == 201
    whole = checkout.read(payment["id"])
    assert [item["optionId"] for item in whole["receipts"]] == [vault["id"]]
    assert whole["refunds"][0]["reason"] == "suspected fraud"
    seen = read(checkout, "merchant", payment)
    for hidden in (direct["id"], vault["id"], "suspected fraud", "pay_funding_"):
        assert hidden not in seen.body.decode()
    assert (seen.json["options"], seen.json["selectedOptionId"]) == ([], None)
    assert seen.json["receipts"] == [{**whole["receipts"][0], "optionId": None}]
    assert seen.json["refunds"] == [{**whole["refunds"][0], "reason": None}]
    assert client(checkout, "merchant", "GET", PAYMENTS).json["data"] == [seen.json]


def test_a_recipient_that_pays_itself_is_shown_its_own_option(checkout: Checkout) -> None:
    payment = checkout.create(destination={"type": "account", "accountId": checkout.payer}).json
    checkout.account("second")
    others = checkout.pay(payment, access=checkout.access_token("second")).json["option"]
    own = checkout.option(payment)
    seen = read(checkout, "payer", payment)
    [entry] = seen.json["options"]
    assert set(entry) == {"paymentId", "option", "fundingOperation"}
    assert entry["option"] == {**own, "execution": None}
    assert seen.json["selectedOptionId"] == own["id"]
    assert others["id"] not in seen.body.decode()


def test_the_recipient_is_not_shown_the_payers_one_time_action(checkout: Checkout) -> None:
    payment = checkout.create().json
    action = checkout.option(payment)["execution"]["actionId"]
    for seen in (
        read(checkout, "merchant", payment),
        read(checkout, "merchant", payment, payment["clientSecret"]),
        client(checkout, "merchant", "GET", PAYMENTS),
    ):
        assert seen.status == 200
        assert action not in seen.body.decode()


def test_a_payer_reads_with_the_secret_too_and_sees_its_own_part(checkout: Checkout) -> None:
    checkout.account("second")
    payment = checkout.create(metadata={"margin": "secret"}, description="Shoes").json
    second = checkout.access_token("second")
    others = checkout.pay(payment, access=second).json["option"]
    own = checkout.option(payment)
    secret = payment["clientSecret"]
    seen = read(checkout, "payer", payment, secret)
    assert seen.status == 200, seen.body
    assert set(seen.json) == PAYER_FIELDS
    assert seen.json["destination"] == {"type": "account", "paymentAddress": None}
    assert seen.json["escrow"] == payment["escrow"]
    assert (seen.json["description"], seen.json["amount"]) == ("Shoes", "25.00")
    assert seen.json["selectedOptionId"] == own["id"]
    [entry] = seen.json["options"]
    assert entry["option"] == own and set(own) == OPTION_FIELDS
    text = seen.body.decode()
    for hidden in (
        checkout.merchant, payment["destination"]["address"], others["id"], "margin", "merchant",
        payment["sessionId"], secret,
    ):  # fmt: skip
        assert hidden not in text

    with_another = read(checkout, "second", payment, secret).json
    assert [item["option"]["id"] for item in with_another["options"]] == [others["id"]]
    assert with_another["selectedOptionId"] is None
    assert own["id"] not in json.dumps(with_another)

    checkout.authorize(payment, own)
    checkout.advance(20)
    paid = read(checkout, "payer", payment, secret).json
    assert (paid["status"], paid["receivedAmountAtomic"]) == ("succeeded", "25000000")
    assert [item["optionId"] for item in paid["receipts"]] == [own["id"]]
    assert [set(item) for item in paid["timeline"]] == [{"status", "at"}] * 5
    assert read(checkout, "second", payment, secret).json["receipts"] == []


def test_a_payer_sees_a_payment_address_that_was_named(checkout: Checkout) -> None:
    to = {"type": "payment_address", "paymentAddress": "merchant@shop"}
    payment = checkout.create(destination=to).json
    seen = read(checkout, "payer", payment, payment["clientSecret"])
    assert seen.json["destination"] == to
    wallet = {"type": "wallet", "address": "0x00000000000000000000000000000000000E0e0E"}
    paying = checkout.create(destination=wallet, key="wallet").json
    seen = read(checkout, "payer", paying, paying["clientSecret"])
    assert seen.json["destination"] == {"type": "wallet", "paymentAddress": None}
    assert wallet["address"] not in seen.body.decode()


def test_without_the_secret_a_payment_of_others_does_not_exist(checkout: Checkout) -> None:
    payment = checkout.create().json
    checkout.option(payment)
    answers = [
        error_of(read(checkout, "payer", id)) for id in (payment["id"], NO_PAYMENT, "payment_x")
    ]
    assert answers[0] == answers[1] == answers[2]
    assert (answers[0][0], answers[0][1]["code"]) == (404, "not_found")


@pytest.mark.parametrize("name", ["payer", "merchant"])
def test_a_wrong_secret_is_refused_even_where_none_is_needed(checkout: Checkout, name: str) -> None:
    payment, other = checkout.create(key="a").json, checkout.create(key="b").json
    good = payment["clientSecret"]
    for secret in (
        other["clientSecret"], "", good[:-1], good + "A", good.swapcase(), payment["id"],
        payment["id"] + "_secret_" + other["clientSecret"].partition("_secret_")[2],
        checkout.access,
    ):  # fmt: skip
        seen = read(checkout, name, payment, secret)
        assert (seen.status, seen.code) == (401, "unauthorized")
        assert not secret or secret not in seen.body.decode()


def test_a_secret_of_another_environment_is_a_mismatch(checkout: Checkout) -> None:
    payment = checkout.create().json
    tenants = checkout.api.service.tenants
    environment_id = tenants.create_app("Other", "other").environments["sandbox"]
    secret = checkout.api.payment_secret(payment["id"], environment_id=environment_id)
    seen = read(checkout, "payer", payment, secret)
    assert (seen.status, seen.code) == (403, "credential_mismatch")


def test_a_secret_still_reads_an_expired_payment(checkout: Checkout) -> None:
    payment = checkout.create(expiresInSeconds=300).json
    checkout.advance(400)
    seen = read(checkout, "payer", payment, payment["clientSecret"])
    assert (seen.status, seen.json["status"]) == (200, "expired")


# Listing, and Payments that send and collect


def test_the_list_has_the_payments_that_the_account_receives(checkout: Checkout) -> None:
    made = []
    for number in range(3):
        made.append(checkout.create(key=f"k{number}").json["id"])
        checkout.advance(1)
    elsewhere = checkout.create(
        key="elsewhere", destination={"type": "account", "accountId": checkout.payer}
    ).json["id"]
    source = {"type": "vault", "accountId": checkout.payer}
    to = {"type": "account", "accountId": checkout.merchant}
    body = {"intent": "send", "amount": "1", "source": source, "destination": to}
    sent = checkout.api.call("POST", "/v2/payments", body, key="send").json["id"]

    listed = client(checkout, "merchant", "GET", PAYMENTS).json
    assert [item["id"] for item in listed["data"]] == made[::-1]
    assert all(set(item) == PAYMENT_FIELDS - {"metadata"} for item in listed["data"])
    payers = client(checkout, "payer", "GET", PAYMENTS).json
    assert [item["id"] for item in payers["data"]] == [elsewhere]
    first = client(checkout, "merchant", "GET", f"{PAYMENTS}?limit=2").json
    rest = client(
        checkout, "merchant", "GET", f"{PAYMENTS}?limit=2&cursor={first['nextCursor']}"
    ).json
    assert [item["id"] for item in (*first["data"], *rest["data"])] == made[::-1]
    foreign = client(checkout, "payer", "GET", f"{PAYMENTS}?cursor={first['nextCursor']}")
    assert (foreign.status, list(foreign.faults)) == (400, ["cursor"])

    received = read(checkout, "merchant", sent)
    assert (received.status, received.json["source"]["type"]) == (200, "vault")
    assert set(received.json["source"]) == {"type", "address"}
    assert received.json["accountId"] == checkout.merchant
    assert received.json["externalUserId"] == "merchant"
    assert checkout.payer not in received.body.decode()
    assert read(checkout, "payer", sent).code == "not_found"


def test_who_is_collected_from_is_not_shown_to_the_recipient(checkout: Checkout) -> None:
    vaults = checkout.api.call("GET", f"/v2/accounts/{checkout.payer}").json["vaults"]
    [vault] = [vault for vault in vaults if vault["chainId"] == BASE]
    mandate = {"vaultId": vault["vaultId"], "amountPerPeriod": "20", "period": "month"}
    path = f"/v2/accounts/{checkout.payer}/mandates"
    mandate_id = checkout.api.call("POST", path, mandate).json["id"]
    to = {"type": "account", "accountId": checkout.merchant}
    body = {"intent": "collect", "amount": "5", "mandateId": mandate_id, "destination": to}
    payment = checkout.api.call("POST", "/v2/payments", body, key="collect").json
    seen = read(checkout, "merchant", payment)
    assert seen.json["source"] == {"type": "vault", "address": vault["address"]}
    for hidden in (checkout.payer, vault["vaultId"], mandate_id):
        assert hidden not in seen.body.decode()
    listed = client(checkout, "merchant", "GET", PAYMENTS).json["data"]
    assert listed == [seen.json]
    assert read(checkout, "payer", payment).code == "not_found"
