"""The table of a Payment's states (contract §6): its transitions, and nothing else."""

from __future__ import annotations

from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.evolve import evolve

OPEN = ("awaiting_payment", "processing")
"""The states in which a payer can still act."""

IN_REVIEW = "in_review"
"""The one label that ends: with the status in which it was added, or once screening clears."""

CLOSED_EMPTY = ("expired", "cancelled")
"""The states of a Payment that ended with nothing received."""

RELEASE_SENT = ("executing", "succeeded", "partially_refunded", "refunded")
"""The states in which the release, if there was one, can no longer be stopped."""

_UNSIGNED = ("accepted", "processing", "executing")
"""The states in which the transfer to the recipient may wait for its signature: the first, a
send's, and one that the partner requested again."""

_SETTLING = ("accepted", *RELEASE_SENT, "action_required")
_CLOSED_LATE = (*CLOSED_EMPTY, "failed")
_REFUNDED = ("partially_refunded", "refunded")
_ANY = (*OPEN, *_SETTLING, *_CLOSED_LATE)

_CREATION = (
    Transition(
        None,
        "create",
        "awaiting_payment",
        emits="payment.created",
        why="Nothing has moved; the escrow address is ready to receive funds.",
    ),
    Transition(
        None,
        "create_drawn",
        "processing",
        emits="payment.created",
        why="The Payment is a send or a collect, and the vault's funds are reserved.",
    ),
)

_COLLECTION = (
    *transitions_from(
        ("awaiting_payment",),
        "attempt",
        "processing",
        emits="payment.processing",
        why="An authorization was recorded, or a receipt was found that is not final.",
    ),
    *transitions_from(
        ("processing",),
        "attempt_ended",
        "awaiting_payment",
        why="The attempt failed or a reorg removed its receipt, and nothing else is pending.",
    ),
    *transitions_from(
        OPEN,
        "covered",
        "accepted",
        emits="payment.accepted",
        why="Verified receipts cover the amount, less the tolerance.",
    ),
    *transitions_from(
        OPEN,
        "short",
        "awaiting_payment",
        emits="payment.underpaid",
        label="underpaid",
        why="Verified receipts do not cover the amount, and nothing else is pending.",
    ),
    Transition(
        "processing",
        "short_and_pending",
        "processing",
        emits="payment.underpaid",
        label="underpaid",
        why="Verified receipts do not cover the amount, and another attempt is pending.",
    ),
    Transition(
        "processing",
        "draw_failed",
        "action_required",
        emits="payment.action_required",
        label="execution_failed",
        why="The vault's transfer of a send or a collect failed permanently; no funds moved.",
    ),
    Transition(
        "awaiting_payment",
        "expire",
        "expired",
        emits="payment.expired",
        why="The Payment expired and nothing was received.",
    ),
    Transition(
        "awaiting_payment",
        "expire_short",
        "action_required",
        emits="payment.action_required",
        label="underpaid",
        why="The Payment expired and a part of the amount was received.",
    ),
    *transitions_from(
        OPEN,
        "cancel",
        "cancelled",
        emits="payment.cancelled",
        why="The Payment was cancelled before anything was received or broadcast.",
    ),
)

_EXECUTION = (
    Transition(
        "accepted",
        "release",
        "executing",
        emits="payment.executing",
        why="The release from escrow was submitted.",
    ),
    Transition(
        "processing",
        "submit",
        "executing",
        emits="payment.executing",
        why="A send's transfer was submitted.",
    ),
    Transition(
        "executing",
        "settle",
        "succeeded",
        emits="payment.succeeded",
        why="The release is final on chain, or the bank settled the payout.",
    ),
    Transition(
        "executing",
        "release_failed",
        "action_required",
        emits="payment.action_required",
        label="execution_failed",
        why="The release was rejected, reverted or returned; the funds are where they were before.",
    ),
    *transitions_from(
        _UNSIGNED,
        "hold",
        None,
        emits="payment.in_review",
        label=IN_REVIEW,
        why="Screening has not cleared whom the transfer concerns; it waits, unsigned.",
    ),
    *transitions_from(
        _UNSIGNED,
        "pass",
        None,
        why="Screening has cleared whom the held transfer concerns; it is signed.",
    ),
    *transitions_from(
        _UNSIGNED,
        "block",
        "action_required",
        emits="payment.action_required",
        label="blocked",
        why="Screening has blocked whom the transfer concerns; nothing was signed.",
    ),
    Transition(
        "succeeded",
        "payout_returned",
        "action_required",
        emits="payment.action_required",
        label="returned",
        why="The bank returned the payout.",
    ),
)

_FURTHER_RECEIPTS = (
    *transitions_from(
        CLOSED_EMPTY,
        "late_receipt",
        "action_required",
        emits="payment.action_required",
        label="late",
        why="A receipt was verified within the monitoring window.",
    ),
    *transitions_from(
        _CLOSED_LATE,
        "receipt_after_window",
        None,
        emits="payment.late",
        label="late",
        why="A receipt was verified after the window; it can be refunded.",
        opens=True,
    ),
    Transition(
        "action_required",
        "further_receipt",
        "action_required",
        emits="payment.late",
        label="late",
        why="Another receipt was verified while the Payment waits for a decision.",
    ),
    *transitions_from(
        (*_SETTLING, *_CLOSED_LATE),
        "overpaid",
        None,
        emits="payment.overpaid",
        label="overpaid",
        why="The verified receipts exceed the amount; the excess stays in escrow.",
        opens=True,
    ),
    *transitions_from(
        (*_SETTLING, *_CLOSED_LATE),
        "duplicate",
        None,
        emits="payment.overpaid",
        label="duplicate",
        why="A second payment of the whole amount was received.",
        opens=True,
    ),
    Transition(
        "accepted",
        "completed",
        "accepted",
        emits="payment.accepted",
        why="The transaction that covered the amount within the tolerance proved more of it.",
    ),
    *transitions_from(
        (*_SETTLING, *_CLOSED_LATE),
        "missed_release",
        None,
        emits="payment.late",
        label="late",
        why="The rest of the amount was proven after a part was released; it can only be refunded.",
        opens=True,
    ),
    *transitions_from(
        ("processing", *RELEASE_SENT, "action_required", "failed"),
        "funds_returned",
        None,
        emits="payment.late",
        label="returned",
        why="The recipient of a payment from a vault sent funds back; they go to that vault.",
    ),
    *transitions_from(
        ("processing", *RELEASE_SENT, "action_required", "failed"),
        "return_reorged",
        None,
        emits="payment.reorged",
        why="A reorg undid the funds that were sent back.",
    ),
    *transitions_from(
        ("accepted", *RELEASE_SENT),
        "receipt_returned",
        None,
        emits="payment.reorged",
        why="A reorg had removed a receipt after a release or a refund; it was verified again.",
    ),
    *transitions_from(
        ("accepted", "executing"),
        "cover_reorged",
        "action_required",
        emits="payment.action_required",
        label="reorged",
        why="Before the release was sent, a reorg removed a receipt, whose funds are missing.",
    ),
    *transitions_from(
        _ANY,
        "receipt_reorged",
        None,
        emits="payment.reorged",
        label="reorged",
        why="A reorg removed a verified receipt; no release can be stopped, or none needs to be.",
    ),
)

_MISDIRECTED = (
    *transitions_from(
        _ANY,
        "misdirected",
        None,
        emits="payment.misdirected",
        label="misdirected",
        why="Another token, or the token on another chain, is at the escrow and does not count.",
        opens=True,
    ),
    *transitions_from(
        _ANY,
        "misdirected_reorged",
        None,
        emits="payment.reorged",
        why="A reorg undid the transfer of misdirected funds.",
    ),
    *transitions_from(
        _ANY,
        "return_misdirected",
        None,
        emits="payment.reconciled",
        why="Misdirected funds were sent back on their own chain; the status stays.",
        closes="unless_held",
    ),
)

_RECONCILIATION = (
    Transition(
        "action_required",
        "reconcile_accept",
        "accepted",
        emits="payment.reconciled",
        why="The partner accepted the received amount.",
        closes="unless_held",
    ),
    Transition(
        "action_required",
        "retry_execution",
        "executing",
        emits="payment.reconciled",
        why="The partner requested the release again.",
        closes="unless_held",
    ),
    Transition(
        "action_required",
        "reconcile_refund",
        "refunded",
        emits="payment.reconciled",
        why="All received funds were sent back.",
        closes="unless_held",
    ),
    *transitions_from(
        _CLOSED_LATE,
        "reconcile_refund",
        None,
        emits="payment.reconciled",
        why="The funds received after the end were sent back; the final status stays.",
        closes="unless_held",
    ),
    Transition(
        "action_required",
        "write_off",
        "failed",
        emits="payment.reconciled",
        why="The partner wrote the Payment off.",
        closes="always",
    ),
    *transitions_from(
        (*_SETTLING, *_CLOSED_LATE),
        "refund_excess",
        None,
        emits="payment.reconciled",
        why="The excess was sent back.",
        closes="unless_held",
    ),
)

_REFUNDS = (
    *transitions_from(
        ("succeeded", "partially_refunded"),
        "refund_part",
        "partially_refunded",
        emits="payment.refunded",
        why="A partial refund is final.",
    ),
    *transitions_from(
        ("action_required", "refunded", *_CLOSED_LATE),
        "refund_part",
        None,
        emits="payment.refunded",
        why="A refund is final, and the status stays.",
        closes="unless_held",
    ),
    *transitions_from(
        ("succeeded", "partially_refunded", "action_required"),
        "refund_all",
        "refunded",
        emits="payment.refunded",
        why="All received funds were sent back.",
        closes="unless_held",
    ),
)

_REVERSALS = (
    *transitions_from(
        ("executing", "succeeded", "refunded", "action_required", "failed"),
        "offramp_reorged",
        None,
        emits="payment.reorged",
        label="reorged",
        why="A reorg beyond finality undid the transfer to the off-ramp address; no payout can be"
        " stopped.",
    ),
    *transitions_from(
        ("succeeded", *_REFUNDED),
        "release_reorged",
        "action_required",
        emits="payment.action_required",
        label="reorged",
        why="A reorg undid the transfer to the recipient, and it failed when it was sent again.",
    ),
    *transitions_from(
        ("accepted", "executing", "succeeded", "action_required", *_CLOSED_LATE),
        "refund_reorged",
        None,
        emits="payment.reorged",
        label="reorged",
        why="A reorg undid a refund, and it failed when it was sent again.",
    ),
    Transition(
        "refunded",
        "refund_reorged_held",
        "action_required",
        emits="payment.action_required",
        label="reorged",
        why="As for `refund_reorged`; the refunded amount is held again.",
    ),
    *transitions_from(
        _REFUNDED,
        "refund_reorged_partly",
        "partially_refunded",
        emits="payment.reorged",
        label="reorged",
        why="As for `refund_reorged`; the recipient has a part of the released amount.",
    ),
    *transitions_from(
        _REFUNDED,
        "refund_reorged_wholly",
        "succeeded",
        emits="payment.reorged",
        label="reorged",
        why="As for `refund_reorged`; the recipient has the whole released amount.",
    ),
)

_ROWS = (
    *_CREATION,
    *_COLLECTION,
    *_EXECUTION,
    *_FURTHER_RECEIPTS,
    *_MISDIRECTED,
    *_RECONCILIATION,
    *_REFUNDS,
    *_REVERSALS,
)

PAYMENT = StateMachine(
    "payment",
    (  # what leads to `action_required`, or stays there, leaves something to decide
        evolve(row, opens=True, closes=None) if row.target == "action_required" else row
        for row in _ROWS
    ),
    terminal=("failed",),
    actions={
        "create_drawn": "create",
        "attempt": "pay",
        "reconcile_accept": "accept",
        "reconcile_refund": "refund",
        "refund_part": "refund",
        "refund_all": "refund",
    },
)
