"""Processes whose calls a test may interrupt, and a shop that receives their webhooks."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import attrs

from payments_core.chains.rotated_signer import RotatedSigner
from payments_core.clock import Clock, Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.service import PaymentsService
from payments_core.storage import one_by_one
from payments_core.storage.port import CommitUnknown, Storage
from payments_core.webhooks.transports.port import TransportResult
from tests.chains.evm.simulation.network import CHAIN, Network
from tests.chains.evm.simulation.pool_node import PoolNode, connect
from tests.service.world import RING

T = TypeVar("T")


class Crashed(BaseException):
    """The process died; nothing in it can catch that."""


class Undone(Exception):
    """The transaction did not take place."""


class SkewedClock:
    """A process's clock, ahead of the true one or behind it."""

    def __init__(self, true: Clock) -> None:
        self._true = true
        self.ahead_ms = 0

    def now(self) -> Instant:
        return self._true.now() + self.ahead_ms

    def real_now(self) -> Instant:
        return self.now()


@attrs.define
class Interference:
    """What happens amid a call of a process to its storage or a node, once.

    `calls_left` pass before it. While it happens nothing else does.
    """

    rng: random.Random
    calls_left: int = 0
    act: Callable[[Process | None], None] | None = None
    is_happening: bool = False
    lost_commits: float = 0.0

    def arm(self, act: Callable[[Process | None], None]) -> None:
        """Do this some calls from now."""
        self.calls_left, self.act = int(self.rng.expovariate(1 / 15)), act

    def disarm(self) -> None:
        """Nothing will happen."""
        self.act = None

    def count_call(self, process: Process | None) -> None:
        """A process makes a call."""
        if self.act is None or self.is_happening:
            return
        if self.calls_left > 0:
            self.calls_left -= 1
            return
        act, self.act = self.act, None
        self.is_happening = True
        try:
            act(process)
        finally:
            self.is_happening = False

    def loses_commit(self) -> bool:
        """Whether nobody hears of the next commit."""
        return bool(self.lost_commits) and self.rng.random() < self.lost_commits


class Gate:
    """The storage as one process reaches it."""

    def __init__(self, process: Process, storage: Storage) -> None:
        self._process = process
        self._storage = storage

    def transact(self, partition: str, work: Callable[[Any], T]) -> T:
        interference = self._process.interference
        interference.count_call(self._process)

        def watched(tx: Any) -> T:
            return work(_Learning(tx, self._process.network))

        if not interference.loses_commit():
            return self._storage.transact(partition, watched)
        if interference.rng.random() < 0.5:
            self._storage.transact(partition, watched)
            raise CommitUnknown("it took place")

        def undone(tx: Any) -> None:
            watched(tx)
            raise Undone

        try:
            self._storage.transact(partition, undone)
        except Undone as error:
            raise CommitUnknown("it did not take place") from error
        raise AssertionError("a work that raises is undone")

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._storage, name)

        def call(*arguments: Any, **options: Any) -> Any:
            self._process.interference.count_call(self._process)
            return method(*arguments, **options)

        return call


class _Learning:
    """A transaction that sends the network the ids of what is inserted."""

    def __init__(self, tx: Any, network: Network) -> None:
        self._tx = tx
        self._network = network

    def insert(self, record: Any) -> None:
        self._network.learn(record.id)
        self._tx.insert(record)

    write = one_by_one.write  # every insert comes through here

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


class Shop:
    """Receives webhooks: at times it refuses, or loses what it would have answered."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.received: defaultdict[str, set[bytes]] = defaultdict(set)
        self.failing = 0.3

    def send(self, request: Any, addresses: Sequence[str], deadline: Any) -> TransportResult:
        chance = self._rng.random()
        if chance < self.failing / 3:
            return TransportResult(failure="no answer")
        if chance < self.failing / 1.5:
            return TransportResult(status=503)
        self.received[json.loads(request.body)["id"]].add(request.body)
        if chance < self.failing:
            return TransportResult(failure="timed out")
        return TransportResult(status=200)

    def close(self) -> None:
        """Nothing is open."""


class OneAddress:
    """Every name has the same address."""

    def resolve(self, host: str, port: int, timeout_s: float, *, environment_id: str) -> list[str]:
        return ["93.184.216.34"]


class Process:
    """A service and its worker; `start` again after it died."""

    def __init__(
        self,
        *,
        network: Network,
        nodes: Sequence[PoolNode],
        storage: Storage,
        signer: RotatedSigner,
        true_clock: Clock,
        entropy: Callable[[int], bytes],
        shop: Shop,
        interference: Interference,
    ) -> None:
        self.network = network
        self.interference = interference
        self.clock = SkewedClock(true_clock)
        self.signer = signer
        self._nodes = nodes
        self._gate = Gate(self, storage)
        self._true_clock = true_clock
        self._entropy = entropy
        self._shop = shop
        self.start()

    def start(self) -> None:
        """Be a new process: what was in memory is gone."""
        chain = connect(
            self.network, self._nodes, self.signer, lambda: self._true_clock.now() / 1_000
        )
        self.service = PaymentsService(
            self._gate,  # type: ignore[arg-type]
            KeyRing.parse(RING),
            chains={CHAIN: chain},
            clock=self.clock,
            entropy=self._entropy,
            transport=self._shop,
            resolver=OneAddress(),
        )
        self.worker = self.service.worker("sandbox")
