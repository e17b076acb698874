"""A Payment's timeline, and the partner's notes that belong to it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.evolve import evolve
from payments_core.payments.record import DecisionNote, Payment, TimelineEntry

REPEAT_REASONS: Mapping[str, str] = {
    "attempt": "new_attempt",
    "attempt_ended": "attempt_ended",
    "covered": "funds_received",
    "completed": "funds_received",
    "expire": "expired",
    "cancel": "cancelled",
    "release": "transfer_submitted",
    "submit": "transfer_submitted",
    "pass": "screening_passed",
    "settle": "transfer_final",
    "receipt_returned": "receipt_returned",
    "return_reorged": "return_reorged",
    "misdirected_reorged": "misdirected_reorged",
    "return_misdirected": "misdirected_returned",
    "reconcile_accept": "reconciled",
    "retry_execution": "reconciled",
    "reconcile_refund": "refunded",
    "write_off": "reconciled",
    "refund_excess": "excess_refunded",
    "refund_part": "refunded",
    "refund_all": "refunded",
}
"""Why a status is in the timeline again, by trigger; a row with a label has that as its reason."""

MAX_TIMELINE_ENTRIES = 200
"""A longer timeline loses its middle: strangers' transfers must not enlarge the record."""

MAX_NOTES = 10
"""A Payment keeps the newest notes, also to stay small; every note is in its event."""


def append_entry(
    timeline: tuple[TimelineEntry, ...], entry: TimelineEntry
) -> tuple[TimelineEntry, ...]:
    """The timeline with another entry."""
    if len(timeline) < MAX_TIMELINE_ENTRIES:
        return (*timeline, entry)
    half = MAX_TIMELINE_ENTRIES // 2
    return (*timeline[:half], *timeline[half + 1 :], entry)


def append_note(payment: Payment, text: str | None, version: int) -> tuple[DecisionNote, ...]:
    """The notes, with the note of the decision that leads to this status version, if any."""
    if text is None:
        return payment.notes
    return (*payment.notes, DecisionNote(status_version=version, text=text))[-MAX_NOTES:]


def with_notes(payment: Payment) -> tuple[TimelineEntry, ...]:
    """The timeline as its partner sees it: a decision's note is its reason."""
    if not payment.notes:
        return payment.timeline
    notes = {note.status_version: note.text for note in payment.notes}
    skipped = payment.status_version - len(payment.timeline)
    first_after_gap = len(payment.timeline) - MAX_TIMELINE_ENTRIES // 2 + 1
    places = enumerate(payment.timeline, start=1)
    versions = (place + skipped if place >= first_after_gap else place for place, _ in places)
    return tuple(
        evolve(entry, reason=notes.get(version, entry.reason))
        for version, entry in zip(versions, payment.timeline, strict=True)
    )
