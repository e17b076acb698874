"""What must hold when a run is over: chain and books agree, and all was reported once.

Each check yields a sentence for everything that is wrong.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from payments_core.accounts.vaults.record import Vault, VaultBalance
from payments_core.addresses import encode_checksum_address
from payments_core.chains.outbox.record import OutboundTransfer, Replacement
from payments_core.deposits.record import Deposit
from payments_core.engine.events import FAILING, RECOVERED, Event
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.mandates.lifecycle import period_start
from payments_core.payments.mandates.record import Mandate
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.jobs import Job, is_parked
from payments_core.storage.records import R, Record
from payments_core.webhooks.record import Delivery
from tests.chains.evm.simulation import network
from tests.chains.evm.simulation.network import FAUCET, TOKEN, OurTransaction, StrangersTransaction

if TYPE_CHECKING:
    from tests.chains.evm.simulation.run import Run

UNFINISHED: tuple[tuple[type[Record], tuple[str, ...]], ...] = (
    (Payment, ("awaiting_payment", "processing", "accepted", "executing")),
    (FundingOperation, ("awaiting_authorization", "authorized", "broadcast", "unknown")),
    (Refund, ("created", "submitted")),
    (Deposit, ("detected", "confirmed")),
    (Receipt, ("observed",)),
    (OutboundTransfer, ("queued", "reserved")),
)
SUBJECTS: tuple[tuple[str, type[Record]], ...] = (
    ("refundId", Refund),
    ("fundingOperationId", FundingOperation),
    ("depositId", Deposit),
    ("paymentId", Payment),
)
"""Whose an event is, by the first of these fields that its payload has."""


def find_violations(run: Run) -> Iterator[str]:
    """Everything that is wrong."""
    books = Books(run)
    yield from find_unfinished(run)
    for check in (
        check_transfers,
        check_token_balances,
        check_journals,
        check_receipts,
        check_deposits,
        check_requests,
        check_told_states,
        check_timelines,
        check_deliveries,
        check_mandates,
        check_options,
    ):
        yield from check(books)


def find_unfinished(run: Run) -> Iterator[str]:
    """What has not come to its end."""
    for kind, statuses in UNFINISHED:
        for record in run.all(kind):
            status = record.status  # type: ignore[attr-defined]
            if status in statuses:
                yield f"{kind.__name__} {record.id} is {status}"
    for balance in run.all(VaultBalance):
        if balance.reserved_atomic:
            yield f"{balance.id} has {balance.reserved_atomic} reserved"
    for job in run.all(Job):
        if is_parked(job):
            yield f"the job {job.kind} of {job.subject} is parked"


class Books:
    """What is stored and what is on the chain, looked up by what a check needs."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.tokens = run.network.tip.state.tokens
        self.receipts_on_chain = {
            receipt.transaction.hash: receipt
            for block in run.network.blocks
            for receipt in block.receipts
        }

    def by_id(self, kind: type[R]) -> dict[str, R]:
        return {record.id: record for record in self.run.all(kind)}

    @cached_property
    def payments(self) -> dict[str, Payment]:
        return self.by_id(Payment)

    @cached_property
    def fundings(self) -> dict[str, FundingOperation]:
        return self.by_id(FundingOperation)

    @cached_property
    def refunds(self) -> dict[str, Refund]:
        return self.by_id(Refund)

    @cached_property
    def deposits(self) -> dict[str, Deposit]:
        return self.by_id(Deposit)

    @cached_property
    def vaults(self) -> dict[str, Vault]:
        return self.by_id(Vault)

    def has_moved(self, transfer: OutboundTransfer) -> bool:
        """Whether the owner of a transfer says that its money moved."""
        id = transfer.owner_id
        if transfer.purpose == "funding":
            return self.fundings[id].status == "confirmed"
        if transfer.purpose == "refund":
            return self.refunds[id].status == "succeeded"
        if transfer.purpose == "sweep":
            return self.deposits[id].status == "settled"
        payment = self.payments[id]
        paid_out = ("succeeded", "partially_refunded", "refunded")
        return payment.settled_atomic > 0 or (payment.fee_atomic > 0 and payment.status in paid_out)


def check_transfers(books: Books) -> Iterator[str]:
    """Each transfer of ours that its owner counts is on the chain once, and no other is."""
    transfers = books.by_id(OutboundTransfer)
    versions: dict[str, tuple[OutboundTransfer, bool]] = {
        str(one.transaction_hash): (one, True) for one in transfers.values()
    }
    for one in books.run.all(Replacement):
        versions[one.transaction_hash] = (transfers[one.outgoing_id], one.moves)
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for hash, receipt in books.receipts_on_chain.items():
        if not isinstance(receipt.transaction, OurTransaction):
            continue
        if hash not in versions:
            yield f"the transaction {hash} of ours is on the chain and not in the books"
            continue
        transfer, moves = versions[hash]
        if receipt.logs:
            found[transfer.purpose, transfer.owner_id].append(hash)
            if not moves:
                yield f"{hash} moved money, and was signed to move nothing"
    for transfer in transfers.values():
        hashes = found[transfer.purpose, transfer.owner_id]
        if len(hashes) != int(books.has_moved(transfer)):
            yield (
                f"{transfer.purpose} {transfer.owner_id}: {len(hashes)} transfers on the chain, "
                f"and the books say {books.has_moved(transfer)}"
            )


def check_token_balances(books: Books) -> Iterator[str]:
    """Every address holds what the records alone say, and an escrow what its journal says."""
    expected: Counter[tuple[str, str]] = Counter(books.run.initial)

    def move(source: str, recipient: str, amount: int, token: str = TOKEN) -> None:
        if source != FAUCET:
            expected[token, source] -= amount
        expected[token, recipient] += amount

    for receipt in books.receipts_on_chain.values():
        if isinstance(receipt.transaction, StrangersTransaction) and receipt.succeeded:
            for token, source, recipient, amount in receipt.transaction.moves:
                move(source, recipient, amount, token)
    for funding in books.fundings.values():
        if funding.status == "confirmed":
            escrow = books.payments[funding.payment_id].escrow_address
            move(books.vaults[funding.vault_id].address, str(escrow), int(funding.amount_atomic))
    for payment in books.payments.values():
        if payment.settled_atomic:
            source = payment.escrow_address
            if payment.intent == "send":
                assert payment.source is not None
                source = payment.source.address
            move(str(source), str(payment.destination.address), int(payment.settled_atomic))
    for refund in books.refunds.values():
        if refund.status == "succeeded":
            source = books.payments[refund.payment_id].escrow_address
            if refund.vault_id:
                source = books.vaults[refund.vault_id].address
            move(str(source), str(refund.destination), int(refund.amount_atomic))
    for deposit in books.deposits.values():
        if deposit.status == "settled":
            run = books.run
            vault = run.network.purse(run.environment_id, "vault", deposit.account_id)
            move(deposit.address, vault, int(deposit.amount_atomic))
    for key in expected.keys() | books.tokens.keys():
        if expected[key] != books.tokens.get(key, 0):
            yield f"{key} holds {books.tokens.get(key, 0)}, and the records say {expected[key]}"
    for payment in books.payments.values():
        if payment.escrow_address:
            held = books.tokens.get((TOKEN, payment.escrow_address), 0)
            if held != payment.books.held_atomic + payment.books.fees:
                yield f"the escrow of {payment.id} holds {held}, and its books {payment.books}"


def check_journals(books: Books) -> Iterator[str]:
    """The entries of a Payment are numbered without a gap and add up to its books."""
    entries: defaultdict[str, list[JournalEntry]] = defaultdict(list)
    for entry in books.run.all(JournalEntry):
        entries[entry.payment_id].append(entry)
    for payment in books.payments.values():
        sums: Counter[str] = Counter()
        for entry in entries[payment.id]:
            sums.update({name: int(amount) for name, amount in entry.postings.items()})
        for name, amount in attrs.asdict(payment.books).items():
            if sums[name] != amount:
                yield f"{payment.id}: the entries of {name} add up to {sums[name]}, not {amount}"
        numbers = sorted(entry.number for entry in entries[payment.id])
        if numbers != list(range(1, payment.entry_count + 1)):
            yield f"{payment.id} has the entries {numbers}"
        if min(payment.books.escrow, payment.books.excess, payment.books.recipient) < 0:
            yield f"{payment.id} has a negative balance: {payment.books}"


def check_receipts(books: Books) -> Iterator[str]:
    """Every log of the token to an escrow has one receipt, and no other log is verified."""
    escrows = {one.escrow_address: one for one in books.payments.values() if one.escrow_address}
    stored: defaultdict[tuple[str, int, str], list[Receipt]] = defaultdict(list)
    for receipt in books.run.all(Receipt):
        key = (str(receipt.transaction_hash), int(receipt.position or 0), receipt.payment_id)
        stored[key].append(receipt)
    seen = set()
    for hash, position, token, recipient, amount in _transfer_logs(books):
        if recipient not in escrows or token != TOKEN:
            continue
        key = (hash, position, escrows[recipient].id)
        seen.add(key)
        wanted = [("verified" if amount else "rejected", amount)]
        if [(one.status, one.amount_atomic) for one in stored[key]] != wanted:
            yield f"the log {key} of {amount} has the receipts {stored[key]}"
    for key, receipts in stored.items():
        if key not in seen and any(one.status == "verified" for one in receipts):
            yield f"the receipt of {key} is verified, and there is no such log"


def check_deposits(books: Books) -> Iterator[str]:
    """Every log of the token to a deposit address has one deposit, which came to its end."""
    for hash, position, token, recipient, amount in _transfer_logs(books):
        if recipient not in books.run.deposit_addresses or token != TOKEN or not amount:
            continue
        place = (hash, position, recipient)
        found = [
            one
            for one in books.deposits.values()
            if (one.transaction_hash, one.position, one.address) == place
        ]
        ends = [(one.amount_atomic, one.status in ("settled", "failed")) for one in found]
        if ends != [(amount, True)]:
            yield f"the deposit {place} of {amount}: {found}"


def check_requests(books: Books) -> Iterator[str]:
    """A request that was asked again made one Payment."""
    made = Counter(payment.reference for payment in books.payments.values())
    yield from (f"{name} made {count} Payments" for name, count in made.items() if count > 1)


def check_told_states(books: Books) -> Iterator[str]:
    """No version of anything is reported twice, and the last reported one is as stored."""
    reported: defaultdict[tuple[type[Record], str], list[Event]] = defaultdict(list)
    for event in books.run.all(Event):
        for field, kind in SUBJECTS:
            if field in event.payload:
                reported[kind, event.payload[field]].append(event)
                break
    stored = {kind: books.by_id(kind) for _, kind in SUBJECTS}
    for (kind, id), events in reported.items():
        record = stored[kind].get(id)
        if record is None:
            yield f"an event names {id}, which is not stored"
            continue
        versions = Counter((one.payload["statusVersion"], one.name) for one in events)
        yield from (f"{id} was reported twice: {it}" for it, count in versions.items() if count > 1)
        last = max(events, key=lambda one: one.payload["statusVersion"]).payload
        version, status = record.status_version, record.status  # type: ignore[attr-defined]
        if last["statusVersion"] == version and last["status"] != status:
            yield f"{id} was last reported as {last['status']}, and is {status}"


def check_timelines(books: Books) -> Iterator[str]:
    """Each status of a Payment has its event; an attempt that ended leaves it as it was."""
    reported: defaultdict[str, set[int]] = defaultdict(set)
    for event in books.run.all(Event):
        if "paymentId" in event.payload and "statusVersion" in event.payload:
            reported[event.payload["paymentId"]].add(event.payload["statusVersion"])
    for payment in books.payments.values():
        before = None
        for version, entry in enumerate(payment.timeline, start=1):
            is_return = before == "processing" and entry.status == "awaiting_payment"
            if version not in reported[payment.id] and not is_return:
                yield f"{payment.id}: no event reports version {version}, {entry.status}"
            before = entry.status


def check_deliveries(books: Books) -> Iterator[str]:
    """Every event was delivered, always as the same bytes, and nothing else was.

    The news that an endpoint fails are for the others, and here is one.
    """
    received = books.run.shop.received
    events = books.by_id(Event)
    for event in events.values():
        bodies = received.get(event.id, set())
        wanted = 0 if event.name in (FAILING, RECOVERED) else 1
        if len(bodies) != wanted:
            yield f"the event {event.id} ({event.name}) was delivered as {len(bodies)} bodies"
        elif bodies and json.loads(next(iter(bodies)))["payload"] != json.loads(
            json.dumps(dict(event.payload))
        ):
            yield f"the event {event.id} was delivered with another payload"
    yield from (f"a webhook of {id}, which is not an event" for id in received if id not in events)
    for delivery in books.run.all(Delivery):
        if delivery.status != "delivered":
            yield f"the delivery {delivery.id} is {delivery.status}"


def check_mandates(books: Books) -> Iterator[str]:
    """A mandate counts at least what was drawn in its period."""
    for mandate in books.run.all(Mandate):
        drawn = 0
        for funding in books.fundings.values():
            source = books.payments[funding.payment_id].source
            if (
                funding.status == "confirmed"
                and source is not None
                and source.mandate_id == mandate.id
                and source.reserved_at_ms is not None
                and period_start(mandate.period, source.reserved_at_ms) == mandate.period_start_ms
            ):
                drawn += int(funding.amount_atomic)
        if drawn > mandate.drawn_atomic:
            yield f"{mandate.id} counted {mandate.drawn_atomic}, and {drawn} was drawn"


def check_options(books: Books) -> Iterator[str]:
    """Every option came to its end."""
    for option in books.run.all(PaymentOption):
        if option.status not in ("succeeded", "expired", "failed", "cancelled"):
            yield f"the option {option.id} is {option.status}"


def _transfer_logs(books: Books) -> Iterator[tuple[str, int, str, str, int]]:
    """Hash, position, token, recipient and amount of every transfer's log."""
    for hash, receipt in books.receipts_on_chain.items():
        for position, log in enumerate(receipt.logs):
            if log["topics"][0] == network.TRANSFER:
                recipient = encode_checksum_address(bytes.fromhex(log["topics"][2][26:]))
                token = encode_checksum_address(bytes.fromhex(log["address"][2:]))
                yield hash, position, token, recipient, int(log["data"], 16)
