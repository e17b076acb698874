"""Two anvils and one attestation service for all tests, and clean chains for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from payments_core.clock import FixedClock
from payments_core.storage.port import Storage
from tests.chains.evm.nodes import Node
from tests.routers.cctp.shop import Shop
from tests.routers.cctp.world import Attesting, Cctp, open_storage, two_chains


@pytest.fixture(scope="session")
def two_nodes() -> Iterator[dict[int, Node]]:
    """Two chains for all tests, with what they leave behind on them."""
    with two_chains() as nodes:
        yield nodes


@pytest.fixture(scope="session")
def all_cctp(two_nodes: dict[int, Node]) -> Iterator[Cctp]:
    """CCTP on both chains, with its attestation service."""
    attesting = Attesting(two_nodes)
    yield Cctp(two_nodes, attesting)
    attesting.stop()


@pytest.fixture
def cctp(all_cctp: Cctp) -> Iterator[Cctp]:
    """The same; what the test does on it is undone."""
    before = {number: node.ask("evm_snapshot") for number, node in all_cctp.nodes.items()}
    all_cctp.attesting.tell(faults=[], fee_ppm=0, expires_at=0, threshold=2)
    yield all_cctp
    for number, node in all_cctp.nodes.items():
        node.ask("evm_setAutomine", True)
        assert node.ask("evm_revert", before[number])


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Storage]:
    """A storage of the test's own."""
    storage = open_storage(tmp_path)
    yield storage
    storage.close()


@pytest.fixture
def clock() -> FixedClock:
    """A clock that moves only when it is set."""
    return FixedClock()


@pytest.fixture
def shop(cctp: Cctp, books: Storage, clock: FixedClock) -> Shop:
    return Shop(cctp, books, clock)
