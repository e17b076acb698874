"""Many who move one sandbox's clock at once: they take turns, and jobs run one after another."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from payments_core.clock import SECOND
from payments_core.credentials.keyring import KeyRing
from payments_core.service import PaymentsService
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.webhooks.transports.port import Deadline, TransportResult, WebhookRequest
from tests.service.world import RING, World

CALLERS = 3


class Counting:
    """A transport that notices when it sends two requests at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self.most = 0
        self.sent = 0

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        with self._lock:
            self._inside += 1
            self.sent += 1
            self.most = max(self.most, self._inside)
        time.sleep(0.002)  # so that another would come in meanwhile
        with self._lock:
            self._inside -= 1
        return TransportResult(503)

    def close(self) -> None:
        """Nothing is open."""


class Everywhere:
    """A resolver to which every name is public."""

    def resolve(
        self, host: str, port: int, timeout_s: float, *, environment_id: str
    ) -> Sequence[str]:
        return ("93.184.216.34",)


def test_callers_who_advance_the_clock_at_once_add_up_and_never_run_jobs_together() -> None:
    world = World(MemoryStorage())
    transport = Counting()
    world.service = PaymentsService(
        world.storage,
        KeyRing.parse(RING),
        clock=world.clock,
        transport=transport,
        resolver=Everywhere(),
    )
    world.open()
    for name in "abcd":  # each of them a lane of its own
        world.resources.webhooks.create(url=f"https://{name}.example/")
    for number in range(4):
        world.account(f"user-{number}")
    began = world.clock.now()
    sandboxes = [world.resources.sandbox for _ in range(CALLERS)]
    together = threading.Barrier(CALLERS)
    ends: list[int] = []

    def advance(place: int) -> None:
        together.wait(10)
        ends.append(sandboxes[place].advance_clock(3_600)[0])

    callers = [threading.Thread(target=advance, args=(n,)) for n in range(CALLERS)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(30)
    assert world.clock.now() - began >= CALLERS * 3_600 * SECOND
    assert sorted(end - began for end in ends) == [
        3_600 * SECOND * (turn + 1) for turn in range(CALLERS)
    ]
    assert transport.sent > 10
    assert transport.most == 1
