"""The states of a transfer that sends misdirected funds back. Pure."""

from __future__ import annotations

from typing import Any

from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.evolve import evolve
from payments_core.misdirected.record import SentBack

SENDING_BACK = StateMachine(
    "return of misdirected funds",
    (
        Transition(None, "create", "created", why="The return was requested; nothing has moved."),
        Transition("created", "submit", "submitted", why="Its transfer was sent."),
        Transition(
            "submitted",
            "continue",
            "created",
            why="A deposit's funds are in the vault; another transfer pays them from there.",
        ),
        Transition("submitted", "confirm", "succeeded", why="Its transfer is proven and final."),
        Transition("submitted", "fail", "failed", why="Its transfer failed permanently."),
        Transition(
            "created",
            "withdraw",
            "failed",
            why="A reorg undid the transfer that brought the funds, before the return was signed.",
        ),
        Transition(
            "created",
            "hold",
            "created",
            why="Screening has not cleared the destination; the transfer waits, unsigned.",
        ),
        Transition(
            "created",
            "pass",
            "created",
            why="Screening has cleared the destination; the transfer is signed.",
        ),
        Transition(
            "created",
            "block",
            "failed",
            why="Screening has blocked the destination; nothing was signed.",
        ),
        *transitions_from(
            ("succeeded",),
            "reorg",
            "failed",
            why="A reorg beyond finality undid the transfer, and it failed when it was sent again.",
        ),
    ),
    terminal=("failed",),
)


def create(outgoing_id: str, destination: str, **given: Any) -> SentBack:
    """A requested return."""
    row = SENDING_BACK.step(None, "create")
    return SentBack(outgoing_id=outgoing_id, destination=destination, status=row.target, **given)


def apply_trigger(sent_back: SentBack, trigger: str, **changes: Any) -> SentBack:
    """The return after `trigger`, with `changes`. Raises InvalidState."""
    row = SENDING_BACK.step(sent_back.status, trigger)
    return evolve(sent_back, status=row.target, in_review=trigger == "hold", **changes)
