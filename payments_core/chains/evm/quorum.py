"""Several nodes of one chain: which are asked, and how many must agree.

All nodes are asked at once, each in its own thread, until enough of them agree. So a node
that hangs delays nobody else, and the time of a query is that of the slowest node
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
from payments_core.fork_safety import register_fork_reset

T = TypeVar("T")
R = TypeVar("R")

QUERY_TIMEOUT_S = 20.0
"""The maximum time of one query, with all its requests."""

MIN_BACKOFF_S = 0.5
MAX_BACKOFF_S = 30.0
"""A failing node is not asked for this long, twice as long with every consecutive failure."""

MAX_CONCURRENT_QUERIES = 16
"""The maximum number of concurrent queries to one node; a node with more is skipped."""

CHAIN_ID = RpcCall("eth_chainId")
"""Asked before a node's first answer, and in one batch with what decides whether something is
undone or taken for ever: another node may answer behind the same address, without a failure."""

_log = logging.getLogger(__name__)


class NodeLagging(ChainUnavailable):
    """The node does not have the data yet. Its answer does not count, and is not a failure."""


@attrs.frozen
class QuorumResult(Generic[R]):
    """The result of the answers so far."""

    value: R


@attrs.frozen
class NodeSession:
    """A node, for the time of one query."""

    node: Node
    until: float

    @property
    def name(self) -> str:
        """The node's name in messages."""
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

    def read_logs(
        self,
        query: Mapping[str, object],
        first: int,
        last: int,
        is_cut: Callable[[msgspec.Raw], bool],
    ) -> list[msgspec.Raw]:
        """The logs of these blocks, in pieces. Raises ChainUnavailable."""
        return self.node.read_logs(query, first, last, is_cut=is_cut, until=self.until)


NodeQuery = Callable[[NodeSession], T]
QuorumRule = Callable[[Sequence[T], bool], QuorumResult[R] | None]


def require_chain(name: str, served: msgspec.Raw, chain_id: int) -> None:
    """Raise ChainMismatch if the answer to `CHAIN_ID` names another chain."""
    found = answers.parse_number(served)
    if found != chain_id:
        raise ChainMismatch(f"{name} serves chain {found}, not {chain_id}")


def majority_of(nodes: int) -> int:
    """How many of a number of nodes must agree: 1 of 1, 2 of 2, 2 of 3, 3 of 4, 3 of 5."""
    return nodes // 2 + 1


def find_agreed_value(values: Iterable[T | None], enough: int) -> T | None:
    """The value that enough of these equal; None does not count."""
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
        """`agreement`: how many nodes must agree, by default a majority.

        Raises ValueError if that many cannot agree, or one address is given twice.
        """
        if len(set(urls)) != len(urls):
            raise ValueError("the URLs of the nodes must differ")
        self.chain_id = chain_id
        self.enough: int = majority_of(len(urls)) if agreement is None else agreement
        if not 1 <= self.enough <= len(urls):
            raise ValueError(f"{self.enough} of {len(urls)} nodes cannot agree")
        self.clock = clock
        self._ask_s = ask_s
        self._endpoints = [_QuorumNode(Node(url, limits=limits), chain_id, clock) for url in urls]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes, in the order of their URLs."""
        return tuple(endpoint.node for endpoint in self._endpoints)

    def check(self) -> None:
        """Ask every reachable node which chain it serves. Raises ChainMismatch.

        To be called first. A node that cannot be reached is asked before its
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
        """The answer on which enough nodes agree. Raises ChainUnavailable, ChainMismatch."""

        def decide(replies: Sequence[tuple[str, T]], is_last: bool) -> QuorumResult[T] | None:
            settled = find_agreed_value((QuorumResult(value) for _, value in replies), self.enough)
            if settled is not None:
                for name, value in replies:
                    if value != settled.value:
                        _log.warning(
                            "chain %d: %s differs from the other nodes", self.chain_id, name
                        )
            return settled

        return self.query_until_decided(lambda session: (session.name, ask(session)), decide)

    def query_all(self, ask: NodeQuery[T]) -> tuple[T, ...]:
        """The answers of all nodes that answer. Raises ChainUnavailable, ChainMismatch."""

        def decide(replies: Sequence[T], is_last: bool) -> QuorumResult[tuple[T, ...]] | None:
            return QuorumResult(tuple(replies)) if is_last and replies else None

        return self.query_until_decided(ask, decide, enough=1)

    def query_until_decided(
        self,
        ask: NodeQuery[T],
        decide: QuorumRule[T, R],
        *,
        enough: int | None = None,
        patience_s: float = 0.0,
    ) -> R:
        """The decision of `decide` on the answers; it is called whenever one has come.

        Its flag says that no more will come. `patience_s`: how long more answers are awaited
        after a decision is possible. No node is asked if fewer than `enough` can be asked.
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
        replies: list[T] = []
        settled: QuorumResult[R] | None = None
        why: ChainUnavailable | None = None
        outcomes = _query_nodes(asked, ask, until)
        for count in range(1, len(asked) + 1):
            try:
                left_s = max(0.0, waits_until - time.monotonic())
                outcome = outcomes.get(timeout=left_s)
            except queue.Empty:
                break
            if isinstance(outcome.error, ChainUnavailable):
                why = outcome.error
                continue
            if outcome.error is not None:
                raise outcome.error
            replies += outcome.answer
            is_first = settled is None
            settled = decide(replies, count == len(asked)) or settled
            if settled is not None and not patience_s:
                return settled.value
            if settled is not None and is_first:
                waits_until = min(until, time.monotonic() + patience_s)
        if settled is None and replies:
            settled = decide(replies, True)
        if settled is None and isinstance(why, ChainMismatch) and not replies:
            raise why
        if settled is None:
            raise ChainUnavailable(
                f"chain {self.chain_id}: of {len(asked)} nodes {len(replies)} answered, and "
                f"too few agree{f' ({why})' if why else ''}"
            ) from why
        return settled.value

    def close(self) -> None:
        """Close the connections that wait."""
        for endpoint in self._endpoints:
            endpoint.node.close()


@attrs.frozen
class _NodeReply(Generic[T]):
    """An answer, or the reason of its absence."""

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
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Start with a free lock, and without the parent's queries: they end in the parent."""
        self._lock, self._asked = threading.Lock(), 0

    def try_acquire(self) -> bool:
        """Whether it may be asked; `release` must follow."""
        with self._lock:
            # A failed node gets one query at a time until it has answered one.
            most = 1 if self._failures else MAX_CONCURRENT_QUERIES
            if self._asked >= most or self._clock() < self._rests_until:
                return False
            self._asked += 1
            return True

    def release(self) -> None:
        """Record that the query was answered, or never sent."""
        with self._lock:
            self._asked -= 1

    def run_query(self, ask: NodeQuery[T], until: float) -> _NodeReply[T]:
        """Sends a query after `try_acquire`, and stores its outcome."""
        session = NodeSession(self.node, until)
        try:
            if not self._is_checked:
                self._require_chain(session)
            answer = ask(session)
        # The node is healthy in these two cases. If it were avoided because it cannot answer for
        # one transaction, a stranger could make such a transaction.
        except answers.BadResponse as error:
            return _NodeReply(error=answers.BadResponse(f"{session.name}: {error}"))
        except (NodeLagging, NodeRefused) as error:
            return _NodeReply(error=error)
        except ChainUnavailable as error:
            self._record_failure(error)
            return _NodeReply(error=error)
        except Exception as error:  # raised in the caller, not in the thread
            return _NodeReply(error=error)
        finally:
            self.release()
        with self._lock:
            self._failures = 0
        return _NodeReply((answer,))

    def _require_chain(self, session: NodeSession) -> None:
        require_chain(session.name, session.call(CHAIN_ID.method), self._chain_id)
        self._is_checked = True

    def _record_failure(self, error: ChainUnavailable) -> None:
        with self._lock:
            pause_s = min(MIN_BACKOFF_S * 2 ** min(self._failures, 16), MAX_BACKOFF_S)
            self._failures += 1
            self._rests_until = self._clock() + pause_s
            self._is_checked = False  # its address may lead to another node by then
        level = logging.CRITICAL if isinstance(error, ChainMismatch) else logging.WARNING
        _log.log(level, "chain %d: %s; not used for %.1f s", self._chain_id, error, pause_s)


def _query_nodes(
    asked: Sequence[_QuorumNode], ask: NodeQuery[T], until: float
) -> queue.SimpleQueue[_NodeReply[T]]:
    """A queue of the outcomes of asking all of these, in the order of arrival."""
    outcomes: queue.SimpleQueue[_NodeReply[T]] = queue.SimpleQueue()
    if len(asked) == 1:
        outcomes.put(asked[0].run_query(ask, until))
        return outcomes
    for endpoint in asked:
        # A daemon: the process need not wait for a hanging node.
        threading.Thread(
            target=lambda endpoint=endpoint: outcomes.put(endpoint.run_query(ask, until)),
            name=f"ask {endpoint.node.name}",
            daemon=True,
        ).start()
    return outcomes
