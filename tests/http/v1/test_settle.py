"""`settle` over HTTP: what the payer's wallet did not sign pays nothing; what it did, once."""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import Any

import pytest

from payments_core.chains.signatures import ORDER
from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.checkout import BASE, Checkout
from tests.http.seen import Seen
from tests.quote_payer import ask_to_settle, sign_settlement
from tests.signers import EvmWallet

PAYER, STRANGER = EvmWallet(41), EvmWallet(42)
POLYGON = 137


class Counter:
    """A payer with a linked wallet and a funded vault, and a quote of theirs."""

    def __init__(self) -> None:
        self.checkout = Checkout(MemoryStorage())
        self.api = self.checkout.api
        self.link(PAYER, self.checkout.payer)
        self.link(STRANGER, self.checkout.merchant)
        self.vault = self.vault_of(self.checkout.payer)
        self.quote = self.ask()

    @property
    def app_id(self) -> str:
        """The header of the app id alone."""
        return "Basic " + base64.b64encode(self.api.app_row.id.encode()).decode()

    @property
    def deadline(self) -> int:
        return self.checkout.clock.now() // 1_000 + 600

    def link(self, wallet: EvmWallet, account_id: str) -> None:
        text = f"Link {wallet.number}."
        body = {
            "userId": account_id, "address": wallet.address, "chainType": "evm",
            "message": text, "signature": wallet.sign(text),
        }  # fmt: skip
        assert self.api.call("POST", "/sdk/v1/add-address", body).status == 200

    def vault_of(self, account_id: str) -> str:
        user = self.api.call("GET", f"/sdk/v1/get-user?userId={account_id}").json["data"]
        return str(user["vaultAddress"])

    def ask(self, amount: int = 25) -> str:
        """The id of a quote of the payer's for the merchant."""
        body = {
            "amount": amount, "userId": self.checkout.payer, "sourceChainId": BASE,
            "destinationUserId": self.checkout.merchant, "destinationChainID": BASE,
        }  # fmt: skip
        seen = self.api.call("POST", "/sdk/v1/quote", body, auth=self.app_id)
        return str(seen.json["data"]["quoteData"]["quoteId"])

    def body(self, **more: Any) -> dict[str, Any]:
        asked = {"vault": self.vault, "quote_id": self.quote, "deadline": self.deadline, **more}
        return deepcopy(ask_to_settle(PAYER, **asked))

    def send(self, body: Any, **more: Any) -> Seen:
        return self.api.call("POST", "/sdk/v1/settle", body, auth=self.app_id, **more)

    @property
    def reserved(self) -> str:
        return self.checkout.available(self.checkout.payer)[1]


@pytest.fixture
def counter() -> Counter:
    return Counter()


def test_what_is_signed_by_the_payer_is_settled_in_v1_and_in_v2(counter: Counter) -> None:
    seen = counter.send(counter.body())
    assert (seen.status, seen.json["data"]["status"]) == (200, "pending")
    assert counter.reserved == "25000000"
    counter.checkout.advance(60)
    id = seen.json["data"]["transactionId"]
    found = counter.api.call("GET", f"/sdk/v1/get-transaction?transactionId={id}").json["data"]
    assert (found["type"], found["status"], found["amount"]) == ("settlement", "completed", "25.00")
    assert found["from"]["userId"] == counter.checkout.payer
    done = f"/sdk/v1/verify-transfer?quoteId={counter.quote}"
    seen = counter.api.call("GET", done, auth=counter.app_id)
    assert seen.json["data"] == {"isTransferDone": True}
    path = f"/v2/payments?accountId={counter.checkout.merchant}"
    [payment] = counter.api.call("GET", path).json["data"]
    session = counter.api.call("GET", f"/v2/sessions/{payment['sessionId']}").json
    assert (payment["status"], session["status"]) == ("succeeded", "settled")


def test_every_signature_but_the_payers_over_this_settlement_is_refused(counter: Counter) -> None:
    vault, quote, deadline = counter.vault, counter.quote, counter.deadline
    raw = bytes.fromhex(counter.body()["signature"][2:])
    high = ORDER - int.from_bytes(raw[32:64], "big")

    def signed(signer: EvmWallet = PAYER, **more: Any) -> str:
        whole = {"vault": vault, "quote_id": quote, "deadline": deadline, **more}
        return sign_settlement(signer, **whole)

    for signature in (
        *("0x" + (raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]).hex() for at in range(65)),
        "0x" + (raw[:32] + high.to_bytes(32, "big") + bytes([55 - raw[64]])).hex(),
        signed(STRANGER),
        signed(chain_id=POLYGON),
        signed(vault=counter.vault_of(counter.checkout.merchant)),
        signed(quote_id=counter.ask()),
        signed(nonce=2),
        signed(deadline=deadline + 1),
        PAYER.sign(quote),
        "0x",
        "words",
    ):
        seen = counter.send({**counter.body(), "signature": signature})
        assert (seen.status, seen.json["code"]) == (400, "validation_error"), signature
        assert seen.json["error"].startswith("signature ")
    assert counter.reserved == "0"


CHANGES: tuple[tuple[str, tuple[str, ...], Any], ...] = (
    ("domain.name", ("domain", "name"), "Money"),
    ("domain.version", ("domain", "version"), 1),
    ("domain.chainId", ("domain", "chainId"), POLYGON),
    ("domain.verifyingContract", ("domain", "verifyingContract"), STRANGER.address),
    ("domain.salt", ("domain", "salt"), "0x00"),
    ("types.Settlement", ("types", "Settlement"), []),
    ("types.Order", ("types", "Order"), []),
    ("types.Settlement[0].extra", ("types", "Settlement", "0", "extra"), 1),
    ("signature", ("payload", "nonce"), 2),
    ("payload.nonce", ("payload", "nonce"), True),
    ("payload.nonce", ("payload", "nonce"), 1.0),
    ("payload.nonce", ("payload", "nonce"), 2**53),  # a text has all 256 bits
    ("payload.nonce", ("payload", "nonce"), str(2**256)),
    ("payload.nonce", ("payload", "nonce"), "9" * 79),
    ("payload.deadline", ("payload", "deadline"), -1),
    ("payload.deadline", ("payload", "deadline"), None),
)


@pytest.mark.parametrize(("path", "place", "value"), CHANGES)
def test_a_change_of_any_other_field_is_refused_and_named(
    counter: Counter, path: str, place: tuple[str, ...], value: Any
) -> None:
    body: Any = counter.body()
    inner = body
    for name in place[:-1]:
        inner = inner[int(name) if name.isdigit() else name]
    inner[place[-1]] = value
    seen = counter.send(body)
    assert (seen.status, seen.json["code"]) == (400, "validation_error")
    assert seen.json["error"].startswith(f"{path} ")
    assert counter.reserved == "0"


def test_a_replay_and_a_deadline_that_passed_are_refused(counter: Counter) -> None:
    body = counter.body()
    late = counter.body(nonce=2, deadline=counter.deadline - 600)
    assert counter.send(late).json["code"] == "action_expired"
    assert counter.send(body).status == 200
    for again in (body, counter.body(nonce=2), counter.body(quote_id=counter.ask())):
        seen = counter.send(again)
        assert (seen.status, seen.json["code"]) == (409, "action_already_used")
    assert counter.reserved == "25000000"


def test_a_key_has_the_same_answer_and_no_other_body(counter: Counter) -> None:
    body = counter.body()
    first = counter.send(body, key="one")
    again = counter.send(body, key="one")
    assert (again.status, again.json) == (200, first.json)
    assert again.headers["idempotent-replayed"] == "true"
    other = counter.send(counter.body(nonce=2), key="one")
    assert (other.status, other.json["code"]) == (409, "idempotency_conflict")
    invalid = counter.send({**body, "domain": {**body["domain"], "name": "Money"}}, key="one")
    assert (invalid.status, invalid.json["code"]) == (400, "validation_error")
    assert counter.reserved == "25000000"
