"""The read side over nodes that lag, lie and forget: never a wrong view of the chain."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from payments_core.acceptance import Acceptance
from payments_core.chains.evm.reader import EvmReader
from payments_core.chains.port import Block, ChainUnavailable, Heads, TransactionView
from tests.chains.evm.fake_node import (
    ESCROW,
    FINAL_DEPTH,
    PAYER,
    TOKEN,
    VAULT,
    FakeChain,
    FakeNode,
    FakeTransaction,
    Refuse,
    block_unix_s,
    busy_chain,
    hashed,
    other_log,
    padded,
    reading,
    transfer_log,
)

Nodes = Callable[..., list[FakeNode]]


def block(chain: FakeChain, number: int) -> Block:
    return Block(number, chain.blocks[number].hash, block_unix_s(number) * 1_000)


LIE = {"hash": hashed("lie"), "timestamp": hex(1_700_000_000)}


# Heads.


@pytest.mark.parametrize(
    ("behind", "latest"),
    [((0,), 20), ((3,), 17), ((0, 0), 20), ((0, 2), 18), ((0, 0, 9), 20), ((0, 2, 9), 18),
     ((5, 0, 0, 1), 19)],
)  # fmt: skip
def test_heads_are_the_highest_that_enough_nodes_have(
    fakes: Nodes, behind: tuple[int, ...], latest: int
) -> None:
    chain = FakeChain()
    final = latest - FINAL_DEPTH
    expected = Heads(block(chain, latest), block(chain, final))
    assert reading(fakes(chain, *behind)).heads() == expected


@pytest.mark.parametrize(
    ("acceptance", "final"),
    [
        (Acceptance("finalized"), 12),
        (Acceptance(None, 5), 15),
        (Acceptance("finalized", 15), 5),
        (Acceptance(None, 99), 0),
    ],
)
def test_the_final_head_follows_the_policy(
    fakes: Nodes, acceptance: Acceptance, final: int
) -> None:
    chain = FakeChain()
    for behind in ((0,), (0, 0, 0)):
        assert reading(fakes(chain, *behind), acceptance).heads().final == block(chain, final)


def test_one_node_of_three_that_lies_about_its_heads_changes_nothing(fakes: Nodes) -> None:
    chain = FakeChain()
    some = fakes(chain, 0, 0, 0)
    lies: list[Callable[[Any, Any], Any]] = [
        lambda params, result: {**LIE, "number": hex(10**9)},
        lambda params, result: {**LIE, "number": "0x0"},
        lambda params, result: result and {**result, "hash": hashed("lie")},
        lambda params, result: result and {**result, "timestamp": hex(1_600_000_000)},
        lambda params, result: None,
        lambda params, result: {**LIE, "number": hex(2**64)},
    ]
    for lie in lies:
        for lying_node in some:
            lying_node.lies["eth_getBlockByNumber"] = lie
            heads = reading(some).heads()
            del lying_node.lies["eth_getBlockByNumber"]
            assert heads == Heads(block(chain, 20), block(chain, 12))


def test_at_a_fork_the_highest_common_block_is_the_newest(fakes: Nodes) -> None:
    chain = FakeChain()
    some = fakes(chain, 0, 0)
    some[1].chain = chain.forked(19, "other")
    assert reading(some).heads() == Heads(block(chain, 18), block(chain, 12))


def test_nodes_on_different_chains_have_no_heads(fakes: Nodes) -> None:
    chain = FakeChain()
    some = fakes(chain, 0, 0)
    some[1].chain = chain.forked(5, "other")
    with pytest.raises(ChainUnavailable):
        reading(some).heads()


def test_a_node_without_a_final_block_yet_does_not_count(fakes: Nodes) -> None:
    (node,) = fakes(FakeChain())
    node.lies["eth_getBlockByNumber"] = lambda params, result: (
        None if params[0] == "finalized" else result
    )
    with pytest.raises(ChainUnavailable, match="no finalized block yet"):
        reading([node]).heads()


def test_a_final_block_above_the_newest_is_not_an_answer(fakes: Nodes) -> None:
    (node,) = fakes(FakeChain())
    node.lies["eth_getBlockByNumber"] = lambda params, result: (
        {**LIE, "number": "0x99"} if params[0] == "finalized" else result
    )
    with pytest.raises(ChainUnavailable, match="above the latest block"):
        reading([node]).heads()


def test_a_hanging_node_delays_heads_by_no_more_than_the_grace(fakes: Nodes) -> None:
    chain = FakeChain()
    some = fakes(chain, 0, 0, 0)
    some[0].fault = "hang"
    begun = time.monotonic()
    assert reading(some, timeout_s=30).heads().latest == block(chain, 20)
    assert time.monotonic() - begun < 10


# Blocks.


def test_a_block_is_what_enough_nodes_have_at_its_height(fakes: Nodes) -> None:
    chain = FakeChain()
    some = fakes(chain, 0, 0, 5)
    assert reading(some).block(18) == block(chain, 18)
    assert reading(some).block(21) is None
    assert reading(some[1:]).block(10) == block(chain, 10)
    with pytest.raises(ChainUnavailable):  # one of the two is behind, and cannot agree
        reading(some[1:]).block(18)


def test_a_block_of_another_height_than_was_asked_for_is_not_an_answer(fakes: Nodes) -> None:
    (node,) = fakes(FakeChain())
    node.lies["eth_getBlockByNumber"] = lambda params, result: {**result, "number": "0x3"}
    with pytest.raises(ChainUnavailable, match="the block is not the requested block"):
        reading([node]).block(4)


# Transactions.


def test_a_transaction_in_a_block_is_seen_with_its_transfers(fakes: Nodes) -> None:
    chain = FakeChain()
    hash = chain.include(other_log(), transfer_log(amount=7))
    view = reading(fakes(chain, 0, 0, 0)).transaction(hash)
    assert view is not None
    assert (view.block, view.succeeded) == (block(chain, 21), True)
    (log,) = view.logs
    reported = (log.position, log.log_index, log.token_address, log.recipient, log.amount_atomic)
    assert reported == (1, 1, TOKEN, ESCROW, 7)


def test_a_failed_transaction_is_seen_without_transfers(fakes: Nodes) -> None:
    chain = FakeChain()
    hash = chain.include(succeeded=False)
    view = TransactionView(hash, block(chain, 21), False, ())
    assert reading(fakes(chain)).transaction(hash) == view


def test_an_unknown_transaction_is_none_and_a_pending_one_in_no_block(fakes: Nodes) -> None:
    chain = FakeChain()
    chain.pending.add(hashed("pending"))
    read = reading(fakes(chain, 0, 0, 0))
    assert read.transaction(hashed("unknown")) is None
    assert read.transaction(hashed("pending")) == TransactionView(
        hashed("pending"), None, False, ()
    )


def test_a_transaction_that_one_node_alone_has_heard_of_is_unknown(fakes: Nodes) -> None:
    chain = FakeChain()
    some = fakes(chain, 0, 0)
    some[0].lies["eth_getTransactionByHash"] = lambda params, result: {"hash": params[0]}
    assert reading(some).transaction(hashed("pending")) is None


def test_the_place_of_a_log_outlives_a_reorg_though_its_index_does_not(fakes: Nodes) -> None:
    chain = FakeChain()
    ours = FakeTransaction(hashed("ours"), [other_log(), transfer_log()])
    chain.add(ours)
    (node,) = fakes(chain)
    before = reading([node]).transaction(ours.hash)
    node.chain = chain.forked(21, "other")
    node.chain.blocks.pop()
    node.chain.add(FakeTransaction(hashed("first"), [other_log(), other_log()]), ours)
    after = reading([node]).transaction(ours.hash)
    assert before is not None and after is not None
    assert before.block != after.block
    assert (before.logs[0].position, before.logs[0].log_index) == (1, 1)
    assert (after.logs[0].position, after.logs[0].log_index) == (1, 3)


def test_a_receipt_from_a_fork_that_was_left_says_nothing(fakes: Nodes) -> None:
    chain = FakeChain()
    hash = chain.include(transfer_log())
    some = fakes(chain, 0, 0, 0)
    stale = some[0].eth_getTransactionReceipt(hash)
    fork = chain.forked(21, "other")
    for node in some:
        node.chain = fork
    some[0].lies["eth_getTransactionReceipt"] = lambda params, result: stale
    assert reading(some).transaction(hash) is None
    with pytest.raises(ChainUnavailable):
        reading(some[:1]).transaction(hash)


def test_a_receipt_of_a_block_that_is_still_made_is_in_no_block(fakes: Nodes) -> None:
    chain = FakeChain()
    hash = chain.include(transfer_log())
    (node,) = fakes(chain, 1)
    early = FakeNode.eth_getTransactionReceipt
    node.behind = 0
    receipt = early(node, hash)
    node.behind = 1
    node.lies["eth_getTransactionReceipt"] = lambda params, result: receipt
    assert reading([node]).transaction(hash) == TransactionView(hash, None, False, ())


@pytest.mark.parametrize("behind", [(0, 0, 1), (0, 1, 0), (1, 0, 0)])
def test_a_node_behind_does_not_hide_a_transaction(fakes: Nodes, behind: tuple[int, ...]) -> None:
    chain = FakeChain()
    hash = chain.include(transfer_log())
    view = reading(fakes(chain, *behind)).transaction(hash)
    assert view is not None
    assert view.block == block(chain, 21)


def test_of_two_nodes_one_behind_makes_a_transaction_unavailable(fakes: Nodes) -> None:
    chain = FakeChain()
    hash = chain.include(transfer_log())
    with pytest.raises(ChainUnavailable):
        reading(fakes(chain, 0, 1)).transaction(hash)


RECEIPT_LIES: dict[str, Callable[[Any, Any], Any]] = {
    "more": lambda params, r: {**r, "logs": [{**r["logs"][0], "data": f"0x{10**9:064x}"}]},
    "to me": lambda params, r: {
        **r,
        "logs": [
            {**r["logs"][0], "topics": [*r["logs"][0]["topics"][:2], padded(VAULT)]},
        ],
    },
    "no logs": lambda params, r: {**r, "logs": []},
    "failed": lambda params, r: {**r, "logs": [], "status": "0x0"},
    "nothing": lambda params, r: None,
    "another block": lambda params, r: {
        **r,
        "blockHash": hashed("x"),
        "logs": [{**log, "blockHash": hashed("x")} for log in r["logs"]],
    },
    "garbage": lambda params, r: {**r, "status": "yes"},
}


@pytest.mark.parametrize("lie", RECEIPT_LIES.values(), ids=RECEIPT_LIES)
def test_one_of_three_lying_about_a_receipt_changes_nothing(
    fakes: Nodes, lie: Callable[[Any, Any], Any]
) -> None:
    chain = FakeChain()
    hash = chain.include(transfer_log())
    some = fakes(chain, 0, 0, 0)
    honest = reading(some).transaction(hash)
    assert honest is not None and honest.logs
    for lying_node in some:
        lying_node.lies["eth_getTransactionReceipt"] = lie
        for _ in range(3):
            assert reading(some).transaction(hash) == honest
        del lying_node.lies["eth_getTransactionReceipt"]


@pytest.mark.parametrize("method", ["eth_getBlockByNumber", "eth_getTransactionByHash"])
@pytest.mark.parametrize("said", [{"hash": "0x1", "number": "0x1"}, "refused"])
def test_one_of_three_that_cannot_say_the_rest_changes_nothing(
    fakes: Nodes, method: str, said: object
) -> None:
    chain = FakeChain()
    hash = chain.include(transfer_log())
    chain.pending.add(hashed("pending"))
    some = fakes(chain, 0, 0, 0)
    honest = reading(some).transactions([hash, hashed("pending"), hashed("unknown")])

    def lie(params: Any, result: Any) -> Any:
        if said == "refused":
            raise Refuse("no")
        return said

    for lying_node in some:
        lying_node.lies[method] = lie
        assert reading(some).transactions(list(honest)) == honest
        del lying_node.lies[method]
    some[0].lies[method] = lie
    assert len(reading(some[:1]).transactions(list(honest))) < 3


def test_one_transaction_that_cannot_be_read_does_not_hold_up_the_others(fakes: Nodes) -> None:
    chain = FakeChain()
    good, odd, refused = (chain.include(transfer_log(), name=name) for name in range(3))
    some = fakes(chain, 0, 0, 0)

    def lie(params: Sequence[str], result: dict[str, Any]) -> object:
        if params[0] == refused:
            raise Refuse("no")
        return {**result, "logs": {}} if params[0] == odd else result

    for node in some:
        node.lies["eth_getTransactionReceipt"] = lie
    read = reading(some)
    views = read.transactions([good, odd, refused, hashed("unknown"), good])
    assert set(views) == {good, hashed("unknown")}
    with pytest.raises(ChainUnavailable, match="too few agree"):
        read.transaction(odd)
    assert read.transaction(good) == views[good]


def test_many_transactions_are_asked_for_in_two_batches(fakes: Nodes) -> None:
    chain = FakeChain()
    hashes = [chain.include(transfer_log(), name=name) for name in range(20)]
    (node,) = fakes(chain)
    read = reading([node])
    read.heads()
    node.requests.clear()
    assert len(read.transactions(hashes)) == 20
    assert len(node.requests) == 2
    assert read.transactions([]) == {}


# Balances.


def test_balances_are_those_at_the_final_block(fakes: Nodes) -> None:
    chain = FakeChain()
    chain.balances = {
        (TOKEN.lower(), ESCROW.lower()): 7,
        (TOKEN.lower(), VAULT.lower()): 2**256 - 1,
    }
    some = fakes(chain, 0, 0, 0)
    at = reading(some).balances(TOKEN, [ESCROW, VAULT, PAYER])
    assert (at.height, at.amounts) == (12, {ESCROW: 7, VAULT: 2**256 - 1, PAYER: 0})
    calls = [params for node in some for method, params in node.asked if method == "eth_call"]
    assert {params[1] for params in calls} == {hex(12)}  # two of the three may have been enough
    assert reading(some).balances(TOKEN, []).amounts == {}


@pytest.mark.parametrize("returned", ["0x", "0x1", f"0x{7:062x}", f"0x{7:0128x}", None, 7])
def test_a_balance_that_is_not_a_number_of_32_bytes_is_not_an_answer(
    fakes: Nodes, returned: Any
) -> None:
    (node,) = fakes(FakeChain())
    node.lies["eth_call"] = lambda params, result: returned
    with pytest.raises(ChainUnavailable):
        reading([node]).balances(TOKEN, [ESCROW])


def test_one_of_three_lying_about_a_balance_changes_nothing(fakes: Nodes) -> None:
    some = fakes(FakeChain(), 0, 0, 0)
    for lying_node in some:
        lying_node.lies["eth_call"] = lambda params, result: f"0x{10**9:064x}"
        for _ in range(3):
            assert reading(some).balances(TOKEN, [ESCROW]).amounts == {ESCROW: 0}
        del lying_node.lies["eth_call"]
    for lying_node in some[:2]:
        lying_node.lies["eth_call"] = lambda params, result, lying_node=lying_node: (
            f"0x{id(lying_node):064x}"
        )
    with pytest.raises(ChainUnavailable):
        reading(some).balances(TOKEN, [ESCROW])


def test_a_balance_from_another_final_block_does_not_count(fakes: Nodes) -> None:
    chain = FakeChain()
    (node,) = fakes(chain)

    def reorganised(params: Any, result: Any) -> Any:
        node.chain = chain.forked(5, "other")
        return result

    node.lies["eth_call"] = reorganised
    with pytest.raises(ChainUnavailable, match="does not have block 12 of the other nodes"):
        reading([node]).balances(TOKEN, [ESCROW])


def test_what_the_question_to_a_contract_cannot_return_is_not_an_answer(fakes: Nodes) -> None:
    (node,) = fakes(FakeChain())
    for returned in ("0x", "0x" + 96 * "00", "0x" + 160 * "00", "yes", None):
        node.lies["eth_call"] = lambda params, result, returned=returned: returned
        with pytest.raises(ChainUnavailable, match=r"four words|not hex|unexpected form"):
            reading([node]).check_contract_signature(VAULT, bytes(32), b"signed")


# Everything.


@pytest.mark.parametrize(
    "fault",
    ["hang", "drip", "garbage", "truncated", "huge", "wrong ids", "one missing", "status 502"],
)
def test_a_lone_node_that_answers_badly_is_unavailable_whatever_is_asked(
    fakes: Nodes, fault: str
) -> None:
    chain = busy_chain()
    (node,) = fakes(chain)
    node.fault = fault
    questions: list[Callable[[EvmReader], object]] = [
        lambda read: read.heads(),
        lambda read: read.block(3),
        lambda read: read.transaction(hashed("tx", 0)),
        lambda read: read.scan([TOKEN], [ESCROW], 0, 16),
        lambda read: read.balances(TOKEN, [ESCROW]),
        lambda read: read.check_contract_signature(VAULT, bytes(32), b"signed"),
    ]
    for question in questions:
        with pytest.raises(ChainUnavailable):
            question(reading([node]))
