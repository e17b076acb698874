"""`payments doctor` on an EVM chain: the state of final blocks, and coins for fees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.fees import GAS_MARGIN, MEASURED_GAS, fee_policy_of, initial_fees
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core_http.deployment.chain_checks import FEW_TRANSFERS, check_chain
from tests.chains.evm.fake_node import FakeChain, FakeNode, Refuse
from tests.chains.scenes import signer

NUMBER = 8453
ADMIN = "0x" + "a" * 40
SENDER = "0x" + "1" * 40
BASE_FEE = 10**9
COST = (
    GAS_MARGIN * MEASURED_GAS["pay_out"] * initial_fees(BASE_FEE, 0, fee_policy_of(NUMBER)).max_fee
)
"""The most that a transfer may cost at these fees."""


class ServingNode(FakeNode):
    """A node with our contracts, that knows fees, and what a sender has."""

    balance = COST * FEW_TRANSFERS

    def eth_getCode(self, address: str, tag: str) -> str:
        return "0x01"

    def eth_call(self, call: dict[str, str], tag: str) -> str:
        return "0x" + "0" * 64

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


def found(fake: ServingNode) -> list[tuple[str, str, str]]:
    nodes = NodeQuorum([fake.url], NUMBER)
    chain = EvmChain(nodes, Deployment(ADMIN), signer())
    with closing(nodes):
        return [(one.level, one.says, one.remedy) for one in check_chain(NUMBER, chain, [SENDER])]


def test_a_sound_node_and_a_sender_with_coins_have_no_fault(fake: ServingNode) -> None:
    assert [level for level, _, _ in found(fake)] == ["ok", "ok"]


def test_a_node_without_the_state_of_the_final_block_is_a_fault(fake: ServingNode) -> None:
    def prune(params: object, result: object) -> object:
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
