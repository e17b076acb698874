"""Anvil for the tests of the EVM adapter: one process for all, and a clean chain for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from payments_core_http.cli.anvil.process import AnvilProcess
from tests.chains.evm.deployed import Deployed
from tests.chains.evm.fake_node import FakeChain, FakeNode
from tests.chains.evm.nodes import Node, anvil_or_skip

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def anvil() -> Iterator[AnvilProcess]:
    """One anvil for all tests, with what they leave behind on it."""
    with anvil_or_skip() as process:
        yield process


@pytest.fixture
def node(anvil: AnvilProcess) -> Iterator[Node]:
    """The same anvil to talk to; what the test does on it is undone."""
    node = Node(anvil.url)
    before = node.ask("evm_snapshot")
    yield node
    assert node.ask("evm_revert", before)
    node.close()


@pytest.fixture
def own_node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """An anvil of the test's own, which outlives the processes that the test kills."""
    monkeypatch.chdir(ROOT)  # where the children find themselves as modules
    with anvil_or_skip() as process:
        node = Node(process.url)
        yield node
        node.close()


@pytest.fixture
def deployed(node: Node) -> Deployed:
    """Our contracts on it, new."""
    return Deployed(node)


@pytest.fixture
def fakes() -> Iterator[Callable[..., list[FakeNode]]]:
    """Begins nodes that are not real: of one chain, each so many blocks behind."""
    begun: list[FakeNode] = []

    def begin(chain: FakeChain, *behind: int) -> list[FakeNode]:
        new = [FakeNode(chain, behind=blocks) for blocks in behind or (0,)]
        begun.extend(new)
        return new

    yield begin
    for node in begun:
        node.close()
