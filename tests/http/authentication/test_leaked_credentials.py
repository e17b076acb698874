"""A credential in a body is refused wherever it stands, and nothing of the request is kept."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from payments_core.credentials.secrets import new_secret
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.entropy import system_entropy
from payments_core.payments.record import Payment
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.webhooks import signing
from tests.http.api_harness import Seen
from tests.http.checkout import Checkout


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


CREDENTIALS: dict[str, Callable[[Checkout], str]] = {
    "a standard key": lambda checkout: checkout.api.secret,
    "a restricted key": lambda checkout: checkout.api.restricted_secret,
    "a publishable key": lambda checkout: new_secret("publishable", "sandbox", system_entropy),
    "a signing secret": lambda checkout: signing.new_secret(system_entropy),
    "one of many signs": lambda checkout: signing.new_secret(lambda count: b"\xfb\xf0" * 16),
    "a session token": lambda checkout: checkout.api.session().json["clientSessionToken"],
    "an access token": lambda checkout: checkout.access,
    "a Payment's secret": lambda checkout: checkout.api.payment_secret("payment_" + "a" * 24),
}
PLACES: dict[str, Callable[[str], tuple[dict[str, object], str]]] = {
    "a field": lambda text: ({"reference": text[:128]}, "reference"),
    "a sentence": lambda text: ({"description": f"use '{text}'!"}, "description"),
    "metadata": lambda text: ({"metadata": {"note": text}}, "metadata.note"),
    "deep": lambda text: ({"metadata": {"a": {"b": ["", text]}}}, "metadata.a.b[1]"),
    "a name": lambda text: ({"metadata": {"a": {text: 1}}}, "metadata.a"),
    "no field": lambda text: ({"unheard": text}, "unheard"),
}


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


def send(checkout: Checkout, more: dict[str, object], spelled: Callable[[str], str]) -> Seen:
    """A Payment that would be created without `more`."""
    destination = {"type": "account", "accountId": checkout.merchant}
    body = {"intent": "receive", "amount": "1", "destination": destination, **more}
    return checkout.api.call(
        "POST", "/v2/payments", raw=spelled(json.dumps(body)).encode(), key="k"
    )


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", CREDENTIALS)
def test_a_credential_in_a_body_is_refused_and_nothing_is_stored(
    checkout: Checkout, kind: str, place: str
) -> None:
    credential = CREDENTIALS[kind](checkout)
    more, path = PLACES[place](credential)
    for spelled in (str, lambda text: text.replace(credential[:100], escaped(credential[:100]))):
        seen = send(checkout, more, spelled)
        assert (seen.status, seen.code) == (400, "validation_error")
        assert list(seen.faults) == [path]
        assert credential[:60].encode() not in seen.body
    partition, read = checkout.api.partition, checkout.api.service.parts.ports.storage.read
    assert not read(partition, lambda s: s.find(Payment, "by_created")).records
    assert not read(partition, lambda s: s.find(StoredResponse, "by_expiry")).records


def test_one_escaped_letter_hides_nothing(checkout: Checkout) -> None:
    secret = checkout.api.secret
    seen = send(checkout, {"reference": secret}, lambda text: text.replace("sk_", "s\\u006b_"))
    assert list(seen.faults) == ["reference"]


def test_the_escapes_of_an_innocent_text_are_welcome(checkout: Checkout) -> None:
    note = "caf\u00e9 \u2013 the secret begins with sk_sandbox_, and whsec_ is one too"
    seen = send(checkout, {"description": note}, str)
    assert (seen.status, seen.json["description"]) == (201, note)
