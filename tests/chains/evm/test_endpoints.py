"""Several nodes: who is asked, how many must agree, and how long it takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.chains.evm import responses as answers
from payments_core.chains.evm.quorum import (
    MAX_BACKOFF_S,
    MAX_CONCURRENT_QUERIES,
    NodeLagging,
    NodeQuorum,
    NodeSession,
    find_agreed_value,
    majority_of,
)
from payments_core.chains.http.client import RequestLimits
from payments_core.chains.port import ChainMismatch, ChainUnavailable
from tests.chains.evm.fake_node import FakeChain, FakeNode, Refuse

# A busy machine must not turn a node that answers into one that hangs.
PATIENT = RequestLimits(connect_timeout_s=2.0, total_timeout_s=3.0)
QUICK = RequestLimits(connect_timeout_s=0.3, total_timeout_s=0.4)
Nodes = Callable[..., list[FakeNode]]


class Hand:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    begun: list[FakeNode] = []

    def begin(*chains: FakeChain) -> list[FakeNode]:
        begun.extend(FakeNode(chain) for chain in chains)
        return begun[-len(chains) :]

    yield begin
    for node in begun:
        node.close()


def endpoints(
    nodes: Sequence[FakeNode],
    agreement: int | None = None,
    hand: Hand | None = None,
    *,
    limits: RequestLimits = PATIENT,
) -> NodeQuorum:
    urls = [node.url for node in nodes]
    return NodeQuorum(
        urls,
        8453,
        agreement,
        limits=limits,
        ask_s=2.5 * limits.total_timeout_s,
        clock=hand or time.monotonic,
    )


def height(session: NodeSession) -> int:
    """Where a node stands: something to disagree about."""
    block = answers.parse_block(session.call("eth_getBlockByNumber", "latest", False))
    assert block is not None
    return block.number


def chains(*heights: int) -> list[FakeChain]:
    return [FakeChain(height=height) for height in heights]


def test_a_majority_must_agree_by_default(nodes: Nodes) -> None:
    assert [majority_of(count) for count in range(1, 8)] == [1, 2, 2, 3, 3, 4, 4]
    some = nodes(*chains(1, 1, 1))
    assert endpoints(some).enough == 2
    assert endpoints(some, 3).enough == 3


@pytest.mark.parametrize(
    ("urls", "agreement"),
    [([], None), (["http://a"], 2), (["http://a"], 0), (["http://a", "http://a"], None)],
)
def test_nodes_that_cannot_agree_are_refused(urls: list[str], agreement: int | None) -> None:
    with pytest.raises(ValueError):
        NodeQuorum(urls, 8453, agreement)


@pytest.mark.parametrize(
    ("heights", "agreement", "agreed"),
    [
        ((5,), None, 5),
        ((5, 5), None, 5),
        ((5, 5, 9), None, 5),
        ((9, 5, 5), None, 5),
        ((5, 9, 5, 5), None, 5),
        ((5, 5, 5), 3, 5),
    ],
)
def test_what_enough_nodes_say_is_the_answer(
    nodes: Nodes, heights: tuple[int, ...], agreement: int | None, agreed: int
) -> None:
    for _ in range(5):
        assert endpoints(nodes(*chains(*heights)), agreement).query_agreed(height) == agreed


@pytest.mark.parametrize(
    ("heights", "agreement"),
    [((5, 6), None), ((5, 6, 7), None), ((5, 5, 6), 3), ((5, 5, 6, 6), None)],
)
def test_too_few_that_agree_are_not_an_answer(
    nodes: Nodes, heights: tuple[int, ...], agreement: int | None
) -> None:
    with pytest.raises(ChainUnavailable, match="too few agree"):
        endpoints(nodes(*chains(*heights)), agreement).query_agreed(height)


@given(st.lists(st.none() | st.integers(0, 2), max_size=7), st.integers(1, 7))
def test_a_value_counts_as_often_as_it_is_said(values: list[int | None], enough: int) -> None:
    value = find_agreed_value(values, enough)
    counts = {said: values.count(said) for said in values if said is not None}
    if value is None:
        assert all(count < enough for count in counts.values())
    else:
        assert counts[value] == max(counts.values()) >= enough


FAULTS = ["hang", "drip", "garbage", "status 503", "wrong ids", "cut"]


@pytest.mark.parametrize("fault", FAULTS)
def test_one_node_of_three_that_fails_changes_nothing(nodes: Nodes, fault: str) -> None:
    some = nodes(*chains(5, 5, 5))
    some[1].fault = fault
    asked = endpoints(some)
    begun = time.monotonic()
    for _ in range(5):
        assert asked.query_agreed(height) == 5
    assert time.monotonic() - begun < PATIENT.total_timeout_s  # nobody waits for it


@pytest.mark.parametrize("fault", FAULTS)
def test_two_nodes_of_three_that_fail_are_too_many(nodes: Nodes, fault: str) -> None:
    some = nodes(*chains(5, 5, 5))
    some[0].fault = some[2].fault = fault
    with pytest.raises(ChainUnavailable):
        endpoints(some, limits=QUICK).query_agreed(height)


def test_nodes_that_all_hang_take_the_time_of_one(nodes: Nodes) -> None:
    some = nodes(*chains(5, 5, 5, 5, 5))
    for node in some:
        node.fault = "hang"
    begun = time.monotonic()
    with pytest.raises(ChainUnavailable, match="the request timed out"):
        endpoints(some, limits=RequestLimits(total_timeout_s=1)).query_agreed(height)
    assert time.monotonic() - begun < 4  # one after the other they would take five


def test_a_question_of_many_requests_has_an_end(nodes: Nodes) -> None:
    some = nodes(*chains(5, 5))

    def ask(session: NodeSession) -> int:
        while True:
            height(session)

    begun = time.monotonic()
    with pytest.raises(ChainUnavailable):
        endpoints(some, limits=QUICK).query_agreed(ask)
    assert time.monotonic() - begun < 10  # it asks for ever


def test_a_node_that_fails_is_left_alone_for_a_growing_pause(nodes: Nodes) -> None:
    (node,) = nodes(*chains(5))
    hand = Hand()
    asked = endpoints([node], hand=hand)
    node.fault = "status 503"
    pauses = []
    for _ in range(9):
        with pytest.raises(ChainUnavailable, match="status 503"):
            asked.query_agreed(height)
        begun = hand.now
        node.requests.clear()
        with pytest.raises(ChainUnavailable, match="0 of 1 nodes are available now"):
            asked.query_agreed(height)
        assert node.requests == []
        while not node.requests:
            hand.now += 0.25
            try:
                asked.query_agreed(height)
            except ChainUnavailable:
                continue
        pauses.append(hand.now - begun)
        hand.now += MAX_BACKOFF_S
    assert pauses[0] == 0.5
    assert all(pause <= later for pause, later in pairwise(pauses))
    assert pauses[-1] == MAX_BACKOFF_S
    node.fault = None
    assert asked.query_agreed(height) == 5
    node.fault = "status 503"
    with pytest.raises(ChainUnavailable):
        asked.query_agreed(height)
    hand.now += 0.5  # it did answer in between: the first pause again
    node.fault = None
    assert asked.query_agreed(height) == 5


@pytest.mark.parametrize("error", [NodeLagging("behind"), answers.BadResponse("odd")])
def test_what_a_node_cannot_say_is_no_reason_to_leave_it_alone(
    nodes: Nodes, error: ChainUnavailable
) -> None:
    asked = endpoints(nodes(*chains(5)))

    def ask(session: NodeSession) -> int:
        raise error

    for _ in range(3):
        with pytest.raises(ChainUnavailable, match=str(error)):
            asked.query_agreed(ask)
    assert asked.query_agreed(height) == 5


def test_a_refusal_is_no_reason_to_leave_a_node_alone(nodes: Nodes) -> None:
    (node,) = nodes(*chains(5))
    asked = endpoints([node])

    def lie(params: object, result: object) -> object:
        raise Refuse("no")

    node.lies["eth_call"] = lie
    for _ in range(3):
        with pytest.raises(ChainUnavailable, match="refused eth_call"):
            asked.query_agreed(
                lambda session: bytes(
                    session.call("eth_call", {"to": "0x", "data": "0x" + 40 * "0"}, "latest")
                )
            )
    assert asked.query_agreed(height) == 5


def test_a_node_of_another_chain_is_refused_before_its_first_answer_counts(nodes: Nodes) -> None:
    stranger = nodes(FakeChain(chain_id=1))
    hand = Hand()
    asked = endpoints(stranger, hand=hand)
    for _ in range(2):
        with pytest.raises(ChainMismatch, match="serves chain 1, not 8453"):
            asked.query_agreed(height)
        hand.now += 60
    assert [method for method, _ in stranger[0].asked] == ["eth_chainId"] * 2
    stranger[0].chain = chains(5)[0]  # somebody mended it
    assert asked.query_agreed(height) == 5


def test_one_stranger_among_three_is_fatal_when_it_is_checked_and_no_answer_later(
    nodes: Nodes,
) -> None:
    some = nodes(*chains(5, 5), FakeChain(chain_id=1))
    asked = endpoints(some)
    with pytest.raises(ChainMismatch):
        asked.check()
    assert asked.query_agreed(height) == 5


def test_a_check_lets_pass_whom_it_cannot_reach(nodes: Nodes) -> None:
    some = nodes(*chains(5, 5, 5))
    some[0].fault = "status 503"
    endpoints(some).check()
    for node in some:
        node.fault = "status 503"
    endpoints(some).check()


def test_a_node_is_checked_again_after_it_failed(nodes: Nodes) -> None:
    (node,) = nodes(*chains(5))
    hand = Hand()
    asked = endpoints([node], hand=hand)
    assert asked.query_agreed(height) == 5
    node.fault = "status 503"
    with pytest.raises(ChainUnavailable):
        asked.query_agreed(height)
    node.fault, node.chain = None, FakeChain(chain_id=1)
    hand.now += 1
    with pytest.raises(ChainMismatch):
        asked.query_agreed(height)


def test_everyone_answers_who_can(nodes: Nodes) -> None:
    some = nodes(*chains(5, 6, 7))
    some[1].fault = "status 503"
    assert sorted(endpoints(some).query_all(height)) == [5, 7]
    some[0].fault = some[2].fault = "status 503"
    with pytest.raises(ChainUnavailable):
        endpoints(some).query_all(height)


def test_who_cannot_be_asked_now_is_asked_again_later(nodes: Nodes) -> None:
    some = nodes(*chains(5, 5, 5))
    hand = Hand()
    asked = endpoints(some, hand=hand)
    some[0].fault = some[1].fault = "status 503"
    for _ in range(2 * MAX_CONCURRENT_QUERIES):  # and not asking does not count as being asked
        with pytest.raises(ChainUnavailable):
            asked.query_agreed(height)
    some[0].fault = some[1].fault = None
    hand.now += MAX_BACKOFF_S
    assert asked.query_agreed(height) == 5
    asked.close()
    assert asked.query_agreed(height) == 5  # over new connections


def test_an_error_of_our_own_is_reported_where_it_was_asked(nodes: Nodes) -> None:
    def ask(session: NodeSession) -> int:
        raise ZeroDivisionError

    for count in (1, 3):
        with pytest.raises(ZeroDivisionError):
            endpoints(nodes(*chains(*(count * [5])))).query_agreed(ask)


def test_a_node_with_too_many_questions_is_passed_over(nodes: Nodes) -> None:
    (node,) = nodes(*chains(5))
    asked = endpoints([node])
    asked.check()
    release, waiting = threading.Event(), threading.Barrier(MAX_CONCURRENT_QUERIES + 1)

    def ask(session: NodeSession) -> int:
        waiting.wait(5)
        release.wait(5)
        return 1

    threads = [
        threading.Thread(target=asked.query_agreed, args=(ask,))
        for _ in range(MAX_CONCURRENT_QUERIES)
    ]
    for thread in threads:
        thread.start()
    waiting.wait(5)
    with pytest.raises(ChainUnavailable, match="0 of 1 nodes are available"):
        asked.query_agreed(height)
    release.set()
    for thread in threads:
        thread.join()
    assert asked.query_agreed(height) == 5


def test_a_node_that_failed_is_tried_by_one_question_until_it_answers(nodes: Nodes) -> None:
    (node,) = nodes(*chains(5))
    hand = Hand()
    asked = endpoints([node], hand=hand)
    node.fault = "status 503"
    with pytest.raises(ChainUnavailable, match="status 503"):
        asked.query_agreed(height)
    node.fault, hand.now = None, hand.now + MAX_BACKOFF_S
    begun, release = threading.Event(), threading.Event()

    def hang(session: NodeSession) -> int:
        begun.set()
        release.wait(5)
        return height(session)

    with ThreadPoolExecutor(1) as pool:
        trial = pool.submit(asked.query_agreed, hang)
        assert begun.wait(5)
        for _ in range(3):
            with pytest.raises(ChainUnavailable, match="0 of 1 nodes are available now"):
                asked.query_agreed(height)
        release.set()
        assert trial.result() == 5
    assert asked.query_agreed(height) == 5


def test_many_threads_may_ask_at_once(nodes: Nodes) -> None:
    asked = endpoints(nodes(*chains(5, 5, 5)))
    found: list[int] = []

    def work() -> None:
        found.extend(asked.query_agreed(height) for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == 50 * [5]
