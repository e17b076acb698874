"""An account's deposit address, and the transfers to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import attrs

from payments_core.accounts.record import Account
from payments_core.chains.outbox.record import sender_lane
from payments_core.chains.port import Block, ScannedTransfer, TransactionView
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.chains.simulated.failures import Failures
from payments_core.chains.simulated.records import (
    SimulatedBalance,
    SimulatedLog,
    SimulatedTransaction,
)
from payments_core.chains.simulated.transfers import balance_id
from payments_core.deposits.discovery import DepositDiscovery
from payments_core.deposits.record import Deposit
from payments_core.engine.events import Event
from payments_core.storage.jobs import Job
from payments_core.storage.port import SIMULATED
from tests.service.faults import FaultyChain
from tests.service.world import BASE, USDC, World, atomic, write

OUTSIDE = "0x000000000000000000000000000000000000fA0c"
"""Whom new tokens come from."""


POLYGON = 137
STORY = ["detected", "confirmed", "settled"]

Logs = tuple[SimulatedLog, ...]


class DepositHarness:
    """The payer's deposit address on Base."""

    def __init__(self, world: World, account: Account | None = None) -> None:
        self.world = world
        self.account = account or world.payer
        issued = world.resources.deposits.issue_address(self.account.id, BASE)
        self.address = issued.address.address
        self.row = issued.address
        world.system.advance(60)  # what was there before lies too deep for a reorg
        self._names = count()

    def chain(self, chain_id: int = BASE) -> SimulatedChain:
        chain = self.world.service.chains[chain_id]
        assert isinstance(chain, SimulatedChain)
        return chain

    def send(
        self,
        amount: str = "5.00",
        *,
        to: str | None = None,
        token: str = USDC.address,
        source: str | None = None,
        name: str | None = None,
        reverts: bool = False,
    ) -> str:
        """A stranger's transfer, in a block and not final; the hash."""
        name = name or f"{self.account.id}-{next(self._names)}"
        return self.world.chain.transfer(
            token, source, to or self.address, atomic(amount), name, reverts=reverts
        )

    def scan(self) -> None:
        """Have the chain scanned, and do what is due."""
        self.world.service.worker("sandbox")
        self.world.service.parts.scanner("sandbox").wake(BASE)
        self.world.run()

    def finish(self) -> None:
        """Everything under way comes to its end."""
        self.scan()
        self.world.advance(30)

    def until_confirmed(self) -> Deposit:
        """Work until the deposit is confirmed, and leave its sweep unsent for a minute."""
        self.scan()
        worker = self.world.service.worker("sandbox")
        while self.only.status == "detected":
            self.world.system.advance(1)
            worker.run_due(1)
        self.hold_sweeps(60)
        return self.only

    def hold_sweeps(self, seconds: int) -> None:
        """Let what waits to be sent wait so long from now."""
        lane = ("sandbox.chain", sender_lane(self.world.environment_id, BASE))
        partition, due_at = self.world.environment_id, self.world.clock.now() + seconds * 1_000

        waiting = self.world.storage.read(  # in the transaction a find may be stale
            partition, lambda snapshot: snapshot.find(Job, "by_queue_lane", lane, limit=100)
        )

        def work(tx: Any) -> None:
            for job in waiting.records:
                current = tx.get(Job, job.id, for_update=True)
                tx.replace(attrs.evolve(current, due_at=due_at))

        write(self.world.storage, partition, work)

    def all(self) -> list[Deposit]:
        """The account's deposits, oldest first."""
        found, after = [], None
        while True:
            page = self.world.resources.deposits.list(self.account.id, after=after, limit=100)
            found += page.records
            after = page.next
            if after is None:
                return found[::-1]

    @property
    def only(self) -> Deposit:
        """The one deposit."""
        [deposit] = self.all()
        return deposit

    @property
    def story(self) -> list[tuple[str, str | None]]:
        """The one deposit's status and failure."""
        return [(deposit.status, deposit.failure) for deposit in self.all()]

    def events(self, deposit_id: str | None = None) -> list[Event]:
        """What events report of deposits, in the order of status versions."""
        found = [
            event
            for event in self.world.events()
            if event.name.startswith("deposit.")
            and deposit_id in (None, event.payload["depositId"])
        ]
        return sorted(found, key=lambda event: int(event.payload["statusVersion"]))

    @property
    def reported_events(self) -> list[str]:
        """The events of the one deposit, in order."""
        return [event.name.removeprefix("deposit.") for event in self.events()]

    @property
    def left(self) -> int:
        """What lies at the deposit address at the newest block."""
        row = self.world.storage.read(
            SIMULATED,
            lambda s: s.get(SimulatedBalance, balance_id(BASE, USDC.address, self.address)),
        )
        return row.total_atomic if row else 0

    @property
    def available(self) -> int:
        """What the vault can spend."""
        return self.world.held(self.account)[2]

    def add_log(self, hash: str, amount: str, *, to: str | None = None) -> None:
        """One more transfer in a stranger's transaction."""
        recipient = to or self.address
        log = SimulatedLog(
            token_address=USDC.address,
            sender=OUTSIDE,
            recipient=recipient,
            amount_atomic=atomic(amount),
        )
        self._rewrite(hash, recipient, lambda logs: (*logs, log), atomic(amount))

    def alter_log(self, hash: str, amount: str) -> None:
        """The transaction's only transfer comes to be of another amount, where it is."""
        before = self._transaction(hash).logs[0]
        after = attrs.evolve(before, amount_atomic=atomic(amount))
        self._rewrite(
            hash, self.address, lambda logs: (after,), atomic(amount) - before.amount_atomic
        )

    def _transaction(self, hash: str) -> SimulatedTransaction:
        row = self.world.storage.read(
            SIMULATED, lambda s: s.get(SimulatedTransaction, f"{BASE}:{hash}")
        )
        assert row is not None
        return row

    def _rewrite(self, hash: str, holder: str, change: Callable[[Logs], Logs], more: int) -> None:
        id = balance_id(BASE, USDC.address, holder)

        def work(tx: Any) -> None:
            row = tx.get(SimulatedTransaction, f"{BASE}:{hash}", for_update=True)
            tx.replace(attrs.evolve(row, logs=change(row.logs)))
            balance = tx.get(SimulatedBalance, id, for_update=True)
            recent = (*balance.recent, (row.block_number, more))
            tx.replace(
                attrs.evolve(balance, total_atomic=balance.total_atomic + more, recent=recent)
            )

        write(self.world.storage, SIMULATED, work)


def armed(world: World, operation: str, times: int = 1) -> None:
    Failures(world.service.parts.ports).arm("chain", operation, times, BASE)


class Node(FaultyChain):
    """A node that answers the first question after a transaction in a way of its own."""

    def __init__(self, inner: Any, answer: Any) -> None:
        super().__init__(inner, 0, lambda call: call())
        self._answer = answer
        self.asked = 0

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        return {hash: self.transaction(hash) for hash in hashes}

    def transaction(self, hash: str) -> TransactionView | None:
        self.asked += 1
        if self.asked > 1:
            return super().transaction(hash)
        seen: TransactionView | None = self._answer(lambda: self._inner.transaction(hash))
        return seen


class Fork(Node):
    """A node that is on a fork of its own when it is asked for the first time."""

    def block(self, number: int) -> Block | None:
        block = super().block(number)
        return attrs.evolve(block, hash="0xf0") if block and self.asked <= 1 else block


def view_of(harness: DepositHarness, hash: str) -> TransactionView:
    view = harness.world.chain.transaction(hash)
    assert view is not None
    return view


def listener(harness: DepositHarness, mode: str = "sandbox") -> DepositDiscovery:
    world = harness.world
    return DepositDiscovery(world.service.parts.ports, world.service.chains, mode)


def scanned(view: TransactionView) -> ScannedTransfer:
    """The first transfer of a transaction as a scan finds it."""
    log = view.logs[0]
    assert view.block is not None
    return ScannedTransfer(
        view.hash,
        view.block,
        log.log_index,
        log.token_address,
        log.sender,
        log.recipient,
        log.amount_atomic,
    )
