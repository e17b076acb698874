"""The states of a mandate, and the amounts drawn on it in each period. Pure."""

from __future__ import annotations

from datetime import date, timedelta
from typing import cast

from payments_core.clock import DAY, Instant
from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.engine.step import Step
from payments_core.errors import PolicyDenied
from payments_core.evolve import evolve
from payments_core.payments.mandates.record import Mandate, MandateStatus, Period

MANDATE = StateMachine(
    "mandate",
    (
        Transition(None, "create", "active", why="The account's approval was recorded."),
        Transition(
            "active",
            "collect",
            "active",
            why="A Payment uses a part of the current period's amount.",
        ),
        Transition(
            "active", "expire", "expired", why="The mandate expired; this change is not stored."
        ),
        *transitions_from(
            ("active", "expired"), "revoke", "revoked", why="The approval was revoked."
        ),
    ),
    terminal=("revoked",),
)

_EPOCH = date(1970, 1, 1)


def status_of(mandate: Mandate, now: Instant) -> str:
    """The status at an instant: an active mandate has expired from `expires_at` on."""
    if (
        mandate.status == "active"
        and mandate.expires_at_ms is not None
        and now >= mandate.expires_at_ms
    ):
        return MANDATE.step(mandate.status, "expire").target
    return mandate.status


def remaining(mandate: Mandate, now: Instant) -> int:
    """What may still be drawn in the current period; nothing once it is revoked or expired."""
    if not MANDATE.allows(status_of(mandate, now), "collect"):
        return 0
    return max(0, mandate.amount_per_period_atomic - _charged_amount(mandate, now))


def charge(mandate: Mandate, amount: int, *, now: Instant) -> Step[Mandate]:
    """The mandate with `amount` drawn in the current period.

    Raises InvalidState if it is revoked or expired, and PolicyDenied beyond what remains.
    """
    MANDATE.step(status_of(mandate, now), "collect")
    if amount > remaining(mandate, now):
        raise PolicyDenied("amountPerPeriod")
    after = evolve(
        mandate,
        period_start_ms=_charge_period(mandate, now),
        drawn_atomic=_charged_amount(mandate, now) + amount,
        updated_at_ms=now,
    )
    return Step(after)


def void_charge(mandate: Mandate, amount: int, *, charged_at: Instant) -> Step[Mandate]:
    """The mandate after a failed collection.

    A draw of an earlier period is over, and nothing is taken off the current period for it.
    """
    if period_start(mandate.period, charged_at) != mandate.period_start_ms:
        return Step(mandate)
    return Step(evolve(mandate, drawn_atomic=max(0, mandate.drawn_atomic - amount)))


def revoke(mandate: Mandate, *, now: Instant) -> Step[Mandate]:
    """The mandate, revoked. Raises InvalidState if it was already revoked."""
    row = MANDATE.step(status_of(mandate, now), "revoke")
    status = cast(MandateStatus, row.target)
    return Step(evolve(mandate, status=status, revoked_at_ms=now, updated_at_ms=now))


def period_start(period: Period, instant: Instant) -> Instant:
    """When the calendar's day, week or month of an instant began, in UTC; weeks on Monday."""
    day = instant // DAY
    if period == "week":
        day -= (_EPOCH.weekday() + day) % 7
    if period == "month":
        day = ((_EPOCH + timedelta(days=day)).replace(day=1) - _EPOCH).days
    return day * DAY


def _charged_amount(mandate: Mandate, now: Instant) -> int:
    """The period and the amount that count now.

    If the clock has stepped back, the newer period's count continues; a period further ahead
    was drawn under a wrong clock, and is ignored.
    """
    return mandate.drawn_atomic if mandate.period_start_ms == _charge_period(mandate, now) else 0


def _charge_period(mandate: Mandate, now: Instant) -> Instant:
    """The period that a draw counts towards, by its start."""
    tomorrows = period_start(mandate.period, now + DAY)
    if mandate.period_start_ms == tomorrows:
        return tomorrows
    return period_start(mandate.period, now)
