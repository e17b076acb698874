"""A null where an absent value means everything: refused by HTTP, the library and the client.

A null is often a value that was lost on its way: `order.get("amount")`, a column without a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any, get_args

import attrs
import pytest

from payments_core import NewMandate, NewRefund, ValidationFailed
from payments_core.validation.readers import null_is_absent
from payments_core_http.client import ApiError, Client
from payments_core_http.routes import ROUTES
from payments_core_http.routing import Nothing
from payments_core_http.wire.names import name_on_wire
from tests.http.checkout import Checkout

MEANS: Mapping[str, str] = {
    # A setting that the answer shows as null, so that what was read can be sent back.
    "minAmount": "no limit", "maxAmount": "no limit", "perPaymentLimit": "no limit",
    "dailyLimit": "no limit", "allowedChains": "no limit", "allowedAssets": "no limit",
    "allowedDestinations": "no limit", "chains": "no limit", "assets": "no limit",
    "confirmations": "the chain's own", "feeBps": "no fee", "underpaymentToleranceBps": "none",
    "allowedOrigins": "none", "monitoringSeconds": "a day", "branding": "none", "name": "none",
    "logoUrl": "none", "primaryColor": "none", "currency": "US dollars", "version": "any",
    "createdAt": "ignored", "updatedAt": "ignored", "strategy": "none",
    # The same amount, by the documented default.
    "chainId": "Base, or any", "assetSymbol": "USDC", "allowedMethods": "all",
    "expiresInSeconds": "an hour", "settlement": "Base", "intent": "receive",
    "providerCode": "vault", "preferredSettlementChain": "Base", "preferredSettlementToken": "USDC",
    "sourceChainId": "Base", "sourceChainToken": "USDC", "destinationChainID": "the payee's",
    "destinationToken": "the payee's", "chainType": "evm", "sourceAddress": "asked for later",
    # Exactly one of several, or who is meant.
    "externalUserId": "see accountId", "accountId": "see externalUserId", "userId": "another",
    "paymentAddress": "another", "address": "another, or the account's own vault",
    "destinationUserId": "another", "destinationPaymentAddress": "another",
    "destinationWalletAddress": "another", "quoteId": "another", "depositAddress": "another",
    # Texts, and what moves no money.
    "reference": "none", "description": "none", "metadata": "none", "reason": "none",
    "note": "none", "label": "none", "username": "none", "email": "none", "wallets": "none",
    "addresses": "none", "successUrl": "none", "cancelUrl": "none", "returnUrl": "none",
    "permissions": "account:read", "publicKey": "in the signature", "bankName": "none",
    "line2": "none", "achReference": "none", "wireMessage": "none", "payerAddress": "any payer",
    "refundAddress": "required where it is used",
    "receiptId": "required where it is used", "overlapSeconds": "0", "EIP712Domain": "as signed",
    "values": "refused where a filter needs them",
    "value": "nothing is sent", "operation": "a call, or any", "paymentId": "an example",
    # The sandbox has no money.
    "count": "1", "reverts": "no", "from": "the faucet", "reinclude": "no", "times": "1",
    "outcome": "receive", "code": "none",
}  # fmt: skip
"""What null means in the optional fields of bodies that accept it."""

OWN_ACCOUNT = "CreateOwnPayment.destination"
"""Its destination is the token's own account, and nothing else."""


def bodies() -> Iterator[type[Any]]:
    """Each object of each body."""
    waiting: list[Any] = [row.body for row in ROUTES if row.body is not Nothing]
    seen = set[Any]()
    while waiting:
        kind = waiting.pop()
        if attrs.has(kind) and kind not in seen:
            seen.add(kind)
            attrs.resolve_types(kind)
            waiting += [field.type for field in attrs.fields(kind)]
            yield kind
        waiting += get_args(kind)


def test_every_field_that_accepts_null_is_in_the_table() -> None:
    accepting = {
        f"{kind.__name__}.{field.name}": field.name
        for kind in bodies()
        for field in attrs.fields(kind)
        if NoneType in get_args(field.type) or null_is_absent(field)
    }
    unknown = [path for path, name in accepting.items() if name not in MEANS]
    assert unknown == [OWN_ACCOUNT], "if more is done where such a value is lost, refuse null"
    assert set(MEANS) - set(accepting.values()) == set()


PAYMENT, ACCOUNT, DEPOSIT = f"payment_{'1' * 24}", f"acct_{'1' * 24}", f"deposit_{'1' * 24}"
EVENT = f"evt_{'1' * 24}"
MANDATE = {"vault_id": f"vault_{'1' * 24}", "amount_per_period": "10.00", "period": "day"}

Send = Callable[[Any], object]


@attrs.frozen
class Lost:
    """A body with a value that was lost, and the same call in the library and in the client."""

    path: str
    body: dict[str, Any]
    library: Callable[[Any, Any], object]
    client: Callable[[Client], object]
    argument: str = ""
    """The library's name of the value, where it is not the field's."""


LOST: Mapping[str, Lost] = {
    "refund amount": Lost(
        f"/v2/payments/{PAYMENT}/refunds",
        {"amount": None},
        lambda service, me: service.acting_as(me).payments.refund(PAYMENT, NewRefund(amount=None)),  # type: ignore[arg-type]
        lambda client: client.payments.refund(PAYMENT, amount=None),  # type: ignore[arg-type]
    ),
    "refund destination": Lost(
        f"/v2/payments/{PAYMENT}/refunds",
        {"amount": "1.00", "destination": None},
        lambda service, me: service.acting_as(me).payments.refund(
            PAYMENT,
            NewRefund(amount="1.00", destination=None),  # type: ignore[arg-type]
        ),
        lambda client: client.payments.refund(PAYMENT, amount="1.00", destination=None),  # type: ignore[arg-type]
    ),
    "reconciliation": Lost(
        f"/v2/payments/{PAYMENT}/reconcile",
        {"action": "refund", "destination": None},
        lambda service, me: service.acting_as(me).payments.reconcile(
            PAYMENT, "refund", destination=None
        ),
        lambda client: client.payments.reconcile(PAYMENT, action="refund", destination=None),  # type: ignore[arg-type]
    ),
    "returned deposit": Lost(
        f"/v2/accounts/{ACCOUNT}/deposits/{DEPOSIT}/return",
        {"destination": None},
        lambda service, me: service.acting_as(me).deposits.send_back(ACCOUNT, DEPOSIT, None),
        lambda client: client.deposits.send_back(ACCOUNT, DEPOSIT, destination=None),  # type: ignore[arg-type]
    ),
    "mandate": Lost(
        f"/v2/accounts/{ACCOUNT}/mandates",
        {
            "vaultId": MANDATE["vault_id"],
            "amountPerPeriod": "10.00",
            "period": "day",
            "expiresAt": None,
        },
        lambda service, me: service.acting_as(me).mandates.create(
            ACCOUNT,
            NewMandate(**MANDATE, expires_at=None),  # type: ignore[arg-type]
        ),
        lambda client: client.mandates.create(ACCOUNT, **MANDATE, expires_at=None),  # type: ignore[arg-type]
    ),
    "resent event": Lost(
        f"/v2/console/events/{EVENT}/resend",
        {"webhookId": None},
        lambda service, me: service.acting_as(me).events.resend(EVENT, endpoint_id=None),
        lambda client: client.events.resend(EVENT, webhook_id=None),  # type: ignore[arg-type]
        argument="endpoint_id",
    ),
    "checked deposits": Lost(
        f"/v2/accounts/{ACCOUNT}/deposit-addresses/check",
        {"chainId": None},
        lambda service, me: service.acting_as(me).deposits.check(ACCOUNT, None),
        lambda client: client.deposits.check(ACCOUNT, chain_id=None),  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_a_lost_value_is_refused_by_http_and_by_the_library(checkout: Checkout, name: str) -> None:
    lost = LOST[name]
    [field] = [field for field, value in lost.body.items() if value is None]
    seen = checkout.api.call("POST", lost.path, lost.body, key="lost")
    assert (seen.status, list(seen.faults)) == (400, [field])
    assert seen.faults[field].endswith(", or left out")
    authority = checkout.api.service.tenants.system_authority(checkout.api.partition)
    with pytest.raises(ValidationFailed) as library:
        lost.library(checkout.api.service, authority)
    argument = name_on_wire(lost.argument) or field
    assert [name_on_wire(one.path) for one in library.value.fields] == [argument]
    assert library.value.fields[0].message.endswith(", or left out")
    api = checkout.api
    client = Client.in_process(api.app, api.app_row.id, api.secret)
    with pytest.raises(ApiError) as refused:
        lost.client(client)
    assert refused.value.http_status == 400
    assert [one.path for one in refused.value.fields] == [field]


def test_an_amount_that_was_left_out_refunds_everything(checkout: Checkout) -> None:
    payment = checkout.create().json
    checkout.transfer(payment["escrow"]["address"], "10.00")
    checkout.advance(3_700)
    refunds = f"/v2/payments/{payment['id']}/refunds"
    assert checkout.api.call("POST", refunds, {"amount": None}, key="all").status == 400
    assert checkout.read(payment["id"])["refunds"] == []
    seen = checkout.api.call("POST", refunds, {}, key="all")
    assert (seen.status, seen.json["amount"]) == (201, "10.00")


def test_lost_events_subscribe_a_new_endpoint_to_nothing(checkout: Checkout) -> None:
    api = checkout.api
    path = f"/v2/console/apps/{api.app_row.id}/environments/{api.partition}/webhooks"
    body = {"url": "https://example.com/hook"}
    seen = api.call("POST", path, {**body, "subscribedEvents": None})
    assert (seen.status, list(seen.faults)) == (400, ["subscribedEvents"])
    made = api.call("POST", path, body).json["webhookEndpoint"]
    assert made["subscribedEvents"] == []
