"""The states of an option (contract §6 "Option"), and the pure steps through them.

The steps are those of every method; where methods differ, `METHODS` says how.
"""

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
from payments_core.money import Atomic
from payments_core.payments.options.methods import METHODS
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment
from payments_core.payments.transitions import OPEN

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


def apply_trigger(
    option: PaymentOption, trigger: str, *, now: Instant, **changes: Any
) -> Step[PaymentOption]:
    """The option after `trigger`, with `changes`. Raises InvalidState."""
    row = OPTION.step(option.status, trigger)
    return Step(evolve(option, status=row.target, updated_at_ms=now, **changes))


def is_open(option: PaymentOption) -> bool:
    """Whether a payer may still use it."""
    return option.status not in OPTION.terminal and option.selection_status != "superseded"


def require_open(option: PaymentOption, action: str) -> None:
    """Raise OptionSuperseded, OptionExpired or InvalidState if the option can no longer be used."""
    _require_current(option)
    if option.status in OPTION.terminal:
        raise InvalidState("payment option", option.status, action)


def select(option: PaymentOption, *, now: Instant) -> Step[PaymentOption]:
    """The option, selected by the payer. Raises as `require_open`."""
    require_open(option, "select")
    row = SELECTION.step(option.selection_status, "select")
    return Step(evolve(option, selection_status=row.target, updated_at_ms=now))


def supersede(option: PaymentOption, *, now: Instant) -> Step[PaymentOption]:
    """Another option was selected: this option's action is void, a late receipt still matches."""
    row = SELECTION.step(option.selection_status, "supersede")
    after = evolve(
        option,
        selection_status=row.target,
        action_id=None,
        action_expires_at_ms=None,
        updated_at_ms=now,
    )
    return Step(after)


def refresh(
    option: PaymentOption, payment: Payment, *, now: Instant, action_id: str | None = None
) -> Step[PaymentOption]:
    """The option for the amount that now remains of the Payment, with a new one-time action.

    The old action becomes void. Raises as `require_open`, and InvalidState while funds are on
    their way.
    """
    require_open(option, "refresh")
    if option.status != "pending":
        raise InvalidState("payment option", option.status, "refresh")
    after = evolve(
        option,
        required_atomic=Atomic(option.paid_atomic + payment.remaining.amount_atomic),
        action_id=action_id,
        action_expires_at_ms=(
            None if action_id is None else min(now + ACTION_TTL_MS, option.expires_at_ms)
        ),
        updated_at_ms=now,
    )
    return Step(after)


def require_live_action(option: PaymentOption, action_id: str, *, now: Instant) -> None:
    """Raise unless `action_id` is the option's live action.

    Raises OptionSuperseded, OptionExpired, ActionAlreadyUsed, InvalidState (it was cancelled),
    ActionInvalid, ActionExpired.
    """
    _require_current(option)
    if action_id in option.used_action_ids:
        raise ActionAlreadyUsed()
    if option.status == "cancelled":
        raise InvalidState("payment option", option.status, "authorize")
    if option.action_id is None or option.action_expires_at_ms is None:
        raise ActionInvalid()
    if action_id != option.action_id:
        raise ActionInvalid()
    if now >= option.action_expires_at_ms:
        raise ActionExpired(option.action_expires_at_ms)


def consume_action(option: PaymentOption, *, now: Instant) -> Step[PaymentOption]:
    """The option with its action used up and funds on their way. Raises InvalidState."""
    assert option.action_id is not None
    return apply_trigger(
        option,
        "fund",
        now=now,
        used_action_ids=(*option.used_action_ids, option.action_id),
        action_id=None,
        action_expires_at_ms=None,
    )


def apply_observation(
    option: PaymentOption,
    before: Payment,
    after: Payment,
    tracked_id: str,
    gained: int,
    now: Instant,
) -> Step[PaymentOption]:
    """The option after an observation of one of its transactions, and the changed Payment.

    `gained` is the amount that the observation proved, negative if it was taken back. An ended
    option keeps its state: late receipts are still recorded. It succeeds with all that it required,
    or with an amount that covers the Payment.
    """
    known = tuple(id for id in (*option.sighted, tracked_id) if id in after.sighted)
    sighted = tuple(dict.fromkeys(known))
    paid = option.paid_atomic + gained
    if (sighted, gained) == (option.sighted, 0):
        return Step(option)
    status = option.status
    if status == "pending" and (sighted or gained > 0):
        status = OPTION.step(status, "fund").target
    if status == "processing":
        covers = before.status in OPEN and after.counted_atomic >= after.required_atomic
        if gained > 0 and (covers or paid >= option.required_atomic):
            status = OPTION.step(status, "verify").target
        elif not sighted:
            status = OPTION.step(status, "reopen").target
    option = evolve(
        option, status=status, paid_atomic=Atomic(paid), sighted=sighted, updated_at_ms=now
    )
    return Step(option)


def close(option: PaymentOption, trigger: str, *, now: Instant) -> Step[PaymentOption]:
    """The option expired, cancelled or failed, its action void; unchanged if it cannot end so."""
    if not OPTION.allows(option.status, trigger):
        return Step(option)
    return apply_trigger(option, trigger, now=now, action_id=None, action_expires_at_ms=None)


def close_with_payment(option: PaymentOption, trigger: str, *, now: Instant) -> Step[PaymentOption]:
    """The option when its Payment expires or is cancelled, as `ends_processing` of its method says
    if funds are on their way. One whose offer was not made yet has failed."""
    if option.status == "creating":
        return close(option, "fail", now=now)
    if option.status == "processing":
        ends = METHODS[option.method].ends_processing
        return close(option, ends[trigger], now=now) if trigger in ends else Step(option)
    return close(option, trigger, now=now)


def _require_current(option: PaymentOption) -> None:
    if option.selection_status == "superseded":
        raise OptionSuperseded(option.id)
    if option.status == "expired":
        raise OptionExpired()
