"""Ids of others' objects where bodies and queries name them, beside those in paths."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import attrs

from tests.http.authorization.matrix import ALONE, CROWDED, Matrix
from tests.http.authorization.model import HAS_LEGACY, LEAKED, MISSING, Expected
from tests.http.authorization.objects import PREFIXES, SIGNER, Owner, transaction_id
from tests.http.authorization.populated_environment import basic, bearer, listed_address
from tests.quote_payer import ask_to_settle

INVALID = Expected(422, "action_invalid")
FOREIGN: tuple[Owner, ...] = ("production", "stranger", "nobody")
EVERYONE: tuple[Owner, ...] = ("neighbour", *FOREIGN)
EMPTY = Expected(200)
"""A list with nothing in it."""


@attrs.frozen
class Naming:
    """A call of ours that names an object of somebody else's: `{id}` stands for it."""

    target: str
    body: Any
    names: str
    owners: tuple[Owner, ...]
    wanted: Expected = MISSING
    method: str = "POST"
    client: bool = False
    alone: bool = False
    app_id: bool = False

    @property
    def cell(self) -> str:
        return f"{self.method} {self.target} with {self.names}"


_PAYER = "0x" + "5A" * 20
_QUOTING: tuple[Owner, ...] = ("stranger", "nobody")
"""Production has no prices in these tests, and so no quotes."""
_TO_SELLER = {"type": "account", "externalUserId": "own-seller"}
_APPROVED = {"type": "managed_authorization", "authorization": "approved"}
_EVENT = "/v2/sandbox/events"

_LEGACY: tuple[Naming, ...] = (
    # The legacy interface names objects in bodies and queries alone.
    Naming(
        "/sdk/v1/update-username", {"userId": "{id}", "username": "taken_over"}, "accountId",
        FOREIGN,
    ),
    Naming(
        "/sdk/v1/update-preferences", {"userId": "{id}", "preferredSettlementChain": 10},
        "accountId", FOREIGN,
    ),
    Naming(
        "/sdk/v1/add-address",
        {"userId": "{id}", "address": SIGNER.address, "chainType": "evm",
         "message": "Link my wallet.", "signature": SIGNER.sign("Link my wallet.")},
        "accountId", FOREIGN,
    ),
    Naming("/sdk/v1/get-balance", {"userId": "{id}"}, "accountId", FOREIGN),
    Naming("/sdk/v1/get-balance", {"paymentAddress": "{id}"}, "paymentAddress", FOREIGN),
    Naming("/sdk/v1/get-user?userId={id}", None, "accountId", FOREIGN, method="GET"),
    Naming("/sdk/v1/get-user-byaddress?address={id}", None, "listed", FOREIGN, method="GET"),
    Naming(
        "/sdk/v1/generate", {"userId": "{id}", "chainId": 10}, "accountId", FOREIGN, app_id=True
    ),
    Naming(
        "/sdk/v1/resolve?paymentAddress={id}", None, "paymentAddress", FOREIGN, method="GET",
        app_id=True,
    ),
    Naming(
        "/sdk/v1/is-kyc-done?userId={id}", None, "accountId", FOREIGN, method="GET", app_id=True
    ),
    Naming(
        "/sdk/v1/deploy-role-module",
        {"userId": "{id}", "txData": {"to": SIGNER.address, "data": "0x"}, "signature": "0x"},
        "accountId", FOREIGN,
    ),
    Naming("/sdk/v1/get-transactions?userId={id}", None, "accountId", FOREIGN, method="GET"),
    Naming(
        "/sdk/v1/get-transaction?transactionId={id}", None, "transactionId", FOREIGN, method="GET"
    ),
    Naming(
        "/sdk/v1/get-transactions?userId={accountId}&before={id}", None, "transactionId", FOREIGN,
        Expected(400, "validation_error"), method="GET",
    ),
    Naming(
        "/sdk/v1/quote", {"amount": 1, "sourceAddress": _PAYER, "destinationUserId": "{id}"},
        "accountId", FOREIGN, app_id=True,
    ),
    Naming(
        "/sdk/v1/quote",
        {"amount": 1, "userId": "{id}", "destinationWalletAddress": _PAYER},
        "accountId", FOREIGN, app_id=True,
    ),
    Naming(
        "/sdk/v1/quote",
        {"amount": 1, "sourceAddress": _PAYER, "destinationPaymentAddress": "{id}"},
        "paymentAddress", FOREIGN, app_id=True,
    ),
    Naming(
        "/sdk/v1/verify-transfer", {"quoteId": "{id}"}, "quoteId", _QUOTING, app_id=True
    ),
    Naming(
        "/sdk/v1/verify-transfer?quoteId={id}", None, "quoteId", _QUOTING, method="GET",
        app_id=True,
    ),
    Naming(
        "/sdk/v1/settle", ask_to_settle(SIGNER, SIGNER.address, "{id}", deadline=4_000_000_000),
        "quoteId", _QUOTING, app_id=True,
    ),
    Naming(
        "/sdk/v1/verify-transfer", {"chainId": 8453, "depositAddress": "{id}"},
        "quoteAddress", _QUOTING, app_id=True,
    ),
    Naming(
        "/sdk/v1/verify-transfer", {"chainId": 8453, "depositAddress": "{id}"},
        "depositAddress", FOREIGN, app_id=True,
    ),
)  # fmt: skip

NAMINGS: tuple[Naming, ...] = (
    *(_LEGACY if HAS_LEGACY else ()),
    Naming("/v2/client-sessions", {"accountId": "{id}"}, "accountId", FOREIGN),
    Naming("/v2/client-sessions", {"externalUserId": "{id}"}, "externalUserId", FOREIGN),
    Naming(
        "/v2/payments",
        {"intent": "receive", "amount": "1.00",
         "destination": {"type": "account", "accountId": "{id}"}},
        "accountId", FOREIGN,
    ),
    Naming(
        "/v2/payments",
        {"intent": "receive", "amount": "1.00",
         "destination": {"type": "account", "externalUserId": "{id}"}},
        "externalUserId", FOREIGN,
    ),
    Naming(
        "/v2/payments",
        {"intent": "send", "amount": "1.00", "source": {"type": "vault", "accountId": "{id}"},
         "destination": _TO_SELLER},
        "accountId", FOREIGN,
    ),
    Naming(
        "/v2/payments",
        {"intent": "collect", "amount": "1.00", "mandateId": "{id}", "destination": _TO_SELLER},
        "mandateId", FOREIGN,
    ),
    Naming(
        "/v2/accounts/{accountId}/mandates",
        {"vaultId": "{id}", "amountPerPeriod": "1.00", "period": "day"},
        "vaultId", EVERYONE,
    ),
    Naming(
        "/v2/accounts/{accountId}/wallets",
        {"challengeId": "{id}", "signature": "{signature}"},
        "challengeId", EVERYONE,
    ),
    Naming("/v2/console/events/{eventId}/resend", {"webhookId": "{id}"}, "webhookId", FOREIGN),
    Naming(
        _EVENT, {"name": "account.created", "accountId": "{id}"}, "accountId",
        ("production", "nobody"), alone=True,
    ),
    Naming(
        _EVENT, {"name": "payment.created", "paymentId": "{id}"}, "paymentId",
        ("production", "nobody"), alone=True,
    ),
    # A browser's token creates what its own account receives, and spends by its own action alone.
    Naming(
        "/v2/client/me/payments",
        {"amount": "1.00", "destination": {"type": "account", "accountId": "{id}"}},
        "accountId", EVERYONE, LEAKED, client=True,
    ),
    Naming(
        "/v2/client/me/payments", {"amount": "1.00", "mandateId": "{id}"}, "mandateId",
        ("neighbour",), LEAKED, client=True,
    ),
    Naming(
        "/v2/client/me/payments",
        {"amount": "1.00", "intent": "send", "source": {"type": "vault", "accountId": "{id}"}},
        "accountId", ("neighbour",), LEAKED, client=True,
    ),
    Naming(
        "/v2/client/me/payments/{paymentId}/options/{optionId}/authorize",
        {"actionId": "{id}", "proof": _APPROVED}, "actionId", EVERYONE, INVALID, client=True,
    ),
    # Filters by what is not ours find nothing.
    Naming("/v2/payments?accountId={id}", None, "accountId", FOREIGN, EMPTY, "GET"),
    Naming("/v2/accounts?externalUserId={id}", None, "externalUserId", FOREIGN, EMPTY, "GET"),
    Naming("/v2/console/events?accountId={id}", None, "accountId", FOREIGN, EMPTY, "GET"),
)  # fmt: skip


def named(matrix: Matrix, naming: Naming) -> Iterator[str]:
    """What is wrong with the answers to a call that names others' objects."""
    world, own = matrix.world, matrix.world.own
    place = ALONE if naming.alone else CROWDED
    for owner in naming.owners:
        world.storage.rewind(matrix.marks[place])
        mark = world.storage.mark()
        id = _id(matrix, naming.names, owner)
        target = _filled(naming.target, {**own.ids, "id": id})
        headers = {"Idempotency-Key": "naming"} if naming.method != "GET" else {}
        if naming.client:
            secret = own.payments["out"]["clientSecret"]
            headers |= {**bearer(own.buyers), "X-Service-Payment-Secret": secret}
        elif naming.app_id:
            headers |= {"Authorization": f"Basic {b64encode(own.app_id.encode()).decode()}"}
        else:
            headers |= basic(own.app_id, own.secret)
        body = _filled(naming.body, {"id": id, "signature": own.signature})
        seen = world.wires["sandbox"].call(naming.method, target, headers, body)
        got = Expected(seen.status, seen.code if seen.status >= 400 else None)
        if got != naming.wanted:
            yield f"{naming.cell} of {owner}: answered {got} {seen.body!r}"
        elif naming.wanted == EMPTY and seen.json["data"]:
            yield f"{naming.cell} of {owner}: found {seen.body!r}"
        if changed := world.storage.changed_since(mark):
            yield f"{naming.cell} of {owner}: changed {sorted(changed)}"


def _id(matrix: Matrix, name: str, owner: Owner) -> str:
    world = matrix.world
    if owner == "nobody":
        own = {
            "listed": listed_address("nobody"),
            "paymentAddress": "nobody@own",
            "transactionId": "tx_" + "A" * 24,
            "quoteAddress": listed_address("nobody"),
            "depositAddress": listed_address("nobody"),
        }
        return own.get(name) or PREFIXES.get(name, "wallet_challenge_") + "A" * 24
    if name == "externalUserId":
        return {"production": "live-buyer", "stranger": "strange-buyer"}[owner]
    populated = {"production": world.production, "stranger": world.stranger}.get(owner, world.own)
    if name == "listed":
        return populated.listed
    if name == "transactionId":
        return transaction_id(populated.payments)
    if name == "paymentAddress":
        return populated.neighbours["paymentAddress"]
    if name == "actionId":
        if owner == "neighbour":
            return str(world.own.sellers_action)
        return str(populated.selected["execution"]["actionId"])
    return (world.own.neighbours if owner == "neighbour" else populated.ids)[name]


def _filled(value: Any, texts: dict[str, str]) -> Any:
    """The value with texts for the names in its own."""
    if isinstance(value, dict):
        return {name: _filled(item, texts) for name, item in value.items()}
    if isinstance(value, str):
        for name, text in texts.items():
            value = value.replace(f"{{{name}}}", text)
    return value
