"""Transfers that are sent together: whatever fails between two calls, each moves once."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

from payments_core.chains.outbox import sending
from payments_core.chains.outbox.record import OutboundTransfer, sender_lane
from payments_core.chains.port import SignedTransaction, TransferIntent
from payments_core.clock import SECOND
from payments_core.maintenance.after_restore import stop_sending
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.paying.authorization import SEND_FUNDING
from payments_core.payments.paying.vault_transfer import FundingOwner
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.service import PaymentsService
from payments_core.storage.jobs import Job
from payments_core.storage.port import SIMULATED, Storage, Transaction
from payments_core.storage.records import Record
from tests.service.corruption import corrupt
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
from tests.service.world import BASE, OTHER_WALLET, World, atomic

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


class StoppingStorage(FaultyStorage):
    """A storage whose operator stops all senders after a claim that leases a send job."""

    def __init__(self, world: World) -> None:
        super().__init__(world.storage, 10**9, crash)
        self._world = world
        self.is_armed = False
        self.stopped = 0

    def claim(self, *given: Any, **more: Any) -> Any:
        claimed = super().claim(*given, **more)
        if self.is_armed and any(item.job.kind == SEND_FUNDING for item in claimed):
            self.is_armed = False
            self.stopped = len(stop_sending(self._world.service.parts.ports, "sandbox"))
        return claimed


class DeadlyChain(FaultyChain):
    """A chain whose client ends the process when it prepares one transfer."""

    def __init__(self, world: World, outgoing_id: str) -> None:
        super().__init__(world.chain, 10**9, crash)
        self._outgoing_id = outgoing_id

    def prepare(self, intent: TransferIntent, slot: int) -> SignedTransaction:
        if intent.id == self._outgoing_id:
            raise Crashed
        return super().prepare(intent, slot)


def send_jobs(world: World) -> Sequence[Job]:
    lane = ("sandbox.chain", sender_lane(world.environment_id, BASE))
    return world.storage.read(
        world.environment_id, lambda rows: rows.find(Job, "by_queue_lane", lane).records
    )


def authorize(world: World) -> list[str]:
    return [world.authorized(AMOUNT).payment.id for _ in range(AT_ONCE)]


def check_stories(world: World, payment_ids: list[str], sent: int) -> None:
    for id in payment_ids:
        payment = world.paid(id)
        assert payment.status == "succeeded"
        assert payment.received_atomic == payment.settled_atomic == atomic(AMOUNT)
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
    for at_most in (1, sending.MAX_TOGETHER, 1):  # the first has verdicts stored, which count on
        monkeypatch.setattr(sending, "MAX_TOGETHER", at_most)
        recover(world)  # nothing else is left to do
        before = world.sent()
        payment_ids = authorize(world)
        storage = CountingStorage(world.storage)
        work(world, over(world, storage))
        check_stories(world, payment_ids, before)
        commits.append(storage.commits)
    _, together, one_by_one = commits
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
    corrupt(world.storage, world.environment_id, damaged)
    work(world, over(world, world.storage))
    statuses = [world.operation_now(one).status for one in details[:-1]]
    assert statuses == ["confirmed"] * (AT_ONCE - 1)


def test_refunds_of_one_payment_and_fundings_go_together(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    service = over(world, world.storage)
    paid = world.authorized("20.00")
    work(world, service)
    before = world.sent()
    caplog.set_level(logging.WARNING)
    refunds = [world.refund(paid, "1.00", OTHER_WALLET) for _ in range(5)]
    payment_ids = authorize(world)
    work(world, service)
    assert {world.get(Refund, one.id).status for one in refunds} == {"succeeded"}
    check_stories(world, payment_ids, before + len(refunds))
    assert not [one for one in caplog.messages if "alone" in one]


def test_nothing_is_sent_after_an_operator_has_stopped_all_senders(world: World) -> None:
    """He does so after a worker has claimed the first: that one may be sent."""
    storage = StoppingStorage(world)
    service = over(world, storage)
    world.authorized(AMOUNT)
    work(world, service)
    before = world.sent()
    for _ in range(AT_ONCE):
        world.authorized(AMOUNT)
        world.system.advance(1)
    storage.is_armed = True
    service.worker("sandbox").run_until_idle()
    assert storage.stopped == AT_ONCE
    assert world.sent() <= before + 1


def test_one_that_ends_its_process_does_so_once_in_the_turn_of_another(world: World) -> None:
    details = []
    for _ in range(2 * AT_ONCE):
        details += [world.authorized(AMOUNT)]
        world.system.advance(1)
    last = world.operation_now(details[-1])
    deaths = 0
    while not any(one.subject == last.id and one.claims for one in send_jobs(world)):
        service = over(world, world.storage, DeadlyChain(world, str(last.outgoing_id)))
        with contextlib.suppress(Crashed):
            service.worker("sandbox").run_until_idle()
        deaths += 1
        world.clock.advance_to(world.clock.now() + 10 * SECOND)  # its lease ends
        assert deaths <= 3
    statuses = [world.operation_now(one).status for one in details[:-1]]
    assert "authorized" not in statuses


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
