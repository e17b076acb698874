"""The gas figures on the page are those of the contracts as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from payments_core_http.cli.anvil.process import VERSION
from tests.chains.evm.gas import lines
from tests.chains.evm.nodes import Node

PAGE = Path(__file__).resolve().parents[3] / "docs" / "explanation" / "contracts.md"


def test_the_figures_on_the_page_are_the_measured_ones(node: Node) -> None:
    page = PAGE.read_text()
    assert f"anvil {VERSION}" in page
    if f"v{VERSION}" not in node.ask("web3_clientVersion"):
        pytest.skip("another anvil may have another fork's prices")
    present = page.splitlines()
    missing = [line for line in lines() if line not in present]
    assert not missing, "\n".join(missing)
