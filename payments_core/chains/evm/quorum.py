"""Several nodes of one chain: who is asked, and how many must say the same.

All nodes are asked at once, each in a thread of its own, until enough of them agree. So a node
that hangs costs nobody time but itself, and the time of a question is that of the slowest node
that is needed, at most `QUERY_TIMEOUT_S`; asking one after the other would add up their time-outs.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

import attrs
import msgspec

from payments_core.chains.evm import responses as answers
from payments_core.chains.evm.rpc import Node, NodeRefused, Result, RpcCall
from payments_core.chains.http.client import RequestLimits
from payments_core.chains.port import ChainMismatch, ChainUnavailable

T = TypeVar("T")
R = TypeVar("R")

QUERY_TIMEOUT_S = 20.0
"""How long one question may take, with all the requests that it needs."""

MIN_BACKOFF_S = 0.5
MAX_BACKOFF_S = 30.0
"""A node that fails is left alone for so long, twice as long with every failure in a row."""

MAX_CONCURRENT_QUERIES = 16
"""So many questions to one node at a time; one that has more to answer is passed over."""

_log = logging.getLogger(__name__)


class NodeLagging(ChainUnavailable):
    """The node does not have yet what was asked. It does not count, and is not to blame."""


@attrs.frozen
class QuorumResult(Generic[R]):
    """What the answers so far come to."""

    value: R


@attrs.frozen
class NodeSession:
    """A node, for the time of one question."""

    node: Node
    until: float

    @property
    def name(self) -> str:
        """What the node is called where people read."""
        return self.node.name

    def call(self, method: str, *params: object) -> msgspec.Raw:
        """The result of one call. Raises ChainUnavailable, Refused."""
        return self.node.call(method, *params, until=self.until)

    def call_all(self, calls: Sequence[RpcCall]) -> list[msgspec.Raw]:
        """The results of all calls. Raises ChainUnavailable, Refused."""
        return self.node.call_all(calls, until=self.until)

    def batch(self, calls: Sequence[RpcCall]) -> list[Result]:
        """The results of all calls, or refusals. Raises ChainUnavailable."""
        return self.node.batch(calls, until=self.until)

    def read_logs(self, query: Mapping[str, object], first: int, last: int) -> list[msgspec.Raw]:
        """The logs of these blocks, in pieces. Raises ChainUnavailable."""
        return self.node.read_logs(query, first, last, until=self.until)


NodeQuery = Callable[[NodeSession], T]
QuorumRule = Callable[[Sequence[T], bool], QuorumResult[R] | None]


def majority_of(nodes: int) -> int:
    """How many of so many nodes must agree: 1 of 1, 2 of 2, 2 of 3, 3 of 4, 3 of 5."""
    return nodes // 2 + 1


def find_agreed_value(values: Iterable[T | None], enough: int) -> T | None:
    """The value that so many of these are; None counts for nothing."""
    counted: list[tuple[T, int]] = []
    for value in values:
        if value is None:
            continue
        for place, (other, count) in enumerate(counted):
            if other == value:
                counted[place] = (other, count + 1)
                break
        else:
            counted.append((value, 1))
    best = max(counted, key=lambda item: item[1], default=None)
    return best[0] if best is not None and best[1] >= enough else None


class NodeQuorum:
    """The nodes of one chain. Threads may share it."""

    def __init__(
        self,
        urls: Sequence[str],
        chain_id: int,
        agreement: int | None = None,
        *,
        limits: RequestLimits | None = None,
        ask_s: float = QUERY_TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`agreement`: how many nodes must say the same, a majority unless given.

        Raises ValueError where so many cannot agree, or one address is given twice.
        """
        if len(set(urls)) != len(urls):
            raise ValueError("the URLs of the nodes must differ")
        self.chain_id = chain_id
        self.enough: int = majority_of(len(urls)) if agreement is None else agreement
        if not 1 <= self.enough <= len(urls):
            raise ValueError(f"{self.enough} of {len(urls)} nodes cannot agree")
        self._ask_s = ask_s
        self._endpoints = [_QuorumNode(Node(url, limits=limits), chain_id, clock) for url in urls]

    def check(self) -> None:
        """Ask every node that can be reached which chain it serves. Raises ChainMismatch.

        To be called before anything is done. A node that cannot be reached is asked before its
        first answer counts.
        """
        until = time.monotonic() + self._ask_s
        asked = [endpoint for endpoint in self._endpoints if endpoint.try_acquire()]
        outcomes = _query_nodes(asked, lambda session: None, until)
        for _ in asked:
            try:
                outcome = outcomes.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return
            if isinstance(outcome.error, ChainMismatch):
                raise outcome.error

    def query_agreed(self, ask: NodeQuery[T]) -> T:
        """What enough nodes answer alike. Raises ChainUnavailable, ChainMismatch."""

        def decide(told: Sequence[tuple[str, T]], is_last: bool) -> QuorumResult[T] | None:
            settled = find_agreed_value((QuorumResult(value) for _, value in told), self.enough)
            if settled is not None:
                for name, value in told:
                    if value != settled.value:
                        _log.warning(
                            "chain %d: %s differs from the other nodes", self.chain_id, name
                        )
            return settled

        return self.query_until_decided(lambda session: (session.name, ask(session)), decide)

    def query_all(self, ask: NodeQuery[T]) -> tuple[T, ...]:
        """What all nodes answer that answer at all. Raises ChainUnavailable, ChainMismatch."""

        def decide(told: Sequence[T], is_last: bool) -> QuorumResult[tuple[T, ...]] | None:
            return QuorumResult(tuple(told)) if is_last and told else None

        return self.query_until_decided(ask, decide, enough=1)

    def query_until_decided(
        self,
        ask: NodeQuery[T],
        decide: QuorumRule[T, R],
        *,
        enough: int | None = None,
        patience_s: float = 0.0,
    ) -> R:
        """What `decide` makes of the answers; it sees them whenever one has come.

        It is told when no more will come. `patience_s`: for so long more of them are waited for
        after they could be decided upon. Nobody is asked where fewer than `enough` nodes can be.
        Raises ChainUnavailable, ChainMismatch.
        """
        now = time.monotonic()
        until = waits_until = now + self._ask_s
        enough = self.enough if enough is None else enough
        asked = [endpoint for endpoint in self._endpoints if endpoint.try_acquire()]
        if len(asked) < enough:
            for endpoint in asked:
                endpoint.release()
            raise ChainUnavailable(
                f"chain {self.chain_id}: {len(asked)} of {len(self._endpoints)} nodes are "
                f"available now, but {enough} must agree"
            )
        told: list[T] = []
        settled: QuorumResult[R] | None = None
        why: ChainUnavailable | None = None
        outcomes = _query_nodes(asked, ask, until)
        for count in range(1, len(asked) + 1):
            try:
                outcome = outcomes.get(timeout=max(0.0, waits_until - time.monotonic()))
            except queue.Empty:
                break
            if isinstance(outcome.error, ChainUnavailable):
                why = outcome.error
                continue
            if outcome.error is not None:
                raise outcome.error
            told += outcome.answer
            is_first = settled is None
            settled = decide(told, count == len(asked)) or settled
            if settled is not None and not patience_s:
                return settled.value
            if settled is not None and is_first:
                waits_until = min(until, time.monotonic() + patience_s)
        if settled is None and told:
            settled = decide(told, True)
        if settled is None and isinstance(why, ChainMismatch) and not told:
            raise why
        if settled is None:
            raise ChainUnavailable(
                f"chain {self.chain_id}: of {len(asked)} nodes {len(told)} answered, and too few "
                f"agree{f' ({why})' if why else ''}"
            ) from why
        return settled.value

    def close(self) -> None:
        """Close the connections that wait."""
        for endpoint in self._endpoints:
            endpoint.node.close()


@attrs.frozen
class _NodeReply(Generic[T]):
    """An answer, or why there is none."""

    answer: tuple[T, ...] = ()
    error: Exception | None = None


class _QuorumNode:
    """A node, and whether it can be asked now."""

    def __init__(self, node: Node, chain_id: int, clock: Callable[[], float]) -> None:
        self.node = node
        self._chain_id = chain_id
        self._clock = clock
        self._lock = threading.Lock()
        self._asked = 0
        self._failures = 0
        self._rests_until = 0.0
        self._is_checked = False

    def try_acquire(self) -> bool:
        """Whether it may be asked a question; `release` must follow."""
        with self._lock:
            # One that failed is tried by a single question until it has answered one.
            most = 1 if self._failures else MAX_CONCURRENT_QUERIES
            if self._asked >= most or self._clock() < self._rests_until:
                return False
            self._asked += 1
            return True

    def release(self) -> None:
        """The question was answered, or never asked."""
        with self._lock:
            self._asked -= 1

    def run_query(self, ask: NodeQuery[T], until: float) -> _NodeReply[T]:
        """What becomes of a question after `try_acquire`."""
        session = NodeSession(self.node, until)
        try:
            if not self._is_checked:
                self._require_chain(session)
            answer = ask(session)
        # It is well in these two. Were it left alone for what it cannot tell of one transaction,
        # a stranger could make such a transaction.
        except answers.BadResponse as error:
            return _NodeReply(error=answers.BadResponse(f"{session.name}: {error}"))
        except (NodeLagging, NodeRefused) as error:
            return _NodeReply(error=error)
        except ChainUnavailable as error:
            self._record_failure(error)
            return _NodeReply(error=error)
        except Exception as error:  # told where it was asked, and not in the thread
            return _NodeReply(error=error)
        finally:
            self.release()
        with self._lock:
            self._failures = 0
        return _NodeReply((answer,))

    def _require_chain(self, session: NodeSession) -> None:
        served = answers.parse_number(session.call("eth_chainId"))
        if served != self._chain_id:
            raise ChainMismatch(f"{session.name} serves chain {served}, not {self._chain_id}")
        self._is_checked = True

    def _record_failure(self, error: ChainUnavailable) -> None:
        with self._lock:
            pause_s = min(MIN_BACKOFF_S * 2 ** min(self._failures, 16), MAX_BACKOFF_S)
            self._failures += 1
            self._rests_until = self._clock() + pause_s
            self._is_checked = False  # behind its address there may be another node by then
        level = logging.CRITICAL if isinstance(error, ChainMismatch) else logging.WARNING
        _log.log(level, "chain %d: %s; not used for %.1f s", self._chain_id, error, pause_s)


def _query_nodes(
    asked: Sequence[_QuorumNode], ask: NodeQuery[T], until: float
) -> queue.SimpleQueue[_NodeReply[T]]:
    """Where the outcomes of asking all of these will be, in the order in which they come."""
    outcomes: queue.SimpleQueue[_NodeReply[T]] = queue.SimpleQueue()
    if len(asked) == 1:
        outcomes.put(asked[0].run_query(ask, until))
        return outcomes
    for endpoint in asked:
        # A daemon: the process need not wait for a node that hangs.
        threading.Thread(
            target=lambda endpoint=endpoint: outcomes.put(endpoint.run_query(ask, until)),
            name=f"ask {endpoint.node.name}",
            daemon=True,
        ).start()
    return outcomes
