"""What the name of a response's field says about its text (contract §1 "Conventions").

Bodies state their rules in annotations, which are checked. Responses follow conventions:
`...At` is a time, `...Atomic` an amount in the smallest unit, `...Id` an id with its prefix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from payments_core.engine.identifiers import id_pattern
from payments_core_http.routing import PATH_IDS

Schema = dict[str, Any]

PREFIXES: Mapping[str, str] = {
    **{name: shape.prefix for name, shape in PATH_IDS.items() if shape.shape is None},
    "bankAccountId": "bank_account",
    "challengeId": "wallet_challenge",
    "depositAddressId": "deposit_address",
    "depositId": "deposit",
    "kycProviderToken": "verification",
    "fundingOperationId": "pay_funding",
    "outboxEventId": "evt",
    "policyId": "policy",
    "receiptId": "receipt",
    "refundId": "refund",
    "requestId": "req",
    "quoteId": "quote",
    "selectedOptionId": "pay_option",
    "userId": "acct",
    "verificationId": "verification",
    "webhookEndpointId": "webhook",
}
"""The prefix of an id by the name of its field."""

ENDPOINT, DELIVERY = "webhookEndpointId", "deliveryId"

_TIMES = frozenset({"at", "now", "realNow", "since"})
_TIME_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"
_ATOMIC_PATTERN = "^[0-9]{1,78}$"
_SIGNED_PATTERN = "^-?[0-9]{1,78}$"
_SIGNED = frozenset({"openingAtomic", "closingAtomic"})
"""Amounts that may be below zero: balances of the journal."""
_ALIASES: Mapping[str, str] = {"endpointId": ENDPOINT}
"""What `id` is called elsewhere, if a class has a shorter name."""

_WORD = re.compile("[A-Z][a-z0-9]*")


def rules_of(name: str, owner: str = "") -> Schema:
    """What a text under this name is, as keywords of a schema; `owner` is the object's class."""
    if name.endswith("At") or name in _TIMES:
        return {"format": "date-time", "pattern": _TIME_PATTERN}
    if name in _SIGNED:
        return {"pattern": _SIGNED_PATTERN}
    if name.endswith("Atomic"):
        return {"pattern": _ATOMIC_PATTERN}
    if name.endswith("Url"):
        return {"format": "uri"}
    prefix = prefix_of(name, owner)
    return {} if prefix is None else {"pattern": id_pattern(prefix)}


def prefix_of(name: str, owner: str = "") -> str | None:
    """The prefix of the id that a field holds; None if it holds no known id."""
    if name != "id":
        return PREFIXES.get(name)
    # The id of an `OwnAccountView` is an account's: the last words of the class name it.
    words = _WORD.findall(owner.removesuffix("View"))
    for start in range(len(words)):
        noun = "".join(words[start:]) + "Id"
        noun = noun[0].lower() + noun[1:]
        if found := PREFIXES.get(_ALIASES.get(noun, noun)):
            return found
    return None


def resolved(schema: Schema, document: Mapping[str, Any]) -> Schema:
    """The schema that a reference leads to."""
    while "$ref" in schema:
        found: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema
