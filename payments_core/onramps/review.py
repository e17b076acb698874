"""The decision on a bank transfer that has arrived: a table, whose first match applies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import attrs

from payments_core.clock import DAY, HOUR, Instant
from payments_core.engine.step import Step
from payments_core.onramps import lifecycle
from payments_core.onramps.record import BankTransaction, OnrampAccountStatus

HOLD_MS = 10 * DAY
"""For how long money is held for an account that cannot be credited, before it is sent back."""

LOOK_AGAIN_MS = 1 * HOUR

Verdict = Literal["keep", "refund", "hold", "deliver"]


@attrs.frozen(kw_only=True)
class Circumstances:
    """The facts about the account when its money has arrived."""

    onramp_status: OnrampAccountStatus
    account_status: str
    has_capability: bool


@attrs.frozen
class ReviewRule:
    """A rule: its condition, its decision, and the reason as a word for programs."""

    applies: Callable[[BankTransaction, Circumstances], bool]
    verdict: Verdict
    reason: str


RULES: tuple[ReviewRule, ...] = (
    ReviewRule(lambda it, now: it.type == "micro_deposit", "keep", "micro_deposit"),
    ReviewRule(lambda it, now: now.onramp_status != "active", "refund", "onramp_not_active"),
    ReviewRule(lambda it, now: now.account_status == "closed", "refund", "account_closed"),
    ReviewRule(lambda it, now: now.account_status != "active", "hold", "account_suspended"),
    ReviewRule(lambda it, now: not now.has_capability, "hold", "capability_not_active"),
    ReviewRule(lambda it, now: True, "deliver", ""),
)
"""The first match decides. Held money is reviewed again, and finally sent back."""


@attrs.frozen
class Review:
    """A transaction after its review, and when to look again; None if nothing is left to do."""

    step: Step[BankTransaction]
    next_run_at: Instant | None


def review(transaction: BankTransaction, known: Circumstances, *, now: Instant) -> Review:
    """Decide on money that has arrived and was not decided before."""
    rule = next(rule for rule in RULES if rule.applies(transaction, known))
    if rule.verdict == "keep":
        return Review(Step(transaction), None)
    if rule.verdict == "deliver":
        return Review(lifecycle.decide_delivery(transaction, now=now), now)
    held_at = transaction.held_at_ms
    has_waited = held_at is not None and now >= held_at + HOLD_MS
    if rule.verdict == "refund" or has_waited:
        return Review(lifecycle.decide_refund(transaction, rule.reason, now=now), now)
    step = lifecycle.hold(transaction, rule.reason, now=now)
    until = (step.record.held_at_ms or now) + HOLD_MS
    return Review(step, min(until, now + LOOK_AGAIN_MS))
