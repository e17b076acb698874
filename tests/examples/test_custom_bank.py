"""The bank adapter of the examples, held to what the simulated bank is held to."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from examples import custom_bank
from payments_core.banks.port import Bank
from payments_core.conformance.bank import BankConformance


class TestFileBank(BankConformance):
    can_return = True

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "bank.db"

    def open(self) -> Bank:
        return self.bank()

    def bank(self) -> custom_bank.FileBank:
        return custom_bank.open_url(f"filebank://{self.path}")

    def approve_capability(self, key: str) -> None:
        self.bank().approve("capability", key)

    def approve_account(self, key: str) -> None:
        self.bank().approve("account", key)

    def settle(self, key: str) -> None:
        self.bank().move(key, "settled")

    def return_payout(self, key: str, code: str) -> None:
        self.bank().move(key, "returned", code)

    def count_payouts(self, keys: Sequence[str]) -> int:
        with closing(sqlite3.connect(self.path)) as rows:
            marks = ", ".join("?" * len(keys))
            found = rows.execute(f"SELECT count(*) FROM payouts WHERE key IN ({marks})", keys)
            return int(found.fetchone()[0])


def test_the_program_shows_a_payouts_life(capsys: pytest.CaptureFixture[str]) -> None:
    custom_bank.main()
    assert capsys.readouterr().out == "submitted\n['settled', 'returned']\nreturned R03\n"


def test_a_url_without_a_path_is_refused() -> None:
    with pytest.raises(ValueError, match="path"):
        custom_bank.open_url("filebank:")
