"""What becomes of receipts that were seen before their transfer failed for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from payments_core.chains.port import TransactionView
from payments_core.payments.receipts.record import Receipt
from tests.service.faults import FaultyChain
from tests.service.world import BASE, World


class Reorganised(FaultyChain):
    """A node on whose chain a transfer first succeeds, and after a reorganisation fails."""

    def __init__(self, world: World) -> None:
        super().__init__(world.chain, 0, lambda call: call())
        self.reorganised = False

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        return {hash: self.transaction(hash) for hash in hashes}

    def transaction(self, hash: str) -> TransactionView | None:
        view = super().transaction(hash)
        if view is None or not self.reorganised:
            return view
        return attrs.evolve(view, succeeded=False, logs=())


def test_receipts_of_a_transfer_that_fails_in_the_end_are_rejected(memory_world: World) -> None:
    world = memory_world
    chain = Reorganised(world)
    option = world.authorized()
    world.service = world.restarted(chains={BASE: chain})
    world.run()
    world.advance(1)
    [id] = world.receipt_ids(option)
    seen = world.get(Receipt, id)
    assert (seen.status, seen.rejection_reason) == ("observed", None)
    chain.reorganised = True
    world.finish()
    assert world.operation_now(option).failure == "transaction_failed"
    assert world.receipt_ids(option) == [id]
    after = world.get(Receipt, id)
    assert (after.status, after.rejection_reason) == ("rejected", "transaction_failed")
    assert after.verified_at_ms is None
