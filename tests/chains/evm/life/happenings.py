"""What happens in a life: strangers' transfers, and what chains, nodes, keys and clocks do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from payments_core.chains.evm.signers import LocalSigner
from payments_core.payments.options.record import PaymentOption
from tests.chains.evm.life.callers import payer_of
from tests.chains.evm.life.network import (
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
    from tests.chains.evm.life.life import Life


def pay(life: Life) -> None:
    """A stranger's transfer to an escrow: right, short, late, in parts or in another token."""
    statuses = life.rng.choice(
        (
            (),
            (),
            ("expired", "cancelled"),
            ("accepted", "executing", "succeeded", "action_required", "refunded", "failed"),
        )
    )
    payment = life.pick_payment("awaiting_payment", "processing", *statuses)
    if payment is None or payment.escrow_address is None:
        return
    wallet, escrow, whole = life.rng.choice(WALLETS), payment.escrow_address, int(payment.amount)
    amount = life.rng.choice(
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
    chance = life.rng.random()
    if chance < 0.75:
        reverts = life.rng.random() < 0.05
        life.send_as_stranger([(TOKEN, wallet, escrow, amount)], reverts=reverts)
    elif chance < 0.85:
        _pay_in_parts(life, wallet, escrow, amount)
    elif chance < 0.9:
        life.send_as_stranger([(OTHER_TOKEN, wallet, escrow, amount)])
    elif chance < 0.95:
        life.send_as_stranger([(TOKEN, FAUCET, escrow, amount)])
    else:
        hash = life.send_as_stranger([(TOKEN, wallet, escrow, amount)])
        options = [
            one for one in life.all(PaymentOption) if one.payment_id == payment.id and one.is_public
        ]
        if options:
            life.attempt(
                "submit",
                lambda service, key: service.acting_as(
                    payer_of(life, payment)
                ).public_options.submit_transaction(
                    payment.id,
                    options[-1].id,
                    chain_id=CHAIN,
                    transaction_hash=hash,
                    idempotency_key=key,
                ),
            )


def deposit(life: Life) -> None:
    """A stranger's transfer to a deposit address."""
    token = life.rng.choice((TOKEN, TOKEN, TOKEN, OTHER_TOKEN))
    amount = life.rng.choice((0, 1, 5_000_000))
    address = life.rng.choice(life.deposit_addresses)
    life.send_as_stranger([(token, life.rng.choice(WALLETS), address, amount)])


def spike(life: Life) -> None:
    """Another base fee; nodes may refuse what does not cover it, or drop it."""
    life.tally["spike"] += 1
    fees = (1, QUIET_FEE, QUIET_FEE, GWEI, 4 * GWEI, 9 * GWEI, 40 * GWEI)
    life.network.base_fee = life.rng.choice(fees)
    for node in life.nodes:
        node.is_full = life.rng.random() < 0.5
    if life.rng.random() < 0.4:
        evict(life)


def evict(life: Life) -> None:
    """Pools drop what does not cover the base fee."""
    life.tally["evict"] += 1
    for node in life.nodes:
        if node.is_full or life.rng.random() < 0.2:
            for key, one in list(node.pool.items()):
                if one.max_fee < life.network.base_fee:
                    del node.pool[key]


def lose_pools(life: Life) -> None:
    """Nodes restart without their pools."""
    life.tally["pool lost"] += 1
    for node in life.nodes:
        if life.rng.random() < 0.8:
            node.pool.clear()


def gossip(life: Life) -> None:
    """Nodes send each other what they have."""
    life.network.gossip()


def change_gas_money(life: Life) -> None:
    """Operators have little, much or nothing for gas."""
    life.tally["gas money"] += 1
    money = life.network.tip.state.gas_money
    for address in list(money):
        money[address] = life.rng.choice((0, 3 * 10**13, 10**15, 10**20))


def make_nodes_lag(life: Life) -> None:
    """Nodes lag, fail, lose answers, stop at a block, or lie where the others outvote them."""
    life.tally["lag"] += 1
    for node in life.nodes:
        node.recover()
        node.lag = life.rng.choice((0, 0, 1, 3))
        node.failing = life.rng.choice((0, 0, 0, 0.02, 0.2))
        node.losing = life.rng.choice((0, 0, 0.3))
    node = life.rng.choice(life.nodes)
    if life.rng.random() < 0.25:
        node.frozen = list(life.network.blocks)
    elif len(life.nodes) == 3 and life.rng.random() < 0.4:
        node.lying = 0.3


def reorganize(life: Life) -> None:
    """The last blocks are undone, as many as are not final."""
    life.tally["reorg"] += 1
    life.network.reorganize(
        life.rng.randint(1, life.network.final_depth),
        lost=life.rng.choice((0, 0, 0.3, 1)),
        swapped=0.5,
        changed=life.rng.choice((0, 0, 0.5)),
    )


def stop_or_go(life: Life) -> None:
    """Blocks are empty from now on, or have room again."""
    life.network.is_mining = not life.network.is_mining


def skew_clocks(life: Life) -> None:
    """The clocks of processes go wrong, or right."""
    for process in life.processes:
        process.clock.ahead_ms = life.rng.choice((0, 0, 0, 5_000, 45_000, -20_000))


def rotate_key(life: Life) -> None:
    """Processes start with another operator's key, all or only one."""
    if not life.kind.rotates:
        return
    life.tally["key rotated"] += 1
    signer = LocalSigner(life.rng.choice(SECRETS))
    life.add_operator(signer.address(life.environment_id))
    is_everywhere = life.rng.random() < 0.6
    for process in life.processes if is_everywhere else [life.rng.choice(life.processes)]:
        process.signer = signer
        if not life.interference.is_happening:  # else at its next start
            process.start()


def drain_or_fill(life: Life) -> None:
    """An account's owner takes money out of the vault, past us, or puts some in."""
    vault = life.vault(life.rng.choice(life.accounts))
    held = life.network.balance(TOKEN, vault)
    if held and life.rng.random() < 0.3:
        life.tally["drained"] += 1
        amount = life.rng.choice((held, held // 2, min(held, 3_000_000)))
        life.send_as_stranger([(TOKEN, vault, WALLETS[4], amount)])
    else:
        life.send_as_stranger([(TOKEN, WALLETS[0], vault, 50_000_000)])


def blacklist(life: Life) -> None:
    """The token refuses some wallets."""
    life.tally["blacklist"] += 1
    life.network.blacklist = frozenset(one for one in WALLETS if life.rng.random() < 0.4)


def mine(life: Life) -> None:
    """Blocks come."""
    for _ in range(life.rng.randint(1, 6)):
        life.network.mine()


def _pay_in_parts(life: Life, wallet: str, escrow: str, amount: int) -> None:
    """Several transfers in one transaction, perhaps to others too."""
    moves: list[Move] = [
        (TOKEN, wallet, escrow, amount // 2 + 1),
        (TOKEN, wallet, escrow, amount // 2),
    ]
    other = life.pick_payment()
    if other is not None and other.escrow_address is not None:
        more = (TOKEN, wallet, other.escrow_address, int(other.amount))
        moves.insert(life.rng.randint(0, 2), more)
    if life.rng.random() < 0.5:
        more = (TOKEN, wallet, life.rng.choice(life.deposit_addresses), 12_345)
        moves.insert(life.rng.randint(0, 2), more)
    life.send_as_stranger(moves)


_OFTEN: tuple[tuple[int, Callable[[Life], None]], ...] = (
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
