"""The message of a settlement: what is signed, and what is not."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from payments_core.chains.signatures import ORDER
from payments_core.errors import (
    ActionExpired,
)
from tests.quote_payer import sign_settlement
from tests.service.legacy.settlements.settlement_harness import (
    NO_QUOTE,
    POLYGON,
    SIGNER,
    STRANGER,
    SettlementHarness,
)
from tests.service.world import WALLET


def test_what_the_payer_did_not_sign_is_refused(memory_harness: SettlementHarness) -> None:
    harness, world = memory_harness, memory_harness.world
    quote, other = harness.quote(), harness.quote()
    harness.link(STRANGER, world.merchant)
    good = harness.body(quote)["signature"]
    raw = bytes.fromhex(good[2:])
    high = ORDER - int.from_bytes(raw[32:64], "big")
    vault, deadline = world.vault_address(), harness.deadline
    signatures = {
        "one changed byte of r": "0x" + (bytes([raw[0] ^ 1]) + raw[1:]).hex(),
        "one changed byte of s": "0x" + (raw[:63] + bytes([raw[63] ^ 1]) + raw[64:]).hex(),
        "the other recovery byte": "0x" + (raw[:64] + bytes([55 - raw[64]])).hex(),
        "high s": "0x" + (raw[:32] + high.to_bytes(32, "big") + bytes([55 - raw[64]])).hex(),
        "another account's wallet": sign_settlement(STRANGER, vault, quote.id, deadline),
        "another chain": sign_settlement(SIGNER, vault, quote.id, deadline, chain_id=POLYGON),
        "another vault": sign_settlement(
            SIGNER, world.vault_address(world.merchant), quote.id, deadline
        ),
        "another name": sign_settlement(SIGNER, vault, quote.id, deadline, name="Money"),
        "another version": sign_settlement(SIGNER, vault, quote.id, deadline, version="2"),
        "another quote": sign_settlement(SIGNER, vault, other.id, deadline),
        "another nonce": sign_settlement(SIGNER, vault, quote.id, deadline, nonce=2),
        "another deadline": sign_settlement(SIGNER, vault, quote.id, deadline + 1),
        "a message": SIGNER.sign(quote.id),
        "nothing": "0x",
        "words": "words",
        "too short": good[:-2],
        "too long": good + "00",
    }
    for what, signature in signatures.items():
        assert harness.faults_of({**harness.body(quote), "signature": signature}) == [
            "signature"
        ], what
    assert (harness.payment(quote).status, harness.settled()) == ("awaiting_payment", [])
    assert world.held()[1] == 0
    harness.settle(quote)


CHANGES: tuple[tuple[str, tuple[str, ...], Any], ...] = (
    ("domain.name", ("domain", "name"), "Money"),
    ("domain.version", ("domain", "version"), "2"),
    ("domain.chain_id", ("domain", "chainId"), POLYGON),
    ("domain.chain_id", ("domain", "chainId"), "08453"),
    ("domain.verifying_contract", ("domain", "verifyingContract"), WALLET),
    ("domain.verifying_contract", ("domain", "verifyingContract"), "nowhere"),
    ("types.settlement", ("types", "Settlement"), []),
    ("types.settlement", ("types", "Settlement", "1", "type"), "uint128"),
    ("types.settlement", ("types", "Settlement", "0", "name"), "quote"),
    ("types.domain", ("types", "EIP712Domain"), []),
    ("signature", ("payload", "nonce"), 2),
    ("signature", ("payload", "deadline"), 4_000_000_000),
    ("payload.nonce", ("payload", "nonce"), -1),
    ("payload.nonce", ("payload", "nonce"), "0x1"),
    ("payload.deadline", ("payload", "deadline"), "9" * 78),
)


@pytest.mark.parametrize(("path", "place", "value"), CHANGES)
def test_domain_types_and_message_are_compared(
    memory_harness: SettlementHarness, path: str, place: tuple[str, ...], value: Any
) -> None:
    body = deepcopy(memory_harness.body(memory_harness.quote()))
    inner: Any = body
    for name in place[:-1]:
        inner = inner[int(name) if name.isdigit() else name]
    inner[place[-1]] = value
    assert memory_harness.faults_of(body) == [path]
    assert memory_harness.settled() == []


def test_what_is_wrong_for_every_quote_is_refused_before_one_is_looked_for(
    memory_harness: SettlementHarness,
) -> None:
    harness = memory_harness
    body = deepcopy(harness.body(harness.quote()))
    body["payload"] = {"quoteId": NO_QUOTE, "nonce": str(2**256), "deadline": "0"}
    body["domain"] = {**body["domain"], "name": "Money", "version": "2", "chainId": POLYGON}
    body["types"]["Settlement"] = []
    wrong = ["payload.nonce", "domain.name", "domain.version", "types.settlement"]
    assert harness.faults_of(body) == wrong


def test_what_libraries_add_and_how_they_write_is_accepted(
    memory_harness: SettlementHarness,
) -> None:
    harness = memory_harness
    body = deepcopy(harness.body(harness.quote()))
    body["types"]["EIP712Domain"] = [
        {"name": name, "type": type}
        for name, type in (
            ("name", "string"), ("version", "string"), ("chainId", "uint256"),
            ("verifyingContract", "address"),
        )
    ]  # fmt: skip
    body["domain"]["verifyingContract"] = body["domain"]["verifyingContract"].lower()
    body["domain"]["chainId"] = str(body["domain"]["chainId"])
    body["payload"]["nonce"] = str(body["payload"]["nonce"])
    body["signature"] = body["signature"][2:].upper()
    harness.send(body)
    assert len(harness.settled()) == 1


def test_a_deadline_in_the_past_is_refused(memory_harness: SettlementHarness) -> None:
    harness, quote = memory_harness, memory_harness.quote()
    for deadline in (0, harness.world.clock.now() // 1_000 - 1, harness.world.clock.now() // 1_000):
        with pytest.raises(ActionExpired):
            harness.settle(quote, deadline=deadline)
    body = harness.body(quote)
    harness.world.advance(601)
    with pytest.raises(ActionExpired):
        harness.send(body)
    harness.settle(quote)
