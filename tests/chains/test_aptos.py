"""Aptos, against answers written by hand from its nodes' documentation (`answers/`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_core.chains.aptos import MAINNET_CHAIN_ID, AptosChain
from payments_core.chains.http.client import RequestLimits
from payments_core.chains.loader import open_chain
from payments_core.chains.port import (
    AddressSpec,
    Block,
    Chain,
    ChainMismatch,
    ChainUnavailable,
    SignedTransaction,
    TransferIntent,
    UnsupportedByChain,
)
from payments_core.chains.solana import MAINNET_CHAIN_ID as SOLANA_CHAIN_ID
from tests.chains.loopback import Answer, serving
from tests.chains.written_answers import GONE, anything, leaves, with_change, written

LEDGER = written("aptos_ledger_info")
BLOCK = written("aptos_block")
BALANCE = written("aptos_balance")
HEIGHT = 300_000_000
HASH = BLOCK["block_hash"]
COIN = "0x1::aptos_coin::AptosCoin"
USDC = "0xbae207659db88bea0cbead6da0ed00aac12edcdda169e591cd41c94180b46f3b"
HOLDER = "0x021746fce17b3a44156107bdc483bfeabb0bc4a37b8ceabaff93ed454bdea965"
OTHER = "0x" + "0" * 63 + "1"
JSON = anything(HASH, str(HEIGHT), "2500000097", "2500000099", "2500000100", 1, 2)


class Node:
    """A node that answers as the documentation says, or as a test does."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ledger: Any = LEDGER
        self.block: Any = BLOCK
        self.balance: Any = BALANCE
        self.raw: dict[str, Answer] = {}

    def __call__(self, method: str, path: str, body: bytes) -> Answer:
        assert (method, body) == ("GET", b"")
        self.asked.append(path)
        for place, answer in (
            ("/balance/", self.balance),
            ("/blocks/by_height/", self.block),
            ("/v1", self.ledger),
        ):
            if place in path:
                return self.raw.get(place, (200, json.dumps(answer).encode()))
        raise AssertionError(path)


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def chain(node: Node) -> Iterator[AptosChain]:
    with serving(node) as url:
        opened = AptosChain(url + "/v1", limits=RequestLimits(total_timeout_s=5))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Node, AptosChain]]:
    """One server for many examples."""
    node = Node()
    with serving(node) as url:
        yield node, AptosChain(url + "/v1")


class TestBalances:
    @pytest.mark.parametrize("asset", [COIN, USDC])
    def test_a_balance_is_read_at_the_end_of_the_newest_block(
        self, chain: Chain, node: Node, asset: str
    ) -> None:
        at = chain.balances(asset, [HOLDER])
        assert (at.height, at.amounts) == (HEIGHT, {HOLDER: 1_817_122})
        assert node.asked == [
            "/v1",
            f"/v1/blocks/by_height/{HEIGHT}?with_transactions=false",
            f"/v1/accounts/{HOLDER}/balance/{asset}?ledger_version=2500000099",
        ]

    def test_all_balances_are_of_one_version(self, chain: Chain, node: Node) -> None:
        assert chain.balances(USDC, [HOLDER, OTHER, HOLDER]).amounts == {
            HOLDER: 1_817_122, OTHER: 1_817_122,
        }  # fmt: skip
        versions = {path.partition("?")[2] for path in node.asked if "/balance/" in path}
        assert versions == {"ledger_version=2500000099"}
        assert len(node.asked) == 2 + 2

    def test_nobody_has_nothing(self, chain: Chain) -> None:
        at = chain.balances(COIN, [])
        assert (at.height, at.amounts) == (HEIGHT, {})

    @pytest.mark.parametrize("amount", [0, 2**53 + 1, 2**64 - 1])
    def test_no_digit_of_a_balance_is_lost(self, chain: Chain, node: Node, amount: int) -> None:
        node.balance = amount
        assert chain.balances(COIN, [HOLDER]).amounts == {HOLDER: amount}

    @pytest.mark.parametrize(
        "raw",
        [
            (200, b""),
            (200, b"-1"),
            (200, b"1817122.0"),
            (200, b"1.8e6"),
            (200, b"18446744073709551616"),
            (200, b"9" * 5_000),
            (200, b'"1817122"'),
            (200, b"true"),
            (200, b"null"),
            (200, b"[1817122]"),
            (200, b'{"balance": 1817122}'),
            (200, b"1817122}"),
            (200, b"0x1bba22"),
            (200, b"<html>"),
            (200, b"[" * 100_000),
            (404, b'{"message": "not found", "error_code": "account_not_found"}'),
            (410, b'{"message": "pruned", "error_code": "version_pruned"}'),
            (429, b"1817122"),
            (500, b"1817122"),
            (302, b"1817122"),
        ],
    )
    def test_an_answer_that_cannot_be_right_is_not_a_balance(
        self, chain: Chain, node: Node, raw: Answer
    ) -> None:
        node.raw["/balance/"] = raw
        with pytest.raises(ChainUnavailable):
            chain.balances(COIN, [HOLDER])

    @pytest.mark.parametrize(
        "asset",
        ["", "USDC", "0x", "0x1::coin", "0x1::a::B?x=1", "0x1::a::B/../..", "0x1::a::B<0x2::c::D>",
         "../0x1", "0x" + "1" * 65, COIN + "\n", "0x0"],
    )  # fmt: skip
    def test_what_is_not_an_asset_is_not_asked_for(
        self, chain: Chain, node: Node, asset: str
    ) -> None:
        with pytest.raises(UnsupportedByChain, match="token"):
            chain.balances(asset, [HOLDER])
        assert node.asked == []

    @pytest.mark.parametrize("holder", ["", "0x1/../2", "0x1?a", "alice", "0x" + "1" * 65])
    def test_what_is_not_a_holder_is_not_asked_for(
        self, chain: Chain, node: Node, holder: str
    ) -> None:
        with pytest.raises(UnsupportedByChain, match="holder"):
            chain.balances(COIN, [HOLDER, holder])
        assert node.asked == []

    def test_a_short_address_is_asked_for_in_its_long_form(self, chain: Chain, node: Node) -> None:
        assert chain.balances("0xA", ["0x1"]).amounts == {"0x1": 1_817_122}
        assert f"/accounts/{OTHER}/balance/{'0x' + '0' * 63 + 'a'}?" in node.asked[-1]


class TestHeads:
    def test_the_newest_block_is_final(self, chain: Chain) -> None:
        heads = chain.heads()
        assert heads.latest == heads.final == Block(HEIGHT, HASH)

    @pytest.mark.parametrize(
        ("what", "path", "value"),
        [
            ("ledger", (), None),
            ("ledger", (), []),
            ("ledger", ("chain_id",), GONE),
            ("ledger", ("chain_id",), "1"),
            ("ledger", ("chain_id",), True),
            ("ledger", ("chain_id",), 1.0),
            ("ledger", ("block_height",), HEIGHT),
            ("ledger", ("block_height",), "-1"),
            ("ledger", ("block_height",), "0300000000"),
            ("ledger", ("block_height",), str(2**63)),
            ("ledger", ("block_height",), "300000001"),  # and the block that comes is another
            ("ledger", ("ledger_version",), GONE),
            ("ledger", ("ledger_version",), "2500000098"),  # within the block
            ("block", (), None),
            ("block", ("block_height",), "299999999"),
            ("block", ("block_hash",), HASH[:-1]),
            ("block", ("block_hash",), HASH + "0"),
            ("block", ("block_hash",), None),
            ("block", ("last_version",), "9" * 30),
            ("block", ("last_version",), 2500000099),
            ("block", ("last_version",), "2500000094"),  # before the first
            ("block", ("first_version",), GONE),
        ],
    )
    def test_heads_that_cannot_be_right_are_refused(
        self, chain: Chain, node: Node, what: str, path: tuple[str, ...], value: Any
    ) -> None:
        setattr(node, what, with_change(getattr(node, what), path, value))
        for ask in (chain.heads, lambda: chain.balances(COIN, [HOLDER])):
            with pytest.raises(ChainUnavailable):
                ask()

    def test_a_block_is_asked_for_by_its_height_and_there_is_none_above_the_newest(
        self, chain: Chain, node: Node
    ) -> None:
        assert chain.block(HEIGHT) == Block(HEIGHT, HASH)
        assert chain.block(HEIGHT + 1) is None
        assert chain.block(-1) is None
        with pytest.raises(ChainUnavailable):  # the node shows another one
            chain.block(HEIGHT - 1)
        assert node.asked[-1].endswith(f"/{HEIGHT - 1}?with_transactions=false")

    @settings(max_examples=150, deadline=None)
    @given(data=st.data())
    def test_whatever_is_changed_no_wrong_balance_comes_of_it(
        self, shared: tuple[Node, AptosChain], data: st.DataObject
    ) -> None:
        node, chain = shared
        node.ledger, node.block = LEDGER, BLOCK
        what = data.draw(st.sampled_from(["ledger", "block"]))
        path = data.draw(st.sampled_from(leaves(getattr(node, what))))
        setattr(node, what, with_change(getattr(node, what), path, data.draw(JSON)))
        del node.asked[:]
        try:
            at = chain.balances(COIN, [HOLDER])
        except (ChainUnavailable, ChainMismatch):
            return
        assert (at.height, at.amounts) == (HEIGHT, {HOLDER: 1_817_122})
        version = int(node.asked[-1].partition("=")[2])
        assert version == int(node.block["last_version"]) <= int(node.ledger["ledger_version"])


class TestTheNode:
    def test_a_node_of_another_network_is_refused_each_time(self, chain: Chain, node: Node) -> None:
        chain.heads()
        node.ledger = {**LEDGER, "chain_id": 2}
        for ask in (chain.heads, lambda: chain.balances(COIN, [HOLDER]), lambda: chain.block(1)):
            with pytest.raises(ChainMismatch):
                ask()

    def test_a_network_of_ones_own_is_named_by_its_number(self, node: Node) -> None:
        node.ledger = {**LEDGER, "chain_id": 2}
        with serving(node) as url:
            assert AptosChain(url + "/v1", chain_id=7, network=2).heads().final.number == HEIGHT

    def test_an_address_with_a_key_is_shown_to_nobody(self) -> None:
        with pytest.raises(ValueError, match="http") as caught:
            AptosChain("ftp://node.example/s3cret")
        chain = AptosChain("http://user:s3cret@127.0.0.1:9/s3cret/v1?key=s3cret")
        with pytest.raises(ChainUnavailable) as silent:
            chain.heads()
        for text in (repr(chain), str(caught.value), str(silent.value), repr(silent.value)):
            assert "s3cret" not in text

    def test_a_key_in_the_address_goes_with_every_request(self, node: Node) -> None:
        with serving(node) as url:
            AptosChain(url + "/v1?key=k").balances(COIN, [HOLDER])
        assert node.asked[0] == "/v1?key=k"
        assert node.asked[-1].endswith("?ledger_version=2500000099&key=k")


def test_its_number_is_not_a_number_of_an_evm_chain() -> None:
    chain = AptosChain("http://127.0.0.1:9")
    assert SOLANA_CHAIN_ID != chain.chain_id == MAINNET_CHAIN_ID < 2**53
    assert chain.chain_type == "aptos"


def test_what_it_cannot_do_it_says_in_a_sentence() -> None:
    chain: Chain = AptosChain("http://127.0.0.1:9")
    intent = TransferIntent("i", "env", USDC, HOLDER, OTHER, 1)
    for ask in (
        lambda: chain.derive(AddressSpec("env", "vault", "acct")),
        lambda: chain.transaction(HASH),
        lambda: chain.scan([USDC], None, 1, 2),
        lambda: chain.check_contract_signature(HOLDER, b"\0" * 32, b""),
        lambda: chain.transactions([HASH]),
        lambda: chain.prepare(intent, 0),
        lambda: chain.prepare_noop("env", 0),
        lambda: chain.bump("env", SignedTransaction(HASH, b"")),
        lambda: chain.final_nonce(HOLDER),
        lambda: chain.broadcast(SignedTransaction(HASH, b"")),
    ):
        with pytest.raises(UnsupportedByChain, match=r"Aptos|EVM"):
            ask()


def test_a_node_in_the_configuration_opens_it() -> None:
    opened = open_chain(MAINNET_CHAIN_ID, ["aptos+https://node.example/v1"])
    assert (opened.chain_type, opened.chain_id) == ("aptos", MAINNET_CHAIN_ID)
