"""A request that waits for a chain says so, and the server begins another meanwhile."""

from __future__ import annotations

import threading
import time

from payments_core.chains.evm.quorum import NodeQuorum, NodeSession
from payments_core.chains.http.client import HttpClient
from payments_core.chains.shared_read import SharedRead
from tests.chains.evm.fake_node import FakeChain, FakeNode
from tests.chains.loopback import serving
from tests.waiting_pool import DEADLINE_S, WaitingPool


def test_for_a_server() -> None:
    pool, waited = WaitingPool(), []

    def answer(*_: object) -> tuple[int, bytes]:
        waited.append(pool.waits.wait(DEADLINE_S))
        return 200, b"{}"

    with serving(answer) as url:
        client = HttpClient(url)
        sent = pool.start(lambda: client.send("GET", time.monotonic() + DEADLINE_S))
        assert sent.result(DEADLINE_S) == (200, b"{}")
        client.close()
    assert waited == [True]
    assert not pool.waits.is_set()


def test_for_several_nodes() -> None:
    pool = WaitingPool()
    nodes = [FakeNode(FakeChain()) for _ in range(2)]
    quorum = NodeQuorum([node.url for node in nodes], 8453)

    def ask(session: NodeSession) -> bool:
        return pool.waits.wait(DEADLINE_S)

    assert pool.start(lambda: quorum.query_all(ask)).result(DEADLINE_S) == (True, True)
    quorum.close()
    for node in nodes:
        node.close()


def test_for_an_answer_that_another_request_reads() -> None:
    pool, reached, go = WaitingPool(), threading.Event(), threading.Event()

    def read() -> str:
        reached.set()
        assert go.wait(DEADLINE_S)
        return "read once"

    shared, leader = SharedRead(read, 1.0), WaitingPool()
    leading = leader.start(shared.get)
    assert reached.wait(DEADLINE_S)
    following = pool.start(shared.get)
    assert pool.waits.wait(DEADLINE_S)
    go.set()
    assert leading.result(DEADLINE_S) == following.result(DEADLINE_S) == "read once"
