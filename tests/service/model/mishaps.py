"""What the world does meanwhile: transfers, blocks, reorganisations, time, failures, crashes."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

from payments_core.chains.simulated.blocks import CONFIRMATIONS
from payments_core.clock import DAY, SECOND
from payments_core.engine.decision import WorkerAuthority
from payments_core.money import format_amount
from payments_core.payments.purge import decide_purge, load_candidates
from payments_core.payments.record import Payment
from payments_core.storage.port import CommitUnknown, StorageUnavailable
from tests.service.faults import (
    Crashed,
    Fault,
    answer_lost,
    chain_away,
    commit_failed,
    commit_lost,
    crash,
    storage_away,
)
from tests.service.model.banking import BANK_HAPPENINGS, BANK_MOVES
from tests.service.model.early import EARLY_HAPPENINGS
from tests.service.model.misdirected import send_as_nobody
from tests.service.model.model_world import (
    ASSETS,
    BASE,
    ETHEREUM,
    WALLETS,
    WATCHED,
    ModelWorld,
    Process,
)
from tests.service.model.rules import CALLERS, Act, an_account, an_asset, check_out, refund, send

# Strangers.


def pay(world: ModelWorld, rng: random.Random) -> None:
    """A transfer to an escrow: what is missing, less, more, once more, late, or in vain."""
    payment = world.payment(rng, "awaiting_payment", "processing", *rng.choice(_PAID_AGAIN))
    if payment is None or payment.escrow_address is None:
        return
    missing = payment.remaining.amount_atomic
    amount = rng.choice(
        (
            missing,
            missing,
            missing,
            payment.amount_atomic,
            payment.required_atomic,
            missing // 2,
            missing + rng.choice((1, 250_000, 10**7)),
            rng.choice((0, 1, 10**6)),
        )
    )
    asset = payment.asset if rng.random() < 0.85 else rng.choice((*ASSETS, *WATCHED))
    _transfer(world, rng, asset.chain_id, asset.symbol, amount, payment.escrow_address)


_PAID_AGAIN: tuple[tuple[str, ...], ...] = (
    (),
    (),
    ("expired", "cancelled"),
    ("succeeded", "accepted", "executing", "partially_refunded"),
    ("action_required", "refunded", "failed"),
)


def deposit(world: ModelWorld, rng: random.Random) -> None:
    """A transfer to a deposit address."""
    if world.deposit_addresses:
        asset = an_asset(rng) if rng.random() < 0.8 else rng.choice(WATCHED)
        amount = rng.choice((0, 1, 10**6, 5 * 10**6, 40 * 10**6))
        address = rng.choice(world.deposit_addresses)
        _transfer(world, rng, asset.chain_id, asset.symbol, amount, address)


def fund(world: ModelWorld, rng: random.Random) -> None:
    """New tokens for a vault."""
    world.mint(an_asset(rng), world.vault_address(an_account(world, rng)), rng.randint(1, 40))


def _transfer(
    world: ModelWorld, rng: random.Random, chain_id: int, symbol: str, amount: int, to: str
) -> None:
    if rng.random() < 0.06:
        send_as_nobody(world, rng, chain_id, symbol, amount, to)
        return
    world.sandbox().transfer(
        world.server,
        chain_id,
        symbol,
        format_amount(amount, 6),
        to=to,
        from_=rng.choice((None, *WALLETS, *WALLETS)),
        reverts=rng.random() < 0.05,
    )


# The chain.


def mine(world: ModelWorld, rng: random.Random) -> None:
    """Blocks at once."""
    world.sandbox().mine_blocks(world.server, _chain(rng), rng.choice((1, 1, 2, 3, 4, 6)))


def reorg(world: ModelWorld, rng: random.Random) -> None:
    """The last blocks replaced; beyond finality only where the episode may."""
    depth = rng.randint(1, CONFIRMATIONS)
    if world.may_reorg_deeply and rng.random() < 0.6:
        depth = rng.randint(CONFIRMATIONS + 1, 12)
    world.reorg(_chain(rng), depth, reinclude=rng.random() < 0.5)


def prove_and_reorg(world: ModelWorld, rng: random.Random) -> None:
    """What is about to be proven is proven, or nearly, and some of it undone at once."""
    rng.choice((pay, pay, check_out))(world, rng)
    process = rng.choice(world.processes)
    for _ in range(rng.choice((1, 2, CONFIRMATIONS + 1, CONFIRMATIONS + 1, CONFIRMATIONS + 2))):
        process.advance(1)
    process.worker.run_due(rng.randint(0, 4))
    reorg(world, rng)


def outage(world: ModelWorld, rng: random.Random) -> None:
    """A chain is silent for a while, in all it is asked or in one kind of question."""
    rng.choice((pay, check_out, send, refund))(world, rng)
    process = rng.choice(world.processes)
    process.advance(rng.choice((1, 1, 2)))
    operation = rng.choice(("any", "any", "transaction", "heads", "balances", "broadcast"))
    world.order_failures(operation, rng.choice((10, 100)), BASE)
    process.advance(rng.choice((5, 20, 40)))
    if rng.random() < 0.7:
        world.disarm()


def pay_short_and_wait(world: ModelWorld, rng: random.Random) -> None:
    """A part is paid, or nothing, and the time runs out."""
    if rng.random() < 0.7:
        pay(world, rng)
        rng.choice(world.processes).advance(5)
    waiting = [p for p in world.all(Payment).values() if p.status == "awaiting_payment"]
    if waiting:
        until = rng.choice(waiting).expires_at_ms - world.chain_clock.now()
        world.true.advance(max(0, until) // SECOND + rng.choice((0, 1, 40)))
        rng.choice(world.processes).advance(2)


def work_in_vain(world: ModelWorld, rng: random.Random) -> None:
    """The next transfers of ours fail on the chain."""
    world.order_failures("transfer", rng.choice((1, 1, 2, 4)), rng.choice((None, BASE)))
    rng.choice(world.processes).advance(rng.choice((1, 5)))


def fail(world: ModelWorld, rng: random.Random) -> None:
    """A failure of a chain, or a few of them."""
    operation = rng.choice(
        ("any", "heads", "transaction", "balances", "scan", "broadcast", "lost_answer", "transfer")
    )
    times = rng.choice((1, 1, 2, 5))
    world.order_failures(operation, times, rng.choice((None, BASE)))


def _chain(rng: random.Random) -> int:
    return rng.choice((BASE, BASE, BASE, ETHEREUM))


# Upkeep.


def purge(world: ModelWorld, rng: random.Random) -> None:
    """A purge, as early as can be; something else may happen between its look and its commit."""
    process = rng.choice(world.processes)
    ports, partition = process.service.parts.ports, world.environment_id
    if rng.random() < 0.5:
        other = next(one for one in world.processes if one is not process)
        _interleave(world, rng, process, [_something_else(world, rng, other)], rng.randint(0, 3))
    ids, before = list(world.all(Payment)), ports.clock.now() + 2 * DAY
    candidates = ports.storage.read(
        partition, lambda snapshot: load_candidates(snapshot, ids, before, ports.key_ring)
    )
    world.tally["purge candidate"] += len(candidates)
    ports.committer.commit(
        WorkerAuthority(partition, "upkeep"),
        lambda tx, id_sequence: decide_purge(tx, candidates, now=ports.clock.now()),
    )
    process.gate.disarm()


# Time, and the worker.


def work(world: ModelWorld, rng: random.Random) -> None:
    """A worker does what is due."""
    rng.choice(world.processes).worker.run_until_idle()


def work_a_little(world: ModelWorld, rng: random.Random) -> None:
    """A few jobs of each worker in turn."""
    for _ in range(rng.randint(1, 4)):
        rng.choice(world.processes).worker.run_due(rng.randint(1, 3))


def advance(world: ModelWorld, rng: random.Random) -> None:
    """Some seconds, with what falls due on the way."""
    rng.choice(world.processes).advance(rng.choice((1, 1, 2, 3, 5, 10, 60)))


def advance_long(world: ModelWorld, rng: random.Random) -> None:
    """Minutes to a day; of the longest nobody sees but the end."""
    seconds = rng.choice((300, 310, 900, 900, 3_700, 90_000))
    if seconds > 900:
        world.true.advance(seconds - 60)
        seconds = 60
    rng.choice(world.processes).advance(seconds)


def pass_by(world: ModelWorld, rng: random.Random) -> None:
    """Time goes on, and no worker runs."""
    world.true.advance(rng.choice((1, 2, 4, 30, 70, 400)))


def skew(world: ModelWorld, rng: random.Random) -> None:
    """A machine's clock steps, forward or back; the chains' does not."""
    process = rng.choice(world.processes)
    seconds = 60 * rng.choice((0, 0, 1, 4, 30))
    process.system.ahead_ms = rng.choice((1, -1)) * seconds * SECOND
    world.furthest_skew_s = max(world.furthest_skew_s, 2 * seconds)


# Crashes.


def crash_at_work(world: ModelWorld, rng: random.Random) -> None:
    """A worker dies before or after one of its calls to the world, and begins anew."""
    process = rng.choice(world.processes)
    fault: Fault = rng.choice((crash, crash_after))
    process.gate.arm(rng.randint(0, rng.choice((5, 20, 60))), fault)
    try:
        if rng.random() < 0.5:
            process.worker.run_until_idle()
        else:
            process.advance(rng.choice((1, 3, 10)))
    except Crashed:
        world.tally["crashed at work"] += 1
    process.gate.disarm()
    process.start()


def trouble_at_work(world: ModelWorld, rng: random.Random) -> None:
    """One of a worker's calls to the storage comes back without an answer."""
    process = rng.choice(world.processes)
    fault: Fault = rng.choice((storage_away, commit_lost, commit_failed))
    left = rng.randint(0, rng.choice((3, 10, 30)))
    process.gate.arm(left, fault, on="all" if fault is storage_away else "writes")
    world.has_trouble = True
    try:
        process.worker.run_until_idle()
    except (StorageUnavailable, CommitUnknown):
        pass  # a claim, which a serving thread would make again
    finally:
        world.has_trouble = False
        process.gate.disarm()


def node_away(world: ModelWorld, rng: random.Random) -> None:
    """A worker's node is out of reach, or what it does is never answered, for some calls."""
    rng.choice((pay, check_out, send, refund, work_in_vain))(world, rng)
    process = rng.choice(world.processes)
    fault: Fault = rng.choice((chain_away, chain_away, answer_lost))
    process.gate.arm(rng.randint(0, 12), fault, on="chain", times=rng.choice((1, 2, 8, 60)))
    process.advance(rng.choice((1, 5, 20, 400)))
    process.gate.disarm()


def meanwhile(world: ModelWorld, rng: random.Random) -> None:
    """Between two calls of a worker something else happens: another worker, a caller, the chain."""
    process = rng.choice(world.processes)
    other = next(one for one in world.processes if one is not process)
    acts = [_something_else(world, rng, other) for _ in range(rng.choice((1, 1, 2)))]
    _interleave(world, rng, process, acts, rng.randint(0, rng.choice((5, 20, 60))))
    if rng.random() < 0.5:
        process.worker.run_until_idle()
    else:
        process.advance(rng.choice((1, 3, 10)))
    process.gate.disarm()


def two_callers(world: ModelWorld, rng: random.Random) -> None:
    """Between two calls of a request another request is served, or the worker is at work."""
    process = rng.choice(world.processes)
    other = next(one for one in world.processes if one is not process)
    _interleave(world, rng, process, [_something_else(world, rng, other)], rng.randint(0, 4))
    world.is_disturbed = True
    rng.choice([chosen for _, chosen in CALLERS])(world, rng)
    world.is_disturbed = False
    process.gate.disarm()


def _interleave(
    world: ModelWorld,
    rng: random.Random,
    process: Process,
    acts: Sequence[Callable[[], None]],
    left: int,
) -> None:
    """Have the acts happen at one of the process's calls, or amid one of its transactions."""
    amid = world.is_weak and rng.random() < 0.5  # plain memory is locked as long as a work runs

    def interleaved(call: Callable[[], Any]) -> Any:
        world.tally["meanwhile amid a transaction" if amid else "meanwhile"] += 1
        process.gate.disarm()
        if amid:
            _elsewhere(acts)
        else:
            for act in acts:
                act()
        return call()

    process.gate.arm(left // 4 if amid else left, interleaved, on="amid" if amid else "all")


def _elsewhere(acts: Sequence[Callable[[], None]]) -> None:
    """Do it in another thread, since a work may not begin a transaction; wait for its end."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            for act in acts:
                act()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def _something_else(world: ModelWorld, rng: random.Random, other: Process) -> Callable[[], None]:
    seconds = rng.choice((0, 0, 0, 1, 61))

    def worker() -> None:
        world.true.advance(seconds)  # beyond a lease: what was claimed is claimed again
        other.worker.run_due(rng.randint(1, 8))

    def act(chosen: Act) -> Callable[[], None]:
        return lambda: chosen(world, rng)

    callers = [chosen for _, chosen in CALLERS]
    return rng.choice((worker, worker, act(rng.choice(callers)), act(rng.choice(WORLD))))


def caller_cut_off(world: ModelWorld, rng: random.Random) -> None:
    """A request whose process dies under it; what it left behind is whole."""
    caller = rng.choice([chosen for _, chosen in CALLERS])
    fault: Fault = rng.choice((crash, crash_after))
    for process in world.processes:
        process.gate.arm(rng.randint(0, 8), fault)
    world.cuts_off = True
    try:
        caller(world, rng)
    except Crashed:  # before it had begun
        world.restart()
    finally:
        world.cuts_off = False
        for process in world.processes:
            process.gate.disarm()


def crash_after(call: Callable[[], Any]) -> Any:
    """Die after the call took place."""
    call()
    raise Crashed


WORLD: tuple[Act, ...] = (pay, deposit, mine, reorg, fail, *BANK_MOVES)

HAPPENINGS: tuple[tuple[int, Act], ...] = (
    (26, pay),
    (7, deposit),
    (4, fund),
    (5, mine),
    (6, reorg),
    (5, prove_and_reorg),
    (6, pay_short_and_wait),
    (5, work_in_vain),
    (4, fail),
    (3, purge),
    (3, outage),
    (20, work),
    (8, work_a_little),
    (22, advance),
    (4, advance_long),
    (4, pass_by),
    (2, skew),
    (6, crash_at_work),
    (3, trouble_at_work),
    (3, node_away),
    (8, meanwhile),
    (5, two_callers),
    (3, caller_cut_off),
    *EARLY_HAPPENINGS,
    *BANK_HAPPENINGS,
)
"""How often each of them, among all rules."""

RULES: tuple[tuple[int, Act], ...] = (*CALLERS, *HAPPENINGS)
