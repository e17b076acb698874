"""What is true of every commit, over the records alone: nothing here asks the core's own code.

Each function is given the world and one commit, and yields what is wrong. Only what the commit
touched is checked again; everything else was right before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from payments_core.accounts.bank_accounts.record import BankAccount
from payments_core.deposits.record import Deposit
from payments_core.engine.events import Event
from payments_core.onramps.record import BankTransaction, FundingEntry
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.journal.record import JOURNAL_ACCOUNTS, JournalEntry
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.purged import PurgedPayment
from payments_core.payments.receipts.record import Receipt, TrackedTransaction
from payments_core.payments.record import Payment, PaymentLink
from payments_core.payments.refunds.record import Refund
from payments_core.payments.transitions import OPEN
from payments_core.storage.records import Record
from payments_core.webhooks.record import Endpoint
from tests.core import tables
from tests.service.model import spending
from tests.service.model.index import LIVE_REFUND, Index, Wrong
from tests.service.model.mirror import Commit
from tests.service.model.model_world import ModelWorld

_KEPT = (Receipt, JournalEntry, Refund, Event, BankTransaction, FundingEntry)
"""What is never deleted."""

# The books.


def versions_only_rise(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """Storage's version by one, the status's version never back, and no record of money goes."""
    for before, after in commit.changes:
        if before is None or after is None:
            if after is None and isinstance(before, _KEPT):
                yield f"{before.id} is gone"
            continue
        if after.version != before.version + 1:
            yield f"{after.id} went from version {before.version} to {after.version}"
        was, is_ = getattr(before, "status_version", None), getattr(after, "status_version", None)
        if was is None or is_ is None:
            continue
        if is_ < was or (is_ == was and _status(before) != _status(after)):
            yield f"{after.id} went from status version {was} to {is_}"


def only_empty_payments_are_purged(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """A Payment goes only where it expired with nothing received, and all that is its own with it;
    nothing is noted of it afterwards."""
    remembered = {purged.id: purged for purged in commit.inserted(PurgedPayment)}
    for before, after in commit.changes:
        if not isinstance(before, Payment) or after is not None:
            continue
        purged = remembered.get(before.id)
        if purged is None or purged.escrow_address != before.escrow_address:
            yield f"{before.id} is gone, and its escrow is not known any more"
        if before.status != "expired" or before.received_atomic or before.is_pending:
            yield f"{before.id} is gone, and it was {before.status} with {before.received_atomic}"
        if index.receipts[before.id] or index.entries[before.id] or index.refunds[before.id]:
            yield f"{before.id} is gone, and its money is not"
        for kind in (PaymentOption, FundingOperation, TrackedTransaction, PaymentLink):
            for record in world.all(kind).values():
                if record.payment_id == before.id:
                    yield f"{before.id} is gone, and its {record.id} is not"
    for tracked in commit.after(TrackedTransaction):
        if tracked.payment_id not in world.all(Payment):
            yield f"{tracked.id} is noted, and its Payment is gone"


def entries_are_never_changed(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """What the journal and the outbox say once they say permanently."""
    for kind in (JournalEntry, Event, FundingEntry):
        for before, _ in commit.replaced(kind):
            yield f"{before.id} was changed"


def journals_balance(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """Each entry adds up to zero, all of them to the books, and their numbers have no gap."""
    for payment in _payments(world, commit):
        entries = index.entries[payment.id].values()
        sums: Counter[str] = Counter()
        for entry in entries:
            if sum(entry.postings.values()):
                yield f"{entry.id} does not add up to zero"
            sums.update(entry.postings)
        if any(sums[name] != getattr(payment.books, name) for name in JOURNAL_ACCOUNTS):
            yield f"{payment.id} has {payment.books}, and its entries say {dict(sums)}"
        if sorted(entry.number for entry in entries) != list(range(1, payment.entry_count + 1)):
            yield f"{payment.id} misses entries"


def what_was_received_is_somewhere(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """received = verified receipts = released (recipient, fees, what vaults gave back) + refunded
    from escrow + refunded from the excess + held (escrow, excess). What a payout drew of its vault
    is with the recipient, the bank, or at the off-ramp address, or went back from there."""
    for payment in _payments(world, commit):
        receipts = [r for r in index.receipts[payment.id].values() if r.status == "verified"]
        done = [r for r in index.refunds[payment.id].values() if r.status == "succeeded"]
        books = payment.books
        released = (
            books.recipient + books.fees + sum(refund.from_recipient_atomic for refund in done)
        )
        went_back = sum(
            r.from_escrow_atomic + r.from_excess_atomic + r.from_offramp_atomic for r in done
        )
        if payment.received_atomic != sum(receipt.amount_atomic for receipt in receipts):
            yield f"{payment.id} received {payment.received_atomic}, and its receipts differ"
        if payment.counted_atomic != sum(receipt.counted_atomic for receipt in receipts):
            yield f"{payment.id} counted {payment.counted_atomic}, and its receipts differ"
        if payment.refunded_atomic != sum(refund.amount_atomic for refund in done):
            yield f"{payment.id} refunded {payment.refunded_atomic}, and its refunds differ"
        drawn = released if payment.intent == "send" else payment.received_atomic
        if payment.payout is not None:
            sent = [e for e in index.entries[payment.id].values() if e.cause in _SENT]
            drawn = sum(entry.postings["offramp"] for entry in sent)
        held = books.escrow + books.excess + books.offramp + books.bank
        if drawn != released + went_back + held:
            yield f"{payment.id}: {drawn} came, {books}, {went_back} went back"
        if books.payer != -drawn + payment.refunded_atomic:
            yield f"{payment.id}: {books}, {drawn} came, {payment.refunded_atomic} went back"


_SENT = ("send", "send_reorged")


def nothing_is_below_zero(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """No account but the payer's is overdrawn, unless the chain undid what counted."""
    for payment in _payments(world, commit):
        books = payment.books
        ours = (getattr(books, name) for name in JOURNAL_ACCOUNTS if name != "payer")
        short = min(*ours, payment.received_atomic)
        if short < 0 and not world.is_shaken(payment):
            yield f"{payment.id} has {books}"


def no_refund_exceeds_what_is_there(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """All refunds under way together take no more than the books have."""
    for payment in _payments(world, commit):
        live = [r for r in index.refunds[payment.id].values() if r.status in LIVE_REFUND]
        if not live or world.is_shaken(payment):
            continue
        books = payment.books
        if sum(r.from_escrow_atomic for r in live) > books.escrow:
            yield f"{payment.id}: refunds take more than the escrow of {books}"
        if sum(r.from_excess_atomic for r in live) > books.excess:
            yield f"{payment.id}: refunds take more than the excess of {books}"
        if sum(r.from_recipient_atomic for r in live) > books.recipient:
            yield f"{payment.id}: refunds take more than the recipient of {books}"
        if sum(r.from_offramp_atomic for r in live) > books.offramp:
            yield f"{payment.id}: refunds take more than the off-ramp address of {books}"
        if sum(r.from_escrow_atomic for r in live) and payment.release_id:
            yield f"{payment.id}: a refund from escrow beside a release"


def no_log_counts_twice(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """A log makes one receipt or one deposit, never two and never both."""
    found: list[Receipt | Deposit] = [*commit.inserted(Receipt), *commit.inserted(Deposit)]
    for record in found:
        log = (record.chain_id, record.transaction_hash, record.position)
        if index.logs.setdefault(log, record.id) != record.id:
            yield f"{record.id} and {index.logs[log]} are of the log {log}"


def labels_are_never_lost(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """Labels add up."""
    for before, after in commit.replaced(Payment):
        if lost := set(before.labels) - set(after.labels):
            yield f"{after.id} lost {sorted(lost)}"
        if len(set(after.labels)) != len(after.labels):
            yield f"{after.id} has a label twice: {after.labels}"


def terms_are_kept(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """What a Payment was created under holds for good, whatever the settings say later."""
    for before, after in commit.replaced(Payment):
        for name in ("amount", "fee_bps", "tolerance_bps", "confirmations", "expires_at_ms"):
            if getattr(before, name) != getattr(after, name):
                yield f"{after.id} has another {name} than it began with"


def no_request_creates_twice(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """The reference of each request is on one Payment."""
    for payment in commit.inserted(Payment):
        reference = str(payment.reference)
        if index.references.setdefault(reference, payment.id) != payment.id:
            yield f"{payment.id} was created for {reference} once more"


# Changes and their events.


def every_change_is_told(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """A change of status commits with exactly the events that the contract's table gives it."""
    reported: dict[str, list[Event]] = defaultdict(list)
    for event in commit.inserted(Event):
        for field in _SUBJECTS[event.name.split(".")[0]]:
            reported[str(event.payload.get(field))].append(event)
            break
    for before, after in commit.changes:
        for kind, (table, family) in _TABLES.items():
            if isinstance(after, kind):
                events = [e for e in reported.pop(after.id, []) if e.name.startswith(family)]
                yield from _path(before, after, table, events)
        if isinstance(after, Endpoint):  # the news how it does
            reported.pop(after.id, None)
    for id, events in reported.items():
        if not id.startswith("acct_"):
            yield f"{[event.name for event in events]} without a change of {id}"


_SUBJECTS = {
    "payment": ("paymentId",),
    "refund": ("refundId",),
    "vault_funding": ("fundingOperationId",),
    "deposit": ("depositId",),
    "account": ("accountId",),
    "bank_account": ("bankAccountId",),
    "bank_funding": ("transactionId",),
    "webhook": ("webhookId",),
}
_TABLES: dict[type[Record], tuple[set[tables.Row], str]] = {
    Payment: (tables.PAYMENT, "payment."),
    Refund: (tables.REFUND, "refund."),
    FundingOperation: (tables.FUNDING_OPERATION, "vault_funding."),
    Deposit: (tables.DEPOSIT, "deposit."),
    Receipt: (tables.RECEIPT, "receipt."),
    BankAccount: (tables.BANK_ACCOUNT, "bank_account."),
    BankTransaction: (tables.BANK_TRANSACTION, "bank_funding."),
    PaymentOption: (tables.OPTION, "option."),
}


def amounts_are_digits(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """Every atomic amount of an event is a digit string, whatever the chain undid."""
    for event in commit.inserted(Event):
        for name, value in event.payload.items():
            if name.endswith("Atomic") and not (isinstance(value, str) and value.isdigit()):
                yield f"{event.name} {event.id} says {name}={value!r}"


def _path(
    before: Record | None, after: Record, table: set[tables.Row], events: list[Event]
) -> Wrong:
    """Whether a way through the table leads from one to the other, telling these events."""
    start = _status(before) if before is not None else tables.NEW
    if not hasattr(after, "status_version"):  # receipts and options have no events
        reach = {start}
        for _ in range(3):
            reach |= {row[2] for row in table if row[0] in reach}
        if _status(after) not in reach or (before is None and _status(after) == start):
            yield f"{after.id} cannot go from {start} to {_status(after)}"
        return
    first = getattr(before, "status_version", 0)
    ways: set[tuple[str, frozenset[str]]] = {(start, frozenset())}
    labels = frozenset(getattr(after, "labels", ()))
    for version in range(first + 1, getattr(after, "status_version", 0) + 1):
        names = tuple(e.name for e in events if e.payload["statusVersion"] == version)
        ways = {
            (row[2], had | ({row[4]} if row[4] else frozenset()))
            for state, had in ways
            for row in table
            if row[0] == state and names == _events_of(row)
        }
    versions = {e.payload["statusVersion"] for e in events}
    if versions - set(range(first + 1, getattr(after, "status_version", 0) + 1)):
        yield f"{after.id} has events of versions {sorted(versions)}"
    if not any(state == _status(after) and had <= labels for state, had in ways):
        all_reported = [(e.payload["statusVersion"], e.name) for e in events]
        yield f"{after.id} went from {start} to {_status(after)} and its events are {all_reported}"


def _events_of(row: tables.Row) -> tuple[str, ...]:
    if row[1] == "write_off":
        return ("payment.reconciled", "payment.failed")
    return (row[3],) if row[3] else ()


def timelines_say_what_happened(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """One line for each version of the status, and the last one is the present."""
    for payment in commit.after(Payment):
        if len(payment.timeline) != payment.status_version:
            yield f"{payment.id} has {len(payment.timeline)} lines at {payment.status_version}"
        if payment.timeline[-1].status != payment.status:
            yield f"{payment.id} is {payment.status}, and its timeline differs"


def public_options_say_what_came(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """Each has what its verified receipts add up to, and is on its way with what is sighted."""
    payments = _payments(world, commit)
    ids = {id for payment in payments for id in payment.option_ids}
    ids |= {option.id for option in commit.after(PaymentOption)}
    for id in sorted(ids):
        option = world.all(PaymentOption)[id]
        if not option.is_public:
            continue
        payment = world.all(Payment)[option.payment_id]
        receipts = index.receipts[payment.id].values()
        own = [r for r in receipts if r.option_id == id and r.status == "verified"]
        if option.paid_atomic != sum(receipt.amount_atomic for receipt in own):
            yield f"{id} was paid {option.paid_atomic}, and its receipts differ"
        if not set(option.sighted) <= set(payment.sighted):
            yield f"{id} waits for {option.sighted}, and {payment.id} for {payment.sighted}"
        if (option.status == "processing" and not option.sighted) or (
            option.status == "pending" and option.sighted
        ):
            yield f"{id} is {option.status} with {option.sighted}"


def options_end_with_their_payment(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """None waits for funds that its Payment takes no more."""
    ids = {payment.id for payment in commit.after(Payment)}
    ids |= {option.payment_id for option in commit.after(PaymentOption)}
    for payment in (world.all(Payment)[id] for id in sorted(ids)):
        if payment.status in OPEN:
            continue
        for option in (world.all(PaymentOption)[id] for id in payment.option_ids):
            if option.status == "pending":
                yield f"{option.id} is pending, and {payment.id} is {payment.status}"


# Parts.


def _status(record: Record | None) -> str:
    return str(getattr(record, "status", ""))


def _payments(world: ModelWorld, commit: Commit) -> list[Payment]:
    """The Payments that a commit has to do with."""
    ids = {payment.id for payment in commit.after(Payment)}
    ids |= {record.payment_id for record in commit.after(JournalEntry)}
    ids |= {record.payment_id for record in commit.after(Receipt)}
    ids |= {record.payment_id for record in commit.after(Refund)}
    return [world.all(Payment)[id] for id in sorted(ids)]


INVARIANTS: tuple[Callable[[ModelWorld, Index, Commit], Wrong], ...] = (
    versions_only_rise,
    only_empty_payments_are_purged,
    entries_are_never_changed,
    journals_balance,
    what_was_received_is_somewhere,
    nothing_is_below_zero,
    no_refund_exceeds_what_is_there,
    no_log_counts_twice,
    labels_are_never_lost,
    terms_are_kept,
    no_request_creates_twice,
    spending.no_funds_are_reserved_twice,
    spending.limits_are_kept,
    spending.nobody_pays_who_may_not,
    every_change_is_told,
    amounts_are_digits,
    public_options_say_what_came,
    options_end_with_their_payment,
    timelines_say_what_happened,
)
