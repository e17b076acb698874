"""The read side on a real node, with real transactions."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.acceptance import Acceptance
from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.reader import EvmReader
from payments_core.chains.http.client import HttpClient
from payments_core.chains.port import ChainMismatch, ChainUnavailable, TransactionView
from tests.chains.evm.deployed import Deployed
from tests.chains.evm.nodes import MERCHANT, OWNER, PAYER, STRANGER, Node

WALLET = "0x00000000000000000000000000000000000012aB"
DIGEST = bytes(range(32))
YES = "7f1626ba7e" + 28 * "00"
RETURN_WORD = "60005260206000f3"


@pytest.fixture
def deployed(node: Node) -> Deployed:
    return Deployed(node)


@pytest.fixture
def read(node: Node) -> EvmReader:
    urls = [node.url, node.url + "/?two", node.url + "/?three"]  # three names of one node
    endpoints = NodeQuorum(urls, 8453)
    endpoints.check()
    return EvmReader(endpoints, [Acceptance("finalized")])


def sent(deployed: Deployed, token: str, recipient: str, amount: int) -> str:
    """A transfer of the payer's, in a block; its hash."""
    receipt = deployed.node.do(PAYER, token, calls.transfer(recipient, amount))
    return str(receipt.raw["transactionHash"])


def test_a_node_of_another_chain_is_refused_at_the_start(node: Node) -> None:
    with pytest.raises(ChainMismatch, match="serves chain 8453, not 1"):
        NodeQuorum([node.url], 1).check()


def test_heads_follow_the_node_and_its_final_tag(node: Node, read: EvmReader) -> None:
    node.ask("anvil_mine", hex(20))
    heads = read.heads()
    assert heads.latest.number - heads.final.number == 8  # two epochs of four slots
    for block in (heads.latest, heads.final):
        assert read.block(block.number) == block
    assert read.block(heads.latest.number + 1) is None
    deep = EvmReader(NodeQuorum([node.url], 8453), [Acceptance(None, 5)]).heads()
    assert deep.latest.number - deep.final.number == 5


def test_a_transfer_is_seen_found_and_counted(deployed: Deployed, read: EvmReader) -> None:
    token = deployed.token()
    deployed.mint(token, PAYER, 1_000)
    first = read.heads().latest.number + 1
    hashes = [sent(deployed, token, MERCHANT, amount) for amount in (7, 8)]
    sent(deployed, token, OWNER, 9)
    view = read.transaction(hashes[0])
    assert view is not None and view.succeeded
    (log,) = view.logs
    assert (log.token_address, log.sender, log.recipient) == (token, PAYER, MERCHANT)
    assert (log.position, log.amount_atomic) == (0, 7)
    last = read.heads().latest.number
    found = read.scan([token], [MERCHANT], first, last)
    assert [(one.transaction_hash, one.amount_atomic) for one in found] == list(
        zip(hashes, (7, 8), strict=True)
    )
    assert found[0].block.is_same(view.block)
    assert [one.amount_atomic for one in read.scan([token], None, first, last)] == [7, 8, 9]
    assert read.scan([token], [STRANGER], first, last) == ()
    assert read.scan([WALLET], None, first, last) == ()
    with pytest.raises(ChainUnavailable, match="does not have block"):
        read.scan([token], None, first, last + 1)


def test_a_balance_is_that_of_the_final_block(deployed: Deployed, read: EvmReader) -> None:
    token = deployed.token()
    deployed.mint(token, PAYER, 1_000)
    deployed.node.ask("anvil_mine", hex(8))
    sent(deployed, token, MERCHANT, 400)  # not final yet
    at = read.balances(token, [PAYER, MERCHANT])
    assert at.amounts == {PAYER: 1_000, MERCHANT: 0}
    assert at.height == read.heads().final.number
    deployed.node.ask("anvil_mine", hex(8))
    assert read.balances(token, [PAYER, MERCHANT]).amounts == {PAYER: 600, MERCHANT: 400}


def test_a_balance_of_a_token_without_code_is_not_an_answer(read: EvmReader) -> None:
    with pytest.raises(ChainUnavailable):
        read.balances(WALLET, [PAYER])


def test_a_transaction_that_reverts_or_calls_nothing_has_no_transfer(
    deployed: Deployed, read: EvmReader
) -> None:
    token = deployed.token()
    reverted = deployed.node.send(PAYER, token, calls.transfer(MERCHANT, 1)).raw
    view = read.transaction(reverted["transactionHash"])
    assert view is not None
    assert (view.succeeded, view.logs) == (False, ())
    empty = deployed.node.send(PAYER, WALLET, calls.transfer(MERCHANT, 1)).raw
    view = read.transaction(empty["transactionHash"])
    assert view is not None
    assert (view.succeeded, view.logs) == (True, ())


def test_a_pending_transaction_is_in_no_block_until_it_is_mined(
    deployed: Deployed, read: EvmReader
) -> None:
    token = deployed.token()
    deployed.mint(token, PAYER, 10)
    node = deployed.node
    node.ask("evm_setAutomine", False)
    try:
        data = "0x" + calls.transfer(MERCHANT, 3).hex()
        hash = node.ask("eth_sendTransaction", {"from": PAYER, "to": token, "data": data})
        assert read.transaction(hash) == TransactionView(hash, None, False, ())
        node.ask("anvil_mine", "0x1")
        view = read.transaction(hash)
        assert view is not None and view.block is not None and len(view.logs) == 1
    finally:
        node.ask("evm_setAutomine", True)
    assert read.transaction("0x" + 64 * "1") is None


def test_after_a_reorg_nothing_of_the_old_blocks_is_seen(
    deployed: Deployed, read: EvmReader
) -> None:
    token = deployed.token()
    deployed.mint(token, PAYER, 10)
    first = read.heads().latest.number + 1
    hash = sent(deployed, token, MERCHANT, 3)
    before = read.heads().latest
    deployed.node.ask("anvil_reorg", 1, [])
    after = read.heads().latest
    assert (after.number, after.hash != before.hash) == (before.number, True)
    view = read.transaction(hash)
    assert view is None or view.block is None
    assert read.scan([token], [MERCHANT], first, after.number) == ()


def test_fifty_receipts_are_verified_in_a_few_requests(
    deployed: Deployed, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = deployed.token()
    deployed.mint(token, PAYER, 1_000)
    hashes = [sent(deployed, token, MERCHANT, 1) for _ in range(50)]
    read = EvmReader(NodeQuorum([node.url], 8453), [Acceptance("finalized")])
    read.heads()
    send, until = HttpClient.send, list[float]()

    def count(client: HttpClient, method: str, end: float, **request: Any) -> Any:
        until.append(end)
        return send(client, method, end, **request)

    monkeypatch.setattr(HttpClient, "send", count)
    views = read.transactions(hashes)
    assert len(until) <= 3
    assert all(view is not None and len(view.logs) == 1 for view in views.values())


@pytest.mark.parametrize(
    ("code", "accepted"),
    [
        (YES + RETURN_WORD, True),
        ("7f" + 32 * "00" + RETURN_WORD, False),
        ("7fffffffff" + 28 * "00" + RETURN_WORD, False),
        ("7f1626ba7e" + 27 * "00" + "01" + RETURN_WORD, False),  # dirty behind the magic
        (YES + "600052601f6000f3", False),  # 31 bytes of it
        (YES + "60005260406000f3", True),  # more than it needs to return
        (YES + "60005260206000fd", False),  # reverts with it
        ("60006000fd", False),
        ("fe", False),  # takes all the gas
        ("5b600056", False),  # never ends
        ("00", False),  # returns nothing
        ("7fef" + 31 * "00" + RETURN_WORD, False),  # what no code may begin with
        ("6001600055" + YES + RETURN_WORD, False),  # writes, which a question must not
        ("6000356000526004601cf3", False),  # echoes its selector, in four bytes
        ("60003560e01c60e01b60005260206000f3", True),  # echoes its selector: all there is to say
        ("", None),  # no contract at all
    ],
)
def test_a_contract_accepts_by_the_magic_value_alone(
    node: Node, read: EvmReader, code: str, accepted: bool | None
) -> None:
    node.ask("anvil_setCode", WALLET, "0x" + code)
    assert read.check_contract_signature(WALLET, DIGEST, b"signed") is accepted


@pytest.mark.parametrize("length", [0, 1, 32, 65, 96, 1_000, 16_384])
def test_a_contract_is_asked_with_the_digest_and_the_whole_signature(
    node: Node, read: EvmReader, length: int
) -> None:
    from eth_abi.abi import encode
    from eth_hash.auto import keccak

    signature = bytes(n % 251 for n in range(length))
    asked = bytes.fromhex("1626ba7e") + encode(["bytes32", "bytes"], [DIGEST, signature])
    # Returns the magic value if the hash of the call's data is that of `asked`.
    push = "7f" + keccak(asked).hex()
    code = "36600060003736600020" + push + "14631626ba7e0260e01b" + RETURN_WORD
    node.ask("anvil_setCode", WALLET, "0x" + code)
    assert read.check_contract_signature(WALLET, DIGEST, signature)
    assert not read.check_contract_signature(WALLET, DIGEST[::-1], signature)
    assert not read.check_contract_signature(WALLET, DIGEST, signature + b"x")


def test_a_signature_longer_than_can_be_asked_about_is_no(node: Node, read: EvmReader) -> None:
    node.ask("anvil_setCode", WALLET, "0x" + YES + RETURN_WORD)
    assert not read.check_contract_signature(WALLET, DIGEST, bytes(16_385))
