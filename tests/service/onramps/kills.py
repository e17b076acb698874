"""Kill -9 of workers between any two calls to a bank that is a process of its own: on-ramps.

    python -m tests.service.onramps.kills [--payments 25] [--seed 1] [--chance 0.2]

The bank kills the workers that call it (`banks/killing.py`). In the end there are as many credits
as transfers at the bank.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from payments_core.banks.simulated.arrivals import NewArrival
from payments_core.onramps.record import BankTransaction, OnrampAccount
from payments_core.storage.port import Snapshot
from tests.service.banks.killing import FUNDING_CALLS, BankFiles, main, supervise
from tests.service.onramps.setting import OnrampSetting
from tests.service.world import World

MODULE = "tests.service.onramps.kills"
CENTS = 150
ATOMIC = CENTS * 10_000


def run(transfers: int, seed: int, chance: float, within_s: float = 3_600.0) -> tuple[int, int]:
    """How many credits there are for so many transfers, and how many workers were killed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = BankFiles(folder)
        world = World(files.make()).open()
        setting = OnrampSetting(world)
        vault = world.vault_address()
        before = world.on_chain(vault)
        bank = files.funding_bank()
        ids = [f"incoming-{number}" for number in range(transfers)]
        for id in ids:
            key = setting.onramp.bank_key
            bank.receive(NewArrival(id=id, account_key=key, rail="wire", amount_cents=CENTS))
        world.service.parts.background_jobs.notice_reader(
            "sandbox"
        ).wake()  # as the bank's webhook does

        def settled() -> list[BankTransaction]:
            return [one for one in _load(world, setting.onramp) if one.status == "settled"]

        def is_over() -> bool:
            return len(settled()) >= transfers

        kills = supervise(MODULE, world, folder, seed, chance, is_over, within_s)
        found = settled()
        assert {one.incoming_id for one in found} == set(ids)
        assert len(_load(world, setting.onramp)) == transfers, "a transfer counts twice"
        books = [(one.books.sender, one.books.recipient) for one in found]
        assert books == [(-ATOMIC, ATOMIC)] * transfers
        assert bank.count_deliveries(ids) == transfers
        credited, rest = divmod(world.on_chain(vault) - before, ATOMIC)
        assert not rest, "the vault has another amount"
        return credited, kills


def _load(world: World, onramp: OnrampAccount) -> list[BankTransaction]:
    """All transfers to the on-ramp."""

    def look(snapshot: Snapshot) -> list[BankTransaction]:
        found: list[BankTransaction] = []
        after = None
        while True:
            page = snapshot.find(BankTransaction, "by_onramp", (onramp.id,), after=after)
            found += page.records
            after = page.next
            if after is None:
                return found

    return world.storage.read(world.environment_id, look)


if __name__ == "__main__":
    sys.exit(main(__doc__, run, "credits", FUNDING_CALLS))
