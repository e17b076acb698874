"""What happens in a run: strangers' transfers, and what chains, nodes, keys and clocks do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from payments_core.payments.options.record import PaymentOption
from tests.chains.evm.simulation.callers import payer_of
from tests.chains.evm.simulation.network import (
    CHAIN,
    FAUCET,
    GWEI,
    OTHER_TOKEN,
    QUIET_FEE,
    SECRETS,
    TOKEN,
    WALLETS,
    Move,
)

if TYPE_CHECKING:
    from tests.chains.evm.simulation.run import Run


def pay(run: Run) -> None:
    """A stranger's transfer to an escrow: right, short, late, in parts or in another token."""
    statuses = run.rng.choice(
        (
            (),
            (),
            ("expired", "cancelled"),
            ("accepted", "executing", "succeeded", "action_required", "refunded", "failed"),
        )
    )
    payment = run.pick_payment("awaiting_payment", "processing", *statuses)
    if payment is None or payment.escrow_address is None:
        return
    wallet, escrow, whole = (
        run.rng.choice(WALLETS),
        payment.escrow_address,
        int(payment.amount_atomic),
    )
    amount = run.rng.choice(
        (
            payment.remaining.amount_atomic or whole,
            whole,
            whole,
            whole // 2 + 1,
            whole * 2,
            whole + 1,
            max(1, whole - whole // 30),
            1,
            0,
        )
    )
    chance = run.rng.random()
    if chance < 0.75:
        reverts = run.rng.random() < 0.05
        run.send_as_stranger([(TOKEN, wallet, escrow, amount)], reverts=reverts)
    elif chance < 0.85:
        _pay_in_parts(run, wallet, escrow, amount)
    elif chance < 0.9:
        run.send_as_stranger([(OTHER_TOKEN, wallet, escrow, amount)])
    elif chance < 0.95:
        run.send_as_stranger([(TOKEN, FAUCET, escrow, amount)])
    else:
        hash = run.send_as_stranger([(TOKEN, wallet, escrow, amount)])
        options = [
            one for one in run.all(PaymentOption) if one.payment_id == payment.id and one.is_public
        ]
        if options:
            run.attempt(
                "submit",
                lambda service, key: service.acting_as(
                    payer_of(run, payment)
                ).public_options.submit_transaction(
                    payment.id,
                    options[-1].id,
                    chain_id=CHAIN,
                    transaction_hash=hash,
                    idempotency_key=key,
                ),
            )


def deposit(run: Run) -> None:
    """A stranger's transfer to a deposit address."""
    token = run.rng.choice((TOKEN, TOKEN, TOKEN, OTHER_TOKEN))
    amount = run.rng.choice((0, 1, 5_000_000))
    address = run.rng.choice(run.deposit_addresses)
    run.send_as_stranger([(token, run.rng.choice(WALLETS), address, amount)])


def spike(run: Run) -> None:
    """Another base fee; nodes may refuse what does not cover it, or drop it."""
    run.tally["spike"] += 1
    fees = (1, QUIET_FEE, QUIET_FEE, GWEI, 4 * GWEI, 9 * GWEI, 40 * GWEI)
    run.network.base_fee = run.rng.choice(fees)
    for node in run.nodes:
        node.is_full = run.rng.random() < 0.5
    if run.rng.random() < 0.4:
        evict(run)


def evict(run: Run) -> None:
    """Pools drop what does not cover the base fee."""
    run.tally["evict"] += 1
    for node in run.nodes:
        if node.is_full or run.rng.random() < 0.2:
            for key, one in list(node.pool.items()):
                if one.max_fee < run.network.base_fee:
                    del node.pool[key]


def lose_pools(run: Run) -> None:
    """Nodes restart without their pools."""
    run.tally["pool lost"] += 1
    for node in run.nodes:
        if run.rng.random() < 0.8:
            node.pool.clear()


def gossip(run: Run) -> None:
    """Nodes send each other what they have."""
    run.network.gossip()


def change_gas_money(run: Run) -> None:
    """Operators have little, much or nothing for gas."""
    run.tally["gas money"] += 1
    money = run.network.tip.state.gas_money
    for address in list(money):
        money[address] = run.rng.choice((0, 3 * 10**13, 10**15, 10**20))


def make_nodes_lag(run: Run) -> None:
    """Nodes lag, fail, lose answers, stop at a block, or lie where the others outvote them."""
    run.tally["lag"] += 1
    for node in run.nodes:
        node.recover()
        node.lag = run.rng.choice((0, 0, 1, 3))
        node.failing = run.rng.choice((0, 0, 0, 0.02, 0.2))
        node.losing = run.rng.choice((0, 0, 0.3))
    node = run.rng.choice(run.nodes)
    if run.rng.random() < 0.25:
        node.frozen = list(run.network.blocks)
    elif len(run.nodes) == 3 and run.rng.random() < 0.4:
        node.lying = 0.3


def reorganize(run: Run) -> None:
    """The last blocks are undone, as many as are not final."""
    run.tally["reorg"] += 1
    run.network.reorganize(
        run.rng.randint(1, run.network.final_depth),
        lost=run.rng.choice((0, 0, 0.3, 1)),
        swapped=0.5,
        changed=run.rng.choice((0, 0, 0.5)),
    )


def stop_or_go(run: Run) -> None:
    """Blocks are empty from now on, or have room again."""
    run.network.is_mining = not run.network.is_mining


def skew_clocks(run: Run) -> None:
    """The clocks of processes go wrong, or right."""
    for process in run.processes:
        process.clock.ahead_ms = run.rng.choice((0, 0, 0, 5_000, 45_000, -20_000))


def rotate_key(run: Run) -> None:
    """Processes start with another operator's key and the former ones, all or only one."""
    if not run.kind.rotates:
        return
    run.tally["key rotated"] += 1
    secret = run.rng.choice(SECRETS)
    run.secrets = [secret, *(one for one in run.secrets if one != secret)]
    signer = run.make_signer()
    run.add_operator(signer.address(run.environment_id))
    is_everywhere = run.rng.random() < 0.6
    for process in run.processes if is_everywhere else [run.rng.choice(run.processes)]:
        process.signer = signer
        if not run.interference.is_happening:  # else at its next start
            process.start()


def drain_or_fill(run: Run) -> None:
    """An account's owner takes money out of the vault, past us, or puts some in."""
    vault = run.vault(run.rng.choice(run.accounts))
    held = run.network.balance(TOKEN, vault)
    if held and run.rng.random() < 0.3:
        run.tally["drained"] += 1
        amount = run.rng.choice((held, held // 2, min(held, 3_000_000)))
        run.send_as_stranger([(TOKEN, vault, WALLETS[4], amount)])
    else:
        run.send_as_stranger([(TOKEN, WALLETS[0], vault, 50_000_000)])


def blacklist(run: Run) -> None:
    """The token refuses some wallets."""
    run.tally["blacklist"] += 1
    run.network.blacklist = frozenset(one for one in WALLETS if run.rng.random() < 0.4)


def mine(run: Run) -> None:
    """Blocks come."""
    for _ in range(run.rng.randint(1, 6)):
        run.network.mine()


def _pay_in_parts(run: Run, wallet: str, escrow: str, amount: int) -> None:
    """Several transfers in one transaction, perhaps to others too."""
    moves: list[Move] = [
        (TOKEN, wallet, escrow, amount // 2 + 1),
        (TOKEN, wallet, escrow, amount // 2),
    ]
    other = run.pick_payment()
    if other is not None and other.escrow_address is not None:
        more = (TOKEN, wallet, other.escrow_address, int(other.amount_atomic))
        moves.insert(run.rng.randint(0, 2), more)
    if run.rng.random() < 0.5:
        more = (TOKEN, wallet, run.rng.choice(run.deposit_addresses), 12_345)
        moves.insert(run.rng.randint(0, 2), more)
    run.send_as_stranger(moves)


_OFTEN: tuple[tuple[int, Callable[[Run], None]], ...] = (
    (10, pay),
    (2, deposit),
    (2, spike),
    (1, evict),
    (1, lose_pools),
    (1, gossip),
    (1, change_gas_money),
    (2, make_nodes_lag),
    (3, reorganize),
    (1, stop_or_go),
    (1, skew_clocks),
    (1, rotate_key),
    (2, drain_or_fill),
    (1, blacklist),
    (6, mine),
)
HAPPENINGS = [act for weight, act in _OFTEN for _ in range(weight)]
