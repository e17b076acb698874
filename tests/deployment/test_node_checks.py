"""What `payments networks` says of networks and of each node."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner

from payments_core.acceptance import Acceptance
from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.node_checks import check_node
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.rpc import Node
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.outbox.record import Sender
from payments_core.clock import MINUTE
from payments_core.storage.port import Transaction
from payments_core.storage_loader import open_storage
from payments_core_http.cli import payments
from payments_core_http.cli.networks import command
from payments_core_http.deployment.chain_checks import check_nodes
from tests.chains.evm.fake_node import FINAL_DEPTH, FakeChain, FakeNode, Refuse, block_unix_s
from tests.chains.scenes import signer
from tests.deployment.settings import PRODUCTION, SANDBOX
from tests.shipped import CHAINS

BASE = attrs.evolve(CHAINS[8453], finalized_s=2 * FINAL_DEPTH)
HEIGHT = 40


class SoundNode(FakeNode):
    """A node that can do all that is needed, except what a test takes from it."""

    keeps_blocks = HEIGHT
    max_log_blocks = 10_000
    runs_code = True
    safe_depth = 4

    def eth_getBlockByNumber(self, tag: str, full: bool) -> dict[str, Any] | None:
        asked = hex(self.height - self.safe_depth) if tag == "safe" else tag
        return super().eth_getBlockByNumber(asked, full)

    def eth_getCode(self, address: str, tag: str) -> str:
        return "0x"

    def eth_call(self, call: dict[str, str], tag: str) -> str:
        if "to" not in call:
            return "0x" + f"{42 if self.runs_code else 0:064x}"
        if tag != "latest" and int(tag, 16) < self.height - self.keeps_blocks:
            raise Refuse("missing trie node 00ab")
        return "0x" + f"{6:064x}"

    def eth_getLogs(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        if int(query["toBlock"], 16) - int(query["fromBlock"], 16) >= self.max_log_blocks:
            raise Refuse("query exceeds max block range 10")
        return super().eth_getLogs(query)


@pytest.fixture
def node() -> Iterator[SoundNode]:
    chain = FakeChain()
    while len(chain.blocks) <= HEIGHT:
        chain.mine()
    with closing(SoundNode(chain)) as one:
        yield one


def found(node: FakeNode, network: Any = BASE, later_ms: int = 0) -> list[tuple[str, str]]:
    """What is wrong with the node: the level, and the sentence without its time."""
    now = block_unix_s(node.height) * 1_000 + later_ms
    with closing(Node(node.url)) as asked:
        said = list(check_node(asked, network, now))
    levels = ["ok" if one.is_right else "fault" if one.is_fault else "warning" for one in said]
    return [(level, one.says) for level, one in zip(levels, said, strict=True)]


def wrong(node: FakeNode, network: Any = BASE, later_ms: int = 0) -> list[tuple[str, str]]:
    return [(level, says) for level, says in found(node, network, later_ms) if level != "ok"]


def test_a_sound_node_passes_every_check_with_its_time(node: SoundNode) -> None:
    said = found(node)
    assert [level for level, _ in said] == ["ok"] * 7
    assert all(says.endswith(" ms)") for _, says in said)


def test_a_node_of_another_chain_is_named(node: SoundNode) -> None:
    ((level, says),) = wrong(node, attrs.evolve(BASE, chain_id=10))
    assert level == "fault"
    assert "serves chain 8453, not 10" in says


def test_a_pruned_node_is_named_with_its_own_words(node: SoundNode) -> None:
    node.keeps_blocks = 4
    ((level, says),) = wrong(node)
    assert (level, says.partition(":")[0]) == ("fault", "eth_call at the accepted block")
    assert 'saying "missing trie node 00ab"' in says


def test_a_node_that_refuses_ranges_is_a_warning(node: SoundNode) -> None:
    node.max_log_blocks = 10
    ((level, says),) = wrong(node)
    assert (level, says.partition(":")[0]) == ("warning", "eth_getLogs over a range")
    assert "query exceeds max block range 10" in says


def test_a_node_that_calls_everything_final_is_named(node: SoundNode) -> None:
    ((level, says),) = wrong(node, CHAINS[8453])  # 16 s old, where 20 minutes are usual
    assert (level, says) == (
        "fault",
        "tags: a block of 16 s is called finalized, where 1200 s are usual",
    )


def test_a_node_whose_final_block_is_above_its_latest_is_named(node: SoundNode) -> None:
    def lie(params: Sequence[Any], result: Any) -> Any:
        return {**result, "number": hex(HEIGHT + 5)} if params[0] == "finalized" else result

    node.lies["eth_getBlockByNumber"] = lie
    assert ("fault", "tags: the finalized block is above the latest block") in wrong(node)


def test_a_node_without_a_tag_is_named(node: SoundNode) -> None:
    node.lies["eth_getBlockByNumber"] = lambda params, result: (
        None if params[0] == "finalized" else result
    )
    ((level, says),) = wrong(node)
    assert level == "fault"
    assert "has no finalized block" in says


def test_a_node_whose_final_block_is_above_its_safe_one_is_named(node: SoundNode) -> None:
    node.safe_depth = 20
    both = attrs.evolve(BASE, acceptance=(Acceptance("safe", up_to="5"), Acceptance("finalized")))
    assert ("fault", "tags: the finalized block is above the safe block") in wrong(node, both)


def test_a_node_that_stopped_to_follow_what_is_final_is_named(node: SoundNode) -> None:
    node.lies["eth_getBlockByNumber"] = lambda params, result: (
        {**result, "timestamp": hex(block_unix_s(HEIGHT) - 1_000)}
        if params[0] == "finalized"
        else result
    )
    assert wrong(node) == [
        ("fault", "tags: the finalized block is 1000 s old, where 16 s are usual")
    ]


def test_a_node_that_stands_is_named(node: SoundNode) -> None:
    assert ("fault", "follows the chain: the latest block is 11 minutes old") in wrong(
        node, later_ms=11 * MINUTE
    )


def test_a_node_that_runs_no_code_is_a_warning(node: SoundNode) -> None:
    node.runs_code = False
    assert wrong(node) == [("warning", "eth_call without `to`: the code was not run")]


def test_a_token_with_other_decimals_is_named(node: SoundNode) -> None:
    usdc = attrs.evolve(BASE.tokens[0], decimals=18)
    ((level, says),) = wrong(node, attrs.evolve(BASE, tokens=(usdc,)))
    assert level == "fault"
    assert says.endswith("USDC has 18 decimals, the node says 6")


def test_a_node_that_takes_no_batches_is_a_warning(node: SoundNode) -> None:
    node.fault = "no batches 400"
    assert [level for level, says in wrong(node) if says.startswith("batches: takes 1")] == [
        "warning"
    ]


# --- The command -------------------------------------------------------------------------------


def run(tmp_path: Path, *arguments: str, text: str = "", **environ: str) -> Any:
    path = tmp_path / "payments.toml"
    path.write_text(text)
    return CliRunner().invoke(command, ["--config", str(path), *arguments], env=environ)


def test_the_list_says_what_is_served_and_when_a_payment_is_accepted(tmp_path: Path) -> None:
    text = '[networks.8453]\nacceptance = [{ up_to = "50", depth = 30 }, { tag = "finalized" }]\n'
    done = run(tmp_path, text=text, **PRODUCTION)
    assert done.exit_code == 0, done.output
    assert "     8453  Base (3 nodes)\n           USDC with 6 decimals\n" in done.output
    assert "up to 50: 30 blocks on top, about 60 s" in done.output
    assert "any amount: a finalized block, about 20 minutes" in done.output
    assert "Base Sepolia (not served, testnet)" in done.output


def test_the_list_is_data_too(tmp_path: Path) -> None:
    done = run(tmp_path, "--json", **SANDBOX)
    rows = [json.loads(line) for line in done.output.splitlines()]
    assert [row["chainId"] for row in rows][:2] == [1, 8453]
    assert rows[1]["acceptance"][0]["minutes"] == 20.0
    assert rows[1]["explorerUrl"] == "https://basescan.org"
    assert {row["name"] for row in rows if row["isSimulated"]} == {
        row["name"] for row in rows if not row["isTestnet"]
    }
    assert "Base (simulated)" in run(tmp_path, **SANDBOX).output


def test_a_check_asks_each_node_and_fails_with_one(tmp_path: Path, node: SoundNode) -> None:
    LocalSigner.open(tmp_path / "key")
    environ = {
        **SANDBOX,
        "PAYMENTS_SIMULATED_CHAINS": "false",
        "PAYMENTS_CHAINS_8453_URLS": f"evm+{node.url}",
        "PAYMENTS_CHAINS_8453_SETTINGS_ADMIN": PRODUCTION["PAYMENTS_CHAINS_8453_SETTINGS_ADMIN"],
        "PAYMENTS_PROVIDERS_SIGNER_URL": f"file://{tmp_path}/key",
    }
    done = run(tmp_path, "check", "8453", "--json", **environ)
    said = [json.loads(line) for line in done.output.splitlines()]
    assert done.exit_code == 1  # the blocks of a fake node are years old
    assert any(one["says"].startswith("batches: 50 calls") for one in said)
    assert any("has no payments-core factory" in one["says"] for one in said)


def test_a_check_of_a_chain_without_nodes_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, "check", "10", **SANDBOX)
    assert done.exit_code == 1
    assert "set chains.10" in done.output


# --- The doctor --------------------------------------------------------------------------------

KEYED = "SECRETKEY8453"


def without(words: str) -> Any:
    """A lie that refuses, and repeats the node's own address."""

    def lie(params: Sequence[Any], result: Any) -> Any:
        raise Refuse(f"{words} /v2/{KEYED}")

    return lie


def prune(node: SoundNode) -> None:
    node.keeps_blocks = 4


def lie_about_tags(node: SoundNode) -> None:
    node.lies["eth_getBlockByNumber"] = lambda params, result: (
        node.eth_getBlockByNumber("latest", False) if params[0] == "finalized" else result
    )


def refuse_ranges(node: SoundNode) -> None:
    node.lies["eth_getLogs"] = without("ranges above 10 blocks need a paid plan at")


def answer_for_another_chain(node: SoundNode) -> None:
    node.lies["eth_chainId"] = lambda params, result: "0xa"


def hang_up(node: SoundNode) -> None:
    node.fault = "status 503"


MISBEHAVING: dict[Any, tuple[str, str]] = {
    prune: ("fault", 'eth_call at the accepted block: {}: refused eth_call, saying "missing trie'),
    lie_about_tags: ("fault", "tags: a block of 0 s is called finalized, where 16 s are usual"),
    refuse_ranges: ("warning", 'eth_getLogs over a range: {}: refused eth_getLogs, saying "ranges'),
    answer_for_another_chain: ("fault", "{} serves chain 10, not 8453"),
    hang_up: ("fault", "{}: answered with status 503"),
}


def diagnose(node: SoundNode, *others: SoundNode) -> list[tuple[str, str, str]]:
    """What `payments doctor` says of these nodes."""
    urls = [f"{one.url}/v2/{KEYED}" for one in (node, *others)]
    now = block_unix_s(node.height) * 1_000
    with closing(NodeQuorum(urls, 8453)) as nodes:
        chain = EvmChain(nodes, Deployment("0x" + "a" * 40), signer(), network=BASE)
        said = list(check_nodes(8453, chain, lambda: now))
    return [(one.level, one.check, one.says) for one in said]


def test_the_doctor_names_a_sound_node_in_a_line(node: SoundNode) -> None:
    ((level, check, says),) = diagnose(node)
    assert (level, check) == ("ok", f"chain 8453, node 127.0.0.1:{node.port}")
    assert says.startswith(f"latest block {HEIGHT}, finalized block {FINAL_DEPTH} behind it (")
    assert says.endswith("; 7 checks passed")


@pytest.mark.parametrize("misbehave", MISBEHAVING, ids=lambda one: one.__name__)
def test_the_doctor_names_a_misbehaving_node_in_one_sentence(
    node: SoundNode, misbehave: Any
) -> None:
    misbehave(node)
    level, words = MISBEHAVING[misbehave]
    ((found_level, check, says),) = diagnose(node)
    name = f"127.0.0.1:{node.port}"
    assert (found_level, check) == (level, f"chain 8453, node {name}")
    assert says.startswith(words.format(name)), says
    assert KEYED not in says
    in_full = [one for one in wrong(node) if not one[1].startswith("latest block")]
    assert len(in_full) == 1  # `payments networks check` says the same
    assert in_full[0][0] == level


class PresentNode(SoundNode):
    """A sound node whose chain goes on now, with our contracts."""

    def eth_getCode(self, address: str, tag: str) -> str:
        return "0x01"

    def eth_getBlockByNumber(self, tag: str, full: bool) -> dict[str, Any] | None:
        block = super().eth_getBlockByNumber(tag, full)
        behind_s = int(time.time()) - block_unix_s(self.height)
        later = {} if block is None else {"timestamp": hex(int(block["timestamp"], 16) + behind_s)}
        return block and {**block, **later}


@pytest.mark.parametrize("words", [("networks", "check", "8453"), ("doctor",)], ids=" ".join)
@pytest.mark.parametrize("misbehave", [None, *MISBEHAVING], ids=lambda one: one and one.__name__)
def test_both_commands_name_a_misbehaving_node_in_one_sentence_without_its_key(
    tmp_path: Path, node: SoundNode, misbehave: Any, words: tuple[str, ...]
) -> None:
    with closing(PresentNode(node.chain)) as present:
        if misbehave is not None:
            misbehave(present)
        found = run_command(tmp_path, present, *words)
    node_lines = [one for one in found if one["check"].startswith("chain 8453, node")]
    wrong_lines = [(one["level"], one["says"]) for one in node_lines if one["level"] != "ok"]
    assert all(KEYED not in one["says"] for one in found)
    if misbehave is None:
        assert (len(node_lines) == 1) is (words == ("doctor",))
        assert wrong_lines == []
        return
    level, says = MISBEHAVING[misbehave]
    ((found_level, found_says),) = wrong_lines
    assert found_level == level
    assert found_says.startswith(says.format(f"127.0.0.1:{present.port}")), found_says


def run_command(tmp_path: Path, node: FakeNode, *words: str) -> list[dict[str, str]]:
    """What a command prints of a deployment that asks this node alone."""
    LocalSigner.open(tmp_path / "key")
    url = f"sqlite:///{tmp_path}/payments.db"
    with closing(open_storage(url)) as storage:
        storage.migrate()
    (tmp_path / "payments.toml").write_text("[networks.8453]\nfinalized_s = 16\n")
    environ = {
        **SANDBOX,
        "PAYMENTS_CONFIG": str(tmp_path / "payments.toml"),
        "PAYMENTS_SIMULATED_CHAINS": "false",
        "PAYMENTS_STORAGE_URL": url,
        "PAYMENTS_CHAINS_8453_URLS": f"evm+{node.url}/v2/{KEYED}",
        "PAYMENTS_CHAINS_8453_SETTINGS_ADMIN": PRODUCTION["PAYMENTS_CHAINS_8453_SETTINGS_ADMIN"],
        "PAYMENTS_PROVIDERS_SIGNER_URL": f"file://{tmp_path}/key",
    }
    done = CliRunner().invoke(payments, [*words, "--json"], env=environ, catch_exceptions=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_bad_node_beside_two_sound_ones_is_a_warning(node: SoundNode) -> None:
    with closing(SoundNode(node.chain)) as second, closing(SoundNode(node.chain)) as third:
        prune(third)
        assert [level for level, _, _ in diagnose(node, second, third)] == ["ok", "ok", "warning"]
        prune(second)
        assert [level for level, _, _ in diagnose(node, second, third)] == ["ok", "fault", "fault"]


def test_a_check_of_a_node_takes_five_requests(node: SoundNode) -> None:
    diagnose(node)
    sizes = [len(one) if isinstance(one, list) else 1 for one in node.requests]
    tokens = len(BASE.tokens)
    assert sizes == [3, 1, tokens, 1, 50]


class PayingNode(SoundNode):
    """A sound node that knows what a sender has."""

    wei = 10**18

    def eth_getBalance(self, address: str, tag: str) -> str:
        return hex(self.wei)

    def eth_feeHistory(self, count: str, tag: str, shares: list[int]) -> dict[str, list[str]]:
        return {"baseFeePerGas": ["0x1", hex(10**9)]}

    def eth_maxPriorityFeePerGas(self) -> str:
        return "0x0"


def listed(tmp_path: Path, url: str, *senders: str) -> Any:
    """The list of a deployment on SQLite whose environment has these senders."""
    key = LocalSigner.open(tmp_path / "key")
    file = tmp_path / "payments.db"
    with closing(open_storage(f"sqlite:///{file}")) as storage:
        storage.migrate()
        known = [key.address("env_1") if one == "present" else one for one in senders]

        def work(tx: Transaction) -> None:
            for address in known:
                tx.insert(Sender(id=f"8453:{address}", chain_id=8453))

        storage.transact("env_1", work)
    environ = {
        **SANDBOX,
        "PAYMENTS_STORAGE_URL": f"sqlite:///{file}",
        "PAYMENTS_SIMULATED_CHAINS": "false",
        "PAYMENTS_CHAINS_8453_URLS": f"evm+{url}",
        "PAYMENTS_CHAINS_8453_SETTINGS_ADMIN": PRODUCTION["PAYMENTS_CHAINS_8453_SETTINGS_ADMIN"],
        "PAYMENTS_PROVIDERS_SIGNER_URL": f"file://{tmp_path}/key",
    }
    done = run(tmp_path, "--json", **environ)
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return key.address("env_1"), {row["chainId"]: row["senders"] for row in rows}


def test_the_list_has_the_senders_and_for_how_many_transfers_their_coins_are_enough(
    tmp_path: Path,
) -> None:
    with closing(PayingNode(FakeChain())) as node:
        address, senders = listed(tmp_path, node.url, "present", "0x" + "1" * 40)
    [sender] = senders[8453]
    assert sender["address"] == address
    assert sender["transfers"] > 100
    assert senders[1] is None  # not served


def test_a_node_that_does_not_answer_makes_the_number_unknown(tmp_path: Path) -> None:
    with closing(PayingNode(FakeChain())) as node:
        node.fault = "status 500"
        address, senders = listed(tmp_path, node.url, "present")
    assert senders[8453] == [{"address": address, "transfers": None}]


def test_a_chain_that_nobody_has_sent_on_has_no_sender(tmp_path: Path) -> None:
    with closing(PayingNode(FakeChain())) as node:
        _, senders = listed(tmp_path, node.url)
    assert senders[8453] == []
    assert not any("eth_getBalance" in str(one) for one in node.requests)


def test_a_storage_that_cannot_be_read_is_said_without_its_password(tmp_path: Path) -> None:
    environ = {
        **SANDBOX,
        "PAYMENTS_SIMULATED_CHAINS": "false",
        "PAYMENTS_STORAGE_URL": "postgresql://payments:hunter22@127.0.0.1:1/payments",
        "PAYMENTS_CHAINS_8453_URLS": "evm+http://127.0.0.1:1/key-of-node",
        "PAYMENTS_CHAINS_8453_SETTINGS_ADMIN": PRODUCTION["PAYMENTS_CHAINS_8453_SETTINGS_ADMIN"],
        "PAYMENTS_PROVIDERS_SIGNER_URL": f"file://{tmp_path}/key",
    }
    LocalSigner.open(tmp_path / "key")
    done = run(tmp_path, **environ)
    assert done.exit_code == 0, done.output
    assert "Base (1 node)" in done.output
    assert "The senders are not known" in done.output
    assert "hunter22" not in done.output
    assert "key-of-node" not in done.output
