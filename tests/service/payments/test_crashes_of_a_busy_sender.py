"""Transfers that are sent together: whatever fails between two calls, each moves once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from payments_core.chains.outbox import sending
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.funding.transfer import FundingOwner
from payments_core.payments.record import Payment
from payments_core.service import PaymentsService
from payments_core.storage.port import SIMULATED, Storage, Transaction
from payments_core.storage.records import Record
from tests.service.faults import (
    Crashed,
    Fault,
    FaultyChain,
    FaultyStorage,
    answer_lost,
    chain_away,
    commit_failed,
    commit_lost,
    crash,
    storage_away,
)
from tests.service.payments.test_crashes import (
    AMOUNT,
    CHANGING_CALLS,
    STORY,
    every,
    over,
    work,
    world,
)
from tests.service.spoiling import spoil
from tests.service.world import World, atomic

__all__ = ["world"]

T = TypeVar("T")

SOME = 3
"""Of all calls, every so many go wrong: `test_crashes.py` has each of a single transfer's."""
AT_ONCE = 4
"""A new process sends the first alone, since it knows nothing of the sender, and then the others
together."""


class CountingStorage(FaultyStorage):
    """A storage that counts the commits of the environment."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner, 10**9, crash)
        self.commits = 0

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        self.commits += partition != SIMULATED
        return super().transact(partition, work)


def authorize(world: World) -> list[str]:
    return [world.authorized(AMOUNT).payment.id for _ in range(AT_ONCE)]


def check_stories(world: World, payment_ids: list[str], sent: int) -> None:
    for id in payment_ids:
        payment = world.paid(id)
        assert payment.status == "succeeded"
        assert payment.received == payment.settled == atomic(AMOUNT)
        assert world.event_names(id) == STORY
        assert world.on_chain(payment.escrow_address) == 0
    assert world.sent() == sent + 2 * AT_ONCE


def recover(world: World) -> None:
    """Another process comes, when the leases of the dead one have ended."""
    world.advance(110)
    world.advance(20)


def run(world: World, storage: Storage, chain: FaultyChain | None = None) -> None:
    service: PaymentsService = over(world, storage, chain)
    try:
        work(world, service)
    except Crashed:
        return
    except Exception:  # what it could not claim, it claims later
        work(world, service)


def test_they_are_sent_in_few_commits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = []
    for at_most in (sending.MAX_TOGETHER, 1):
        monkeypatch.setattr(sending, "MAX_TOGETHER", at_most)
        recover(world)  # nothing else is left to do
        before = world.sent()
        payment_ids = authorize(world)
        storage = CountingStorage(world.storage)
        work(world, over(world, storage))
        check_stories(world, payment_ids, before)
        commits.append(storage.commits)
    together, one_by_one = commits
    assert together <= one_by_one - 9


def test_those_before_one_whose_step_fails_are_committed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.sent()
    payment_ids = []
    for _ in range(AT_ONCE):
        payment_ids += [world.authorized(AMOUNT).payment.id]
        world.system.advance(1)  # they are in the lane in this order
    on_sent = FundingOwner.on_sent

    def fail_on_one(
        owner: FundingOwner, tx: Transaction, record: Any, *rest: Any, **more: Any
    ) -> Any:
        if record.payment_id == payment_ids[2]:
            raise ValueError("damaged")
        return on_sent(owner, tx, record, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(FundingOwner, "on_sent", fail_on_one)
        work(world, over(world, world.storage))
    status = [world.paid(id).status for id in payment_ids[:2]]
    assert status == ["accepted", "accepted"], "their releases are behind it in the lane"
    recover(world)
    check_stories(world, payment_ids, before)


@pytest.mark.parametrize("kind", [FundingOperation, OutboundTransfer, Payment])
def test_a_damaged_record_of_one_stops_no_other(world: World, kind: type[Record]) -> None:
    details = []
    for _ in range(AT_ONCE):
        details += [world.authorized(AMOUNT)]
        world.system.advance(1)  # they are in the lane in this order
    operation = world.operation_now(details[-1])
    ids = {FundingOperation: operation.id, OutboundTransfer: operation.outgoing_id}
    damaged_id = str(ids.get(kind, details[-1].payment.id))
    damaged = world.storage.read(world.environment_id, lambda rows: rows.get(kind, damaged_id))
    assert damaged is not None
    spoil(world.storage, world.environment_id, damaged)
    work(world, over(world, world.storage))
    statuses = [world.operation_now(one).status for one in details[:-1]]
    assert statuses == ["confirmed"] * (AT_ONCE - 1)


@pytest.mark.parametrize("fault", [crash, storage_away, commit_lost, commit_failed])
def test_any_call_to_the_storage_may_fail(world: World, fault: Fault) -> None:
    counted = CHANGING_CALLS if fault in (crash, storage_away) else ("transact",)
    for at in every(world, 400)[::SOME]:
        before = world.sent()
        payment_ids = authorize(world)
        storage = FaultyStorage(world.storage, at, fault, counted)
        run(world, storage)
        recover(world)
        check_stories(world, payment_ids, before)
        if not storage.had_its_fault:
            break
    else:
        raise AssertionError("the flow never ended")
    assert at > 20, "there are more calls than this"


@pytest.mark.parametrize("fault", [chain_away, answer_lost, crash])
def test_any_call_to_the_chain_may_fail(world: World, fault: Fault) -> None:
    for at in every(world, 400)[::SOME]:
        before = world.sent()
        payment_ids = authorize(world)
        chain = FaultyChain(world.chain, at, fault)
        with contextlib.suppress(Crashed):
            run(world, world.storage, chain)
        recover(world)
        check_stories(world, payment_ids, before)
        if not chain.had_its_fault:
            break
    else:
        raise AssertionError("the flow never ended")
    assert at > 30, "there are more calls than this"
