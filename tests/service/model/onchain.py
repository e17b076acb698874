"""What is true of the simulated chains' books beside ours, after every commit and at the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from payments_core.accounts.vaults.record import VaultBalance
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.chains.port import AddressSpec
from payments_core.chains.simulated.records import (
    SimulatedBalance,
    SimulatedLog,
    SimulatedTransaction,
)
from payments_core.chains.simulated.transfers import FAUCET
from payments_core.deposits.record import Deposit
from payments_core.onramps.record import BankTransaction
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.purged import PurgedPayment
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import SIMULATED
from payments_core.storage.records import Record
from tests.service.model.acceptance import newest_accepted
from tests.service.model.early import EARLY_ENDINGS, EARLY_INVARIANTS
from tests.service.model.index import LIVE_OPERATION, LIVE_REFUND, Wrong, reservations
from tests.service.model.mirror import Commit
from tests.service.model.misdirected import (
    MISDIRECTED_ENDINGS,
    MISDIRECTED_INVARIANTS,
    names_return,
    proven_amount,
    wanted_back,
)
from tests.service.model.model_world import ModelWorld
from tests.service.model.timing import TIME_INVARIANTS
from tests.service.model.values import only_what_came_back_was_returned
from tests.shipped import CHAINS

Purpose = tuple[str, str]
Holder = tuple[int, str, str]  # chain, token, address


class ChainIndex:
    """Who sent what to whom on the chains, and for which purpose; kept up with the commits."""

    def __init__(self) -> None:
        self.outgoing: dict[str, OutboundTransfer] = {}
        self.purposes: dict[str, Purpose] = {}
        self.sent_for: dict[Purpose, list[str]] = defaultdict(list)
        self.escrows: dict[str, str] = {}
        self.onramp_escrows: dict[str, str] = {}
        self.paid_in: Counter[Holder] = Counter()
        self.paid_out: Counter[Holder] = Counter()

    def keep_up(self, world: ModelWorld, commit: Commit) -> None:
        """Take in a commit."""
        for transaction in commit.inserted(BankTransaction):
            spec = AddressSpec(world.environment_id, "escrow", transaction.id)
            escrow = world.chains[transaction.destination.chain_id].derive(spec)
            self.onramp_escrows[escrow] = transaction.id
        for payment in commit.inserted(Payment):
            if payment.escrow_address is not None:
                self.escrows[payment.escrow_address] = payment.id
        for purged in commit.inserted(PurgedPayment):
            del self.escrows[purged.escrow_address]
        for outgoing in commit.inserted(OutboundTransfer):
            for purpose in _purposes(commit, outgoing.id):
                self.purposes[outgoing.id] = purpose
                self.sent_for[purpose].append(outgoing.id)
        for outgoing in commit.after(OutboundTransfer):
            if outgoing.transaction_hash is not None:
                self.outgoing[outgoing.transaction_hash] = outgoing
        self.count_transfers(commit)

    def count_transfers(self, commit: Commit) -> None:
        """Take in what a commit of the simulated chains moved."""
        for before, after in commit.changes:
            self._moved(before, -1)
            self._moved(after, 1)

    def _moved(self, record: object, sign: int) -> None:
        if not isinstance(record, SimulatedTransaction):
            return
        for log in record.logs:
            self.paid_out[record.chain_id, log.token_address, log.sender] += (
                sign * log.amount_atomic
            )
            self.paid_in[record.chain_id, log.token_address, log.recipient] += (
                sign * log.amount_atomic
            )

    def held(self, chain_id: int, token: str, address: str) -> int:
        """What an address has at the newest block."""
        holder = (chain_id, token, address)
        return self.paid_in[holder] - self.paid_out[holder]


def _purposes(commit: Commit, outgoing_id: str) -> Iterator[Purpose]:
    for _, record in commit.changes:
        if isinstance(record, FundingOperation) and record.outgoing_id == outgoing_id:
            yield "funding", record.id
        if isinstance(record, Refund) and record.outgoing_id == outgoing_id:
            yield "refund", record.id
        if isinstance(record, Payment) and record.release_id == outgoing_id:
            yield "release", record.id
        if isinstance(record, Deposit) and record.sweep_id == outgoing_id:
            yield "sweep", record.id
        if isinstance(record, Receipt) and names_return(record.sent_back, outgoing_id):
            yield "return", record.id
        if isinstance(record, Deposit) and names_return(record.sent_back, outgoing_id):
            assert record.sent_back is not None
            to_vault = record.sent_back.continues_as is not None
            yield ("carry" if to_vault else "give back"), record.id
        if isinstance(record, BankTransaction) and record.credit_id == outgoing_id:
            yield "credit", record.id


def on_chain(world: ModelWorld, chain_id: int, hash: str | None) -> SimulatedTransaction | None:
    """A transaction, if it is in the chain."""
    rows = world.mirror.all(SIMULATED, SimulatedTransaction)
    return rows.get(f"{chain_id}:{hash}")


# After every commit.


def intents_have_one_owner(world: ModelWorld, index: ChainIndex, commit: Commit) -> Wrong:
    """A transfer of ours is made for exactly one purpose, in the commit that needs it."""
    for outgoing in commit.inserted(OutboundTransfer):
        if len(list(_purposes(commit, outgoing.id))) != 1:
            yield f"{outgoing.id} is for {list(_purposes(commit, outgoing.id))}"


def no_second_transfer_beside_a_first(
    world: ModelWorld, index: ChainIndex, commit: Commit
) -> Wrong:
    """Another transfer for the same purpose only after the one before can no longer succeed."""
    for outgoing in commit.inserted(OutboundTransfer):
        if outgoing.chain_id in world.reorged_deeply:
            continue
        for earlier_id in index.sent_for[index.purposes.get(outgoing.id, ("", ""))]:
            earlier = world.all(OutboundTransfer)[earlier_id]
            if earlier_id == outgoing.id or earlier.status == "withdrawn":
                continue
            row = on_chain(world, outgoing.chain_id, earlier.transaction_hash)
            if row is None or row.succeeded or not _is_final(world, row):
                yield f"{outgoing.id} for {index.purposes[outgoing.id]} beside {earlier_id}"


def bytes_are_stored_before_they_are_sent(
    world: ModelWorld, index: ChainIndex, commit: Commit
) -> Wrong:
    """What a chain includes of ours is known to the outbox, unless it only fills a slot."""
    for row in commit.inserted(SimulatedTransaction):
        moves = any(log.amount_atomic for log in row.logs)
        if moves and row.sender is not None and row.hash not in index.outgoing:
            yield f"{row.hash} is in the chain, and nobody stored it"


def escrows_pay_out_what_is_proven(world: ModelWorld, index: ChainIndex, commit: Commit) -> Wrong:
    """Nothing leaves an escrow, in whatever block, before so much was verified."""
    for row in commit.inserted(SimulatedTransaction):
        for log in row.logs:
            payment_id = index.escrows.get(log.sender)
            if payment_id is None or world.is_shaken(world.all(Payment)[payment_id]):
                continue
            payment = world.all(Payment)[payment_id]
            proven = proven_amount(world, payment, row.chain_id, log.token_address)
            paid_out = index.paid_out[row.chain_id, log.token_address, log.sender]
            if paid_out > proven:
                yield f"{payment.id} received {proven} and paid out {paid_out}"


def on_ramps_deliver_and_credit_once(world: ModelWorld, index: ChainIndex, commit: Commit) -> Wrong:
    """The escrow of a bank transfer gets the transfer's amount once, and pays it out once."""
    for row in commit.inserted(SimulatedTransaction):
        for log in row.logs:
            for address, paid in ((log.recipient, index.paid_in), (log.sender, index.paid_out)):
                id = index.onramp_escrows.get(address)
                if id is None or row.chain_id in world.reorged_deeply:
                    continue
                transaction = world.all(BankTransaction)[id]
                moved = paid[row.chain_id, log.token_address, address]
                if moved > transaction.amount_cents * 10_000:
                    yield f"{id} of {transaction.amount_cents} moved {moved}"


def verified_is_final(world: ModelWorld, index: ChainIndex, commit: Commit) -> Wrong:
    """A receipt that counts is a log of the right kind, in a block that its Payment accepts."""
    for receipt in commit.after(Receipt):
        payment = world.all(Payment)[receipt.payment_id]
        if receipt.status == "verified" and not world.is_shaken(payment):
            yield from _proof(world, receipt)


def reservations_are_covered(world: ModelWorld, index: ChainIndex, commit: Commit) -> Wrong:
    """What is reserved is in the vault, or has left it in a transfer of its own."""
    for balance in commit.after(VaultBalance):
        chain_id, symbol = balance.asset_id.split("/")
        if int(chain_id) in world.reorged_deeply or not balance.reserved_atomic:
            continue
        token = next(a.address for a in CHAINS[int(chain_id)].tokens if a.symbol == symbol)
        vaults = world.vaults()
        address = vaults[balance.id.split("/")[0]]
        under_way = sum(
            outgoing.amount_atomic
            for outgoing in world.all(OutboundTransfer).values()
            if (outgoing.source.address, outgoing.token_address) == (address, token)
            and outgoing.chain_id == int(chain_id)
            and (row := on_chain(world, outgoing.chain_id, outgoing.transaction_hash)) is not None
            and row.succeeded
            and _is_live(world, index, outgoing.id)
        )
        if balance.reserved_atomic > index.held(int(chain_id), token, address) + under_way:
            yield f"{balance.id} reserves {balance.reserved_atomic}, which is not there"


def _is_live(world: ModelWorld, index: ChainIndex, outgoing_id: str) -> bool:
    family, id = index.purposes[outgoing_id]
    if family == "funding":
        return world.all(FundingOperation)[id].status in LIVE_OPERATION
    if family == "refund":
        return world.all(Refund)[id].status in LIVE_REFUND
    return family == "release" and bool(list(reservations(world.all(Payment)[id])))


def _proof(world: ModelWorld, receipt: Receipt) -> Wrong:
    payment = world.all(Payment)[receipt.payment_id]
    row = on_chain(world, receipt.chain_id, receipt.transaction_hash)
    if row is None or not _is_accepted(world, payment, row):
        yield f"{receipt.id} is verified, and does not count on the chain"
        return
    if receipt.position >= len(row.logs):
        yield f"{receipt.id} is verified, and its transaction moved nothing"
        return
    log = row.logs[receipt.position]
    wanted = (payment.asset.address, payment.escrow_address, receipt.amount_atomic)
    if (log.token_address, log.recipient, log.amount_atomic) != wanted or not log.amount_atomic:
        yield f"{receipt.id} is verified, and the log says {log}"
    if receipt.chain_id != payment.chain_id or receipt.log_index != row.log_index:
        yield f"{receipt.id} is verified, and lies elsewhere"


def _is_accepted(world: ModelWorld, payment: Payment, row: SimulatedTransaction) -> bool:
    newest = newest_accepted(payment, world.chains[row.chain_id].peek_heads())
    return row.block_number <= newest or _is_final(world, row)


def _is_final(world: ModelWorld, row: SimulatedTransaction) -> bool:
    return row.block_number <= world.chains[row.chain_id].peek_heads().final.number


CHAIN_INVARIANTS: tuple[Callable[[ModelWorld, ChainIndex, Commit], Wrong], ...] = (
    intents_have_one_owner,
    no_second_transfer_beside_a_first,
    bytes_are_stored_before_they_are_sent,
    escrows_pay_out_what_is_proven,
    *MISDIRECTED_INVARIANTS,
    *EARLY_INVARIANTS,
    *TIME_INVARIANTS,
    only_what_came_back_was_returned,
    on_ramps_deliver_and_credit_once,
    verified_is_final,
    reservations_are_covered,
)


# When everything has come to its end.


def nothing_is_under_way(world: ModelWorld, index: ChainIndex) -> Wrong:
    """Left alone, everything comes to an end."""
    for kind, live in _LIVE.items():
        for id, record in world.all(kind).items():
            if getattr(record, "status", None) in live:
                yield f"{id} is still {getattr(record, 'status', None)}"
    for payment in world.all(Payment).values():
        if payment.authorized or payment.sighted:
            yield f"{payment.id} still waits for {payment.authorized} {payment.sighted}"
    for owner in (*world.all(Receipt).values(), *world.all(Deposit).values()):
        if owner.sent_back is not None and owner.sent_back.is_under_way:
            yield f"{owner.id} is still on its way back: {owner.sent_back}"
    for transaction in world.all(BankTransaction).values():
        is_kept = transaction.type == "micro_deposit" and transaction.status == "received"
        if transaction.status not in ("settled", "refunded", "failed") and not is_kept:
            yield f"{transaction.id} is still {transaction.status}"
    for balance in world.all(VaultBalance).values():
        if balance.reserved_atomic:
            yield f"{balance.id} still reserves {balance.reserved_atomic}"


_LIVE: dict[type[Record], tuple[str, ...]] = {
    FundingOperation: (*LIVE_OPERATION, "awaiting_authorization"),
    PaymentOption: ("creating", "pending", "processing"),
    Refund: LIVE_REFUND,
    Payment: ("awaiting_payment", "processing", "accepted", "executing"),
    Deposit: ("detected", "confirmed"),
    Receipt: ("observed",),
    OutboundTransfer: ("queued", "reserved"),
}


def escrows_hold_what_the_books_say(world: ModelWorld, index: ChainIndex) -> Wrong:
    """The escrow address has what the books hold and the fees, in the Payment's own token."""
    for payment in world.all(Payment).values():
        if payment.escrow_address is None:
            continue
        there = index.held(payment.chain_id, payment.asset.address, payment.escrow_address)
        if there != payment.books.held_atomic + payment.books.fees:
            yield f"{payment.id} has {payment.books}, and {there} is there"


def receipts_are_what_the_chain_shows(world: ModelWorld, index: ChainIndex) -> Wrong:
    """Every transfer to an escrow has its receipt, and every verified receipt its transfer."""
    receipts = {
        (r.chain_id, r.transaction_hash, r.position): r for r in world.all(Receipt).values()
    }
    for receipt in receipts.values():
        if receipt.status == "verified":
            yield from _proof(world, receipt)
    for row, position, log in _logs(world):
        if log.recipient in index.escrows:
            known = receipts.get((row.chain_id, row.hash, position))
            if known is None or known.status not in ("verified", "rejected"):
                yield f"{row.hash} is {known.status if known else 'unknown'} to its escrow"
            elif (known.status == "verified") != _counts(world, index, row.chain_id, log):
                yield f"{known.id} is {known.status} ({known.rejection_reason})"


def _counts(world: ModelWorld, index: ChainIndex, chain_id: int, log: SimulatedLog) -> bool:
    payment = world.all(Payment)[index.escrows[log.recipient]]
    asset = payment.asset
    return (chain_id, log.token_address) == (
        asset.chain_id,
        asset.address,
    ) and log.amount_atomic > 0


def transfers_to_purged_escrows_raise_alarms(world: ModelWorld, index: ChainIndex) -> Wrong:
    """What arrives at the escrow of a Payment that is gone has an alarm, which names it."""
    purged = {one.escrow_address: one.id for one in world.all(PurgedPayment).values()}
    for row, _, log in _logs(world):
        id = purged.get(log.recipient)
        if id is not None and not any(
            row.hash in reported and id in reported for reported in world.alarms
        ):
            yield f"{row.hash} is to the escrow of {id}, and no alarm names it"


def deposits_are_what_the_chain_shows(world: ModelWorld, index: ChainIndex) -> Wrong:
    """Every transfer to a deposit address has its deposit, of that amount."""
    deposits = {
        (d.chain_id, d.transaction_hash, d.position): d for d in world.all(Deposit).values()
    }
    for row, position, log in _logs(world):
        if log.recipient not in world.deposit_addresses or not log.amount_atomic:
            continue
        known = deposits.get((row.chain_id, row.hash, position))
        if known is None:
            yield f"{row.hash} is not a deposit"
        elif known.amount_atomic != log.amount_atomic or known.failure == "reorged":
            yield f"{known.id} is {known.status} ({known.failure}) of {known.amount_atomic}"


def transfers_did_what_the_books_say(world: ModelWorld, index: ChainIndex) -> Wrong:
    """What the books call done is done on the chain, once; what they do not is not."""
    for purpose, ids in index.sent_for.items():
        sent = [world.all(OutboundTransfer)[id] for id in ids]
        # A payment did what its receipts say, and a sweep may have moved another deposit's funds.
        if purpose[0] in ("funding", "sweep") and sent[0].chain_id in world.reorged_deeply:
            continue
        done = [
            (
                row.logs[-1].recipient,
                int(row.logs[-1].amount_atomic),
            )  # before it, to the one who pays
            for outgoing in sent
            if (row := on_chain(world, outgoing.chain_id, outgoing.transaction_hash)) is not None
            and row.logs
        ]
        if done != _wanted(world, *purpose):
            yield f"{purpose} did {done}, and the books say {_wanted(world, *purpose)}"


def _wanted(world: ModelWorld, family: str, id: str) -> list[tuple[str, int]]:
    if family == "funding":
        operation = world.all(FundingOperation)[id]
        payment = world.all(Payment)[operation.payment_id]
        done = operation.status == "confirmed"
        return [(str(payment.escrow_address), int(operation.amount_atomic))] if done else []
    if family == "refund":
        refund = world.all(Refund)[id]
        return [(refund.destination, refund.amount_atomic)] if refund.status == "succeeded" else []
    if family == "sweep":
        deposit = world.all(Deposit)[id]
        account = next(a for a in world.accounts if a.id == deposit.account_id)
        done = deposit.status == "settled"
        return [(world.vault_address(account), int(deposit.amount_atomic))] if done else []
    if family in ("return", "carry", "give back"):
        return wanted_back(world, family, id)
    if family == "credit":
        transaction = world.all(BankTransaction)[id]
        done = transaction.status == "settled"
        return [(transaction.destination.address, transaction.amount_atomic)] if done else []
    payment = world.all(Payment)[id]
    if payment.payout is not None:  # to the off-ramp address, whatever the bank did
        drawn = payment.refunded_atomic - payment.books.payer
        return [(payment.destination.address, int(drawn))] if drawn else []
    return (
        [(payment.destination.address, int(payment.settled_atomic))]
        if payment.settled_atomic
        else []
    )


def no_token_is_lost_or_made(world: ModelWorld, index: ChainIndex) -> Wrong:
    """What all holders have is what the faucet gave."""
    total: Counter[str] = Counter()
    for id, balance in world.mirror.all(SIMULATED, SimulatedBalance).items():
        token, _, holder = id.rpartition(":")
        if holder == FAUCET:
            continue
        total[token] += balance.total_atomic
        if balance.total_atomic < 0:
            yield f"{id} has {balance.total_atomic}"
    for chain_id, token, sender in list(index.paid_out):
        given = -index.held(chain_id, token, FAUCET)
        if sender == FAUCET and given != total[f"{chain_id}:{token}"]:
            yield f"{chain_id}:{token} has {total[f'{chain_id}:{token}']} of {given}"


def _logs(world: ModelWorld) -> Iterator[tuple[SimulatedTransaction, int, SimulatedLog]]:
    for row in world.mirror.all(SIMULATED, SimulatedTransaction).values():
        for position, log in enumerate(row.logs):
            yield row, position, log


ENDINGS: tuple[Callable[[ModelWorld, ChainIndex], Wrong], ...] = (
    nothing_is_under_way,
    escrows_hold_what_the_books_say,
    *MISDIRECTED_ENDINGS,
    *EARLY_ENDINGS,
    receipts_are_what_the_chain_shows,
    transfers_to_purged_escrows_raise_alarms,
    deposits_are_what_the_chain_shows,
    transfers_did_what_the_books_say,
    no_token_is_lost_or_made,
)
