"""What arrives and does not count: who sends it back, and what is true of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import UNSET

from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.deposits.record import Deposit
from payments_core.engine.events import Event
from payments_core.misdirected.record import SentBack
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from tests.service.model.index import Wrong
from tests.service.model.mirror import Commit
from tests.service.model.model_world import NOBODY, WALLETS, WATCHED, ModelWorld
from tests.shipped import token_of as find_token

if TYPE_CHECKING:
    from tests.service.model.onchain import ChainIndex

# What payers and callers do.


def send_as_nobody(
    world: ModelWorld, rng: random.Random, chain_id: int, symbol: str, amount: int, to: str
) -> None:
    """A transfer from an address that nobody holds: a chain may name it, the sandbox does not."""
    source, token = rng.choice(NOBODY), find_token(chain_id, symbol).address
    world.chains[chain_id].transfer(token, source, to, amount, world.name("transfer"))
    world.processes[0].service.parts.scanner("sandbox").wake(chain_id)


def return_misdirected(world: ModelWorld, rng: random.Random) -> None:
    """What does not count goes back, to its sender or to somebody who is named; at times twice."""
    receipts = list(world.all(Receipt).values())
    chosen = [r for r in receipts if r.status == "rejected" and r.amount_atomic and not _is_back(r)]
    if not receipts:
        return
    receipt = rng.choice(chosen[-3:] if chosen and rng.random() < 0.8 else receipts[-5:])
    destination = rng.choice((UNSET, UNSET, rng.choice(WALLETS), rng.choice(NOBODY)))
    for _ in range(rng.choice((1, 1, 2))):
        done = world.tried(
            rng,
            "reconcile return_misdirected",
            lambda service, key: service.acting_as(world.server).payments.reconcile(
                receipt.payment_id,
                "return_misdirected",
                receipt_id=receipt.id,
                destination=destination,
                idempotency_key=key,
            ),
        )
        if done is not None:
            world.tally["reconcile return_misdirected"] += 1


def return_deposit(world: ModelWorld, rng: random.Random) -> None:
    """A deposit that is credited to nobody goes back; at times twice."""
    rejected = [d for d in world.all(Deposit).values() if d.rejection_reason or d.sent_back]
    if not rejected:
        return
    deposit = rng.choice(rejected[-5:])
    destination = rng.choice((UNSET, UNSET, rng.choice(WALLETS), rng.choice(NOBODY)))
    for _ in range(rng.choice((1, 1, 2))):
        world.tried(
            rng,
            "return_deposit",
            lambda service, key: service.acting_as(world.server).deposits.send_back(
                deposit.account_id, deposit.id, destination, idempotency_key=key
            ),
        )


def _is_back(receipt: Receipt) -> bool:
    return receipt.sent_back is not None and receipt.sent_back.status == "succeeded"


RETURNS: tuple[tuple[int, Callable[[ModelWorld, random.Random], None]], ...] = (
    (6, return_misdirected),
    (4, return_deposit),
)
"""How often each of them, among all rules."""

# After every commit.


def nothing_goes_where_nobody_is(world: ModelWorld, index: ChainIndex, commit: Commit) -> Wrong:
    """No transfer of ours is to an address that only a chain names."""
    for outgoing in commit.inserted(OutboundTransfer):
        if outgoing.recipient in NOBODY and outgoing.module is None:
            yield f"{outgoing.id} goes to {outgoing.recipient}"


def what_does_not_count_is_counted_apart(
    world: ModelWorld, index: ChainIndex, commit: Commit
) -> Wrong:
    """A Payment knows how many receipts hold something that does not count."""
    ids = {payment.id for payment in commit.after(Payment)}
    ids |= {receipt.payment_id for receipt in commit.after(Receipt)}
    for id in sorted(ids):
        payment = world.all(Payment)[id]
        held = [r for r in world.all(Receipt).values() if r.payment_id == id and holds(world, r)]
        if payment.misdirected != len(held):
            yield f"{id} counts {payment.misdirected}, and {len(held)} receipts hold something"
        if held and (
            "misdirected" not in payment.labels or payment.reconciliation.status != "open"
        ):
            is_given_up = payment.reconciliation.resolution == "write_off"
            if "misdirected" not in payment.labels or not is_given_up:
                yield f"{id} holds what does not count, and says nothing of it"


def names_return(sent_back: SentBack | None, outgoing_id: str) -> bool:
    """Whether a transfer is the newest that sends something back."""
    return sent_back is not None and sent_back.outgoing_id == outgoing_id


def proven_amount(world: ModelWorld, payment: Payment, chain_id: int, token: str) -> int:
    """What receipts have proven of a token at a Payment's escrow."""
    if (chain_id, token) == token_of(payment):
        return payment.received_atomic
    return sum(
        receipt.amount_atomic
        for receipt in world.all(Receipt).values()
        if receipt.payment_id == payment.id
        and is_misdirected(world, receipt)
        and (receipt.chain_id, receipt.token_address) == (chain_id, token)
    )


def is_misdirected(world: ModelWorld, receipt: Receipt) -> bool:
    """Whether a receipt is of something of worth that cannot count."""
    payment = world.all(Payment)[receipt.payment_id]
    return (
        receipt.status == "rejected"
        and receipt.amount_atomic > 0
        and (receipt.chain_id, receipt.token_address) != token_of(payment)
        and receipt.rejection_reason != "transaction_failed"
    )


def holds(world: ModelWorld, receipt: Receipt) -> bool:
    is_back = receipt.sent_back is not None and receipt.sent_back.status == "succeeded"
    return is_misdirected(world, receipt) and not is_back


def token_of(payment: Payment) -> tuple[int, str]:
    return payment.chain_id, payment.asset.address


MISDIRECTED_INVARIANTS: tuple[Callable[[ModelWorld, ChainIndex, Commit], Wrong], ...] = (
    nothing_goes_where_nobody_is,
    what_does_not_count_is_counted_apart,
)

# When everything has come to its end.


def escrows_hold_what_does_not_count(world: ModelWorld, index: ChainIndex) -> Wrong:
    """What arrived and does not count is at the escrow until it was sent back, once."""
    held: Counter[tuple[int, str, str]] = Counter()
    for receipt in world.all(Receipt).values():
        if holds(world, receipt):
            held[receipt.chain_id, receipt.token_address, receipt.recipient] += (
                receipt.amount_atomic
            )
    for chain_id, token, address in list(index.paid_in):
        payment = world.all(Payment).get(index.escrows.get(address, ""))
        if payment is None or (chain_id, token) == token_of(payment):
            continue
        there = index.held(chain_id, token, address)
        if there != held[chain_id, token, address]:
            wanted = held[chain_id, token, address]
            yield f"{payment.id}: {there} of {token} is there, and not {wanted}"


def watched_deposits_are_reported(world: ModelWorld, index: ChainIndex) -> Wrong:
    """A token of the watch list at a deposit address is rejected, and said to be there, or to be
    back."""
    tokens = {(token.chain_id, token.address) for token in WATCHED}
    told: dict[str, dict[str, int]] = {"deposit.misdirected": {}, "deposit.returned": {}}
    for event in world.all(Event).values():
        if event.name in told:
            newest, id = told[event.name], event.payload["depositId"]
            newest[id] = max(newest.get(id, 0), event.payload["statusVersion"])
    named, returned = told["deposit.misdirected"], told["deposit.returned"]
    for deposit in world.all(Deposit).values():
        is_watched = (deposit.chain_id, deposit.asset.address) in tokens
        if is_watched and deposit.status not in ("rejected", "failed"):
            yield f"{deposit.id} of {deposit.asset.symbol} is {deposit.status}"
        if deposit.status == "rejected" and (not is_watched or deposit.id not in named):
            yield f"{deposit.id} is rejected, and nobody was told"
        is_back = deposit.sent_back is not None and deposit.sent_back.status == "succeeded"
        if is_back != (returned.get(deposit.id, 0) > named.get(deposit.id, 0)):
            yield f"{deposit.id}: {'nobody was told that it is back' if is_back else 'not back'}"


def wanted_back(world: ModelWorld, family: str, id: str) -> list[tuple[str, int]]:
    owner = world.all(Receipt)[id] if family == "return" else world.all(Deposit)[id]
    sent_back = owner.sent_back
    assert sent_back is not None
    if family == "carry":
        assert isinstance(owner, Deposit)
        account = next(a for a in world.accounts if a.id == owner.account_id)
        done = sent_back.swept_by is not None
        return [(world.vault_address(account), int(owner.amount_atomic))] if done else []
    done = sent_back.status == "succeeded"
    return [(sent_back.destination, int(owner.amount_atomic))] if done else []


MISDIRECTED_ENDINGS: tuple[Callable[[ModelWorld, ChainIndex], Wrong], ...] = (
    escrows_hold_what_does_not_count,
    watched_deposits_are_reported,
)
