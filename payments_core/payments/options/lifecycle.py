"""The states of an option (contract §6 "Option"), and the pure steps through them."""

from __future__ import annotations

from typing import Any

from payments_core.clock import SECOND, Instant
from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.engine.step import Step
from payments_core.errors import (
    ActionAlreadyUsed,
    ActionExpired,
    ActionInvalid,
    InvalidState,
    OptionExpired,
    OptionSuperseded,
)
from payments_core.evolve import evolve
from payments_core.payments.options.record import Option

ACTION_TTL_MS = 300 * SECOND

OPTION = StateMachine(
    "payment option",
    (
        Transition(
            None, "create", "creating", why="The service requests an offer from a provider."
        ),
        Transition(
            None,
            "offer",
            "pending",
            why="A vault needs no provider, so the offer is available at once.",
        ),
        Transition("creating", "offer", "pending", why="The provider made an offer."),
        Transition("creating", "fail", "failed", why="The provider made no offer."),
        Transition("pending", "fund", "processing", why="Funds are on their way."),
        Transition("pending", "expire", "expired", why="The offer expired."),
        Transition(
            "pending",
            "cancel",
            "cancelled",
            why="The Payment was cancelled, or it is covered and accepts no more funds.",
        ),
        Transition("pending", "fail", "failed", why="The provider withdrew the offer."),
        Transition("processing", "verify", "succeeded", why="The receipt is proven and final."),
        Transition("processing", "fail", "failed", why="The funds will not arrive."),
        Transition("processing", "expire", "expired", why="The authorization expired."),
        Transition(
            "processing",
            "reopen",
            "pending",
            why="A reorg removed the receipt, or a direct receipt did not cover the amount.",
        ),
    ),
    terminal=("succeeded", "expired", "failed", "cancelled"),
    actions={"offer": "create", "fund": "authorize"},
)

SELECTION = StateMachine(
    "option selection",
    (
        Transition(None, "select", "selected", why="Creating a Vault option selects it."),
        *transitions_from(
            ("selected",), "supersede", "superseded", why="Another option was selected."
        ),
    ),
    terminal=("superseded",),
)


def apply_trigger(option: Option, trigger: str, *, now: Instant, **changes: Any) -> Step[Option]:
    """The option after `trigger`, with `changes`. Raises InvalidState."""
    row = OPTION.step(option.status, trigger)
    return Step(evolve(option, status=row.target, updated_at=now, **changes))


def supersede(option: Option, *, now: Instant) -> Step[Option]:
    """Another option was selected: this option's action is void, a late receipt still matches."""
    row = SELECTION.step(option.selection_status, "supersede")
    after = evolve(
        option,
        selection_status=row.target,
        action_id=None,
        action_expires_at=None,
        updated_at=now,
    )
    return Step(after)


def refresh(option: Option, action_id: str, required: int, *, now: Instant) -> Step[Option]:
    """The option with a new one-time action, for the amount that the Payment now requires.

    The old action becomes void. Raises OptionSuperseded, OptionExpired, InvalidState.
    """
    _require_open(option)
    if option.status != "pending":
        raise InvalidState("payment option", option.status, "refresh")
    after = evolve(
        option,
        required=required,
        action_id=action_id,
        action_expires_at=min(now + ACTION_TTL_MS, option.expires_at),
        updated_at=now,
    )
    return Step(after)


def require_live_action(option: Option, action_id: str, *, now: Instant) -> None:
    """Raise unless `action_id` is the option's live action.

    Raises OptionSuperseded, OptionExpired, ActionAlreadyUsed, InvalidState (it was cancelled),
    ActionInvalid, ActionExpired.
    """
    _require_open(option)
    if action_id in option.used_action_ids:
        raise ActionAlreadyUsed()
    if option.status == "cancelled":
        raise InvalidState("payment option", option.status, "authorize")
    if option.action_id is None or option.action_expires_at is None:
        raise ActionInvalid()
    if action_id != option.action_id:
        raise ActionInvalid()
    if now >= option.action_expires_at:
        raise ActionExpired(option.action_expires_at)


def consume_action(option: Option, *, now: Instant) -> Step[Option]:
    """The option with its action used up and funds on their way. Raises InvalidState."""
    assert option.action_id is not None
    return apply_trigger(
        option,
        "fund",
        now=now,
        used_action_ids=(*option.used_action_ids, option.action_id),
        action_id=None,
        action_expires_at=None,
    )


def close(option: Option, trigger: str, *, now: Instant) -> Step[Option]:
    """The option expired, cancelled or failed, its action void; a terminal one stays as it is."""
    if option.status in OPTION.terminal:
        return Step(option)
    return apply_trigger(option, trigger, now=now, action_id=None, action_expires_at=None)


def _require_open(option: Option) -> None:
    if option.selection_status == "superseded":
        raise OptionSuperseded(option.id)
    if option.status == "expired":
        raise OptionExpired()
