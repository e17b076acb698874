"""Whatever goes wrong between any two calls to the storage, the bank has one payout."""

from __future__ import annotations

import contextlib
import os

import pytest

from payments_core.clock import MINUTE
from payments_core.errors import PaymentsError
from payments_core.payments.details import PaymentDetails
from payments_core.service import PaymentsService
from payments_core.storage.port import CommitUnknown, StorageUnavailable
from tests.service.faults import (
    Crashed,
    Fault,
    FaultyStorage,
    commit_failed,
    commit_lost,
    crash,
    storage_away,
)
from tests.service.payments.payouts.payout_harness import PayoutHarness
from tests.service.world import World, atomic

CHANGING_CALLS = ("transact", "claim")
AMOUNT = "0.25"
STRIDE = 1 if "EVERY_CALL" in os.environ else 6
"""Every eighth call; together the faults meet most of them, and `make bank-faults` all."""


def work(world: World, service: PaymentsService) -> None:
    """A minute of a worker's life: from a new Payment to the bank, and a look or two."""
    with contextlib.suppress(Crashed, StorageUnavailable, CommitUnknown):
        worker = service.worker("sandbox")
        worker.run_through(world.clock.now() + MINUTE, world.clock.advance_to)


@pytest.mark.parametrize(
    ("fault", "first"), [(crash, 1), (commit_lost, 2), (commit_failed, 3), (storage_away, 4)]
)
def test_a_fault_at_any_call_leaves_one_payout(
    memory_harness: PayoutHarness, fault: Fault, first: int
) -> None:
    harness, world = memory_harness, memory_harness.world
    paid: list[PaymentDetails] = []
    for at in range(first, 1_000, STRIDE):
        created = harness.send(AMOUNT)
        paid.append(created)
        storage = FaultyStorage(world.storage, at, fault, CHANGING_CALLS)
        work(world, world.restarted(storage))
        world.system.advance(120)  # the lease of a worker that died
        world.run()
        world.advance(60)
        assert harness.payout(created).status == "submitted", at
        assert harness.books(created) == {"payer": -25, "bank": 25}
        assert harness.causes(created) == ["send", "payout_submitted"]
        if not storage.had_its_fault:
            break
    else:
        raise AssertionError("the work never ended")
    assert len(paid) > 5
    keys = [harness.payout(created).key for created in paid]
    assert harness.bank.count_payouts(keys) == len(paid)
    assert harness.offramp == 25 * len(paid)
    assert world.held()[0] == atomic("100") - len(paid) * atomic(AMOUNT)


@pytest.mark.parametrize(("fault", "first"), [(crash, 2), (commit_lost, 4)])
def test_a_fault_at_any_call_of_a_refund_brings_the_funds_back_once(
    memory_harness: PayoutHarness, fault: Fault, first: int
) -> None:
    harness, world = memory_harness, memory_harness.world
    for at in range(first, 1_000, STRIDE):
        created = harness.submitted(AMOUNT)
        harness.bank.return_payout(harness.payout(created).key, "R02")
        storage = FaultyStorage(world.storage, at, fault, CHANGING_CALLS)
        broken = world.restarted(storage)
        world.system.advance(3_600)
        work(world, broken)
        with contextlib.suppress(Crashed, PaymentsError):
            broken.acting_as(world.server).payments.reconcile(created.payment.id, "refund")
        work(world, broken)
        world.system.advance(3_600)
        world.run()
        if harness.payment(created).status == "action_required" and not harness.refunds(created):
            world.reconcile(created, "refund")
        world.finish()
        assert harness.payment(created).status == "refunded", at
        assert harness.books(created) == {}
        assert len(harness.refunds(created)) == 1
        if not storage.had_its_fault:
            break
    assert (harness.offramp, world.held()) == (0, (atomic("100"), 0, atomic("100")))
