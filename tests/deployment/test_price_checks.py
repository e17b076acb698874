"""Prices of a deployment whose settings name feeds: what `payments doctor` says of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from payments_core.chains.evm.signers import LocalSigner
from payments_core.clock import SECOND, FixedClock, SystemClock
from payments_core_http.deployment.doctor import run_checks
from payments_core_http.deployment.loader import load_configuration
from tests.chains.evm.feeds_on_anvil import Feeds
from tests.chains.evm.nodes import ADMIN, Node, anvil_or_skip
from tests.deployment.deployed import Deployed

BASE_SEPOLIA = 84532


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with anvil_or_skip(chain_id=BASE_SEPOLIA) as process, closing(Node(process.url)) as node:
        yield node


def diagnose(folder: Path, node: Node, pricing: str) -> list[tuple[str, str]]:
    """Level and text of each finding about prices."""
    key = folder / "operator.key"
    LocalSigner.open(key)
    deployed = Deployed.made(
        folder,
        f"sqlite:///{folder}/payments.db",
        simulated_chains=False,
        chains={BASE_SEPOLIA: {"urls": [f"evm+{node.url}"], "settings": {"admin": ADMIN}}},
        providers={"pricing": {"url": pricing}, "signer": {"url": f"file://{key}"}},
    )
    deployed.run("admin", "migrate")
    return [
        (one.level, one.says)
        for one in run_checks(load_configuration(deployed.config, {}))
        if one.check == "prices" or (one.check, one.level) == ("settings", "fault")
    ]


def test_the_prices_of_all_tokens_are_shown(tmp_path: Path, node: Node) -> None:
    feeds = Feeds(node, BASE_SEPOLIA, FixedClock(SystemClock().now()))
    feeds.report(USDC="0.97")
    assert diagnose(tmp_path, node, "chainlink:") == [
        ("ok", "84532/USDC is at 0.97000000 US dollars"),
    ]


def test_a_feed_that_is_stale_is_a_warning(tmp_path: Path, node: Node) -> None:
    Feeds(node, BASE_SEPOLIA, FixedClock(SystemClock().now() - 2 * 86_400 * SECOND))
    [(level, says)] = diagnose(tmp_path, node, "chainlink:")
    assert level == "warning"
    assert says.startswith("84532/USDC has no price now: no price of 84532/USDC: its answer is of ")


def test_a_token_that_the_source_does_not_know_is_a_warning(tmp_path: Path, node: Node) -> None:
    assert diagnose(tmp_path, node, "table:?EURC=1.1&EUR=1.0850") == [
        ("warning", "84532/USDC has no price: the source does not know it"),
        ("ok", "EUR is at 1.0850 US dollars"),
    ]


def test_feeds_of_no_served_chain_are_a_fault_of_the_setting(tmp_path: Path, node: Node) -> None:
    own = tmp_path / "feeds.toml"
    own.write_text("")
    [(level, says)] = diagnose(tmp_path, node, f"chainlink:{own}")
    assert (level, says) == (
        "fault",
        "providers.pricing.url cannot be used: no chain with nodes in `chains` has a feed",
    )
