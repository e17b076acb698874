"""Three nodes, of which one lies in a well-formed way: the other two are right, and go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.port import ChainUnavailable, Heads
from payments_core.errors import DependencyFailed, InsufficientBalance
from tests.chains.evm.lying_node import Lie, LyingNode, lag, lying, truly
from tests.chains.scenes import AnvilScene, FreshChain, signer, until_it_answers
from tests.service.deposit_harness import DepositHarness
from tests.service.payer import Payer
from tests.service.world import BASE, USDC, atomic

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
INVENTED = "0x" + "ab" * 32
RICH = "0x" + f"{10**18:064x}"
POOR = "0x" + 64 * "0"
Lies = dict[str, Lie]


@pytest.fixture
def lying_node(anvil_world: AnvilScene) -> Iterator[LyingNode]:
    """One of three names of the world's node, and the one that is not honest."""
    with lying(anvil_world.node) as lying_node:
        yield lying_node


@pytest.fixture
def world(anvil_world: AnvilScene, lying_node: LyingNode) -> AnvilScene:
    """Whose service asks three nodes."""
    anvil_world.service = anvil_world.restarted(chains={BASE: among(anvil_world, lying_node)})
    return anvil_world


def among(world: AnvilScene, *lying_nodes: LyingNode) -> EvmChain:
    """The world's chain over three nodes, these of which lie."""
    honest = [world.node.url, world.node.url + "/?two", world.node.url + "/?three"]
    urls = [*(lying_node.url for lying_node in lying_nodes), *honest][:3]
    return FreshChain(NodeQuorum(urls, BASE), world.chain._deployment, signer())


def padded(address: str) -> str:
    return "0x" + address[2:].lower().rjust(64, "0")


def made_up_log(recipient: str, amount: int, **place: Any) -> dict[str, Any]:
    """A transfer that never was."""
    return {
        "address": USDC.address.lower(),
        "topics": [TRANSFER, padded("0x" + 40 * "7"), padded(recipient)],
        "data": f"0x{amount:064x}",
        "transactionHash": INVENTED,
        "logIndex": "0x0",
        "removed": False,
        **place,
    }


def make_believe(world: AnvilScene, recipient: str) -> Lies:
    """A transaction that paid somebody, in a block that is final: receipt, logs and all."""
    block = world.node.ask("eth_getBlockByNumber", "finalized", False)
    place = {"blockNumber": block["number"], "blockHash": block["hash"]}
    log = made_up_log(recipient, atomic("25.00"), **place)
    receipt = {"transactionHash": INVENTED, "status": "0x1", "logs": [log], **place}

    def logs(params: Any, truth: Any) -> Any:
        first, last = (int(params[0][end], 16) for end in ("fromBlock", "toBlock"))
        return [*truth, log] if first <= int(block["number"], 16) <= last else truth

    return {
        "eth_getTransactionReceipt": lambda p, truth: receipt if p[0] == INVENTED else truth,
        "eth_getTransactionByHash": lambda p, truth: (
            {"hash": INVENTED, **place} if p[0] == INVENTED else truth
        ),
        "eth_getLogs": logs,
    }


def hidden(world: AnvilScene) -> Lies:
    """Nothing that anybody transferred."""
    nothing: Callable[..., list[Any]] = lambda params, truth: []  # noqa: E731
    return {"eth_getLogs": nothing}


def hidden_receipts(world: AnvilScene) -> Lies:
    """No transaction has ever been included."""
    return {
        "eth_getTransactionReceipt": lambda params, truth: None,
        "eth_getTransactionByHash": lambda params, truth: None,
    }


def failed_receipts(world: AnvilScene) -> Lies:
    """Every transaction has failed."""
    return {
        "eth_getTransactionReceipt": lambda params, truth: (
            truth and {**truth, "status": "0x0", "logs": []}
        )
    }


def other_amounts(world: AnvilScene) -> Lies:
    """Every transfer was of a thousand times as much."""

    def more(log: Any) -> Any:
        if len(log["data"]) != 66:  # not a transfer
            return log
        return {**log, "data": f"0x{int(log['data'], 16) * 1_000:064x}"}

    return {
        "eth_getLogs": lambda params, truth: [more(log) for log in truth],
        "eth_getTransactionReceipt": lambda params, truth: (
            truth
            and {
                **truth,
                "logs": [more(log) if len(log["data"]) == 66 else log for log in truth["logs"]],
            }
        ),
    }


def final_at_once(world: AnvilScene) -> Lies:
    """The newest block is final."""

    def block(params: Any, truth: Any) -> Any:
        if params[0] != "finalized":
            return truth
        return truly(world.node, "eth_getBlockByNumber", "latest", False)

    return {"eth_getBlockByNumber": block}


def never_final(world: AnvilScene) -> Lies:
    """Nothing has been final since the first block."""

    def block(params: Any, truth: Any) -> Any:
        if params[0] != "finalized":
            return truth
        return truly(world.node, "eth_getBlockByNumber", "0x0", False)

    return {"eth_getBlockByNumber": block}


def other_blocks(world: AnvilScene) -> Lies:
    """A fork of its own: every block has another hash."""
    return {
        "eth_getBlockByNumber": lambda params, truth: (
            truth and {**truth, "hash": "0x" + truth["hash"][:1:-1]}
        )
    }


def rich(world: AnvilScene) -> Lies:
    """Everybody has a fortune."""
    return {"eth_call": lambda params, truth: RICH}


def poor(world: AnvilScene) -> Lies:
    """Nobody has anything."""
    return {"eth_call": lambda params, truth: POOR}


def dear(world: AnvilScene) -> Lies:
    """Prices that would ruin anybody."""
    return {
        "eth_feeHistory": lambda params, truth: {**truth, "baseFeePerGas": [hex(10**18)] * 2},
        "eth_maxPriorityFeePerGas": lambda params, truth: hex(10**18),
    }


def far_behind(world: AnvilScene) -> Lies:
    """Blocks of a minute ago."""
    return lag(60, world.node)


KINDS = [
    hidden, hidden_receipts, failed_receipts, other_amounts, final_at_once, never_final,
    other_blocks, rich, poor, dear, far_behind,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_with_one_lying_node_everything_ends_right(
    world: AnvilScene, lying_node: LyingNode, kind: Callable[[AnvilScene], Lies]
) -> None:
    lying_node.lies = kind(world)
    payer, harness = Payer(world, "7.00"), DepositHarness(world)
    option = world.authorized("25.00")
    world.spend("7.00", str(payer.payment.payment.escrow_address))
    world.spend("5.00", harness.address)
    world.finish()
    assert lying_node.lied
    assert (payer.paid().status, payer.paid().labels) == ("succeeded", ())
    paid = world.paid(option.payment.id)
    assert (paid.status, paid.received_atomic, paid.settled_atomic) == (
        "succeeded",
        atomic("25"),
        atomic("25"),
    )
    assert harness.story == [("settled", None)]
    assert world.held() == (atomic("80"), 0, atomic("80"))
    assert world.held(world.merchant) == (atomic("32"), 0, atomic("32"))
    assert world.sent() == 4


def test_a_made_up_payment_does_not_count(world: AnvilScene, lying_node: LyingNode) -> None:
    payer = Payer(world, "25.00")
    option = payer.select(payer.option())
    lying_node.lies = make_believe(world, str(payer.payment.payment.escrow_address))
    payer.submit(option, INVENTED)
    world.finish()
    world.advance(660)
    assert lying_node.lied
    waiting = payer.paid()
    assert (waiting.status, waiting.received_atomic, waiting.labels) == ("awaiting_payment", 0, ())
    assert world.receipts(payer.payment) == []
    assert world.journal(payer.id) == []


def test_a_made_up_deposit_does_not_count(world: AnvilScene, lying_node: LyingNode) -> None:
    harness = DepositHarness(world)
    lying_node.lies = make_believe(world, harness.address)
    world.resources.deposits.check(world.payer.id)
    world.finish()
    assert harness.all() == []
    assert world.held() == (atomic("100"), 0, atomic("100"))


def test_a_fortune_that_only_one_node_reports_cannot_be_spent(
    world: AnvilScene, lying_node: LyingNode
) -> None:
    lying_node.lies = rich(world)
    option = world.option(world.payment("100.01"))
    with pytest.raises(InsufficientBalance):
        world.authorize(option)


def test_a_block_that_only_one_calls_final_is_not(world: AnvilScene, lying_node: LyingNode) -> None:
    lying_node.lies = final_at_once(world)
    truth: Heads = world.chain.heads()
    for _ in range(5):
        assert among(world, lying_node).heads() == truth


def test_a_slot_that_only_one_calls_taken_is_not(world: AnvilScene, lying_node: LyingNode) -> None:
    option = world.authorized("25.00")
    world.stop_mining()
    world.run()
    world.node.ask("anvil_dropAllTransactions")  # and so nobody knows the transaction
    lying_node.lies = {"eth_getTransactionCount": lambda params, truth: "0x64"}
    world.advance(5)
    assert lying_node.lied
    assert world.operation_now(option).status == "broadcast"
    world.is_mining = True
    world.node.ask("evm_setAutomine", True)
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"
    assert world.sent() == 2


def test_where_the_others_are_away_a_lying_node_alone_decides_nothing(
    world: AnvilScene, lying_node: LyingNode
) -> None:
    payer = Payer(world, "25.00")
    option = payer.select(payer.option())
    lying_node.lies = make_believe(world, str(payer.payment.payment.escrow_address))
    away = ["http://127.0.0.1:9/?one", "http://127.0.0.1:9/?two"]
    chain = FreshChain(NodeQuorum([lying_node.url, *away], BASE), world.chain._deployment, signer())
    world.service = world.restarted(chains={BASE: chain})
    payer.submit(option, INVENTED)
    vaults = world.option(world.payment("1.00"))
    world.advance(60)
    assert (payer.paid().status, payer.paid().received_atomic) == ("awaiting_payment", 0)
    assert world.receipts(payer.payment) == []
    with pytest.raises(ChainUnavailable):
        chain.heads()
    with pytest.raises(DependencyFailed):
        world.authorize(vaults)


def test_two_of_three_that_lie_each_in_its_way_stop_all_and_break_nothing(
    anvil_world: AnvilScene, lying_node: LyingNode
) -> None:
    world = anvil_world
    with lying(world.node) as other:
        chain = among(world, lying_node, other)
        world.service = world.restarted(chains={BASE: chain})
        payer = Payer(world, "25.00")
        lying_node.lies, other.lies = failed_receipts(world), other_amounts(world)
        world.spend("25.00", str(payer.payment.payment.escrow_address))
        world.advance(30)
        assert payer.paid().received_atomic == 0
        assert world.journal(payer.id) == []
        lying_node.honest()
        other.honest()
        until_it_answers(chain)
        world.advance(60)
        world.finish()
        assert (payer.paid().status, payer.paid().received_atomic) == ("succeeded", atomic("25"))
