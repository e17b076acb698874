"""An embedder's process whose worker hangs is not ended: it is not ready until threads are back."""

from __future__ import annotations

import threading

import attrs
import pytest

from payments_core import KeyRing, PaymentsService, background_jobs
from payments_core.chains.port import ChainUnavailable, Heads
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.errors import Unavailable
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.world import BASE, RING


class Hanging(SimulatedChain):
    """A chain whose node answers once it is released, and then in vain."""

    released: threading.Event

    def heads(self) -> Heads:
        assert self.released.wait(60)
        raise ChainUnavailable("no node answers")


def test_a_service_is_not_ready_while_its_worker_has_too_few_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queues = [attrs.evolve(it, lease_ms=500, run_limit_ms=300) for it in background_jobs.QUEUES]
    monkeypatch.setattr(background_jobs, "QUEUES", tuple(queues))  # a minute is long for a test
    storage = MemoryStorage()
    chain = Hanging(BASE, PaymentsService(storage, KeyRing.parse(RING)).parts.ports)
    chain.released = threading.Event()
    service = PaymentsService(storage, KeyRing.parse(RING), chains={BASE: chain})
    stuck, worker = threading.Event(), service.worker("production")
    worker.hung.on_stuck = stuck.set
    worker.start(1)
    service.check_ready()
    assert stuck.wait(30)
    with pytest.raises(Unavailable):
        service.check_ready()
    chain.released.set()
    for _ in range(3_000):
        if not worker.hung.is_stuck:
            break
        threading.Event().wait(0.01)
    service.check_ready()
    service.close()
