"""The states of a receipt (contract §6 "Receipts"), and the pure steps through them."""

from __future__ import annotations

from payments_core.clock import Instant
from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.payments.receipts.record import Reason, Receipt

RECEIPT = StateMachine(
    "receipt",
    (
        Transition(
            None, "observe", "observed", why="The transfer is in a block that is not final."
        ),
        Transition("observed", "verify", "verified", why="The transfer is valid, and final."),
        *transitions_from(
            ("observed", "reorged"),
            "reject",
            "rejected",
            why="The final transaction does not prove the payment, or it failed.",
        ),
        *transitions_from(
            ("observed", "verified", "rejected"),
            "reorg",
            "reorged",
            why="A reorg removed the block, and the transfer is no longer in its place.",
        ),
        Transition("reorged", "observe", "observed", why="The transaction was included again."),
    ),
    terminal=(),
)


def mark_verified(receipt: Receipt, counted: int, now: Instant) -> Step[Receipt]:
    """The receipt proven, and how much of it the release may take."""
    row = RECEIPT.step(receipt.status, "verify")
    return Step(
        evolve(receipt, status=row.target, counted_atomic=Atomic(counted), verified_at_ms=now)
    )


def mark_rejected(receipt: Receipt, reason: Reason) -> Step[Receipt]:
    """The receipt, final and rejected."""
    row = RECEIPT.step(receipt.status, "reject")
    return Step(evolve(receipt, status=row.target, rejection_reason=reason))


def mark_reobserved(receipt: Receipt) -> Step[Receipt]:
    """The receipt of a log that came back, to be judged again."""
    row = RECEIPT.step(receipt.status, "observe")
    return Step(evolve(receipt, status=row.target))


def mark_reorged(receipt: Receipt) -> Step[Receipt]:
    """The receipt of a log that the chain undid; its key is free for it to come back."""
    row = RECEIPT.step(receipt.status, "reorg")
    after = evolve(
        receipt,
        status=row.target,
        counted_atomic=Atomic(0),
        rejection_reason=None,
        verified_at_ms=None,
    )
    return Step(after)
