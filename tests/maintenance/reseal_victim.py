"""Seals everything again for test_reseal_kills, which kills it on the way.

Usage: python -m tests.maintenance.reseal_victim FILE KEYS; before and after each transaction it
says so, and waits to be told to go on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from payments_core.maintenance.reseal import Resealer
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.port import Transaction
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.maintenance.copy_victim import step
from tests.maintenance.shop import Shop

T = TypeVar("T")


class Stepping(SqliteStorage):
    """A file whose every transaction is two steps."""

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        step("before")
        result = super().transact(partition, work)
        step("after")
        return result


def main() -> None:
    """Reseal, step by step."""
    path, keys = Path(sys.argv[1]), sys.argv[2].split()
    shop = Shop(Stepping(path, RECORD_TYPES))
    shop.start_again(*keys)
    service = shop.service
    done = Resealer(service.parts.ports).run()
    print("done", sum(done.changed.values()), flush=True)


if __name__ == "__main__":
    main()
