"""What happens with banks: payouts and what comes of them, and transfers to on-ramps."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import attrs

from payments_core.banks.incoming import IncomingRail
from payments_core.banks.port import BankRefused, BankUnavailable
from payments_core.banks.simulated.arrivals import ArrivalOutcome, NewArrival, plan_notices
from payments_core.banks.simulated.bank import BANK_CALLS
from payments_core.banks.simulated.incoming import FUNDING_CALLS
from payments_core.banks.simulated.incoming_records import (
    SimulatedIncoming,
    SimulatedIncomingNotice,
)
from payments_core.banks.simulated.records import SimulatedPayout
from payments_core.chains.simulated.blocks import CONFIRMATIONS
from payments_core.clock import DAY, HOUR, SECOND
from payments_core.networks import Asset
from payments_core.onramps.record import BankTransaction, OnrampAccount
from payments_core.payments.destinations import ToBankAccount
from payments_core.payments.record import Payment
from payments_core.payments.refunding.reconciliation_rules import ReconciliationAction
from payments_core.payments.sends import NewSend
from payments_core.storage.port import SIMULATED, UniqueConflict
from tests.service.faults import Fault
from tests.service.model.bank import bank_answer_lost, bank_away
from tests.service.model.model_world import ASSETS, BASE, ModelWorld, Process
from tests.service.world import write

Act = Callable[[ModelWorld, random.Random], None]

# Callers.


def pay_out(world: ModelWorld, rng: random.Random) -> None:
    """A Payment from a vault to a bank account, rather of its own."""
    account, bank_account_id = rng.choice(world.bank_accounts)
    if rng.random() < 0.05:
        account = rng.choice(world.accounts)
    asset: Asset = ASSETS[rng.choice((0, 0, 0, 0, 0, 0, 1, 2))]
    rail = rng.choice(("ach", "ach", "ach", "wire"))
    new = NewSend(
        amount=rng.choice(("0.01", "0.5", "1", "2", "2", "5", "5", "7.5", "3.333333", "300")),
        account_id=account.id,
        destination=ToBankAccount(bank_account_id=bank_account_id, rail=rail),
        chain_id=asset.chain_id,
        asset_symbol=asset.symbol,
        reference=world.name("reference"),
    )
    world.tried(
        rng,
        "pay_out",
        lambda service, key: service.acting_as(world.server).payments.send(
            new, idempotency_key=key
        ),
    )


def decide_payout(world: ModelWorld, rng: random.Random) -> None:
    """What becomes of a payout that the bank refused or returned."""
    payments = [
        payment
        for payment in world.all(Payment).values()
        if payment.payout is not None and payment.status == "action_required"
    ]
    if not payments:
        return
    payment = rng.choice(payments)
    action: ReconciliationAction = rng.choice(
        ("retry_execution", "retry_execution", "retry_execution", "refund", "refund", "write_off")
    )
    done = world.tried(
        rng,
        f"reconcile {action}",
        lambda service, key: service.acting_as(world.server).payments.reconcile(
            payment.id, action, idempotency_key=key
        ),
    )
    if done is not None:
        world.tally[f"payout {action}"] += 1


# The bank: payouts.


def settle_payout(world: ModelWorld, rng: random.Random) -> None:
    """The recipient's bank has a payout, ahead of its time."""
    _change_payout(world, rng, world.bank.payouts.settle_payout)


def return_payout(world: ModelWorld, rng: random.Random) -> None:
    """The recipient's bank sends a payout back, as its rail allows."""
    code = rng.choice(("R02", "R03", "R06", "R10", "R29"))
    _change_payout(world, rng, lambda key: world.bank.payouts.return_payout(key, code))


def refuse_payouts(world: ModelWorld, rng: random.Random) -> None:
    """The bank refuses the next payouts, for good."""
    world.bank.refusals_left = rng.choice((1, 1, 2))
    _let_a_process(world, rng).advance(rng.choice((1, 5, 20)))


def _change_payout(world: ModelWorld, rng: random.Random, change: Callable[[str], object]) -> None:
    payouts = list(world.mirror.all(SIMULATED, SimulatedPayout))
    if not payouts:
        return
    key = rng.choice(payouts[-4:] if rng.random() < 0.7 else payouts)
    world.chain_clock.refresh()
    with contextlib.suppress(BankRefused, BankUnavailable):
        change(key)


# The bank: transfers to on-ramps.


def transfer_in(world: ModelWorld, rng: random.Random) -> None:
    """Somebody sends dollars to an on-ramp; the bank reports it soon, or later."""
    rail = rng.choice(("ach_push", "wire", "wire"))
    outcome = rng.choice(
        ("receive", "receive", "receive", "review", "return", "cancel", "unmatched")
    )
    _receive(world, rng, rail, outcome)
    _tell(world, rng)


def _receive(
    world: ModelWorld, rng: random.Random, rail: IncomingRail, outcome: ArrivalOutcome
) -> None:
    onramp = world.all(OnrampAccount)[rng.choice(world.onramp_ids)]
    new = NewArrival(
        id=world.name("incoming"),
        account_key=onramp.bank_key,
        rail=rail,
        amount_cents=rng.choice((1, 50, 99, 100, 101, 250, 1_000, 4_000)),
        outcome=outcome,
    )
    world.chain_clock.refresh()
    with contextlib.suppress(BankUnavailable):
        world.bank.incoming.receive(new)


def reverse_transfer(world: ModelWorld, rng: random.Random) -> None:
    """The bank sends back what it has received or holds, at its sender's wish."""
    id = _an_incoming(world, rng, ("received", "scheduled", "in_review"))
    if id is None:
        return
    world.chain_clock.refresh()
    with contextlib.suppress(BankRefused, BankUnavailable):
        world.bank.incoming.return_incoming(id, "reversed_by_sender")
        world.tally["reversed by the bank"] += 1
    _tell(world, rng)


def call_off(world: ModelWorld, rng: random.Random) -> None:
    """A transfer that is scheduled or held is called off: the simulated bank plans none that is
    held first."""
    id = _an_incoming(world, rng, rng.choice((("scheduled",), ("in_review",))))
    world.chain_clock.refresh()
    now = world.chain_clock.now()
    if id is None or _is_received(world.mirror.all(SIMULATED, SimulatedIncoming)[id], now):
        return

    def work(tx: Any) -> None:
        row = tx.get(SimulatedIncoming, id, for_update=True)
        off = attrs.evolve(row, end="cancelled", ends_at_ms=now, end_reason="cancelled_by_sender")
        tx.replace(off)
        for notice in plan_notices(off):
            if notice.occurred_at_ms == now and notice.id.split("/")[1] == "cancelled":
                known = tx.get(SimulatedIncomingNotice, notice.id)
                if known is None:
                    tx.insert(notice)

    try:
        write(world.outside, SIMULATED, work)
    except UniqueConflict:  # a weak storage did not show the notice, which another has just made
        return
    world.tally["called off"] += 1
    _tell(world, rng)


def _is_received(row: SimulatedIncoming, now: int) -> bool:
    """Received, or ended: nobody can call it off any more."""
    has_ended = row.ends_at_ms is not None and row.ends_at_ms <= now
    return has_ended or max(row.settles_at_ms, row.held_until_ms or 0) <= now


def _an_incoming(world: ModelWorld, rng: random.Random, statuses: tuple[str, ...]) -> str | None:
    """One that we know in these states, or any, rather of the newest."""
    transactions = world.all(BankTransaction).values()
    ids = [one.incoming_id for one in transactions if one.status in statuses]
    if not ids or rng.random() < 0.5:
        ids = list(world.mirror.all(SIMULATED, SimulatedIncoming))
    return rng.choice(ids[-4:] if rng.random() < 0.7 else ids) if ids else None


def close_account(world: ModelWorld, rng: random.Random) -> None:
    """An account comes to its end, while money for it is on its way."""
    if rng.random() < 0.2:
        other = world.accounts[2].id
        world.tried(
            rng,
            "close_account",
            lambda service, key: service.acting_as(world.server).accounts.change(
                other, status="closed", idempotency_key=key
            ),
        )


# The bank's line.


def repeat_notices(world: ModelWorld, rng: random.Random) -> None:
    """The bank lists old notices once more, in any order, also ended ones."""
    bank = world.bank
    given = [*bank.given_payout_notices.values(), *bank.given_incoming_notices.values()]
    bank.again = rng.sample(given, min(len(given), rng.randint(1, 6)))
    _tell(world, rng)


def bank_fails(world: ModelWorld, rng: random.Random) -> None:
    """Calls to the bank fail, or their answers are lost."""
    call = rng.choice(("any", "lost_answer", "lost_answer", *BANK_CALLS, *FUNDING_CALLS))
    world.order_bank_failures(call, rng.choice((1, 1, 2, 5)))


def bank_out_of_reach(world: ModelWorld, rng: random.Random) -> None:
    """A worker's line to the bank is dead for some calls, before or after the bank did it."""
    rng.choice((pay_out, transfer_in, decide_payout))(world, rng)
    process = _let_a_process(world, rng)
    fault: Fault = rng.choice((bank_away, bank_answer_lost, bank_answer_lost))
    process.gate.arm(rng.randint(0, 5), fault, on="bank", times=rng.choice((1, 2, 8)))
    process.advance(rng.choice((5, 20, 60)))
    process.gate.disarm()


# Time.


def pass_banking_days(world: ModelWorld, rng: random.Random) -> None:
    """No worker runs for hours to weeks, or until the bank does something; then what is due."""
    until = rng.choice((0, 0, *_plans(world)[-8:]))
    seconds = (until - world.bank_now()) // SECOND + rng.choice((0, 1, 600))
    if seconds <= 600:
        seconds = rng.choice((HOUR, DAY, DAY, 2 * DAY, 3 * DAY, 11 * DAY, 65 * DAY)) // SECOND
    world.true.advance(seconds)
    world.renew_clients()
    process = _let_a_process(world, rng)
    if rng.random() < 0.5:
        process.worker.run_until_idle()
    else:
        process.advance(rng.choice((5, 60)))


def _plans(world: ModelWorld) -> list[int]:
    """When the bank does something, of what it has."""
    plans = [row.settles_at_ms for row in world.mirror.all(SIMULATED, SimulatedPayout).values()]
    for row in world.mirror.all(SIMULATED, SimulatedIncoming).values():
        plans += [row.settles_at_ms, row.held_until_ms or 0]
    return plans


def undo_what_was_final(world: ModelWorld, rng: random.Random) -> None:
    """Transfers of ours that were final are undone, and fail when they are sent again."""
    if not world.may_reorg_deeply:
        return
    if rng.random() < 0.3:
        pay_out(world, rng)
    else:
        _receive(world, rng, "wire", "receive")
        _wake(world, rng)
    process = _let_a_process(world, rng)
    process.advance(rng.choice((8, 10, 12)))
    world.reorged.add(BASE)
    world.reorged_deeply.add(BASE)
    depth = rng.randint(2 * CONFIRMATIONS, 12)
    world.sandbox().reorg_chain(world.server, BASE, depth, reinclude=False)
    world.order_failures("transfer", rng.choice((1, 2, 4)), BASE)
    process.advance(rng.choice((20, 400)))


def _tell(world: ModelWorld, rng: random.Random) -> None:
    """The bank's webhook, if it comes: the reader of notices is woken."""
    if rng.random() < 0.7:
        _wake(world, rng)


def _wake(world: ModelWorld, rng: random.Random) -> None:
    process = _let_a_process(world, rng)
    process.service.refresh()
    process.service.parts.background_jobs.notice_reader("sandbox").wake()


def _let_a_process(world: ModelWorld, rng: random.Random) -> Process:
    return rng.choice(world.processes)


BANK_CALLERS: tuple[tuple[int, Act], ...] = ((12, pay_out), (6, decide_payout))
BANK_MOVES: tuple[Act, ...] = (settle_payout, return_payout, transfer_in, reverse_transfer)
"""What the bank does at any moment, also between two calls of a worker."""

BANK_HAPPENINGS: tuple[tuple[int, Act], ...] = (
    (5, settle_payout),
    (5, return_payout),
    (2, refuse_payouts),
    (10, transfer_in),
    (3, reverse_transfer),
    (1, close_account),
    (3, call_off),
    (3, repeat_notices),
    (3, bank_fails),
    (4, bank_out_of_reach),
    (5, pass_banking_days),
    (3, undo_what_was_final),
)
"""How often each of them, among all rules."""
