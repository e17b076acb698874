"""The chain adapter of the examples, held to what our own adapters are held to."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.custom_chain import play
from examples.custom_chain.test_chain import TestLedgerChain as TestLedgerChain
from payments_core.chains.loader import BeginsOnSight
from payments_core.passed_objects import PORTS
from payments_core.plain_calls import port_members
from payments_core.sandbox.chains import SandboxChain

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-chain-adapter.md"


def test_the_page_names_every_method_of_the_port_and_of_what_an_adapter_may_have_besides() -> None:
    text = PAGE.read_text(encoding="utf-8")
    ports = [port for port in PORTS["chain"] if port not in (SandboxChain, BeginsOnSight)]
    members = {name for port in ports for name in port_members(port)}
    assert sorted(name for name in members if f"`{name}" not in text) == []


def test_the_page_explains_every_check_that_may_fail() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## What a failing check means")[2]
    named = {
        part.strip("`…") for row in table.splitlines() for part in row.partition(" | ")[0].split()
    }
    stems = {one.strip(",").strip("`…") for one in named if len(one) > 6}
    checks = [name for name in dir(TestLedgerChain) if name.startswith("test_")]
    assert [it for it in checks if not any(stem in it for stem in stems)] == []


def test_the_program_shows_a_payment_on_the_chain(capsys: pytest.CaptureFixture[str]) -> None:
    play.main()
    assert capsys.readouterr().out == (
        "awaiting_payment\nprocessing\nexecuting\nsucceeded\nsucceeded\nthe wallet has 25000000\n"
    )
