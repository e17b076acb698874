"""Kill -9 of workers between any two calls to a bank that is a process of its own: payouts.

    python -m tests.service.payments.payouts.kills [--payments 25] [--seed 1] [--chance 0.2]

The bank kills the workers that call it (`banks/killing.py`). In the end there are as many payouts
as Payments.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from payments_core.payments.record import payout_key
from tests.service.banks.killing import PAYOUT_CALLS, BankFiles, main, supervise
from tests.service.payments.payouts.payout_harness import PayoutHarness
from tests.service.world import World

MODULE = "tests.service.payments.payouts.kills"


def run(payments: int, seed: int, chance: float, within_s: float = 3_600.0) -> tuple[int, int]:
    """How many payouts the bank has for so many Payments, and how many workers were killed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = BankFiles(folder)
        world = World(files.make()).open()
        world.fund("100.00")
        harness = PayoutHarness(world)
        made = [harness.send("0.50") for _ in range(payments)]

        def is_over() -> bool:
            return not any(harness.payout(created).status == "created" for created in made)

        kills = supervise(MODULE, world, folder, seed, chance, is_over, within_s)
        found = files.payout_bank().count_payouts(
            [
                payout_key(world.environment_id, created.payment.id, attempt)
                for created in made
                for attempt in (1, 2)
            ]
        )
        assert harness.offramp == 50 * payments, "the vault paid another amount"
        assert all(harness.books(created) == {"payer": -50, "bank": 50} for created in made)
        return found, kills


if __name__ == "__main__":
    sys.exit(main(__doc__, run, "payouts", PAYOUT_CALLS))
