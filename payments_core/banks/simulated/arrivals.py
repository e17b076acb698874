"""The course of an incoming transfer at the simulated bank: pure, by the rails' calendars."""

from __future__ import annotations

import hashlib
from typing import Literal

import attrs

from payments_core.banks.incoming import (
    IncomingRail,
    IncomingStatus,
    IncomingTransfer,
    VirtualAccount,
)
from payments_core.banks.port import BankRefused
from payments_core.banks.rails import SERVICES, ServiceName
from payments_core.banks.settlement import plan_settlement
from payments_core.banks.simulated.incoming_records import (
    SimulatedIncoming,
    SimulatedIncomingNotice,
)
from payments_core.clock import HOUR, Instant
from payments_core.evolve import evolve

ArrivalOutcome = Literal["receive", "review", "return", "cancel", "unmatched"]
"""The possible courses: received; held for an hour and then received, or sent back;
cancelled by its sender; or received for a number that the bank does not know."""

SERVICE_OF_RAIL: dict[IncomingRail, ServiceName] = {"ach_push": "ach_next_day", "wire": "wire"}

NOTICE_DELAYS: tuple[Instant, ...] = (0, HOUR)
"""When the notices of a change come, counted from it: twice, and the second one late."""

HOLD_TAKES = 1 * HOUR

ROUTING_NUMBER = "110000000"
"""Right in form, and of no bank: should somebody take the instructions for real ones, the money
must not reach a stranger. Stripe's tests use the same number."""
_BANK_NAME = "Simulated Bank"
_BANK_ADDRESS = "1 Simulation Plaza, New York, NY 10001, US"


@attrs.frozen(kw_only=True)
class NewArrival:
    """A transfer that somebody makes to a virtual account, with its key."""

    id: str
    account_key: str
    rail: IncomingRail
    amount_cents: int
    sender_name: str = "Test Sender"
    reference: str | None = None
    outcome: ArrivalOutcome = "receive"


def view_account(key: str) -> VirtualAccount:
    """The virtual account of a key."""
    number = int.from_bytes(hashlib.sha256(f"virtual account {key}".encode()).digest()[:8])
    return VirtualAccount(
        key=key,
        bank_name=_BANK_NAME,
        bank_address=_BANK_ADDRESS,
        beneficiary_name="Payments Sandbox",
        beneficiary_address=_BANK_ADDRESS,
        account_number=f"8{number % 10**11:011}",
        routing_number=ROUTING_NUMBER,
        reference=key[-12:],
    )


def plan_arrival(new: NewArrival, now: Instant) -> SimulatedIncoming:
    """The transfer that was sent now, with its whole planned course.

    Raises BankRefused if its rail could not carry it.
    """
    service = SERVICE_OF_RAIL[new.rail]
    if not 0 < new.amount_cents <= SERVICES[service].max_cents:
        raise BankRefused("amount_out_of_range", f"{new.rail} does not support this amount")
    settles_at = plan_settlement(service, now).at
    planned = SimulatedIncoming(
        id=new.id,
        account_key=None if new.outcome == "unmatched" else new.account_key,
        rail=new.rail,
        amount_cents=new.amount_cents,
        sender_name=new.sender_name,
        reference=new.reference,
        created_at_ms=now,
        settles_at_ms=settles_at,
    )
    if new.outcome == "cancel":
        return evolve(
            planned, end="cancelled", ends_at_ms=settles_at, end_reason="cancelled_by_sender"
        )
    if new.outcome not in ("review", "return"):
        return planned
    held = evolve(planned, held_until_ms=settles_at + HOLD_TAKES)
    if new.outcome == "review":
        return held
    return evolve(
        held, end="returned", ends_at_ms=held.held_until_ms, end_reason="rejected_by_bank"
    )


def return_now(row: SimulatedIncoming, reason: str, now: Instant) -> SimulatedIncoming:
    """The transfer, sent back now. Raises BankRefused if its money is not available."""
    status = status_of(row, now)
    if status == "returned":
        return row
    if status not in ("received", "in_review") or row.delivery_key is not None:
        raise BankRefused("not_returnable", f"a transfer that is {status} cannot be sent back")
    return evolve(row, end="returned", ends_at_ms=now, end_reason=reason)


def status_of(row: SimulatedIncoming, now: Instant) -> IncomingStatus:
    """The status at this instant."""
    if row.end is not None and row.ends_at_ms is not None and row.ends_at_ms <= now:
        return row.end
    if now < row.settles_at_ms:
        return "scheduled"
    return "in_review" if row.held_until_ms is not None and now < row.held_until_ms else "received"


def view_incoming(row: SimulatedIncoming, now: Instant) -> IncomingTransfer:
    """The transfer as the bank shows it at this instant."""
    status = status_of(row, now)
    has_ended = status in ("returned", "cancelled")
    received_at = max(row.settles_at_ms, row.held_until_ms or 0)
    was_received = received_at <= now and (row.ends_at_ms is None or received_at < row.ends_at_ms)
    return IncomingTransfer(
        id=row.id,
        account_key=row.account_key,
        rail=row.rail,
        amount_cents=row.amount_cents,
        status=status,
        sender_name=row.sender_name,
        reference=row.reference,
        expected_at_ms=row.settles_at_ms,
        received_at_ms=received_at if was_received else None,
        reason=row.end_reason if has_ended else None,
    )


def plan_notices(row: SimulatedIncoming) -> tuple[SimulatedIncomingNotice, ...]:
    """All notices of a transfer as it is planned now."""
    changes: list[tuple[IncomingStatus, Instant]] = []
    if row.created_at_ms < row.settles_at_ms:
        changes.append(("scheduled", row.created_at_ms))
    if row.held_until_ms is not None:
        changes.append(("in_review", row.settles_at_ms))
    if row.end is None or (row.ends_at_ms or 0) > max(row.settles_at_ms, row.held_until_ms or 0):
        changes.append(("received", max(row.settles_at_ms, row.held_until_ms or 0)))
    if row.end is not None and row.ends_at_ms is not None:
        changes.append((row.end, row.ends_at_ms))
    return tuple(
        SimulatedIncomingNotice(
            id=f"{row.id}/{status}/{number}",
            incoming_id=row.id,
            account_key=row.account_key,
            occurred_at_ms=at,
            due_at_ms=at + delay,
        )
        for status, at in changes
        for number, delay in enumerate(NOTICE_DELAYS)
    )
