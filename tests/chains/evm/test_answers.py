"""What a node may answer, and what becomes of what it may not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.addresses import encode_checksum_address
from payments_core.chains.evm import responses as answers
from payments_core.chains.evm.responses import BadResponse, Log, Receipt
from payments_core.chains.port import Block, ChainUnavailable, TransferLog
from tests.chains.evm.fake_node import (
    ESCROW,
    OTHER_TOKEN,
    PAYER,
    TOKEN,
    FakeChain,
    FakeTransaction,
    hashed,
    other_log,
    padded,
    transfer_log,
)  # fmt: skip

LOGS = st.lists(
    st.one_of(st.builds(transfer_log, amount=st.integers(0, 2**256 - 1)), st.builds(other_log)),
    max_size=6,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def receipt_of(*logs: dict[str, Any], before: int = 0, succeeded: bool = True) -> dict[str, Any]:
    """A receipt as a node writes it, behind so many logs of another transaction."""
    chain = FakeChain(height=3)
    other = FakeTransaction(hashed("other"), [other_log() for _ in range(before)])
    block = chain.add(other, FakeTransaction(hashed("ours"), list(logs), succeeded))
    return chain.receipts(block)[1]


def decoded(value: dict[str, Any]) -> Receipt:
    receipt = answers.parse_receipt(raw(value), hashed("ours"))
    assert receipt is not None
    return receipt


# Numbers, by the specification's own examples and bounds.


@given(st.integers(0, 2**63 - 1))
def test_a_quantity_is_read_as_it_is_written(number: int) -> None:
    assert answers.parse_quantity(hex(number)) == number
    assert answers.parse_number(raw(hex(number))) == number


@pytest.mark.parametrize(
    "text",
    ["", "0x", "0x00", "0x0400", "ff", "0xfg", "0x-1", "-0x1", "0X1", " 0x1", "0x1\n", "0x1_0",
     "0x٣", "1", hex(2**63), hex(2**256), "0x1" + 10_000 * "0"],
)  # fmt: skip
def test_a_quantity_of_another_form_is_not_guessed_at(text: str) -> None:
    with pytest.raises(BadResponse):
        answers.parse_number(raw(text))


@pytest.mark.parametrize("value", [1, 1.5, True, None, [], {}, ["0x1"]])
def test_a_quantity_is_a_text(value: object) -> None:
    with pytest.raises(BadResponse):
        answers.parse_number(raw(value))


@given(st.integers(0, 2**256 - 1))
def test_a_word_that_a_contract_returns_is_a_number(number: int) -> None:
    assert answers.parse_uint256(raw(f"0x{number:064x}")) == number


@pytest.mark.parametrize("text", ["0x", "0x1", "0x" + 63 * "0", "0x" + 65 * "0", "0x" + 128 * "0"])
def test_a_word_has_32_bytes(text: str) -> None:
    with pytest.raises(BadResponse):
        answers.parse_uint256(raw(text))


@given(st.binary(max_size=100))
def test_bytes_are_read_as_they_are_written(said: bytes) -> None:
    assert answers.parse_data(raw("0x" + said.hex())) == said


@pytest.mark.parametrize("value", ["", "0", "0x0", "0xzz", "12", None, 12])
def test_bytes_of_another_form_are_refused(value: object) -> None:
    with pytest.raises(BadResponse):
        answers.parse_data(raw(value))


# Blocks and transactions.


BLOCK = {"number": "0x10", "hash": hashed(1), "timestamp": "0x6553f100"}


def test_a_block_is_its_number_hash_and_time_and_null_is_none() -> None:
    said = {**BLOCK, "extra": {"deep": [1.5]}, "miner": 7}
    assert answers.parse_block(raw(said)) == Block(16, hashed(1), 1_700_000_000_000)
    assert answers.parse_block(raw(None)) is None


@pytest.mark.parametrize(
    "change",
    [
        {"number": None},
        {"hash": None},
        {"hash": "0x12"},
        {"number": 16},
        {"hash": 1},
        {"timestamp": None},
        {"timestamp": 1_700_000_000},
        {"timestamp": hex(2**64)},
    ],
)
def test_a_pending_or_broken_block_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(BadResponse):
        answers.parse_block(raw({**BLOCK, **change}))


def test_a_transaction_is_known_under_its_own_hash_only() -> None:
    assert answers.is_known(raw({"hash": hashed(1)}), hashed(1))
    assert not answers.is_known(raw(None), hashed(1))
    with pytest.raises(BadResponse):
        answers.is_known(raw({"hash": hashed(2)}), hashed(1))


# Receipts.


@given(LOGS, st.integers(0, 5))
def test_every_transfer_has_its_place_among_all_logs(
    logs: list[dict[str, Any]], before: int
) -> None:
    view = answers.to_transaction_view(decoded(receipt_of(*logs, before=before)))
    assert view.logs == tuple(
        TransferLog(n, before + n, TOKEN, PAYER, ESCROW, int(log["data"], 16))
        for n, log in enumerate(logs)
        if len(log["topics"]) == 3
    )
    assert view.succeeded


def test_a_failed_transaction_has_no_transfers() -> None:
    assert not decoded(receipt_of(succeeded=False)).succeeded
    with pytest.raises(BadResponse):
        decoded(receipt_of(transfer_log(), succeeded=False))


def test_polygon_logs_the_fee_of_a_failed_transaction() -> None:
    fee = {**transfer_log(), "topics": [hashed("LogFeeTransfer"), *transfer_log()["topics"]]}
    view = answers.to_transaction_view(decoded(receipt_of(fee, succeeded=False)))
    assert not view.succeeded
    assert view.logs == ()


def test_no_receipt_is_none() -> None:
    assert answers.parse_receipt(raw(None), hashed("ours")) is None


Change = Callable[[dict[str, Any]], object]
WRONG: dict[str, Change] = {
    "of another transaction": lambda r: r.update(transactionHash=hashed("not ours")),
    "without a status": lambda r: r.pop("status"),
    "of a status from before Byzantium": lambda r: r.update(status=None, root=hashed(1)),
    "of a third status": lambda r: r.update(status="0x2"),
    "without a block": lambda r: r.update(blockHash=None, blockNumber=None),
    "in a block too high": lambda r: r.update(blockNumber=hex(2**63)),
    "without logs": lambda r: r.pop("logs"),
    "whose logs are null": lambda r: r.update(logs=None),
    "whose logs are an object": lambda r: r.update(logs={}),
    "with a log of another transaction": lambda r: r["logs"][1].update(transactionHash=hashed(9)),
    "with a log of another block": lambda r: r["logs"][1].update(blockHash=hashed(9)),
    "with a log of another height": lambda r: r["logs"][1].update(blockNumber="0x9"),
    "with a removed log": lambda r: r["logs"][0].update(removed=True),
    "with a log that may be removed": lambda r: r["logs"][0].update(removed="false"),
    "with two logs of one place": lambda r: r["logs"][1].update(logIndex=r["logs"][0]["logIndex"]),
    "with logs backwards": lambda r: r["logs"].reverse(),
    "with a log left out": lambda r: r["logs"].pop(1),
    "with a log of no address": lambda r: r["logs"][0].update(address="0x12"),
    "with five topics": lambda r: r["logs"][0].update(topics=5 * [hashed(1)]),
    "with a short topic": lambda r: r["logs"][0].update(topics=["0x12"]),
    "with a number for a topic": lambda r: r["logs"][0].update(topics=[12]),
    "with data of half a byte": lambda r: r["logs"][0].update(data="0x123"),
    "with a log that is a text": lambda r: r["logs"].insert(0, "log"),
    "with a log without an index": lambda r: r["logs"][0].pop("logIndex"),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_receipt_that_cannot_be_right_is_refused(change: Change) -> None:
    said = receipt_of(transfer_log(), other_log(), transfer_log(), before=2)
    decoded(said)
    change(said)
    with pytest.raises(BadResponse):
        decoded(said)


def test_fields_that_are_not_asked_for_are_not_looked_at() -> None:
    said = receipt_of(transfer_log())
    said |= {"type": 99, "l1Fee": None, "logsBloom": ["?"], "gasUsed": -1}
    said["logs"][0] |= {"blockTimestamp": 12, "transactionIndex": "none"}
    assert len(answers.to_transaction_view(decoded(said)).logs) == 1


SKIPPED: dict[str, dict[str, Any]] = {
    "an ERC-721 transfer": {**transfer_log(), "topics": [*transfer_log()["topics"], hashed(1)]},
    "a transfer with two topics": {**transfer_log(), "topics": transfer_log()["topics"][:2]},
    "no topics": {**transfer_log(), "topics": []},
    "another event": {**transfer_log(), "topics": [hashed(1), padded(PAYER), padded(ESCROW)]},
    "31 bytes of data": {**transfer_log(), "data": "0x" + 62 * "0"},
    "33 bytes of data": {**transfer_log(), "data": "0x" + 66 * "0"},
    "no data": {**transfer_log(), "data": "0x"},
    "bytes before the sender": {
        **transfer_log(),
        "topics": [transfer_log()["topics"][0], "0x1" + padded(PAYER)[3:], padded(ESCROW)],
    },
    "bytes before the recipient": {
        **transfer_log(),
        "topics": [*transfer_log()["topics"][:2], padded(ESCROW)[:25] + "1" + padded(ESCROW)[26:]],
    },
}


@pytest.mark.parametrize("log", SKIPPED.values(), ids=SKIPPED)
def test_what_is_not_a_transfer_is_skipped_and_keeps_its_place(log: dict[str, Any]) -> None:
    (transfer,) = answers.to_transaction_view(decoded(receipt_of(log, transfer_log(amount=7)))).logs
    assert (transfer.position, transfer.amount_atomic) == (1, 7)


def test_hex_letters_of_either_case_are_the_same() -> None:
    said = receipt_of(transfer_log())
    small = decoded(said)
    for log in said["logs"]:
        log["topics"] = [topic.upper().replace("0X", "0x") for topic in log["topics"]]
        log["address"] = TOKEN
    assert decoded(said) == small


@given(JSON)
def test_any_other_json_is_unavailable_and_nothing_else(value: object) -> None:
    for decode in (
        answers.parse_number, answers.parse_data, answers.parse_uint256, answers.parse_block,
        answers.parse_logs,
        lambda said: answers.parse_receipt(said, hashed("ours")),
        lambda said: answers.is_known(said, hashed("ours")),
    ):  # fmt: skip
        try:
            decode(raw(value))
        except ChainUnavailable:
            continue


@given(st.data())
def test_a_receipt_with_anything_in_any_field_is_unavailable_or_the_same(
    data: st.DataObject,
) -> None:
    said = receipt_of(transfer_log(), other_log(), before=1)
    whole = decoded(said)
    part = data.draw(st.sampled_from([said, *said["logs"]]))
    field = data.draw(st.sampled_from(sorted(part)))
    part[field] = data.draw(JSON)
    try:
        found = decoded(said)
    except ChainUnavailable:
        return
    if field == "logs":  # none at all is a right answer too
        assert found == attrs.evolve(whole, logs=())
    elif field in ("data", "topics"):
        assert len(found.logs) == len(whole.logs)
    else:
        assert found == whole


@given(st.binary(max_size=60))
def test_bytes_that_are_not_json_are_unavailable(said: bytes) -> None:
    try:
        answers.parse_logs(msgspec.Raw(said))
    except BadResponse:
        return
    assert json.loads(said) == []


def test_json_that_is_too_deep_is_unavailable() -> None:
    with pytest.raises(BadResponse):
        answers.parse_block(msgspec.Raw(b'{"extra":' + 100_000 * b"["))


# Logs of a scan.


def logs_of(chain: FakeChain) -> tuple[Log, ...]:
    found = [log for block in chain.blocks for r in chain.receipts(block) for log in r["logs"]]
    return answers.parse_logs(raw(found))


@given(st.permutations(range(5)))
def test_logs_come_in_the_chains_order_and_once(order: list[int]) -> None:
    chain = FakeChain(height=0)
    for name in range(3):
        chain.include(transfer_log(amount=name), transfer_log(amount=9), name=name)
    logs = logs_of(chain)
    mixed = [logs[place] for place in (*order, 0, 5, 5)]
    assert answers.sort_logs(mixed) == logs


def test_logs_of_two_forks_or_two_of_one_place_cannot_be_right() -> None:
    chain, fork = FakeChain(height=3), FakeChain(height=3, fork="other")
    for one in (chain, fork):
        one.include(transfer_log(), name=one.fork)
    with pytest.raises(BadResponse, match="two blocks"):
        answers.sort_logs(logs_of(chain) + logs_of(fork))
    twin = FakeChain(height=3)
    twin.include(transfer_log(amount=6), name=chain.fork)
    twin.blocks[-1].hash = chain.blocks[-1].hash
    with pytest.raises(BadResponse, match="the same index"):
        answers.sort_logs(logs_of(chain) + logs_of(twin))


def test_a_list_of_too_many_logs_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_LOGS", 3)
    chain = FakeChain(height=0)
    chain.include(*[transfer_log() for _ in range(4)])
    with pytest.raises(BadResponse, match="more logs"):
        logs_of(chain)


def test_addresses_are_given_with_their_checksum() -> None:
    (transfer,) = answers.to_transaction_view(
        decoded(receipt_of(transfer_log(token=OTHER_TOKEN)))
    ).logs
    reported = (transfer.token_address, transfer.sender, transfer.recipient)
    assert reported == (OTHER_TOKEN, PAYER, ESCROW)
    assert answers.checksum_address(ESCROW.lower()) == encode_checksum_address(
        bytes.fromhex(ESCROW[2:])
    )


def test_the_topic_of_a_transfer_is_the_hash_of_its_signature() -> None:
    from eth_hash.auto import keccak

    assert "0x" + keccak(b"Transfer(address,address,uint256)").hex() == answers.TRANSFER
