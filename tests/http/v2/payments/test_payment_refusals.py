"""Payments that are not created, and why, over WSGI."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.storage.port import Storage
from tests.http.checkout import Checkout
from tests.http.payment_bodies import (
    BANK,
    NO_ACCOUNT,
    NO_PAYMENT,
    WALLET,
    collect,
    create,
    error_of,
    mandate,
    receive,
    send,
    stored,
)


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


@pytest.mark.parametrize(
    "destination",
    [
        BANK,
        {**BANK, "achReference": "INV 7"},
        {**BANK, "rail": "wire", "wireMessage": "Invoice 7"},
    ],
)
def test_a_send_to_an_unknown_bank_account_is_not_found(
    checkout: Checkout, destination: dict[str, str]
) -> None:
    seen = create(checkout, send(checkout, destination=destination))
    assert (seen.status, seen.code) == (404, "not_found")
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
        ({"achReference": "one line\nand another"}, "destination.achReference"),
        ({"rail": "wire", "wireMessage": " "}, "destination.wireMessage"),
        ({"achReference": "Rechnung \u2013 7"}, "destination.achReference"),
        ({"achReference": "invoice 7 \U0001f389"}, "destination.achReference"),
        ({"rail": "wire", "wireMessage": "INV*7"}, "destination.wireMessage"),
        ({"rail": "wire", "wireMessage": "{7}"}, "destination.wireMessage"),
        ({"rail": "wire", "wireMessage": "caf\u00e9"}, "destination.wireMessage"),
        ({"rail": "wire", "wireMessage": "x" * 141}, "destination.wireMessage"),
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
def test_the_error_for_an_unknown_intent_lists_all_intents(checkout: Checkout, intent: Any) -> None:
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
    tenants = checkout.api.service.tenants
    other = tenants.create_app("Other", "other")
    _, secret = tenants.create_key(other.environments["sandbox"], "standard", "k")
    auth = checkout.api.basic(secret, other.id)
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
                checkout.api.call(
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
    narrow = checkout.api.basic(checkout.api.restricted_secret)
    for method, path, body in (
        ("POST", "", send(checkout)),
        ("GET", f"/{payment['id']}/receipts", None),
        ("GET", f"/{payment['id']}/refunds", None),
        ("POST", f"/{payment['id']}/refunds", {}),
        ("POST", f"/{payment['id']}/reconcile", {"action": "accept"}),
    ):
        target = f"/v2/payments{path}"
        seen = checkout.api.call(method, target, body, auth=narrow, key="k")
        assert (seen.status, seen.code) == (403, "insufficient_permissions"), path
        assert checkout.api.call(method, target, body, auth=None, key="k").status == 401
