"""What a node may show of our transactions, and what the service makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import pytest

from payments_core.chains.port import ChainUnavailable, TransactionView
from tests.service.faults import FaultyChain
from tests.service.world import BASE, STRANGER, World, atomic

ALWAYS = 10**9
See = Callable[[TransactionView | None], TransactionView | None]


@pytest.fixture
def world(light_world: World) -> World:
    return light_world


class Lens(FaultyChain):
    """A node that shows transactions in its own way."""

    def __init__(self, world: World, see: See, lag: int = 0) -> None:
        super().__init__(world.chain, ALWAYS, lambda call: call())
        self._see: See = see
        self._lag = lag

    def clear(self) -> None:
        self._see, self._lag = (lambda view: view), 0

    def transaction(self, hash: str) -> TransactionView | None:
        return self._see(super().transaction(hash))

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        return {hash: self._see(view) for hash, view in super().transactions(hashes).items()}

    def final_nonce(self, sender: str) -> int:
        return 0  # it counts no transaction that it may not show

    def balances(self, token_address: str, holders: Any) -> Any:
        at = super().balances(token_address, holders)
        return attrs.evolve(at, height=at.height - self._lag)


def look_through(world: World, see: See, lag: int = 0) -> Lens:
    lens = Lens(world, see, lag)
    world.service = world.restarted(chains={BASE: lens})
    return lens


def waiting(view: TransactionView | None) -> TransactionView | None:
    """Known, and in no block."""
    return view and attrs.evolve(view, block=None, logs=(), succeeded=False)


def forgotten(view: TransactionView | None) -> TransactionView | None:
    """Never heard of."""
    return None


def of_another_token(view: TransactionView | None) -> TransactionView | None:
    """Succeeded, and moved a token that nobody meant."""
    other = STRANGER
    return view and attrs.evolve(
        view, logs=tuple(attrs.evolve(log, token_address=other) for log in view.logs)
    )


def reverted(view: TransactionView | None) -> TransactionView | None:
    return view and attrs.evolve(view, logs=(), succeeded=False)


@pytest.mark.parametrize("see", [waiting, forgotten])
def test_what_is_in_no_block_is_waited_for(world: World, see: See) -> None:
    option = world.authorized()
    lens = look_through(world, see)
    world.finish()
    assert world.operation_now(option).status == "broadcast"
    assert world.paid(option.payment.id).status == "processing"
    assert world.sent() == 1
    lens.clear()
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"
    assert world.sent() == 2


@pytest.mark.parametrize("see", [waiting, forgotten])
def test_a_release_in_no_block_is_waited_for_too(world: World, see: See) -> None:
    option = world.authorized()
    executing = {"payment.executing": 1}
    lens = look_through(world, lambda view: view)
    while world.paid(option.payment.id).status != "executing":
        world.advance(1)
    world.service = world.restarted(chains={BASE: (lens := Lens(world, see))})
    world.finish()
    assert world.paid(option.payment.id).status == "executing"
    assert executing.items() <= world.event_names(option.payment.id).items()
    lens.clear()
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"
    assert world.sent() == 2


@pytest.mark.parametrize("see", [of_another_token, reverted])
def test_a_failure_counts_when_it_is_final_and_not_before(world: World, see: See) -> None:
    option = world.authorized()
    look_through(world, see)
    world.run()
    world.advance(1)
    assert world.operation_now(option).status == "broadcast"
    assert world.held()[1] == atomic("25")
    world.finish()
    operation = world.operation_now(option)
    assert operation.status == "failed"
    assert operation.failure == ("wrong_token" if see is of_another_token else "transaction_failed")
    assert world.paid(option.payment.id).status == "awaiting_payment"
    assert world.held()[1] == 0


@pytest.mark.parametrize("see", [of_another_token, reverted])
def test_a_release_that_fails_finally_needs_a_decision(world: World, see: See) -> None:
    option = world.authorized()
    while world.paid(option.payment.id).status != "executing":
        world.advance(1)
    look_through(world, see)
    world.advance(1)
    assert world.paid(option.payment.id).status == "executing"
    world.finish()
    payment = world.paid(option.payment.id)
    assert payment.status == "action_required"
    assert payment.labels == ("execution_failed",)
    assert payment.failure == payment.timeline[-1].reason
    assert payment.reconciliation.status == "open"
    assert payment.settled_atomic == 0
    assert world.event_names(payment.id)["payment.action_required"] == 1
    world.finish()
    assert world.sent() == 2


def test_a_balance_older_than_the_finality_it_belongs_to_is_not_believed(world: World) -> None:
    option = world.authorized()
    world.run()
    lens = look_through(world, lambda view: view, lag=1)
    world.finish()
    assert world.operation_now(option).status == "broadcast"
    lens.clear()
    world.finish()
    assert world.held() == (atomic("75"), 0, atomic("75"))


def test_a_signer_out_of_reach_is_waited_for(world: World) -> None:
    option = world.authorized()

    class Unsigned(Lens):
        def prepare(self, intent: Any, slot: int) -> Any:
            raise ChainUnavailable("no signer")

    healthy, world.service = (
        world.service,
        world.restarted(chains={BASE: Unsigned(world, lambda view: view)}),
    )
    for _ in range(25):  # more often than a job may fail
        world.advance(1)
    assert world.operation_now(option).status == "authorized"
    world.service = healthy
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"


def test_slots_are_filled_in_order_though_the_first_signer_died(world: World) -> None:
    """One process reserved a slot and died; another needs the slot after."""
    from payments_core.chains.outbox.outbox import Outbox
    from payments_core.engine.decision import WorkerAuthority

    first, second = world.authorized("5.00"), world.authorized("6.00")
    authority = WorkerAuthority(world.environment_id, "sandbox")

    def dies(call: Callable[[], Any]) -> Any:
        raise KeyboardInterrupt

    outbox = Outbox(
        world.service.parts.ports,
        {BASE: FaultyChain(world.chain, 1, dies)},
    )
    with pytest.raises(KeyboardInterrupt):
        outbox.ensure_signed(authority, BASE, str(first.operation.outgoing_id))
    healthy = Outbox(world.service.parts.ports, world.service.chains)
    later = healthy.ensure_signed(authority, BASE, str(second.operation.outgoing_id))
    assert later == healthy.ensure_signed(authority, BASE, str(second.operation.outgoing_id))
    world.finish()
    for option in (first, second):
        assert world.paid(option.payment.id).status == "succeeded"
    assert world.sent() == 4
