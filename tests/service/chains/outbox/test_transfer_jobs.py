"""The protocol of a transfer's owner, with an owner that only tests know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar
from unittest.mock import Mock

import attrs
import pytest

from payments_core.chains.outbox.jobs import TransferJobs
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.owners import Doubt, OnUnsent, TransferToSend
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    TransferOutcome,
    TransferPurpose,
    TransferToWatch,
    lock_transfer,
    new_transfer,
    send_job,
    watch_job,
    withdraw,
)
from payments_core.chains.outbox.screening import ScreeningGate
from payments_core.chains.port import AddressSpec, ChainUnavailable, Contract, SignedTransaction
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.clock import SECOND, Instant
from payments_core.deposits.sweep import SweepOwner
from payments_core.engine.decision import Decision, StaleView, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.parking import Queue
from payments_core.engine.jobs.worker import Worker
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import DependencyFailed
from payments_core.payments.paying.vault_transfer import FundingOwner
from payments_core.payments.refunding.transfer import RefundOwner
from payments_core.payments.release import ReleaseOwner
from payments_core.screening.asking import Screener
from payments_core.storage import one_by_one
from payments_core.storage.jobs import Job
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get
from payments_core.storage.records import Collection, Record
from tests.service.chain_harness import BASE, BOB, USDC, ChainHarness
from tests.shipped import CHAINS, asset_of

T = TypeVar("T")
SCOPE = WorkerAuthority("env_a", "sandbox")


@attrs.frozen(kw_only=True)
class Parcel(Record):
    """An owner's record: `wanted`, maybe `unknown`, `sent`, and then `done` or `failed`."""

    collection: ClassVar[Collection] = Collection("parcels")

    outgoing_id: str
    status: str = "wanted"
    is_called_off: bool = False


class ParcelOwner:
    """Moves parcels; the tests set what it meets."""

    purpose: TransferPurpose = "sweep"
    record_type = Parcel
    send_kind = "parcels.send"
    watch_kind = "parcels.watch"

    def __init__(self) -> None:
        self.on_unsent: OnUnsent[Parcel] | None = None
        self.facts: list[int] = []
        self.failures: list[Exception] = []
        self.stale = 0

    def find_to_send(self, record: Parcel) -> TransferToSend | None:
        if record.status not in ("wanted", "unknown"):
            return None
        return TransferToSend(BASE, record.outgoing_id, record.status == "unknown")

    def locks(self, record: Parcel, transaction_hash: str) -> Sequence[Get]:
        return (Get(Parcel, record.id, "exclusive"),)

    def on_sent(
        self, tx: Transaction, record: Parcel, signed: SignedTransaction, *, now: Instant
    ) -> Decision[None]:
        watch = watch_job(self.watch_kind, record.id, record.id, now=now)
        return Decision(None, replaces=(stepped(tx, record, "sent"),), jobs=(watch,))

    def find_to_watch(self, record: Parcel, job: Job) -> TransferToWatch | None:
        return TransferToWatch(record.outgoing_id)

    def read_chain(self, partition: str, record: Parcel, outcome: TransferOutcome) -> int:
        if self.failures:
            raise self.failures.pop()
        self.facts.append(outcome.height)
        return outcome.height

    def lock(self, tx: Transaction, record: Parcel, outgoing_id: str) -> Parcel | None:
        locked = tx.get(Parcel, record.id, for_update=True)
        assert locked is not None
        return None if locked.is_called_off else locked

    def on_final(
        self, tx: Transaction, locked: Parcel, outcome: TransferOutcome, facts: int, *, now: Instant
    ) -> Decision[None]:
        tx.get(Balance, "balance", for_update=True)
        if self.stale:
            self.stale -= 1
            raise StaleView
        assert facts == self.facts[-1]
        status = "done" if outcome.reason is None else "failed"
        return Decision(None, replaces=(stepped(tx, locked, status),))

    def on_reversed(
        self, tx: Transaction, outgoing: OutboundTransfer, reason: str, *, now: Instant
    ) -> Decision[None]:
        raise AssertionError("no reorg is that deep here")


@attrs.frozen(kw_only=True)
class Balance(Record):
    """What an owner locks last."""

    collection: ClassVar[Collection] = Collection("parcel_balances")


class NotingStorage(MemoryStorage):
    """Notes what each transaction locks, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.locks: list[list[str]] = []

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        self.locks.append([])

        def noted(tx: Transaction) -> T:
            return work(NotingTransaction(tx, self.locks[-1]))  # type: ignore[arg-type]

        return super().transact(partition, noted)


class NotingTransaction:
    """A transaction, all of whose locks are noted."""

    def __init__(self, tx: Transaction, locks: list[str]) -> None:
        self._tx = tx
        self._locks = locks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def get(self, kind: type[Record], id: str, *, for_update: bool = False) -> Any:
        if for_update and kind is not Job:
            self._locks.append(kind.__name__)
        return self._tx.get(kind, id, for_update=for_update)

    get_many = one_by_one.get_many


class SilentChain(SimulatedChain):
    """A chain that does not even give the operator's address while it is silent."""

    is_silent = False

    def derive(self, spec: AddressSpec) -> str:
        if self.is_silent:
            raise ChainUnavailable("no answer")
        return super().derive(spec)


class Post:
    """One parcel that is to be sent, and a worker."""

    def __init__(self) -> None:
        self.storage = NotingStorage()
        self.chain_harness = ChainHarness(self.storage)
        self.clock, self.committer = self.chain_harness.clock, self.chain_harness.ports.committer
        self.failures = self.chain_harness.failures
        self.owner = ParcelOwner()
        ports = self.chain_harness.ports
        self.broadcasts = 0
        self.chain = SilentChain(BASE, ports)
        outbox = Outbox(ports, {BASE: self.chain}, on_sent=self._count)
        gate = ScreeningGate(ports, Screener(ports, {}, RemoteCalls(1)))  # of no provider
        jobs = TransferJobs(ports, outbox, gate, sent=[], followed=[self.owner])
        queue = Queue("chain", lane_concurrency=1, lease_ms=60 * SECOND)
        self.worker = Worker(
            self.storage,
            self.clock,
            "sandbox",
            jobs.handlers(),
            [queue],
            batch_handlers=jobs.batch_handlers(),
        )
        self.chain_harness.chain.mint(USDC, self.chain_harness.vault, 100, "funds")
        now = self.clock.now()
        outgoing = new_transfer(
            "out_1",
            asset_of(BASE, "USDC"),
            "sweep",
            "parcel_1",
            source=Contract("vault", "acct_a", self.chain_harness.vault),
            recipient=BOB,
            amount=10,
            now=now,
        )
        parcel = Parcel(id="parcel_1", outgoing_id=outgoing.id)
        send = send_job("parcels.send", SCOPE.partition, outgoing, now)
        intent = Decision(None, inserts=(parcel, outgoing, Balance(id="balance")), jobs=(send,))
        self.committer.commit(SCOPE, lambda tx, id_sequence: intent)

    def _count(self, authority: WorkerAuthority, chain_id: int) -> None:
        self.broadcasts += 1

    def run(self, seconds: int = 0) -> str:
        """Run what is due now and then, second by second; the parcel's status at the end."""
        self.worker.run_until_idle()
        for _ in range(seconds):
            self.clock.advance(1)
            self.worker.run_until_idle()
        return self.parcel.status

    @property
    def parcel(self) -> Parcel:
        found = self.storage.read("env_a", lambda snapshot: snapshot.get(Parcel, "parcel_1"))
        assert found is not None
        return found

    @property
    def outgoing(self) -> OutboundTransfer:
        found = self.storage.read("env_a", lambda snapshot: snapshot.get(OutboundTransfer, "out_1"))
        assert found is not None
        return found

    @property
    def has_jobs(self) -> bool:
        return self.storage.next_due("sandbox.chain") is not None

    def call_off(self) -> None:
        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            off = attrs.evolve(stepped(tx, self.parcel, "sent"), is_called_off=True)
            return Decision(None, replaces=(off,))

        self.committer.commit(SCOPE, decide)

    def received(self) -> int:
        return self.chain_harness.newest(BOB)


def stepped(tx: Transaction, parcel: Parcel, status: str) -> Parcel:
    locked = tx.get(Parcel, parcel.id, for_update=True)
    assert locked is not None
    return attrs.evolve(locked, status=status)


class Unknown:
    """What an owner commits that has a state for a lost answer, as funding has."""

    def __init__(self, gives_up: bool = False) -> None:
        self.gives_up = gives_up
        self.doubts: list[Doubt] = []

    def __call__(
        self,
        tx: Transaction,
        id_sequence: IdSequence,
        partition: str,
        record: Parcel,
        doubt: Doubt,
        *,
        now: Instant,
    ) -> Decision[None] | None:
        self.doubts.append(doubt)
        if doubt != "silent":
            status = "unknown" if doubt == "lost" else "wanted"
            return Decision(None, replaces=(stepped(tx, record, status),))
        if not self.gives_up:
            return None
        stopped = withdraw(lock_transfer(tx, record.outgoing_id))
        if stopped is None:
            return None
        return Decision(None, replaces=(stepped(tx, record, "expired"), stopped))


@pytest.fixture
def post() -> Post:
    return Post()


def test_a_transfer_is_sent_watched_and_concluded(post: Post) -> None:
    assert post.run() == "sent"
    assert post.outgoing.status == "signed"
    assert post.outgoing.block_number is None
    assert post.run(30) == "done"
    assert post.outgoing.block_number is not None
    assert post.owner.facts[-1] >= post.outgoing.block_number
    assert (post.broadcasts, post.received()) == (1, 10)


def test_the_owner_is_locked_before_its_transfer_and_a_balance_last(post: Post) -> None:
    post.run(30)
    concluding = next(locks for locks in post.storage.locks if "Balance" in locks)
    assert concluding == ["Parcel", "OutboundTransfer", "Balance", "Parcel"]


def test_a_transfer_that_fails_for_good_is_noted_with_its_owners_step(post: Post) -> None:
    post.failures.arm("chain", "transfer", 1)
    assert post.run(30) == "failed"
    assert post.outgoing.status == "failed"
    assert not post.has_jobs


@pytest.mark.parametrize("failure", ["heads", "broadcast", "lost_answer"])
def test_an_owner_without_a_state_for_it_waits_and_the_same_bytes_are_sent(
    post: Post, failure: str
) -> None:
    post.failures.arm("chain", failure, 3)
    assert post.run() == "wanted"
    assert post.run(60) == "done"
    assert (post.outgoing.replacements, post.received()) == (0, 10)


@pytest.mark.parametrize("failure", ["broadcast", "lost_answer"])
def test_a_lost_answer_is_the_owners_state_and_the_chain_is_asked_first(
    post: Post, failure: str
) -> None:
    unknown = post.owner.on_unsent = Unknown()
    post.failures.arm("chain", failure, 1)
    assert post.run() == "unknown"
    raw = post.outgoing.raw
    post.failures.arm("chain", "transaction", 1)
    post.run(1)
    assert (post.parcel.status, unknown.doubts) == ("unknown", ["lost", "silent"])
    while post.parcel.status == "unknown":
        post.run(1)
    assert post.parcel.status == "sent"  # at once, also where it never arrived
    assert post.run(60) == "done"
    arrived = failure == "lost_answer"
    assert unknown.doubts == ["lost", "silent"] + ([] if arrived else ["absent"])
    assert post.broadcasts == (0 if arrived else 1)
    assert (post.outgoing.raw, post.received()) == (raw, 10)


def test_an_owner_that_gives_up_while_the_chain_is_silent_ends_the_job(post: Post) -> None:
    post.owner.on_unsent = Unknown(gives_up=True)
    post.chain.is_silent = True
    assert post.run() == "expired"
    assert post.outgoing.status == "withdrawn"
    assert not post.has_jobs


def test_it_cannot_give_up_once_a_nonce_is_reserved(post: Post) -> None:
    post.owner.on_unsent = Unknown(gives_up=True)
    post.failures.arm("chain", "heads", 1)  # asked while it signs
    assert post.run() == "wanted"
    assert post.outgoing.status == "reserved"
    assert post.run(60) == "done"


def test_a_withdrawn_transfer_ends_its_job(post: Post) -> None:
    def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
        stopped = withdraw(lock_transfer(tx, "out_1"))
        assert stopped is not None
        return Decision(None, replaces=(stopped,))

    post.committer.commit(SCOPE, decide)
    assert post.run() == "wanted"
    assert not post.has_jobs


@pytest.mark.parametrize("failure", [ChainUnavailable("no answer"), DependencyFailed("chain")])
def test_facts_that_cannot_be_read_put_the_outcome_off(
    post: Post, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    post.owner.failures = [failure, failure]
    assert post.run(30) == "done"
    assert len(post.owner.facts) == 1
    assert not caplog.records  # it waits; the job does not fail


def test_a_stale_view_is_looked_at_again_and_nothing_is_noted_of_it(
    post: Post, caplog: pytest.LogCaptureFixture
) -> None:
    post.owner.stale = 1
    while post.owner.stale:
        assert post.run(1) == "sent"
    assert post.outgoing.block_number is None
    assert post.run(1) == "done"
    assert len(post.owner.facts) == 2
    assert not caplog.records


def test_an_owner_that_no_longer_waits_ends_the_job_and_nothing_is_noted(post: Post) -> None:
    assert post.run() == "sent"
    post.call_off()
    assert post.run(30) == "sent"
    assert post.outgoing.block_number is None
    assert not post.has_jobs


def test_jobs_that_were_stored_before_an_upgrade_are_still_known() -> None:
    ports: Any = Mock()
    nothing: Any = None
    owners = [ReleaseOwner(nothing), RefundOwner(nothing), SweepOwner({}, CHAINS)]
    jobs = TransferJobs(ports, nothing, nothing, sent=[FundingOwner()], followed=owners)
    assert {*jobs.handlers(), *jobs.batch_handlers()} == {
        "chains.follow_again",
        "deposits.sweep",
        "deposits.watch_sweep",
        "funding.send",
        "payments.release",
        "payments.watch_release",
        "refunds.send",
        "refunds.watch",
    }
