"""The bank adapter of the examples, held to the suites against its bank."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.custom_bank.adapter import open_url
from examples.custom_bank.test_bank import TestExampleBank as TestExampleBank
from examples.custom_bank.test_bank import TestExampleFunding as TestExampleFunding
from payments_core.banks.incoming import FundingBank
from payments_core.banks.port import Bank
from payments_core.notices.port import ReadsNotices
from payments_core.plain_calls import port_members

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-bank-adapter.md"
ADAPTER = Path(__file__).parents[2] / "examples" / "custom_bank" / "adapter.py"


@pytest.mark.parametrize(
    "url", ["example:", "example+http://h.example", "example+ftp://k:s@h.example", "x+http://k@h"]
)
def test_a_url_without_what_is_needed_is_refused_without_its_text(url: str) -> None:
    with pytest.raises(ValueError, match="the URL") as refused:
        open_url(url)
    assert "k:s" not in str(refused.value)


def test_the_page_names_every_method_of_the_ports() -> None:
    text = PAGE.read_text(encoding="utf-8")
    ports = (Bank, FundingBank, ReadsNotices)
    members = {name for port in ports for name in port_members(port)}
    assert [name for name in sorted(members) if f"`{name}" not in text] == []


def test_the_adapter_is_short() -> None:
    lines = ADAPTER.read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) < 150
