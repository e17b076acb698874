"""What a sandbox's SQLite file says, read without any of the service's own code."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs

PARKED = 2**53 - 1


@attrs.frozen
class LedgerFile:
    """Every stored body, by table."""

    tables: dict[str, list[dict[str, Any]]]

    @classmethod
    def read(cls, database: Path) -> LedgerFile:
        """The file as it is now."""
        names = ("payments", "events", "vaults", "simulated_transactions", "simulated_balances",
                 "receipts", "jobs", "accounts")  # fmt: skip
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            return cls(
                {
                    name: [
                        json.loads(body)
                        for (body,) in connection.execute(f"SELECT body FROM {name}")
                    ]
                    for name in names
                }
            )

    def payment(self, payment_id: str) -> dict[str, Any]:
        """The one Payment of that id."""
        [found] = [row for row in self.tables["payments"] if row["id"] == payment_id]
        return found

    def vault(self, account_id: str, chain_id: int) -> str:
        """The address of an account's vault."""
        [found] = [
            row["address"]
            for row in self.tables["vaults"]
            if (row["account_id"], row["chain_id"]) == (account_id, chain_id)
        ]
        return str(found)

    def transfers(self, address: str) -> list[tuple[str, str, int]]:
        """Every transfer to or from an address: from, to, amount."""
        return [
            (log["sender"], log["recipient"], int(log["amount_atomic"]))
            for row in self.tables["simulated_transactions"]
            for log in row["logs"]
            if address in (log["sender"], log["recipient"])
        ]

    def balance(self, address: str) -> int:
        """What the chain's books say an address holds."""
        return sum(
            int(row["total_atomic"])
            for row in self.tables["simulated_balances"]
            if row["id"].endswith(f":{address}")
        )

    def events(self, payment_id: str) -> list[dict[str, Any]]:
        """The outbox's events of a Payment."""
        return [
            row for row in self.tables["events"] if row["payload"].get("paymentId") == payment_id
        ]

    def parked_jobs(self) -> list[dict[str, Any]]:
        """Jobs that were given up."""
        return [row for row in self.tables["jobs"] if PARKED in (row["lease_until"], row["due_at"])]
