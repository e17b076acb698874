"""What is in time and what is late, by the simulated chains' own blocks (contract §6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from payments_core.chains.simulated.records import SimulatedTransaction
from payments_core.clock import Instant
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.transitions import OPEN
from payments_core.storage.port import SIMULATED
from tests.service.model.index import Wrong
from tests.service.model.mirror import Commit
from tests.service.model.model_world import ModelWorld

if TYPE_CHECKING:
    from tests.service.model.onchain import ChainIndex

_ENDS = ("expired", "action_required")
"""What becomes of a Payment whose time is over."""


def what_came_in_time_is_counted_before_the_end(
    world: ModelWorld, index: ChainIndex, commit: Commit
) -> Wrong:
    """A Payment ends by time only after everything that the chain has in time was counted."""
    for before, after in commit.replaced(Payment):
        is_end = before.status == "awaiting_payment" and after.status in _ENDS
        if not is_end or world.is_shaken(after):
            continue
        came = sum(amount for at, amount in _paid(world, after) if at <= after.expires_at_ms)
        if came > after.received_atomic:
            yield f"{after.id} ended with {after.received_atomic}, and {came} had come in time"


def nothing_late_is_taken_for_a_payment_in_time(
    world: ModelWorld, index: ChainIndex, commit: Commit
) -> Wrong:
    """A stranger's transfer after the expiry finds the Payment ended; others were authorized."""
    open_before = {b.id: b for b, _ in commit.replaced(Payment) if b.status in OPEN}
    rows = world.mirror.all(SIMULATED, SimulatedTransaction)
    for before, after in commit.replaced(Receipt):
        payment = open_before.get(after.payment_id)
        row = rows.get(f"{after.chain_id}:{after.transaction_hash}")
        if before.status == "verified" or after.status != "verified" or None in (payment, row):
            continue
        assert payment is not None
        assert row is not None
        if _time(row) > payment.expires_at_ms and after.transaction_hash not in index.outgoing:
            yield f"{after.id} came after the end of {payment.id}, and was counted before it"


def what_came_in_time_is_not_late(world: ModelWorld, index: ChainIndex, commit: Commit) -> Wrong:
    """An expired Payment that becomes late has something that came late."""
    for before, after in commit.replaced(Payment):
        if before.status != "expired" or set(after.labels) & {"late"} <= set(before.labels):
            continue
        if world.is_shaken(after):
            continue
        if not any(at > after.expires_at_ms for at, _ in _paid(world, after)):
            yield f"{after.id} is late, and all that it received came in time"


def _paid(world: ModelWorld, payment: Payment) -> Iterator[tuple[Instant, int]]:
    """When the chain has what pays a Payment, and how much each time."""
    for row in world.mirror.all(SIMULATED, SimulatedTransaction).values():
        for log in row.logs:
            if (row.chain_id, log.token_address, log.recipient) == (
                payment.chain_id,
                payment.asset.address,
                payment.escrow_address,
            ):
                yield _time(row), int(log.amount_atomic)


def _time(row: SimulatedTransaction) -> Instant:
    assert row.included_at_ms is not None
    return row.included_at_ms


TIME_INVARIANTS = (
    what_came_in_time_is_counted_before_the_end,
    nothing_late_is_taken_for_a_payment_in_time,
    what_came_in_time_is_not_late,
)
