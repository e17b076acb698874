"""What networks add that accept Payments by amount before their own finality: reorgs through each
row, and what must hold then."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from payments_core.chains import scanner
from payments_core.chains.simulated.blocks import CONFIRMATIONS
from payments_core.chains.simulated.records import SimulatedBalance, SimulatedTransaction
from payments_core.chains.simulated.transfers import FAUCET
from payments_core.money import format_amount
from payments_core.payments.record import Payment
from payments_core.payments.refunding.operations import NewRefund
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import SIMULATED
from tests.service.model.acceptance import newest_accepted
from tests.service.model.index import Wrong
from tests.service.model.mirror import Commit
from tests.service.model.model_world import WALLETS, ModelWorld
from tests.service.model.rules import receive

if TYPE_CHECKING:
    from tests.service.model.onchain import ChainIndex


@contextmanager
def forgetful(world: ModelWorld) -> Iterator[None]:
    """In some worlds scans remember one block only: they notice no reorg by themselves."""
    remembered = scanner.RING_BLOCKS
    scanner.RING_BLOCKS = 1 if world.is_forgetful else remembered
    try:
        yield
    finally:
        scanner.RING_BLOCKS = remembered


# What happens.


def accept_and_reorg(world: ModelWorld, rng: random.Random) -> None:
    """A Payment is paid, accepted, released, perhaps refunded; a reorg goes through its row."""
    waiting = _waiting(world)
    if not waiting or rng.random() < 0.5:
        receive(world, rng)
        waiting = _waiting(world)
    if not waiting:
        return
    payment, process = waiting[-1], rng.choice(world.processes)
    if rng.random() < 0.3:  # what comes now is late, and can be refunded at once
        world.tried(
            rng,
            "cancel",
            lambda service, key: service.acting_as(world.server).payments.cancel(
                payment.id, idempotency_key=key
            ),
        )
    for _ in range(rng.choice((1, 1, 2))):
        world.sandbox().transfer(
            world.server,
            payment.chain_id,
            payment.asset_symbol,
            format_amount(payment.amount_atomic // rng.choice((1, 1, 1, 2)), payment.decimals),
            to=str(payment.escrow_address),
            from_=rng.choice((None, *WALLETS)),
        )
        if rng.random() < 0.3:
            process.advance(rng.randint(1, CONFIRMATIONS))
    process.worker.run_until_idle()
    process.advance(rng.choice((0, 0, 1, 1, 2, CONFIRMATIONS)))
    after = world.all(Payment)[payment.id]
    if after.early_acceptance is not None:
        world.tally[f"early {after.status} at a reorg"] += 1
    if rng.random() < 0.5 and after.status in ("action_required", "succeeded"):
        if after.status == "succeeded" and after.destination.account_id is not None:
            world.mint(after.asset, after.destination.address, 5)
        world.tried(
            rng,
            "refund",
            lambda service, key: service.acting_as(world.server).payments.refund(
                after.id, NewRefund(), idempotency_key=key
            ),
        )
        process.worker.run_due(rng.randint(0, 6))
    world.reorg(payment.chain_id, rng.randint(1, CONFIRMATIONS), reinclude=rng.random() < 0.4)
    process.advance(rng.choice((0, 1, 3, 20)))


def _waiting(world: ModelWorld) -> list[Payment]:
    return [
        payment
        for payment in world.all(Payment).values()
        if payment.status == "awaiting_payment" and payment.escrow_address is not None
    ]


EARLY_HAPPENINGS: tuple[tuple[int, Callable[[ModelWorld, random.Random], None]], ...] = (
    (8, accept_and_reorg),
)


# What must hold.


def refunds_return_what_is_final(world: ModelWorld, index: ChainIndex, commit: Commit) -> Wrong:
    """Nobody gets back, from an escrow or from a vault, what has not come for good."""
    for row in commit.inserted(SimulatedTransaction):
        outgoing = index.outgoing.get(row.hash)
        id = None if outgoing is None else _payment_of(world, index, outgoing.id)
        if id is None or not row.succeeded or row.chain_id in world.reorged_deeply:
            continue
        payment = world.all(Payment)[id]
        if payment.escrow_address is None:
            continue
        final = world.chains[row.chain_id].peek_heads().final.number
        came = went_back = 0
        for other in world.mirror.all(SIMULATED, SimulatedTransaction).values():
            if other.chain_id != row.chain_id or not other.succeeded:
                continue
            if other.block_number <= final:
                came += sum(
                    log.amount_atomic
                    for log in other.logs
                    if (log.recipient, log.token_address)
                    == (payment.escrow_address, payment.token_address)
                )
            sent = index.outgoing.get(other.hash)
            if sent is not None and _payment_of(world, index, sent.id) == payment.id:
                went_back += sent.amount_atomic
        if went_back > came:
            yield f"{payment.id} gave back {went_back}, and {came} has come for good"


def _payment_of(world: ModelWorld, index: ChainIndex, outgoing_id: str) -> str | None:
    """The Payment that a refund is of; None of any other transfer."""
    family, id = index.purposes[outgoing_id]
    return world.all(Refund)[id].payment_id if family == "refund" else None


def releases_count_when_payments_succeed(
    world: ModelWorld, index: ChainIndex, commit: Commit
) -> Wrong:
    """A Payment succeeds with a release that is in a block which the Payment accepts."""
    for before, payment in commit.replaced(Payment):
        if payment.status != "succeeded" or before.status == payment.status:
            continue
        if payment.intent == "send" or before.status != "executing" or world.is_shaken(payment):
            continue
        rows = world.mirror.all(SIMULATED, SimulatedTransaction)
        row = rows.get(f"{payment.chain_id}:{payment.release_hash}")
        heads = world.chains[payment.chain_id].peek_heads()
        newest = max(newest_accepted(payment, heads), heads.final.number)
        if row is None or not row.succeeded or row.block_number > newest:
            yield f"{payment.id} succeeded, and its release does not count"


def nobody_holds_less_than_nothing(world: ModelWorld, index: ChainIndex, commit: Commit) -> Wrong:
    """The funds of escrows, vaults and operators are never below zero on the chain."""
    for balance in commit.after(SimulatedBalance):
        if balance.total_atomic < 0 and not balance.id.endswith(f":{FAUCET}"):
            yield f"{balance.id} has {balance.total_atomic}"


def no_books_end_overdrawn(world: ModelWorld, index: ChainIndex) -> Wrong:
    """Whatever was undone before it was final, in the end the books hold nothing below zero."""
    for payment in world.all(Payment).values():
        books = payment.books
        least = min(
            books.held_atomic, books.recipient, books.fees, books.bank, payment.received_atomic
        )
        if least < 0 and payment.chain_id not in world.reorged_deeply:
            yield f"{payment.id} ends with {books}"


EARLY_INVARIANTS: tuple[Callable[[ModelWorld, ChainIndex, Commit], Wrong], ...] = (
    refunds_return_what_is_final,
    releases_count_when_payments_succeed,
    nobody_holds_less_than_nothing,
)
EARLY_ENDINGS: tuple[Callable[[ModelWorld, ChainIndex], Wrong], ...] = (no_books_end_overdrawn,)
