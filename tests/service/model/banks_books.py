"""What is true of payouts and on-ramps beside the bank's own books, after every commit and at the
end; and which rows of their tables a commit went through."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from payments_core.banks.simulated.incoming_records import SimulatedIncoming
from payments_core.banks.simulated.records import SimulatedPayout
from payments_core.chains.port import AddressSpec
from payments_core.clock import DAY, MINUTE, Instant
from payments_core.engine.events import Event
from payments_core.onramps.record import BOOK_ACCOUNTS, BankTransaction, FundingEntry
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.record import OFFRAMP_OWNER, Payment, payout_key
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import SIMULATED
from tests.core import tables
from tests.service.model.index import Wrong
from tests.service.model.mirror import Commit
from tests.service.model.model_world import ModelWorld
from tests.service.model.onchain import ChainIndex

PAYMENT_OF_PAYOUT = {
    "created": {"processing", "executing"},
    "submitted": {"executing"},
    "settled": {"succeeded"},
    "returned": {"action_required", "refunded", "failed"},
    "failed": {"action_required", "refunded", "failed"},
    "cancelled": {"cancelled"},
}
"""What a Payment may be, by the status of its payout."""

HOLDER_OF_PAYOUT = {"submitted": "bank", "settled": "recipient"}

HOLDERS_OF_TRANSACTION: dict[str, tuple[str, ...]] = {
    "scheduled": ("",),
    "failed": ("",),
    "refunded": ("",),
    "received": ("bank", "escrow"),
    "submitted": ("escrow",),
    "settled": ("recipient",),
    "in_review": ("", "bank", "escrow"),
}
"""Where the money of a bank transfer may be, by its status; nowhere, before it has arrived."""

MICRO_CENTS = 100


class BankIndex:
    """The Payments with payouts, and the entries of bank transfers; kept up with the commits."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, FundingEntry]] = defaultdict(dict)
        self.incoming: dict[str, str] = {}

    def keep_up(self, commit: Commit) -> None:
        """Take in a commit."""
        for entry in commit.inserted(FundingEntry):
            self.entries[entry.transaction_id][entry.id] = entry


# The rows of the tables.


def row_name(machine: str, row: tables.Row) -> str:
    """How a row of a table is counted."""
    return f"{machine} {row[0]} {row[1]} {row[2]}"


ROWS = (
    *(row_name("payout", row) for row in sorted(tables.PAYOUT, key=str)),
    *(row_name("onramp", row) for row in sorted(tables.BANK_TRANSACTION, key=str)),
)
"""All rows of the tables of payouts and on-ramps."""


def rows_of(commit: Commit) -> Iterator[str]:
    """The rows that a commit went through; one that is in no table is an invariant's to find."""
    for before, after in commit.changes:
        if isinstance(after, Payment) and after.payout is not None:
            yield from _named("payout", tables.PAYOUT, _path_of_payout(commit, before, after))
        if isinstance(after, BankTransaction):
            path = _path_of_transaction(commit, before, after)
            yield from _named("onramp", tables.BANK_TRANSACTION, path)


def _named(machine: str, table: set[tables.Row], path: list[str]) -> Iterator[str]:
    for source, target in pairwise(path):
        for row in table:
            if (row[0], row[2]) == (source, target):
                yield row_name(machine, row)


_CAUSES = {
    "payout_submitted": "submitted",
    "payout_settled": "settled",
    "payout_returned": "returned",
}


def _path_of_payout(commit: Commit, before: object, after: Payment) -> list[str]:
    """The statuses that a payout went through, as the journal shows where the funds went."""
    assert after.payout is not None
    known = before.payout if isinstance(before, Payment) else None
    is_same = known is not None and known.key == after.payout.key
    path = [known.status if known is not None and is_same else tables.NEW]
    if is_same and known is not None and known.status == after.payout.status:
        return path
    entries = [e for e in commit.inserted(JournalEntry) if e.payment_id == after.id]
    entries.sort(key=lambda entry: entry.number)
    path += [_CAUSES[entry.cause] for entry in entries if entry.cause in _CAUSES]
    if path[-1] != after.payout.status:
        path.append(after.payout.status)
    return path


def _path_of_transaction(commit: Commit, before: object, after: BankTransaction) -> list[str]:
    """The statuses that a bank transfer went through, by its events."""
    path = [before.status if isinstance(before, BankTransaction) else tables.NEW]
    events = [
        event for event in commit.inserted(Event) if event.payload.get("transactionId") == after.id
    ]
    events.sort(key=lambda event: event.payload["statusVersion"])
    return path + [str(event.payload["status"]) for event in events]


# After every commit: payouts.


def payouts_go_by_their_table(world: ModelWorld, index: BankIndex, commit: Commit) -> Wrong:
    """A payout steps along the rows; another attempt begins anew, where the one before ended."""
    edges = {(row[0], row[2]) for row in tables.PAYOUT}
    for before, after in commit.changes:
        if not isinstance(after, Payment) or after.payout is None:
            continue
        path = _path_of_payout(commit, before, after)
        if any(edge not in edges for edge in pairwise(path)):
            yield f"{after.payout.key} went {path}"
        known = before.payout if isinstance(before, Payment) else None
        if known is None or known.key == after.payout.key:
            continue
        if known.status not in ("failed", "returned") or known.attempt + 1 != after.payout.attempt:
            yield f"{after.payout.key} comes after {known.key}, which is {known.status}"


def payouts_hold_what_the_books_say(world: ModelWorld, index: BankIndex, commit: Commit) -> Wrong:
    """The Payment is where its payout is, and so are the funds."""
    for payment in commit.after(Payment):
        payout = payment.payout
        if payout is None:
            continue
        books = payment.books
        if payment.status not in PAYMENT_OF_PAYOUT[payout.status]:
            yield f"{payment.id} is {payment.status}, and its payout is {payout.status}"
        holder = HOLDER_OF_PAYOUT.get(payout.status)
        for name in ("bank", "recipient"):
            if getattr(books, name) != (payment.amount_atomic if holder == name else 0):
                yield f"{payment.id} has {books}, and its payout is {payout.status}"
        if payment.settled_atomic != books.recipient or books.escrow or books.excess or books.fees:
            yield f"{payment.id} has {books}, and settled {payment.settled_atomic}"
        is_short = payment.chain_id in world.reorged_deeply
        if books.offramp not in (0, payment.amount_atomic) and not is_short:
            yield f"{payment.id} has {books}"


def nobody_is_paid_twice(world: ModelWorld, index: BankIndex, commit: Commit) -> Wrong:
    """The bank has one payout of a Payment at the most that has not come back, under a key that is
    stored, and none of what went back to the vault."""
    ids = {payment.id for payment in commit.after(Payment) if payment.payout is not None}
    ids |= {row.id.split("/")[1] for row in commit.after(SimulatedPayout)}
    ids |= {refund.payment_id for refund in commit.after(Refund) if refund.from_offramp_atomic}
    for id in sorted(ids):
        payment = world.all(Payment)[id]
        assert payment.payout is not None
        alive = [row for row in payouts_of(world, payment) if not has_returned(world, row)]
        refunds = [
            refund
            for refund in world.all(Refund).values()
            if refund.payment_id == id and refund.from_offramp_atomic and refund.status != "failed"
        ]
        if len(alive) > 1:
            yield f"{id} has two payouts: {[row.id for row in alive]}"
        if alive and alive[0].id != payment.payout.key:
            yield f"{id} pays under {payment.payout.key}, and the bank under {alive[0].id}"
        if alive and (refunds or payment.status in ("refunded", "cancelled")):
            yield f"{id} is {payment.status}, and the bank pays {alive[0].id}"
        if any(row.amount_cents * 10_000 != payment.amount_atomic for row in alive):
            yield f"{id} pays {payment.amount_atomic}, and the bank another amount"


def payouts_of(world: ModelWorld, payment: Payment) -> list[SimulatedPayout]:
    """What the bank has of a Payment, also under keys that are not stored."""
    assert payment.payout is not None
    rows = world.mirror.all(SIMULATED, SimulatedPayout)
    keys = [
        payout_key(world.environment_id, payment.id, attempt)
        for attempt in range(payment.payout.attempt + 2)
    ]
    return [rows[key] for key in keys if key in rows]


def has_returned(world: ModelWorld, row: SimulatedPayout) -> bool:
    """Whether the bank shows a payout as returned now."""
    return row.returns_at_ms is not None and row.returns_at_ms <= world.bank_now()


# After every commit: on-ramps.


def bank_journals_balance(world: ModelWorld, index: BankIndex, commit: Commit) -> Wrong:
    """Each entry adds up to zero, all of them to the books, and their numbers have no gap."""
    for transaction in commit.after(BankTransaction):
        entries = index.entries[transaction.id].values()
        sums: Counter[str] = Counter()
        for entry in entries:
            if sum(entry.postings.values()):
                yield f"{entry.id} does not add up to zero"
            sums.update(entry.postings)
        if any(sums[name] != getattr(transaction.books, name) for name in BOOK_ACCOUNTS):
            yield f"{transaction.id} has {transaction.books}, and its entries say {dict(sums)}"
        numbers = sorted(entry.number for entry in entries)
        if numbers != list(range(1, transaction.entries + 1)):
            yield f"{transaction.id} misses entries"


def transfers_are_where_the_books_say(world: ModelWorld, index: BankIndex, commit: Commit) -> Wrong:
    """One account of the books has the whole transfer, which the status allows."""
    for transaction in commit.after(BankTransaction):
        books = transaction.books
        held = {name: getattr(books, name) for name in BOOK_ACCOUNTS[1:] if getattr(books, name)}
        holder = next(iter(held), "")
        if holder not in HOLDERS_OF_TRANSACTION[transaction.status] or len(held) > 1:
            yield f"{transaction.id} is {transaction.status} with {books}"
        if held and held[holder] != transaction.amount_cents * 10_000:
            yield f"{transaction.id} of {transaction.amount_cents} has {books}"


def each_transfer_counts_once(world: ModelWorld, index: BankIndex, commit: Commit) -> Wrong:
    """The bank's transfer has one transaction, of that amount, on the on-ramp that it is for."""
    for transaction in commit.inserted(BankTransaction):
        known = index.incoming.setdefault(transaction.incoming_id, transaction.id)
        row = world.mirror.all(SIMULATED, SimulatedIncoming).get(transaction.incoming_id)
        if known != transaction.id or row is None:
            yield f"{transaction.id} is {transaction.incoming_id}, and so is {known}"
        elif (row.amount_cents, row.account_key) != (
            transaction.amount_cents,
            transaction.onramp_account_id,
        ):
            yield f"{transaction.id} is not what the bank has"


def nothing_is_credited_that_goes_back(
    world: ModelWorld, index: BankIndex, commit: Commit
) -> Wrong:
    """The bank delivers what it received, and does not send it back beside that."""
    for row in commit.after(SimulatedIncoming):
        if row.delivery_key is not None and row.end is not None:
            yield f"{row.id} is delivered and {row.end}"
        if row.delivery_key is not None:
            owner = world.all(BankTransaction).get(row.delivery_key)
            if owner is None or owner.disposition != "deliver":
                yield f"{row.id} is delivered, and nobody decided that"
    for transaction in commit.after(BankTransaction):
        row = world.mirror.all(SIMULATED, SimulatedIncoming)[transaction.incoming_id]
        is_credited = transaction.status in ("submitted", "settled")
        if is_credited and row.delivery_key != transaction.id:
            yield f"{transaction.id} is {transaction.status}, and the bank delivered nothing"
        if is_credited and transaction.type == "micro_deposit":
            yield f"{transaction.id} is a micro-deposit, and {transaction.status}"
        if transaction.status == "refunded" and row.end != "returned":
            yield f"{transaction.id} is refunded, and the bank has it"


BANK_INVARIANTS: tuple[Callable[[ModelWorld, BankIndex, Commit], Wrong], ...] = (
    payouts_go_by_their_table,
    payouts_hold_what_the_books_say,
    nobody_is_paid_twice,
    bank_journals_balance,
    transfers_are_where_the_books_say,
    each_transfer_counts_once,
    nothing_is_credited_that_goes_back,
)


# When everything has come to its end.


def plans_end_at(world: ModelWorld) -> Instant:
    """When the bank has done all that it plans, and our own reviews of transfers are over."""
    waits: list[Instant] = []
    for payout in world.mirror.all(SIMULATED, SimulatedPayout).values():
        waits += [payout.settles_at_ms if payout.settles else 0, payout.returns_at_ms or 0]
    for row in world.mirror.all(SIMULATED, SimulatedIncoming).values():
        waits += [row.settles_at_ms, row.held_until_ms or 0, row.ends_at_ms or 0]
    for transaction in world.all(BankTransaction).values():
        if transaction.held_at_ms is not None and transaction.status == "in_review":
            waits.append(transaction.held_at_ms + 10 * DAY)
        elif transaction.reason in ("credit_failed", "credit_reversed"):
            waits.append(transaction.updated_at_ms + (MINUTE << min(transaction.credits, 10)))
    return max(waits, default=0)


def payouts_are_what_the_bank_shows(world: ModelWorld, index: ChainIndex) -> Wrong:
    """A settled payout is settled at the bank, a returned one has come back, and so on."""
    for payment in world.all(Payment).values():
        if payment.payout is None:
            continue
        row = world.mirror.all(SIMULATED, SimulatedPayout).get(payment.payout.key)
        shown = "nothing" if row is None else "returned" if has_returned(world, row) else "settled"
        if shown != _SHOWN.get(payment.payout.status, "nothing"):
            yield f"{payment.payout.key} is {payment.payout.status}, and the bank shows {shown}"


_SHOWN = {"settled": "settled", "returned": "returned", "submitted": "submitted"}


def the_offramp_holds_what_the_books_say(world: ModelWorld, index: ChainIndex) -> Wrong:
    """What was paid out and did not go back to a vault lies at the off-ramp address."""
    said: Counter[tuple[int, str]] = Counter()
    spec = AddressSpec(world.environment_id, "escrow", OFFRAMP_OWNER)
    for payment in world.all(Payment).values():
        if payment.payout is not None:
            said[payment.chain_id, payment.asset.address] -= int(payment.books.payer)
    for (chain_id, token), amount in said.items():
        there = index.held(chain_id, token, world.chains[chain_id].derive(spec))
        if there != amount:
            yield f"{chain_id}:{token} of the off-ramp is {there}, and the books say {amount}"


def every_transfer_has_its_end(world: ModelWorld, index: ChainIndex) -> Wrong:
    """What the bank received is credited, or went back; and what it did not is reported as such."""
    found = {one.incoming_id: one for one in world.all(BankTransaction).values()}
    for row in world.mirror.all(SIMULATED, SimulatedIncoming).values():
        transaction = found.get(row.id)
        if row.account_key is None:
            if transaction is not None or row.end is None:
                yield f"{row.id} is nobody's, and {row.end}"
            continue
        if transaction is None:
            yield f"{row.id} is lost"
            continue
        expected = {"returned": "refunded", "cancelled": "failed", None: "settled"}[row.end]
        if row.end is None and row.rail == "ach_push" and row.amount_cents < MICRO_CENTS:
            expected = "received"
        if transaction.status != expected:
            yield f"{row.id} is {row.end or 'received'}, and {transaction.id} {transaction.status}"


BANK_ENDINGS: tuple[Callable[[ModelWorld, ChainIndex], Wrong], ...] = (
    payouts_are_what_the_bank_shows,
    the_offramp_holds_what_the_books_say,
    every_transfer_has_its_end,
)
