"""Calls of strangers' contracts by a key that is no environment's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.artifacts import load_contract
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.contract_caller import EvmContractCaller
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.evm.transactions import decode_signed
from payments_core.chains.port import CallsContracts, ChainUnavailable, SignerRefused
from tests.chains.evm.deployed import CHAIN, call
from tests.chains.evm.lying_node import LyingNode, lag, lying
from tests.chains.evm.nodes import ADMIN, MERCHANT, STRANGER, Node

SIGNER = LocalSigner(b"the key of a stranger's contract")
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"


def chain_on(*urls: str) -> EvmChain:
    return EvmChain(NodeQuorum(urls, CHAIN, len(urls)), Deployment(ADMIN), SIGNER)


@pytest.fixture
def caller(node: Node) -> EvmContractCaller:
    made = chain_on(node.url).open_caller("a_router")
    node.ask("anvil_setBalance", made.find_address(), hex(10**18))
    return made


@pytest.fixture
def token(node: Node) -> str:
    return node.create(load_contract("TestToken").creation)


@pytest.fixture
def liar(node: Node) -> Iterator[LyingNode]:
    with lying(node) as one:
        yield one


def test_an_environments_key_signs_no_such_call(node: Node) -> None:
    chain = chain_on(node.url)
    assert isinstance(chain, CallsContracts)
    with pytest.raises(ValueError, match="environment"):
        chain.open_caller("env_-P23J5k-D8QQDDBxu8rHlL0O")


def test_a_call_is_signed_for_what_it_needs(
    node: Node, caller: EvmContractCaller, token: str
) -> None:
    sender = caller.find_address()
    assert caller.count_mined(sender) == 0
    mint = call("mint(address,uint256)", MERCHANT, 5)
    signed = caller.prepare_call(sender, 0, token, mint)
    assert signed is not None
    unsigned, by = decode_signed(signed.raw, chain_id=CHAIN)
    assert (unsigned.to, unsigned.data, unsigned.value, by) == (token, mint, 0, sender)
    hash = node.ask("eth_sendRawTransaction", "0x" + signed.raw.hex())
    receipt = node.receipt(hash)
    assert receipt.succeeded
    assert receipt.gas_used < unsigned.gas < 3 * receipt.gas_used
    assert hash == signed.hash
    assert caller.count_mined(sender) == 1


def test_what_would_fail_is_not_signed(caller: EvmContractCaller, token: str) -> None:
    transfer = call("transfer(address,uint256)", MERCHANT, 5)
    assert caller.prepare_call(caller.find_address(), 0, token, transfer) is None


def test_another_senders_key_is_not_there(caller: EvmContractCaller, token: str) -> None:
    with pytest.raises(SignerRefused, match="is not configured"):
        caller.prepare_call(STRANGER, 0, token, b"")


def test_logs_are_found_by_contract_topics_and_blocks(
    node: Node, caller: EvmContractCaller, token: str
) -> None:
    other = node.create(load_contract("TestToken").creation)
    heights = []
    for place in (token, other, token):
        mined = node.do(STRANGER, place, call("mint(address,uint256)", MERCHANT, 7))
        heights.append(int(mined.raw["blockNumber"], 16))
    merchant = "0x" + MERCHANT[2:].lower().rjust(64, "0")
    first, _, last = heights

    def found(*topics: str | None, start: int = first, end: int = last) -> list[int]:
        logs = caller.find_logs(token, topics, start, end)
        assert all(int.from_bytes(log.data) == 7 for log in logs)
        return [log.block.number for log in logs]

    assert found(TRANSFER) == found(TRANSFER, None, merchant) == found(None) == [first, last]
    assert found(TRANSFER, merchant) == []
    assert found(TRANSFER, end=last - 1) == [first]
    assert found(TRANSFER, start=first + 1) == [last]
    with pytest.raises(ChainUnavailable, match="does not have block"):
        found(TRANSFER, end=last + 1)


@pytest.mark.parametrize("lie", ["left out", "invented", "of another contract", "behind"])
def test_logs_of_which_nodes_differ_are_not_believed(
    node: Node, caller: EvmContractCaller, token: str, liar: LyingNode, lie: str
) -> None:
    mined = node.do(STRANGER, token, call("mint(address,uint256)", MERCHANT, 7))
    height = int(mined.raw["blockNumber"], 16)
    both = chain_on(node.url, liar.url).open_caller("a_router")
    assert len(both.find_logs(token, (TRANSFER,), height, height)) == 1
    changes = {
        "left out": lambda params, truth: [],
        "invented": lambda params, truth: [truth[0], {**truth[0], "logIndex": "0x1"}],
        "of another contract": lambda params, truth: [{**truth[0], "address": STRANGER.lower()}],
    }
    liar.lies = lag(1, node) if lie == "behind" else {"eth_getLogs": changes[lie]}
    with pytest.raises(ChainUnavailable):
        both.find_logs(token, (TRANSFER,), height, height)


def test_one_lying_node_of_three_chooses_no_nonce(node: Node, liar: LyingNode) -> None:
    with lying(node) as third:
        urls = (node.url, liar.url, third.url)
        chain = EvmChain(NodeQuorum(urls, CHAIN), Deployment(ADMIN), SIGNER)
        caller = chain.open_caller("a_router")
        liar.lies = {"eth_getTransactionCount": lambda params, truth: "0x99"}
        assert caller.count_mined(caller.find_address()) == 0
