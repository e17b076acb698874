"""The bank adapter of the examples, held to the suites against its bank."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest

from examples.custom_bank.adapter import ExampleBank, open_url
from examples.custom_bank.service import Bank
from examples.custom_bank.test_bank import TestExampleBank as TestExampleBank
from examples.custom_bank.test_bank import TestExampleFunding as TestExampleFunding
from payments_core.banks.incoming import FundingBank
from payments_core.banks.port import Bank as BankPort
from payments_core.banks.port import BankUnavailable
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
    ports = (BankPort, FundingBank, ReadsNotices)
    members = {name for port in ports for name in port_members(port)}
    assert [name for name in sorted(members) if f"`{name}" not in text] == []


def test_the_adapter_is_short() -> None:
    lines = ADAPTER.read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) < 150


def test_as_many_answers_are_lost_as_were_ordered_though_calls_come_at_once() -> None:
    bank = Bank(0, "key", "secret")
    bank.faults |= {"lost_answers": 1, "late_s": {"GET payouts": 0.2}}
    serving = Thread(target=bank.serve_forever, args=(0.01,))
    serving.start()
    adapter = ExampleBank(f"http://127.0.0.1:{bank.server_port}", "key", b"secret")

    def is_answered(number: int) -> bool:
        try:
            return adapter.find_payout(str(number)) is None
        except BankUnavailable:
            return False

    with ThreadPoolExecutor(4) as pool:
        answered = list(pool.map(is_answered, range(8)))
    bank.shutdown()
    bank.server_close()
    serving.join()
    assert answered.count(False) == 1
