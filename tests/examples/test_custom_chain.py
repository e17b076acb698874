"""The chain adapter of the examples, held to what our own adapters are held to."""

from __future__ import annotations

import pytest

from examples.custom_chain import play
from examples.custom_chain.test_chain import TestLedgerChain as TestLedgerChain


def test_the_program_shows_a_payment_on_the_chain(capsys: pytest.CaptureFixture[str]) -> None:
    play.main()
    assert capsys.readouterr().out == (
        "awaiting_payment\nprocessing\nexecuting\nsucceeded\nsucceeded\nthe wallet has 25000000\n"
    )
