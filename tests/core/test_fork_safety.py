"""What outlives a fork works in the child, whichever lock another thread holds at that moment."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from payments_core.accounts.record import Account
from payments_core.chains.evm.quorum import _QuorumNode
from payments_core.chains.shared_read import SharedRead
from payments_core.engine.shares import Places
from payments_core.http.connection_pool import ConnectionPool
from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.port import PolicyCheck
from payments_core.storage import documents
from payments_core.webhooks.transports.resolver import SystemResolver
from payments_core_http.observability.bounded_probe import BoundedProbe


def resolve(resolver: SystemResolver) -> bool:
    return "127.0.0.1" in resolver.resolve("127.0.0.1", 80, 5.0, environment_id="env_1")


def check(limiter: MemoryLimiter) -> bool:
    return limiter.check([PolicyCheck("key", 1, 1_000)], 0)[0].admitted


def decode(decoders: Any) -> bool:
    return decoders.get(Account) is not None


HOLDERS: Mapping[str, tuple[Callable[[], Any], Callable[[Any], bool]]] = {
    "connection pool": (ConnectionPool, lambda pool: len(pool) == 0),
    "shared read": (partial(SharedRead, lambda: True, 1.0), SharedRead.get),
    "node": (
        lambda: _QuorumNode(None, 1, lambda: 0.0),  # type: ignore[arg-type]
        _QuorumNode.try_acquire,
    ),
    "resolver": (SystemResolver, resolve),
    "probe": (partial(BoundedProbe, lambda: True, name="probe"), lambda probe: probe.ask(5.0)),
    "decoders": (lambda: documents._decoders, decode),
    "limiter": (MemoryLimiter, check),
    "places": (partial(Places, 1, 1), lambda places: places.take("env_1") is not None),
}


def works_in_a_child(works: Callable[[], bool]) -> bool:
    """Whether it works in a forked child, which its alarm ends if it waits for ever."""
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            os._exit(0 if works() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("name", HOLDERS)
def test_a_child_works_whoever_holds_the_lock_at_its_fork(name: str) -> None:
    make, works = HOLDERS[name]
    holder = make()
    with holder._lock:
        assert works_in_a_child(lambda: works(holder))
    assert works(holder)


class Hanging:
    """A call of another thread of the parent, which has begun when the fork comes."""

    def __init__(self) -> None:
        self.begun, self.end = threading.Event(), threading.Event()
        self.is_first = True

    def __call__(self) -> bool:
        if not self.is_first:
            return True
        self.is_first = False
        self.begun.set()
        return self.end.wait(30)


@pytest.mark.parametrize("name", ["shared read", "probe"])
def test_a_child_does_not_wait_for_a_call_of_its_parent(name: str) -> None:
    call = Hanging()
    holder: Any = SharedRead(call, 1.0) if name == "shared read" else BoundedProbe(call, name="x")
    ask = holder.get if name == "shared read" else partial(holder.ask, 30.0)
    asking = threading.Thread(target=ask)
    asking.start()
    assert call.begun.wait(30)
    assert works_in_a_child(ask)
    call.end.set()
    asking.join()


def test_a_child_counts_no_query_of_its_parent() -> None:
    node = _QuorumNode(None, 1, lambda: 0.0)  # type: ignore[arg-type]
    while node.try_acquire():
        pass
    assert works_in_a_child(node.try_acquire)
    assert not node.try_acquire()
