"""Solana, against answers written by hand from its nodes' documentation (`answers/`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from payments_core.chains.solana import MAINNET_CHAIN_ID, MAINNET_GENESIS, SolanaChain
from tests.chains.loopback import Answer, serving
from tests.chains.written_answers import FOLDER, GONE, anything, leaves, with_change, written

MINT = "2cHr7QS3xfuSV8wdxo3ztuF4xbiarF6Nrgx3qpx3HzXR"
HOLDER = "A1TMhSGzQxMr1TboBKtgixKz1sS6REASMxPo1qsyTSJd"
OTHER = "4kg8oh3jdNtn7j2wcS7TrUua31AgbLzDVkBZgTAe44aF"
HASH = "3Eq21vXNB5s86c62bVuUfTeaMif1N2kUqRPBmGRJhyTA"
OTHER_HASH = "mfcyqEXB3DnHXki6KjjmZck6YjmZLvpAByy2fj4nh6B"
PUBKEY = "BGocb4GEpbTFm8UFV2VsDSaBXHELPfAXrvd4vtt8QWrA"
GENESIS = written("solana_get_genesis_hash")["result"]
SLOT = 341_197_933
ACCOUNTS = written("solana_get_token_accounts_by_owner")["result"]
INFO = ("value", 0, "account", "data", "parsed", "info")
AMOUNT = (*INFO, "tokenAmount", "amount")

JSON = anything(MINT, HOLDER, OTHER, "initialized", "account")

Says = Callable[..., Any]


class Refuses(Exception):
    """The node answers with an error."""


class Cluster:
    """A node that answers as the documentation says, or as a test does."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[Any]]] = []
        self.raw: Callable[[bytes], Answer | None] = lambda body: None
        self.says: dict[str, Says] = {
            "getGenesisHash": lambda: GENESIS,
            "getSlot": lambda how: SLOT if how["commitment"] == "finalized" else SLOT + 32,
            "getBlock": lambda slot, how: {
                **written("solana_get_block")["result"],
                "parentSlot": slot - 1,
                "blockhash": HASH if slot == SLOT else OTHER_HASH,
            },
            "getTokenAccountsByOwner": lambda owner, what, how: accounts_of(owner),
        }

    def __call__(self, method: str, path: str, body: bytes) -> Answer:
        raw = self.raw(body)
        if raw is not None:
            return raw
        asked = json.loads(body)
        many = asked if isinstance(asked, list) else [asked]
        answers = [self._answered(one) for one in many]
        return 200, json.dumps(answers if isinstance(asked, list) else answers[0]).encode()

    def _answered(self, one: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((one["method"], one["params"]))
        said = {"jsonrpc": "2.0", "id": one["id"]}
        try:
            return {**said, "result": self.says[one["method"]](*one["params"])}
        except Refuses:
            return {**said, "error": {"code": -32007, "message": "Slot was skipped"}}

    def says_of_accounts(self, result: Any) -> None:
        self.says["getTokenAccountsByOwner"] = lambda owner, what, how: result


def accounts_of(owner: str, *amounts: int, slot: int = SLOT) -> Any:
    """The documentation's answer, with this owner's accounts of other amounts."""
    if owner == HOLDER and not amounts:
        return ACCOUNTS
    [item] = ACCOUNTS["value"]
    found = []
    for number, amount in enumerate(amounts):
        pubkey = PUBKEY[:-1] + "123456789"[number]
        path = ("account", "data", "parsed", "info")
        mine = with_change(item, ("pubkey",), pubkey)
        mine = with_change(mine, (*path, "owner"), owner)
        found.append(with_change(mine, (*path, "tokenAmount", "amount"), str(amount)))
    return {"context": {"apiVersion": "2.0.15", "slot": slot}, "value": found}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def chain(cluster: Cluster) -> Iterator[SolanaChain]:
    with serving(cluster) as url:
        opened = SolanaChain(url, genesis_hash=GENESIS, limits=RequestLimits(total_timeout_s=5))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Cluster, SolanaChain]]:
    """One server for many examples."""
    cluster = Cluster()
    with serving(cluster) as url:
        yield cluster, SolanaChain(url, genesis_hash=GENESIS)


def test_every_answer_names_the_page_that_it_was_written_from() -> None:
    for file in FOLDER.glob("*.json"):
        said = json.loads(file.read_text(encoding="utf-8"))
        assert said["source"].startswith("https://")
        assert "by hand" in said["by"]
        assert "not recorded" in said["by"]


class TestBalances:
    def test_a_balance_is_the_amount_and_no_rounded_number(self, chain: Chain) -> None:
        at = chain.balances(MINT, [HOLDER])
        assert (at.height, at.amounts) == (SLOT, {HOLDER: 420_000_000_000_000})

    def test_it_is_asked_of_the_mint_at_the_finalized_slot(
        self, chain: Chain, cluster: Cluster
    ) -> None:
        chain.balances(MINT, [HOLDER])
        how = {"commitment": "finalized", "encoding": "jsonParsed"}
        assert cluster.asked[1:] == [("getTokenAccountsByOwner", [HOLDER, {"mint": MINT}, how])]

    def test_all_accounts_of_an_owner_are_added_up(self, chain: Chain, cluster: Cluster) -> None:
        most = 2**64 - 1
        cluster.says_of_accounts(accounts_of(OTHER, most - 3, 0, 1, 2))
        assert chain.balances(MINT, [OTHER]).amounts == {OTHER: most}

    def test_an_owner_without_an_account_has_nothing(self, chain: Chain) -> None:
        assert chain.balances(MINT, [OTHER, OTHER]).amounts == {OTHER: 0}

    def test_nobody_has_nothing_at_the_newest_final_slot(self, chain: Chain) -> None:
        at = chain.balances(MINT, [])
        assert (at.height, at.amounts) == (SLOT, {})

    def test_a_frozen_account_of_the_newer_token_program_counts(
        self, chain: Chain, cluster: Cluster
    ) -> None:
        answer = with_change(ACCOUNTS, (*INFO, "state"), "frozen")
        program = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"
        cluster.says_of_accounts(with_change(answer, ("value", 0, "account", "owner"), program))
        assert chain.balances(MINT, [HOLDER]).amounts[HOLDER] == 420_000_000_000_000

    def test_many_balances_are_of_one_slot(self, chain: Chain, cluster: Cluster) -> None:
        slots = iter([SLOT, SLOT + 1, SLOT + 2, SLOT + 2])
        cluster.says["getTokenAccountsByOwner"] = lambda owner, what, how: accounts_of(
            owner, slot := next(slots), slot=slot
        )
        at = chain.balances(MINT, [HOLDER, OTHER])
        assert (at.height, at.amounts) == (SLOT + 2, {HOLDER: SLOT + 2, OTHER: SLOT + 2})

    def test_balances_that_are_never_of_one_slot_are_refused(
        self, chain: Chain, cluster: Cluster
    ) -> None:
        slots = iter(range(1, 100))
        cluster.says["getTokenAccountsByOwner"] = lambda owner, what, how: accounts_of(
            owner, 5, slot=next(slots)
        )
        with pytest.raises(ChainUnavailable, match="at different slots"):
            chain.balances(MINT, [HOLDER, OTHER])
        assert len(cluster.asked) == 1 + 3 * 2

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ((), None),
            ((), []),
            ((), "420000000000000"),
            (("value",), None),
            (("value",), {}),
            (("value",), GONE),
            (("value", 0), None),
            (("value", 0, "account"), "AQAAAA=="),
            (("value", 0, "account", "data"), ["AQAAAA==", "base64"]),
            (("context",), GONE),
            (("context", "slot"), "341197933"),
            (("context", "slot"), -1),
            (("context", "slot"), 1.5),
            (("context", "slot"), True),
            (("context", "slot"), 2**63),
            (AMOUNT, 420_000_000_000_000),
            (AMOUNT, 420_000_000_000_000.0),
            (AMOUNT, "-1"),
            (AMOUNT, "+1"),
            (AMOUNT, "01"),
            (AMOUNT, ""),
            (AMOUNT, " 1"),
            (AMOUNT, "1e3"),
            (AMOUNT, "1.0"),
            (AMOUNT, "0x10"),
            (AMOUNT, "١"),  # a digit of another script
            (AMOUNT, str(2**64)),
            (AMOUNT, "9" * 100_000),
            (AMOUNT, None),
            (AMOUNT, GONE),
            ((*INFO, "mint"), OTHER),
            ((*INFO, "owner"), OTHER),
            ((*INFO, "state"), "uninitialized"),
            ((*INFO, "state"), GONE),
            (("value", 0, "account", "data", "parsed", "type"), "mint"),
            (("value", 0, "account", "owner"), OTHER),  # a program of somebody's
            (("value", 0, "account", "owner"), []),
            (("value", 0, "pubkey"), "0"),
            (("value", 0, "pubkey"), None),
            (("value",), ACCOUNTS["value"] * 2),  # one account twice
        ],
    )
    def test_an_answer_that_cannot_be_right_is_not_a_balance(
        self, chain: Chain, cluster: Cluster, path: tuple[str | int, ...], value: Any
    ) -> None:
        cluster.says_of_accounts(with_change(ACCOUNTS, path, value))
        with pytest.raises(ChainUnavailable):
            chain.balances(MINT, [HOLDER])

    def test_more_than_there_can_be_is_not_a_balance(self, chain: Chain, cluster: Cluster) -> None:
        cluster.says_of_accounts(accounts_of(OTHER, 2**64 - 1, 1))
        with pytest.raises(ChainUnavailable):
            chain.balances(MINT, [OTHER])

    def test_a_mint_that_the_node_does_not_know_is_not_an_empty_balance(
        self, chain: Chain, cluster: Cluster
    ) -> None:
        def refuses(*_: Any) -> Any:
            raise Refuses

        cluster.says["getTokenAccountsByOwner"] = refuses
        with pytest.raises(ChainUnavailable):
            chain.balances(MINT, [HOLDER])

    @settings(max_examples=150, deadline=None)
    @given(data=st.data())
    def test_whatever_is_changed_no_wrong_balance_comes_of_it(
        self, shared: tuple[Cluster, SolanaChain], data: st.DataObject
    ) -> None:
        cluster, chain = shared
        path, value = data.draw(st.sampled_from(leaves(ACCOUNTS))), data.draw(JSON)
        cluster.says_of_accounts(with_change(ACCOUNTS, path, value))
        try:
            at = chain.balances(MINT, [HOLDER])
        except ChainUnavailable:
            return
        # Only what says how much there is, or when, may make it another.
        said = {AMOUNT: value, ("value",): 0}.get(path, 420_000_000_000_000)
        assert at.amounts == {HOLDER: int(said)}
        assert at.height == (value if path == ("context", "slot") else SLOT)


class TestHeads:
    def test_the_heads_are_the_confirmed_and_the_finalized_block(self, chain: Chain) -> None:
        heads = chain.heads()
        assert heads.final == Block(SLOT, HASH)
        assert heads.latest == Block(SLOT + 32, OTHER_HASH)

    def test_blocks_are_asked_for_without_what_is_in_them(
        self, chain: Chain, cluster: Cluster
    ) -> None:
        chain.heads()
        [how] = [params[1] for method, params in cluster.asked if params[:1] == [SLOT]]
        assert how == {
            "commitment": "finalized", "transactionDetails": "none", "rewards": False,
            "maxSupportedTransactionVersion": 0,
        }  # fmt: skip

    @pytest.mark.parametrize("is_refused", [True, False])
    def test_a_confirmed_block_that_is_not_there_yet_is_not_the_latest(
        self, chain: Chain, cluster: Cluster, is_refused: bool
    ) -> None:
        shown = cluster.says["getBlock"]

        def get_block(slot: int, how: Any) -> Any:
            if slot == SLOT:
                return shown(slot, how)
            if is_refused:
                raise Refuses
            return None

        cluster.says["getBlock"] = get_block
        assert chain.heads().latest == chain.heads().final == Block(SLOT, HASH)

    @pytest.mark.parametrize(
        ("method", "answer"),
        [
            ("getSlot", None),
            ("getSlot", "341197933"),
            ("getSlot", -1),
            ("getSlot", 2**63),
            ("getSlot", 1.0),
            ("getSlot", True),
            ("getBlock", None),
            ("getBlock", {}),
            ("getBlock", {"blockhash": HASH}),
            ("getBlock", {"blockhash": HASH, "parentSlot": SLOT + 32}),
            ("getBlock", {"blockhash": HASH, "parentSlot": "1"}),
            ("getBlock", {"blockhash": HASH[:-1] + "0", "parentSlot": 1}),
            ("getBlock", {"blockhash": 7, "parentSlot": 1}),
            ("getGenesisHash", None),
        ],
    )
    def test_heads_that_cannot_be_right_are_refused(
        self, chain: Chain, cluster: Cluster, method: str, answer: Any
    ) -> None:
        cluster.says[method] = lambda *_: answer
        with pytest.raises(ChainUnavailable):
            chain.heads()

    def test_a_final_block_above_the_latest_cannot_be_right(
        self, chain: Chain, cluster: Cluster
    ) -> None:
        cluster.says["getSlot"] = lambda how: 9 if how["commitment"] == "finalized" else 8
        with pytest.raises(ChainUnavailable):
            chain.heads()

    def test_a_block_is_that_of_its_slot_and_there_is_none_above_the_newest(
        self, chain: Chain, cluster: Cluster
    ) -> None:
        assert chain.block(SLOT) == Block(SLOT, HASH)
        assert chain.block(SLOT + 33) is None
        assert chain.block(-1) is None
        cluster.says["getBlock"] = lambda slot, how: None  # skipped, or forgotten
        with pytest.raises(ChainUnavailable):
            chain.block(SLOT)


class TestTheNode:
    def test_a_node_of_another_cluster_is_refused_before_it_says_anything(
        self, cluster: Cluster
    ) -> None:
        with serving(cluster) as url:
            chain = SolanaChain(url)
            for ask in (chain.heads, lambda: chain.balances(MINT, [HOLDER])):
                with pytest.raises(ChainMismatch):
                    ask()
            cluster.says["getGenesisHash"] = lambda: MAINNET_GENESIS
            assert chain.balances(MINT, [HOLDER]).height == SLOT

    def test_the_cluster_is_asked_for_once(self, chain: Chain, cluster: Cluster) -> None:
        for _ in range(3):
            chain.heads()
        assert [method for method, _ in cluster.asked].count("getGenesisHash") == 1

    @pytest.mark.parametrize(
        "raw",
        [
            (200, b""),
            (200, b"<html>"),
            (200, b'[{"jsonrpc": "2.0", "id": 1, "result": 12'),
            (200, b"[" * 100_000),
            (200, b"\xff"),
            (200, b"{}"),
            (200, b"[]"),
            (429, b"slow down"),
            (500, b"{}"),
            (301, b""),
        ],
    )
    def test_what_is_not_an_answer_is_unavailable(
        self, chain: Chain, cluster: Cluster, raw: Answer
    ) -> None:
        cluster.raw = lambda body: raw
        for ask in (chain.heads, lambda: chain.balances(MINT, [HOLDER]), lambda: chain.block(1)):
            with pytest.raises(ChainUnavailable):
                ask()

    def test_an_address_with_a_key_is_shown_to_nobody(self) -> None:
        with pytest.raises(ValueError, match="http") as caught:
            SolanaChain("ftp://node.example/s3cret")
        chain = SolanaChain("http://user:s3cret@127.0.0.1:9/s3cret?key=s3cret")
        with pytest.raises(ChainUnavailable) as silent:
            chain.heads()
        for text in (repr(chain), str(caught.value), str(silent.value), repr(silent.value)):
            assert "s3cret" not in text


def test_its_number_is_not_a_number_of_an_evm_chain() -> None:
    chain = SolanaChain("http://127.0.0.1:9")
    assert chain.chain_id == MAINNET_CHAIN_ID < 2**53
    assert chain.chain_type == "solana"


def test_what_it_cannot_do_it_says_in_a_sentence() -> None:
    chain: Chain = SolanaChain("http://127.0.0.1:9")
    intent = TransferIntent("i", "env", MINT, HOLDER, OTHER, 1)
    for ask in (
        lambda: chain.derive(AddressSpec("env", "vault", "acct")),
        lambda: chain.transaction(HASH),
        lambda: chain.scan([MINT], None, 1, 2),
        lambda: chain.check_contract_signature(HOLDER, b"\0" * 32, b""),
        lambda: chain.transactions([HASH]),
        lambda: chain.prepare(intent, 0),
        lambda: chain.prepare_noop("env", 0),
        lambda: chain.bump("env", SignedTransaction(HASH, b"")),
        lambda: chain.final_nonce(HOLDER),
        lambda: chain.broadcast(SignedTransaction(HASH, b"")),
    ):
        with pytest.raises(UnsupportedByChain, match=r"Solana|EVM"):
            ask()


def test_a_node_in_the_configuration_opens_it() -> None:
    opened = open_chain(MAINNET_CHAIN_ID, ["solana+https://node.example"])
    assert (opened.chain_type, opened.chain_id) == ("solana", MAINNET_CHAIN_ID)


@pytest.mark.parametrize(
    ("urls", "own", "said"),
    [
        (["solana+https://a.example", "solana+https://b.example"], {}, "give one URL"),
        (["solana+https://a.example"], {"admin": "0x1"}, "unknown setting admin"),
    ],
)
def test_more_than_a_node_is_refused(urls: list[str], own: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        open_chain(MAINNET_CHAIN_ID, urls, settings=own)
