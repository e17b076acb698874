"""`payments doctor` on an EVM chain: the state of final blocks, and coins for fees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.fees import GAS_MARGIN, MEASURED_GAS, initial_fees
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.clock import MINUTE
from payments_core.networks import shipped_networks
from payments_core_http.deployment.chain_checks import (
    FEW_TRANSFERS,
    NOT_FINAL_MS,
    STALE_MS,
    check_chain,
)
from tests.chains.evm.fake_node import FakeChain, FakeNode, Refuse, block_unix_s
from tests.chains.scenes import signer

NUMBER = 8453
ADMIN = "0x" + "a" * 40
SENDER = "0x" + "1" * 40
BASE_FEE = 10**9
DECIMALS = "0x313ce567"
FEES = shipped_networks()[NUMBER].fees
assert FEES is not None
COST = GAS_MARGIN * MEASURED_GAS["pay_out"] * initial_fees(BASE_FEE, 0, FEES).max_fee
"""The most that a transfer may cost at these fees."""


class ServingNode(FakeNode):
    """A node with our contracts, that knows fees, and what a sender has."""

    balance = COST * FEW_TRANSFERS
    decimals: int | None = 6

    def eth_getCode(self, address: str, tag: str) -> str:
        return "0x01"

    def eth_call(self, call: dict[str, str], tag: str) -> str:
        decimals = self.decimals if call["data"] == DECIMALS else 0
        return "0x" + f"{decimals:064x}" if decimals is not None else "0x"

    def eth_feeHistory(self, count: str, tag: str, shares: list[int]) -> dict[str, list[str]]:
        return {"baseFeePerGas": ["0x1", hex(BASE_FEE)]}

    def eth_maxPriorityFeePerGas(self) -> str:
        return "0x0"

    def eth_getBalance(self, address: str, tag: str) -> str:
        assert address == SENDER
        return hex(self.balance)


@pytest.fixture
def fake() -> Iterator[ServingNode]:
    node = ServingNode(FakeChain())
    yield node
    node.close()


def found(fake: ServingNode, later_ms: int = 0) -> list[tuple[str, str, str]]:
    """What is said so long after the chain's newest block."""
    nodes = NodeQuorum([fake.url], NUMBER)
    chain = EvmChain(nodes, Deployment(ADMIN), signer())
    now = block_unix_s(fake.height) * 1_000 + later_ms
    with closing(nodes):
        tokens = shipped_networks()[NUMBER].tokens
        said = list(check_chain(NUMBER, chain, [SENDER], tokens=tokens, now=lambda: now))
    return [(one.level, one.says, one.remedy) for one in said]


def test_a_sound_node_and_a_sender_with_coins_have_no_fault(fake: ServingNode) -> None:
    assert [level for level, _, _ in found(fake)] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("later_ms", "faults"),
    [
        (STALE_MS, []),
        (STALE_MS + MINUTE, ["its latest block 20 is 11 minutes old"]),
        (
            NOT_FINAL_MS,
            ["its latest block 20 is 120 minutes old", "its final block 12 is 120 minutes old"],
        ),
    ],
)
def test_a_node_that_follows_its_chain_no_more_is_a_fault(
    fake: ServingNode, later_ms: int, faults: list[str]
) -> None:
    assert [says for level, says, _ in found(fake, later_ms) if level == "fault"] == faults


@pytest.mark.parametrize(
    ("decimals", "fault"), [(18, "does not have 6 decimals"), (None, "is not a contract")]
)
def test_a_token_that_its_contract_contradicts_is_a_fault(
    fake: ServingNode, decimals: int | None, fault: str
) -> None:
    fake.decimals = decimals
    usdc = shipped_networks()[NUMBER].tokens[0].address
    assert [(level, says) for level, says, _ in found(fake)] == [
        ("fault", f"chain {NUMBER}: USDC at {usdc} {fault}")
    ]


def test_a_node_without_the_state_of_the_final_block_is_a_fault(fake: ServingNode) -> None:
    def prune(params: Any, result: object) -> object:
        if params[1] == "latest":
            return result
        raise Refuse("missing trie node 00ab")

    fake.lies["eth_call"] = prune
    ((_, says, remedy),) = [one for one in found(fake) if one[0] == "fault"]
    assert "final block cannot be read" in says and 'saying "missing trie node 00ab"' in says
    assert "keep the state of final blocks" in remedy


@pytest.mark.parametrize(
    ("transfers", "level"),
    [(0, "fault"), (1, "warning"), (FEW_TRANSFERS - 1, "warning"), (FEW_TRANSFERS, "ok")],
)
def test_the_transfers_that_a_senders_coins_pay_for_are_counted(
    fake: ServingNode, transfers: int, level: str
) -> None:
    fake.balance = COST * (transfers + 1) - 1
    says = f"the sender {SENDER} has coins for the fees of about {transfers} transfers"
    assert (level, says) in [one[:2] for one in found(fake)]


def test_a_sender_whose_coins_nobody_says_is_a_warning(fake: ServingNode) -> None:
    def refuse(params: Any, result: object) -> object:
        raise Refuse("method not found")

    fake.lies["eth_getBalance"] = refuse
    (warning,) = [one for one in found(fake) if one[0] != "ok"]
    assert warning[:2] == ("warning", f"the nodes do not agree on what the sender {SENDER} has")
