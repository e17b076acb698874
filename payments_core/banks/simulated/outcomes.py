"""The course of a request at the simulated bank: pure, from the tables of the rails."""

from __future__ import annotations

import re
from datetime import date

from payments_core.banks.payouts import BankPayout, BankPayoutStatus
from payments_core.banks.port import BankAccountDetails, BankRefused, PayoutOrder
from payments_core.banks.rails import SERVICES, choose_service
from payments_core.banks.return_codes import RETURN_CODES, HolderType, return_deadline
from payments_core.banks.reviews import BankReview, BankReviewStatus
from payments_core.banks.routing_numbers import find_routing_number_fault
from payments_core.banks.settlement import plan_settlement
from payments_core.banks.simulated.records import (
    SimulatedBankNotice,
    SimulatedPayout,
    SimulatedReview,
)
from payments_core.banks.texts import find_holder_fault, find_statement_fault
from payments_core.clock import DAY, HOUR, MINUTE, Instant
from payments_core.evolve import evolve

RETURNING_ACCOUNT = re.compile(r"999000([0-9]{2})", re.ASCII)
"""Account numbers whose ACH payouts come back: 99900003 with R03, 99900010 with R10, and so on."""

BY_AGREEMENT_AFTER = 10 * DAY
"""When the simulated bank makes returns without a deadline, counted from settlement."""

NOTICE_DELAYS: dict[BankPayoutStatus, tuple[Instant, ...]] = {
    "settled": (0, HOUR),
    "returned": (15 * MINUTE, DAY),
}
"""When the notices of an event come, counted from it: late, and twice. Thus callers rely on no
more than the port promises."""

_ACCOUNT_NUMBER = re.compile(r"[0-9]{4,17}", re.ASCII)


REVIEW_TAKES = 1 * MINUTE
"""How long the simulated bank looks at a capability or an account (contract §7)."""

REJECTED_ACCOUNT = "99900099"
"""The account number that the simulated bank rejects."""


def require_valid_account(account: BankAccountDetails) -> None:
    """Raise BankRefused if no bank could have such an account."""
    if fault := find_routing_number_fault(account.routing_number):
        raise BankRefused("routing_number_invalid", f"the routing number {fault}")
    if _ACCOUNT_NUMBER.fullmatch(account.account_number) is None:
        raise BankRefused("account_number_invalid", "the account number must be 4 to 17 digits")


def view_review(review: SimulatedReview, now: Instant) -> BankReview:
    """The bank's decision at this instant."""
    _, _, key = review.id.partition(":")
    decided: BankReviewStatus = "active" if review.rejection is None else "rejected"
    status: BankReviewStatus = decided if review.decides_at_ms <= now else "pending"
    return BankReview(
        key=key,
        reference=f"simulated_{key}",
        status=status,
        reason=review.rejection if status == "rejected" else None,
    )


def require_acceptable(order: PayoutOrder) -> None:
    """Raise BankRefused if the rails could not carry the order."""
    if order.amount_cents <= 0:
        raise BankRefused("amount_out_of_range", "a payout must be more than 0.00 dollars")
    service = SERVICES[choose_service(order.rail, order.amount_cents, same_day=order.same_day)]
    if order.amount_cents > service.max_cents:
        dollars, cents = divmod(service.max_cents, 100)
        raise BankRefused(
            "amount_out_of_range",
            f"a payout by {order.rail} is at most {dollars}.{cents:02d} dollars",
        )
    if fault := find_holder_fault(order.rail, order.recipient.holder_name):
        raise BankRefused("holder_name_invalid", f"the holder's name {fault}")
    statement = order.statement_text
    if statement is not None and (fault := find_statement_fault(order.rail, statement)):
        raise BankRefused("statement_text_invalid", f"the statement text {fault}")
    require_valid_account(order.recipient)


def plan_payout(order: PayoutOrder, order_digest: str, now: Instant) -> SimulatedPayout:
    """The payout of an order that the bank accepts now, with its whole planned course."""
    service = choose_service(order.rail, order.amount_cents, same_day=order.same_day)
    settlement = plan_settlement(service, now)
    payout = SimulatedPayout(
        id=order.key,
        order_digest=order_digest,
        rail=order.rail,
        amount_cents=order.amount_cents,
        holder_type=order.recipient.holder_type,
        submitted_at_ms=now,
        settles_on=settlement.on.isoformat(),
        settles_at_ms=settlement.at,
    )
    code = _code_of_account(order)
    if code is None:
        return payout
    last = return_deadline(code, order.recipient.holder_type, settlement.on)
    returns_at = settlement.at + BY_AGREEMENT_AFTER if last is None else max(now, last)
    settles = settlement.at < returns_at  # the operator rejects before settlement
    return evolve(payout, settles=settles, returns_at_ms=returns_at, return_code=code)


def settle_now(payout: SimulatedPayout, now: Instant) -> SimulatedPayout:
    """The payout settled ahead of its time. A settled payout is unchanged.

    Raises BankRefused for a returned payout.
    """
    status = status_of(payout, now)
    if status == "returned":
        raise BankRefused("payout_returned", "the payout has been returned")
    return payout if status == "settled" else evolve(payout, settles=True, settles_at_ms=now)


def return_now(payout: SimulatedPayout, code: str, now: Instant) -> SimulatedPayout:
    """The payout returned now with a code of the table, within its time.

    Raises BankRefused for a wire, which is final, for an unknown code, for a code whose time has
    passed, and for a payout returned with another code.
    """
    if payout.rail == "wire":
        raise BankRefused("wire_is_final", "a wire is final; there is no return")
    if code not in RETURN_CODES:
        raise BankRefused("return_code_unknown", "the return code must be R01 to R29")
    status = status_of(payout, now)
    if status == "returned":
        if payout.return_code == code:
            return payout
        raise BankRefused("payout_returned", f"it was returned with {payout.return_code}")
    holder: HolderType = payout.holder_type
    last = return_deadline(code, holder, date.fromisoformat(payout.settles_on))
    if last is not None and now > max(last, payout.settles_at_ms):
        raise BankRefused("return_too_late", f"the time to return with {code} has passed")
    settles = status == "settled"
    return evolve(payout, settles=settles, returns_at_ms=now, return_code=code)


def status_of(payout: SimulatedPayout, now: Instant) -> BankPayoutStatus:
    """The status at this instant."""
    if payout.returns_at_ms is not None and payout.returns_at_ms <= now:
        return "returned"
    return "settled" if _has_settled(payout, now) else "submitted"


def view_payout(payout: SimulatedPayout, now: Instant) -> BankPayout:
    """The payout as the bank shows it at this instant."""
    status = status_of(payout, now)
    returned = status == "returned"
    return BankPayout(
        key=payout.id,
        reference=f"simulated_{payout.id}",
        status=status,
        rail=payout.rail,
        amount_cents=payout.amount_cents,
        submitted_at_ms=payout.submitted_at_ms,
        settles_on=date.fromisoformat(payout.settles_on),
        settled_at_ms=payout.settles_at_ms if _has_settled(payout, now) else None,
        returned_at_ms=payout.returns_at_ms if returned else None,
        return_code=payout.return_code if returned else None,
    )


def plan_notices(payout: SimulatedPayout) -> tuple[SimulatedBankNotice, ...]:
    """All notices of a payout as it is planned; their ids stay when their times change."""
    events: list[tuple[BankPayoutStatus, Instant]] = []
    if payout.settles:
        events.append(("settled", payout.settles_at_ms))
    if payout.returns_at_ms is not None:
        events.append(("returned", payout.returns_at_ms))
    return tuple(
        SimulatedBankNotice(
            id=f"{payout.id}/{status}/{number}",
            payout_key=payout.id,
            status=status,
            occurred_at_ms=at,
            due_at_ms=at + delay,
        )
        for status, at in events
        for number, delay in enumerate(NOTICE_DELAYS[status])
    )


def _has_settled(payout: SimulatedPayout, now: Instant) -> bool:
    return payout.settles and payout.settles_at_ms <= now


def _code_of_account(order: PayoutOrder) -> str | None:
    if order.rail == "wire":
        return None
    found = RETURNING_ACCOUNT.fullmatch(order.recipient.account_number)
    code = f"R{found[1]}" if found else None
    return code if code in RETURN_CODES else None
