"""A node alone that is behind, of another chain or broken: nothing is believed, nothing changes.

What a single node says well-formed is believed; several are for that
(`test_lying_nodes.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.port import Chain, ChainMismatch, ChainUnavailable
from payments_core.errors import DependencyFailed
from payments_core.storage.memory.adapter import MemoryStorage
from tests.chains.evm.lying_node import Lie, LyingNode, lag, lying
from tests.chains.evm.nodes import ADMIN
from tests.chains.scenes import AnvilScene, FreshChain, signer, until_it_answers
from tests.service.payer import INVENTED, Payer
from tests.service.world import BASE, USDC, atomic

HUGE = "0x" + "f" * 65
BY_HASH = ("eth_getTransactionReceipt", "eth_getTransactionByHash")
WAITING = ("jobs", "notice_readers", "scan_wishes", "simulated_time")
FED = ("event_feed", "event_feed_ends")
"""Events get their places while no node answers, too."""
SCANNED = ("scan_cursors", "deposits")


@pytest.fixture
def lying_node(anvil_world: AnvilScene) -> Iterator[LyingNode]:
    """In front of the world's node."""
    with lying(anvil_world.node) as lying_node:
        yield lying_node


@pytest.fixture
def world(anvil_world: AnvilScene, lying_node: LyingNode) -> AnvilScene:
    """Whose service asks the lying node alone."""
    chain = over(anvil_world, lying_node.url)
    anvil_world.service = anvil_world.restarted(chains={BASE: chain})
    return anvil_world


def over(world: AnvilScene, *urls: str) -> EvmChain:
    """The world's chain over these nodes."""
    return FreshChain(NodeQuorum(urls, BASE), world.chain._deployment, signer())


def records(world: AnvilScene, *names: str) -> dict[Any, Any]:
    """All that is stored under these names, or all but what tries again and when, and places."""
    storage = world.storage
    assert isinstance(storage, MemoryStorage)
    return {
        (table, place): row
        for table, rows in storage._tables.items()
        if (table[1] in names if names else table[1] not in (*WAITING, *FED))
        for place, row in rows.items()
    }


def replaced(**fields: Any) -> Lie:
    """Other values in what is said, where something is."""
    return lambda params, truth: {**truth, **fields} if isinstance(truth, dict) else truth


def always(said: Any) -> Lie:
    """Whatever was asked."""
    return lambda params, truth: said


def more_logs(**fields: Any) -> Lie:
    """One log more than there are, like another or made up."""

    def lie(params: Any, truth: Any) -> Any:
        query = params[0]
        topics = [query["topics"][0], "0x" + 64 * "1", "0x" + 64 * "2"]
        made_up = {
            "address": query["address"][0],
            "topics": topics,
            "data": "0x" + 64 * "0",
            "blockNumber": query["toBlock"],
            "blockHash": INVENTED,
            "transactionHash": INVENTED,
            "logIndex": "0x0",
            "removed": False,
        }
        return [*truth, {**made_up, **fields}]

    return lie


BYTES = {
    "truncated": lambda said: said[: len(said) // 2],
    "empty": lambda said: b"",
    "a page": lambda said: b"<html>502 Bad Gateway, key=hunter2</html>",
    "null": lambda said: b"null",
    "another id": lambda said: said.replace(b'"id": ', b'"id": 9'),
    "not UTF-8": lambda said: said.replace(b'"0x', b'"\xff\xfe'),
    "deep": lambda said: b"[" * 100_000,
    "a number for an answer": lambda said: b"1e400",
    "no result": lambda said: said.replace(b'"result"', b'"rezult"'),
}
FORMS: dict[str, tuple[str, Lie]] = {
    "a block that is a list": ("eth_getBlockByNumber", always([])),
    "a block that is a number": ("eth_getBlockByNumber", always(7)),
    "a block of a huge height": ("eth_getBlockByNumber", replaced(number=HUGE)),
    "a block of a height below zero": ("eth_getBlockByNumber", replaced(number="-0x1")),
    "a height that is not a text": ("eth_getBlockByNumber", replaced(number=12)),
    "a block with a short hash": ("eth_getBlockByNumber", replaced(hash="0x12")),
    "a block without a hash": ("eth_getBlockByNumber", replaced(hash=None)),
    "logs that are an object": ("eth_getLogs", always({})),
    "logs that are null": ("eth_getLogs", always(None)),
    "a log more, of another block": ("eth_getLogs", more_logs()),
    "a log more, of a later block": ("eth_getLogs", more_logs(blockNumber="0xffffff")),
    "a log more, of another token": ("eth_getLogs", more_logs(address="0x" + 40 * "1")),
    "a log more, that was removed": ("eth_getLogs", more_logs(removed=True)),
    "a log more, without topics": ("eth_getLogs", more_logs(topics=[])),
    "a log more, with numbers for topics": ("eth_getLogs", more_logs(topics=[1, 2, 3])),
    "a log more, of a huge place": ("eth_getLogs", more_logs(logIndex=HUGE)),
}
RECEIPTS: dict[str, Lie] = {
    "of an unknown status": replaced(status="0x2"),
    "without a status": replaced(status=None),
    "of another transaction": replaced(transactionHash=INVENTED),
    "of a huge height": replaced(blockNumber=HUGE),
    "of another block": replaced(blockHash=INVENTED),
    "with logs that are text": replaced(logs="0x"),
    "that is a list": always([]),
    "that is null": always(None),
}


def under_way(world: AnvilScene) -> tuple[Payer, Any]:
    """A wallet's payment that was not seen yet, and a vault's that was broadcast."""
    option = world.authorized("25.00")
    world.run()
    assert world.operation_now(option).status == "broadcast"
    return Payer(world, "7.00"), option


def whole_scan(chain: Chain) -> None:
    """All that there is."""
    chain.scan([USDC.address], None, 0, chain.heads().latest.number)


def goes_on(world: AnvilScene, payer: Payer, option: Any) -> None:
    """With an honest node all comes to its end."""
    until_it_answers(world.service.chains[BASE])
    world.advance(60)
    world.finish()
    assert payer.paid().status == "succeeded"
    assert world.paid(option.payment.id).status == "succeeded"
    assert world.sent() == 3
    assert world.held() == (atomic("75"), 0, atomic("75"))
    assert world.newest(world.vault_address(world.merchant)) == atomic("32")


@pytest.mark.parametrize("name", [*BYTES, *FORMS])
def test_a_malformed_answer_changes_nothing_and_all_goes_on_after_it(
    world: AnvilScene, lying_node: LyingNode, name: str
) -> None:
    payer, option = under_way(world)
    waiting = world.option(world.payment("5.00"))
    world.spend("7.00", str(payer.payment.payment.escrow_address))
    names = SCANNED if name in FORMS and FORMS[name][0] == "eth_getLogs" else ()
    before = records(world, *names), payer.paid()
    if name in BYTES:
        lying_node.mangle = BYTES[name]
    else:
        method, lie = FORMS[name]
        lying_node.lies[method] = lie
    world.advance(6)  # soon enough for nothing to count as lost from sight
    assert lying_node.lied
    assert (records(world, *names), payer.paid()) == before
    chain = world.service.chains[BASE]
    with pytest.raises(ChainUnavailable) as caught:
        whole_scan(chain)
    assert "hunter2" not in str(caught.value)
    if not names:
        with pytest.raises(DependencyFailed):
            world.authorize(waiting)
    lying_node.honest()
    goes_on(world, payer, option)


@pytest.mark.parametrize("name", RECEIPTS)
def test_a_malformed_receipt_proves_nothing_until_a_right_one_comes(
    world: AnvilScene, lying_node: LyingNode, name: str
) -> None:
    payer, option = under_way(world)
    world.spend("7.00", str(payer.payment.payment.escrow_address))
    lying_node.lies["eth_getTransactionReceipt"] = RECEIPTS[name]
    world.advance(40)
    assert lying_node.lied
    for payment_id in (payer.id, option.payment.id):
        assert world.paid(payment_id).received_atomic == 0
        assert world.journal(payment_id) == []
        receipts = world.resources.payments.list_receipts(payment_id).receipts.records
        assert not receipts
    assert world.operation_now(option).status in ("broadcast", "unknown")
    assert world.held()[1] == atomic("25")
    lying_node.honest()
    goes_on(world, payer, option)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("eth_feeHistory", {}),
        ("eth_feeHistory", {"baseFeePerGas": []}),
        ("eth_feeHistory", {"baseFeePerGas": [HUGE, HUGE]}),
        ("eth_feeHistory", {"baseFeePerGas": [1, 2]}),
        ("eth_maxPriorityFeePerGas", HUGE),
        ("eth_maxPriorityFeePerGas", None),
        ("eth_estimateGas", HUGE),
        ("eth_estimateGas", "0xffffffffff"),
        ("eth_estimateGas", "many"),
    ],
)
def test_a_malformed_price_signs_nothing(
    world: AnvilScene, lying_node: LyingNode, method: str, said: Any
) -> None:
    option = world.authorized("25.00")
    lying_node.lies[method] = always(said)
    world.advance(20)
    assert lying_node.lied
    assert world.operation_now(option).status == "authorized"
    assert world.outgoing_status(world.operation_now(option).outgoing_id) == ("reserved", None)
    assert world.sent() == 0
    lying_node.honest()
    until_it_answers(world.service.chains[BASE])
    world.advance(60)
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"
    assert world.sent() == 2


@pytest.mark.parametrize("said", [HUGE, "0x", "0x01", 25, None, []])
def test_a_malformed_balance_authorizes_nothing(
    world: AnvilScene, lying_node: LyingNode, said: Any
) -> None:
    option = world.option(world.payment("25.00"))
    before = records(world)
    lying_node.lies["eth_call"] = always(said)
    with pytest.raises(DependencyFailed):
        world.authorize(option)
    assert records(world) == before
    lying_node.honest()
    world.authorize(option)
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"


def test_a_node_that_falls_behind_takes_nothing_back(
    world: AnvilScene, lying_node: LyingNode
) -> None:
    payer, option = under_way(world)
    world.spend("7.00", str(payer.payment.payment.escrow_address))
    world.look()
    assert payer.paid().status == "processing"
    before = records(world)
    lying_node.lies = lag(100, world.node)
    world.advance(6)
    assert lying_node.lied
    assert records(world) == before
    world.advance(60)
    assert world.operation_now(option).status in ("broadcast", "unknown")
    assert payer.paid().status == "processing"
    lying_node.honest()
    goes_on(world, payer, option)


def test_a_node_that_lost_its_index_makes_nothing_fail(
    world: AnvilScene, lying_node: LyingNode
) -> None:
    """The operator's slot is used, and of what used it the node knows nothing."""
    option = world.authorized("25.00")
    world.run()
    paid_before = world.payment("7.00")
    forgets = {method: always(None) for method in BY_HASH}
    lying_node.lies = forgets
    world.advance(120)
    assert lying_node.lied
    assert world.operation_now(option).status in ("broadcast", "unknown", "authorized")
    assert world.held()[1] == atomic("25")
    lying_node.honest()
    until_it_answers(world.service.chains[BASE])
    world.advance(60)
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"
    assert world.operation_now(option).status == "confirmed"

    world.spend("7.00", str(paid_before.payment.escrow_address))
    world.look()
    world.until(paid_before, "executing")
    lying_node.lies = forgets
    world.advance(120)
    assert world.paid(paid_before.payment.id).status == "executing"
    lying_node.honest()
    until_it_answers(world.service.chains[BASE])
    world.advance(120)
    world.finish()
    assert world.paid(paid_before.payment.id).status == "succeeded"
    assert world.sent() == 3
    assert world.held() == (atomic("75"), 0, atomic("75"))


def test_a_node_of_another_chain_is_refused_at_the_start(
    anvil_world: AnvilScene, lying_node: LyingNode
) -> None:
    lying_node.lies["eth_chainId"] = always("0x1")
    with pytest.raises(ChainMismatch, match="serves chain 1, not 8453"):
        over(anvil_world, lying_node.url).check()
    with pytest.raises(ChainMismatch):  # also where the others are right
        over(
            anvil_world, anvil_world.node.url, lying_node.url, anvil_world.node.url + "/?three"
        ).check()
    with pytest.raises(ChainMismatch):  # and nothing is asked of it that counts
        over(anvil_world, lying_node.url).heads()
    over(anvil_world, anvil_world.node.url).check()


def test_a_node_that_becomes_one_of_another_chain_fails_nothing(
    world: AnvilScene, lying_node: LyingNode
) -> None:
    """No connection breaks: a proxy sends requests to another node. There the operator's address
    has sent more, and what was mined here is not known."""
    payer, option = under_way(world)
    world.spend("7.00", str(payer.payment.payment.escrow_address))
    world.look()
    seen = world.receipts(payer.payment)
    forgets = {method: always(None) for method in BY_HASH}
    others = {
        "eth_chainId": always("0xa"),
        "eth_getBlockByNumber": another_block,
        "eth_getTransactionCount": always("0xff"),
        "eth_getLogs": always([]),
        "eth_sendRawTransaction": always(INVENTED),
    }
    lying_node.lies = forgets | others
    world.advance(30)
    assert lying_node.lied
    assert world.operation_now(option).status in ("broadcast", "unknown")
    assert payer.paid().status == "processing"
    assert world.receipts(payer.payment) == seen
    lying_node.honest()
    goes_on(world, payer, option)


def another_block(params: Any, truth: Any) -> Any:
    """A block of another chain at the same height."""
    return truth and {**truth, "hash": "0x" + truth["number"][2:].rjust(64, "e")}


def test_a_chain_without_our_contracts_is_refused_at_the_start(anvil_world: AnvilScene) -> None:
    nodes = NodeQuorum([anvil_world.node.url], BASE)
    with pytest.raises(ChainMismatch, match="no payments-core factory"):
        EvmChain(nodes, Deployment(ADMIN), signer()).check()
