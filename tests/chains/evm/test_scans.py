"""Scans over nodes that lag, lie and leave out: every transfer, and none that is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from payments_core.chains.evm import scans
from payments_core.chains.port import Block, ChainUnavailable
from tests.chains.evm.fake_node import (
    ESCROW,
    OTHER_TOKEN,
    TOKEN,
    VAULT,
    FakeChain,
    FakeNode,
    FakeTransaction,
    Refuse,
    busy_chain,
    hashed,
    reading,
    transfer_log,
)

Nodes = Callable[..., list[FakeNode]]


def block(chain: FakeChain, number: int) -> Block:
    return Block(number, chain.blocks[number].hash)


def test_a_scan_finds_every_transfer_in_the_chains_order(fakes: Nodes) -> None:
    chain = busy_chain()
    some = fakes(chain, 0, 0, 0)
    found = reading(some).scan([TOKEN], [ESCROW], 0, 16)
    assert [one.amount_atomic for one in found] == list(range(12))
    assert {one.token_address for one in found} == {TOKEN}
    assert {one.recipient for one in found} == {ESCROW}
    assert [one.block for one in found] == [block(chain, number) for number in range(5, 17)]
    assert {one.log_index for one in found} == {1}
    both = reading(some).scan([TOKEN, OTHER_TOKEN], [ESCROW, VAULT], 7, 8)
    assert [(one.amount_atomic, one.recipient) for one in both] == [
        (2, ESCROW), (2, VAULT), (3, ESCROW), (3, VAULT),
    ]  # fmt: skip


def test_a_scan_without_recipients_finds_the_transfers_to_anybody(fakes: Nodes) -> None:
    read = reading(fakes(busy_chain()))
    assert len(read.scan([TOKEN], None, 0, 16)) == 24
    assert len(read.scan([TOKEN, OTHER_TOKEN], None, 0, 16)) == 36


def test_a_scan_for_nothing_asks_nothing(fakes: Nodes) -> None:
    (node,) = fakes(busy_chain())
    read = reading([node])
    assert read.scan([], None, 0, 9) == read.scan([TOKEN], [], 0, 9) == ()
    assert read.scan([TOKEN], None, 5, 4) == ()
    assert node.requests == []


@pytest.mark.parametrize(("count", "filters"), [(3, 1), (501, 2), (1_000, 2), (1_001, 0)])
def test_many_recipients_are_filtered_in_groups_and_more_are_matched_here(
    fakes: Nodes, count: int, filters: int
) -> None:
    (node,) = fakes(busy_chain())
    strangers = [f"0x{number:040x}" for number in range(1, count)]
    found = reading([node]).scan([TOKEN], [ESCROW, *strangers], 0, 16)
    assert [one.amount_atomic for one in found] == list(range(12))
    asked = [params[0]["topics"] for method, params in node.asked if method == "eth_getLogs"]
    assert len([topics for topics in asked if len(topics) == 3]) == filters
    assert len(asked) == max(filters, 1)


def test_a_node_that_refuses_a_long_range_is_asked_in_halves(fakes: Nodes) -> None:
    (node,) = fakes(busy_chain())

    def lie(params: Any, result: Any) -> Any:
        if int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) > 2:
            raise Refuse("range too wide")
        return result

    node.lies["eth_getLogs"] = lie
    found = reading([node]).scan([TOKEN], [ESCROW], 0, 16)
    assert [one.amount_atomic for one in found] == list(range(12))


def test_a_node_that_does_not_have_the_last_block_does_not_count(fakes: Nodes) -> None:
    chain = busy_chain()
    some = fakes(chain, 0, 0, 2)
    for _ in range(3):
        assert len(reading(some).scan([TOKEN], [ESCROW], 0, 16)) == 12
    with pytest.raises(ChainUnavailable, match="does not have block"):
        reading(some[1:]).scan([TOKEN], [ESCROW], 0, 16)
    with pytest.raises(ChainUnavailable, match="does not have block"):
        reading(some[:1]).scan([TOKEN], [ESCROW], 0, 17)


def test_blocks_that_change_during_a_scan_make_it_worthless(fakes: Nodes) -> None:
    chain = busy_chain()
    (node,) = fakes(chain)

    def reorganised(params: Any, result: Any) -> Any:
        node.chain = chain.forked(14, "other")
        return result

    node.lies["eth_getLogs"] = reorganised
    with pytest.raises(ChainUnavailable, match="changed during the scan"):
        reading([node]).scan([TOKEN], [ESCROW], 0, 16)


LOG_LIES: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda params, logs: [],
    "one left out": lambda params, logs: logs[:3] + logs[4:],
    "one made up": lambda params, logs: [
        *logs, {**logs[3], "logIndex": "0x77", "transactionHash": hashed("no")},
    ],
    "one in a known transaction": lambda params, logs: [*logs, {**logs[3], "logIndex": "0x77"}],
    "another amount": lambda params, logs: [{**logs[0], "data": f"0x{10**9:064x}"}, *logs[1:]],
    "a thousand made up": lambda params, logs: [
        {**logs[3], "logIndex": hex(n + 100), "transactionHash": hashed(n)} for n in range(1_000)
    ],
}  # fmt: skip


@pytest.mark.parametrize("lie", LOG_LIES.values(), ids=LOG_LIES)
def test_one_of_three_lying_about_logs_changes_nothing(
    fakes: Nodes, lie: Callable[[Any, Any], Any]
) -> None:
    chain = busy_chain()
    some = fakes(chain, 0, 0, 0)
    honest = reading(some).scan([TOKEN], [ESCROW], 0, 16)
    for lying_node in some:
        lying_node.lies["eth_getLogs"] = lie
        for _ in range(3):
            assert reading(some).scan([TOKEN], [ESCROW], 0, 16) == honest
        del lying_node.lies["eth_getLogs"]


@pytest.mark.parametrize(
    "name", ["none", "one left out", "one made up", "one in a known transaction"]
)
def test_logs_that_two_nodes_disagree_about_are_proven_by_their_receipts(
    fakes: Nodes, name: str
) -> None:
    chain = busy_chain()
    some = fakes(chain, 0, 0)
    honest = reading(some).scan([TOKEN], [ESCROW], 0, 16)
    some[1].lies["eth_getLogs"] = LOG_LIES[name]
    assert reading(some).scan([TOKEN], [ESCROW], 0, 16) == honest


def test_logs_that_receipts_cannot_prove_are_not_an_answer(fakes: Nodes) -> None:
    some = fakes(busy_chain(), 0, 0)
    some[1].lies["eth_getLogs"] = LOG_LIES["one left out"]
    some[1].lies["eth_getTransactionReceipt"] = lambda params, result: None
    with pytest.raises(ChainUnavailable):
        reading(some).scan([TOKEN], [ESCROW], 0, 16)
    some[0].lies["eth_getLogs"] = lambda params, logs: [*logs[:5], *logs[6:]]  # another one
    some[1].lies["eth_getTransactionReceipt"] = lambda params, result: (
        None if params[0] == hashed("tx", 3) else result
    )
    with pytest.raises(ChainUnavailable, match="too few nodes agree on logs"):
        reading(some).scan([TOKEN], [ESCROW], 0, 16)


def test_logs_that_every_node_of_a_majority_misses_differently_are_all_found(fakes: Nodes) -> None:
    some = fakes(busy_chain(), 0, 0, 0)
    honest = reading(some).scan([TOKEN], [ESCROW], 0, 16)
    for place, node in enumerate(some):
        node.lies["eth_getLogs"] = lambda params, logs, place=place: (
            logs[:place] + logs[place + 1 :]
        )
    assert reading(some).scan([TOKEN], [ESCROW], 0, 16) == honest


def test_two_nodes_that_disagree_about_too_many_logs_are_not_an_answer(
    fakes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "MAX_DISPUTED_LOGS", 10)
    some = fakes(busy_chain(), 0, 0)
    some[1].lies["eth_getLogs"] = LOG_LIES["none"]
    with pytest.raises(ChainUnavailable, match="disagree about 12 logs"):
        reading(some).scan([TOKEN], [ESCROW], 0, 16)


WRONG_LOGS: dict[str, Callable[[Any], Any]] = {
    "of another token": lambda log: {**log, "address": OTHER_TOKEN},
    "of another event": lambda log: {**log, "topics": [hashed(1), *log["topics"][1:]]},
    "below the range": lambda log: {**log, "blockNumber": "0x1"},
    "above the range": lambda log: {**log, "blockNumber": "0x11"},
    "of another block": lambda log: {**log, "blockHash": hashed(1)},
    "removed": lambda log: {**log, "removed": True},
    "pending": lambda log: {**log, "blockNumber": None, "blockHash": None},
    "without data": lambda log: {**log, "data": None},
}


@pytest.mark.parametrize("change", WRONG_LOGS.values(), ids=WRONG_LOGS)
def test_logs_that_were_not_asked_for_or_cannot_be_right_are_not_an_answer(
    fakes: Nodes, change: Callable[[Any], Any]
) -> None:
    (node,) = fakes(busy_chain())
    node.lies["eth_getLogs"] = lambda params, logs: [*logs[:2], change(logs[2]), *logs[3:]]
    with pytest.raises(ChainUnavailable):
        reading([node]).scan([TOKEN], [ESCROW], 4, 16)


def test_a_transfer_that_is_not_well_formed_is_skipped(fakes: Nodes) -> None:
    chain = FakeChain(height=4)
    erc721 = {**transfer_log(), "topics": [*transfer_log()["topics"], hashed(1)]}
    chain.include(erc721, transfer_log(amount=3))
    (found,) = reading(fakes(chain)).scan([TOKEN], [ESCROW], 0, 5)
    assert (found.log_index, found.amount_atomic) == (1, 3)


@pytest.mark.parametrize("limit", [100, 128])
@pytest.mark.parametrize("how_many", [1, 3])
def test_logs_that_a_node_cuts_off_at_its_limit_are_asked_for_in_parts(
    fakes: Nodes, limit: int, how_many: int
) -> None:
    chain = FakeChain(height=4)
    for name in range(27):
        chain.include(*[transfer_log(amount=10 * name + n) for n in range(10)], name=name)
    some = fakes(chain, *[0] * how_many)
    for node in some:
        node.lies["eth_getLogs"] = lambda params, logs: logs[:limit]
    found = reading(some).scan([TOKEN], None, 0, 31)
    assert [one.amount_atomic for one in found] == list(range(270))


def test_a_whole_answer_of_a_round_number_is_taken(fakes: Nodes) -> None:
    chain = FakeChain(height=4)
    chain.include(*[transfer_log(amount=n) for n in range(100)])
    (node,) = fakes(chain)
    assert len(reading([node]).scan([TOKEN], None, 5, 5)) == 100
    assert [method for method, _ in node.asked].count("eth_getLogs") == 1
    assert len(reading([node]).scan([TOKEN], None, 0, 5)) == 100


def test_transactions_that_number_their_logs_alike_hold_up_no_scan(fakes: Nodes) -> None:
    """As the nodes of Polygon that number the logs of a state sync from zero."""
    chain = FakeChain(height=4)
    block = chain.add(
        FakeTransaction(hashed("tx", "usual"), [transfer_log(amount=1)]),
        FakeTransaction(hashed("tx", "state sync"), [transfer_log(VAULT, amount=2)]),
    )
    some = fakes(chain, 0, 0, 0)

    def renumbered(log: Any) -> Any:
        return {**log, "logIndex": "0x0"}

    for node in some:
        node.lies["eth_getLogs"] = lambda params, logs: list(map(renumbered, logs))
        found = reading(some).scan([TOKEN], None, 0, block.number)
        assert sorted((one.recipient, one.amount_atomic) for one in found) == [
            (VAULT, 2), (ESCROW, 1),
        ]  # fmt: skip
    assert len(reading(some[:1]).scan([TOKEN], None, 0, block.number)) == 2
