"""Our transactions, against eth-account's, and sent to a real node."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import attrs
import pytest
import rlp
from eth_account import Account
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st

from payments_core.chains.evm.fees import Fees, bump_fees
from payments_core.chains.evm.transactions import (
    MAX_TRANSACTION_BYTES,
    InvalidTransaction,
    UnsignedTransaction,
    attach_signature,
    decode_signed,
    signing_hash,
)
from payments_core.chains.signatures import ORDER
from payments_core.networks import shipped_networks
from tests.chains.evm.nodes import ACCOUNTS, MERCHANT, Node, Refused, anvil_or_skip
from tests.signers import sign_digest

FEES = shipped_networks()[1].fees
assert FEES is not None

KEY = (7).to_bytes(32, "big")
SENDER = Account.from_key(KEY).address
GWEI = 10**9
PLAIN = UnsignedTransaction(
    chain_id=8453,
    nonce=0,
    to="0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    value=0,
    data=b"\x00\x01",
    gas=100_000,
    max_fee=2 * GWEI,
    max_priority_fee=GWEI,
)

UNSIGNED = st.builds(
    lambda most, part, **fields: UnsignedTransaction(
        max_fee=most, max_priority_fee=min(part, most), **fields
    ),
    chain_id=st.integers(1, 2**63),
    nonce=st.integers(0, 2**64 - 2),
    to=st.just(PLAIN.to) | st.just(SENDER),
    value=st.integers(0, 2**256 - 1),
    data=st.binary(max_size=300),
    gas=st.integers(21_000, 2**63 - 1),
    most=st.integers(0, 2**256 - 1),
    part=st.integers(0, 2**256 - 1),
)


def sign(unsigned: UnsignedTransaction, key: bytes = KEY) -> bytes:
    return sign_digest(key, signing_hash(unsigned))


def as_eth_account(unsigned: UnsignedTransaction) -> dict[str, Any]:
    return {
        "type": 2,
        "chainId": unsigned.chain_id,
        "nonce": unsigned.nonce,
        "to": unsigned.to,
        "value": unsigned.value,
        "data": unsigned.data,
        "gas": unsigned.gas,
        "maxFeePerGas": unsigned.max_fee,
        "maxPriorityFeePerGas": unsigned.max_priority_fee,
    }


def fields(raw: bytes) -> list[Any]:
    """The items of a transaction, to be changed and encoded again."""
    return [item if isinstance(item, bytes) else list(item) for item in rlp.decode(raw[1:])]


def encoded(items: list[Any]) -> bytes:
    return b"\x02" + bytes(rlp.encode(items))


RAW = attach_signature(PLAIN, sign(PLAIN)).raw
ITEMS = fields(RAW)


def with_item(place: int, item: Any) -> bytes:
    return encoded([*ITEMS[:place], item, *ITEMS[place + 1 :]])


def high_s(raw: bytes) -> bytes:
    items = fields(raw)
    s = ORDER - int.from_bytes(items[11], "big")
    return encoded([*items[:9], b"" if items[9] else b"\x01", items[10], s.to_bytes(32, "big")])


# --- Against eth-account ------------------------------------------------------------------------


@given(UNSIGNED)
def test_eth_account_signs_the_same_bytes(unsigned: UnsignedTransaction) -> None:
    theirs = Account.sign_transaction(as_eth_account(unsigned), KEY)
    ours = attach_signature(unsigned, sign(unsigned))
    assert ours.raw == bytes(theirs.raw_transaction)
    assert ours.hash == "0x" + bytes(theirs.hash).hex()


@given(UNSIGNED)
def test_what_was_signed_is_read_again(unsigned: UnsignedTransaction) -> None:
    raw = attach_signature(unsigned, sign(unsigned)).raw
    assert decode_signed(raw, chain_id=unsigned.chain_id) == (unsigned, SENDER)
    assert Account.recover_transaction(raw) == SENDER


@given(place=st.integers(0, len(RAW) - 1), byte=st.integers(1, 255))
def test_a_changed_byte_is_a_fault_or_somebody_else(place: int, byte: int) -> None:
    changed = RAW[:place] + bytes([RAW[place] ^ byte]) + RAW[place + 1 :]
    try:
        _, sender = decode_signed(changed, chain_id=PLAIN.chain_id)
    except InvalidTransaction:
        return
    assert sender != SENDER


@given(st.binary(max_size=200))
def test_bytes_that_are_not_a_transaction_are_a_fault(raw: bytes) -> None:
    for each in (raw, b"\x02" + raw):
        with pytest.raises(InvalidTransaction):
            decode_signed(each, chain_id=PLAIN.chain_id)


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"chain_id": 0}, "chain_id"),
        ({"nonce": -1}, "nonce"),
        ({"nonce": 2**64 - 1}, "nonce"),
        ({"nonce": True}, "nonce"),
        ({"value": 2**256}, "value"),
        ({"gas": 20_999}, "gas"),
        ({"max_fee": 2**256}, "max_fee"),
        ({"max_fee": GWEI - 1}, "max_priority_fee"),
        ({"data": bytes(MAX_TRANSACTION_BYTES + 1)}, "data"),
        ({"to": PLAIN.to.lower()}, "checksum"),
        ({"to": "0x" + "0" * 40}, "zero address"),
        ({"to": ""}, "40 hex digits"),
    ],
)
def test_a_field_out_of_range_is_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidTransaction, match=why):
        attrs.evolve(PLAIN, **change)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "type 2"),
        (b"\x01" + RAW[1:], "type 2"),
        (RAW[1:], "type 2"),
        (b"\x02", "RLP"),
        (RAW[:-1], "RLP"),
        (RAW + b"\0", "RLP"),
        (b"\x02" + b"\xc1" * 50_000, "RLP"),
        (b"\x02" + bytes(MAX_TRANSACTION_BYTES), "too long"),
        (b"\x02\x80", "twelve fields"),
        (encoded(ITEMS[:9]), "twelve fields"),
        (encoded([*ITEMS, b""]), "twelve fields"),
        (with_item(8, [[bytes(20), []]]), "access list"),
        (with_item(8, b""), "access list"),
        (with_item(7, [b""]), "list for a number"),
        (with_item(5, b""), "not to an address"),
        (with_item(5, bytes(20)), "zero address"),
        (with_item(0, b"\x01"), "another chain"),
        (with_item(1, b"\0\x01"), "its encoding is not canonical"),
        (with_item(1, b"\0"), "its encoding is not canonical"),
        (with_item(9, b"\0"), "no signature"),
        (with_item(9, b"\x02"), "no signature"),
        (with_item(10, b"\x01" * 33), "no signature"),
        (with_item(10, b""), "its signature"),
        (with_item(10, b"\xff" * 32), "its signature"),
        (with_item(11, b""), "its signature"),
        (with_item(2, (2**256).to_bytes(33, "big")), "max_priority_fee"),
        (high_s(RAW), "low s"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} bytes",
)
def test_another_kind_of_transaction_is_refused(raw: bytes, why: str) -> None:
    with pytest.raises(InvalidTransaction, match=why):
        decode_signed(raw, chain_id=PLAIN.chain_id)


def test_a_long_form_of_a_short_list_is_refused() -> None:
    body = b"".join(rlp.encode(item) for item in ITEMS)
    with pytest.raises(InvalidTransaction):
        decode_signed(b"\x02\xfa" + len(body).to_bytes(3, "big") + body, chain_id=PLAIN.chain_id)


@pytest.mark.parametrize(
    "signature",
    [
        b"",
        sign(PLAIN)[:64],
        sign(PLAIN)[:64] + b"\x1b",
        bytes(65),
        sign(PLAIN)[:32] + (ORDER - 1).to_bytes(32, "big") + b"\0",
    ],
)
def test_a_signature_that_no_node_takes_makes_no_transaction(signature: bytes) -> None:
    with pytest.raises(InvalidTransaction, match="its signature"):
        attach_signature(PLAIN, signature)


# --- On a node ----------------------------------------------------------------------------------


def payment(node: Node, **changes: Any) -> UnsignedTransaction:
    nonce = int(node.ask("eth_getTransactionCount", ACCOUNTS[6].address, "latest"), 16)
    plain = attrs.evolve(PLAIN, to=MERCHANT, value=5, data=b"", nonce=nonce, max_fee=9 * GWEI)
    return attrs.evolve(plain, **changes)


def sent(node: Node, unsigned: UnsignedTransaction) -> str:
    transaction = attach_signature(unsigned, sign(unsigned, bytes(ACCOUNTS[6].key)))
    reported = node.ask("eth_sendRawTransaction", "0x" + transaction.raw.hex())
    assert reported == transaction.hash
    return transaction.hash


def test_a_node_takes_it_for_what_it_says(node: Node) -> None:
    unsigned = payment(node)
    known = node.ask("eth_getTransactionByHash", sent(node, unsigned))
    assert known["type"] == "0x2"
    assert known["from"] == ACCOUNTS[6].address.lower()
    assert known["accessList"] == []
    reported = {name: int(known[name], 16) for name in ("chainId", "nonce", "value", "gas")}
    assert reported == {"chainId": 8453, "nonce": unsigned.nonce, "value": 5, "gas": unsigned.gas}
    assert int(known["maxFeePerGas"], 16) == unsigned.max_fee
    assert int(known["maxPriorityFeePerGas"], 16) == unsigned.max_priority_fee


def test_a_node_refuses_another_chains_transaction(node: Node) -> None:
    with pytest.raises(Refused):
        sent(node, payment(node, chain_id=137))


def test_a_node_replaces_a_stuck_transaction_by_a_bumped_one() -> None:
    with anvil_or_skip(mining=False) as process, closing(Node(process.url)) as node:
        before = Fees(9 * GWEI + 1, GWEI // 10 + 1)  # numbers that no eighth divides
        stuck = payment(node, max_fee=before.max_fee, max_priority_fee=before.max_priority_fee)
        old = sent(node, stuck)
        new = bump_fees(before, base_fee=GWEI, priority=0, policy=FEES).fees
        with pytest.raises(Refused):  # anvil looks at the whole fee only, geth at both
            sent(node, attrs.evolve(stuck, max_priority_fee=new.max_priority_fee))
        fees = {"max_fee": new.max_fee, "max_priority_fee": new.max_priority_fee}
        replacing = sent(node, attrs.evolve(stuck, **fees))
        node.ask("evm_mine")
        assert node.receipt(replacing).succeeded
        assert node.ask("eth_getTransactionReceipt", old) is None


def test_the_hash_is_of_the_bytes() -> None:
    transaction = attach_signature(PLAIN, sign(PLAIN))
    assert transaction.hash == "0x" + keccak(transaction.raw).hex()
