"""JSON-RPC to one node of an EVM chain: batched, with strict matching of answers to calls.

The text of a node's refusal is not interpreted: texts differ from node to node, and only the
refusal counts. Operators need it, so it is kept in the error (`chains/http/node_words.py`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence

import attrs
import msgspec

from payments_core.chains.http.client import (
    TOTAL_TIMEOUT_S,
    HttpClient,
    RequestLimits,
    ResponseTooLarge,
)
from payments_core.chains.http.node_words import NodeWords, add_words
from payments_core.chains.port import ChainUnavailable

MAX_BATCH_CALLS = 50
"""The maximum number of calls in one request."""

BATCH_MEMORY_S = 600.0
"""How long a node that refused a batch gets smaller ones; it may only have been busy."""

_INVALID_REQUEST_CODES = frozenset({400, 405, 406, 411, 413, 414, 415, 422, 501})
"""Statuses by which a node refuses the request; other statuses mean that the node fails."""


class NodeRefused(ChainUnavailable):
    """The node answered with an error instead of a result; `words` are its own."""

    def __init__(self, text: str, words: str = "") -> None:
        super().__init__(add_words(text, words))
        self.words = words


@attrs.frozen
class RpcCall:
    """A method and its parameters."""

    method: str
    params: tuple[object, ...] = ()


@attrs.frozen
class Refusal:
    """A refusal in place of a result, in a batch, with the node's words for operators."""

    words: str = attrs.field(default="", eq=False)


Result = msgspec.Raw | Refusal
"""The result of a call as JSON, to be decoded by the caller, which knows its form."""


class _RpcResponse(msgspec.Struct):
    """An answer of JSON-RPC 2.0; its content is not decoded yet, so that garbage costs little."""

    jsonrpc: str
    id: int | None
    result: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")

    @property
    def is_error(self) -> bool:
        """Whether it is an error; some nodes write a null besides every result."""
        return bytes(self.error) not in (b"", b"null")


def require_results(
    name: str, calls: Sequence[RpcCall], results: Sequence[Result]
) -> list[msgspec.Raw]:
    """The results of these calls of the node of that name. Raises NodeRefused for a refused one."""
    found: list[msgspec.Raw] = []
    for call, result in zip(calls, results, strict=True):
        if isinstance(result, Refusal):
            raise NodeRefused(f"{name}: refused {call.method}", result.words)
        found.append(result)
    return found


_TOO_LARGE = "the answer is too large"

_RESPONSE_DECODER = msgspec.json.Decoder(_RpcResponse)
_BATCH_DECODER = msgspec.json.Decoder(list[_RpcResponse])


class Node:
    """One node. Threads may share it."""

    def __init__(
        self, url: str, *, limits: RequestLimits | None = None, batch: int = MAX_BATCH_CALLS
    ) -> None:
        """Raises ValueError, which does not repeat the address, unless it is http or https."""
        self._client = HttpClient(url, limits)
        self._words = NodeWords(url)
        self._batch = self._largest_batch = batch
        self._refused_at = 0.0
        self._ids = itertools.count(1)  # unique: no answer fits another call

    @property
    def name(self) -> str:
        """The node's name in messages; its address may contain a key."""
        return self._client.name

    @property
    def accepted_batch(self) -> int:
        """How many calls it takes in one request, as far as that is known."""
        return self._batch

    def __repr__(self) -> str:
        return f"Node({self.name})"

    def call(self, method: str, *params: object, until: float | None = None) -> msgspec.Raw:
        """The result of one call. Raises ChainUnavailable, Refused."""
        (result,) = self.batch([RpcCall(method, params)], until=until)
        if isinstance(result, Refusal):
            raise NodeRefused(f"{self.name}: refused {method}", result.words)
        return result

    def call_all(
        self, calls: Sequence[RpcCall], *, until: float | None = None
    ) -> list[msgspec.Raw]:
        """The results of all calls, in their order. Raises ChainUnavailable, Refused."""
        return require_results(self.name, calls, self.batch(calls, until=until))

    def batch(self, calls: Sequence[RpcCall], *, until: float | None = None) -> list[Result]:
        """The results of all calls, in their order, with a Refusal for each refused call.

        A node that refuses a batch gets smaller ones for a while, down to single calls. `until` is
        an instant of the monotonic clock. Raises ChainUnavailable.
        """
        now = time.monotonic()
        if now >= self._refused_at + BATCH_MEMORY_S:
            self._batch = self._largest_batch
        ends = now + TOTAL_TIMEOUT_S if until is None else until
        results: list[Result] = []
        while len(results) < len(calls):
            size = self._batch
            results += self._call_in_batches(calls[len(results) : len(results) + size], ends)
        return results

    def read_logs(
        self,
        query: Mapping[str, object],
        first: int,
        last: int,
        *,
        is_cut: Callable[[msgspec.Raw], bool] = lambda answer: False,
        until: float | None = None,
    ) -> list[msgspec.Raw]:
        """The answer of `eth_getLogs` for the blocks `first` to `last`, in pieces, in order.

        A range that is refused, or whose answer is too large or `is_cut`, is halved and asked
        again, down to a single block. Raises ChainUnavailable.
        """
        ends = time.monotonic() + TOTAL_TIMEOUT_S if until is None else until
        found: list[msgspec.Raw] = []
        ranges = [(first, last)]
        while ranges:
            begin, end = ranges.pop()
            asked = {**query, "fromBlock": hex(begin), "toBlock": hex(end)}
            (answer,) = self.batch([RpcCall("eth_getLogs", (asked,))], until=ends)
            if not isinstance(answer, Refusal) and (begin == end or not is_cut(answer)):
                found.append(answer)
            elif isinstance(answer, Refusal) and begin == end:  # after some halvings
                raise NodeRefused(f"{self.name}: refused the logs of block {begin}", answer.words)
            else:
                middle = (begin + end) // 2
                ranges += [(middle + 1, end), (begin, middle)]
        return found

    def close(self) -> None:
        """Close the connections that wait."""
        self._client.close()

    def _call_in_batches(self, calls: Sequence[RpcCall], ends: float) -> list[Result]:
        """The results of at most one batch, divided as often as the node requires."""
        try:
            return self._post_batch(calls, ends)
        except (NodeRefused, ResponseTooLarge) as refusal:
            if len(calls) == 1:
                words = refusal.words if isinstance(refusal, NodeRefused) else _TOO_LARGE
                return [Refusal(words)]
            half = (len(calls) + 1) // 2
            if isinstance(refusal, NodeRefused):
                self._batch, self._refused_at = min(self._batch, half), time.monotonic()
            return self._call_in_batches(calls[:half], ends) + self._call_in_batches(
                calls[half:], ends
            )

    def _post_batch(self, calls: Sequence[RpcCall], ends: float) -> list[Result]:
        ids = [next(self._ids) for _ in calls]
        asked = [
            {"jsonrpc": "2.0", "id": id, "method": call.method, "params": call.params}
            for id, call in zip(ids, calls, strict=True)
        ]
        is_single = len(calls) == 1
        body = msgspec.json.encode(asked[0] if is_single else asked)
        status, raw = self._client.send("POST", ends, body=body)
        if status in _INVALID_REQUEST_CODES:
            text = f"{self.name}: refused with status {status}"
            raise NodeRefused(text, self._words.read_body(raw))
        if status != 200:
            text = f"{self.name}: answered with status {status}"
            raise ChainUnavailable(add_words(text, self._words.read_body(raw)))
        return self._match_results(raw, ids, is_single=is_single)

    def _match_results(self, raw: bytes, ids: Sequence[int], *, is_single: bool) -> list[Result]:
        """The answer to each id, in any order; each id once, and no other."""
        answers = self._decode_responses(raw, is_single=is_single)
        if is_single and answers[0].id is None and answers[0].is_error:
            # An error without an id: the request was not understood.
            return [self._refusal_of(answers[0])]
        found: dict[int, Result] = {}
        for answer in answers:
            id = answer.id
            if id is None or id not in ids or id in found or answer.jsonrpc != "2.0":
                raise ChainUnavailable(f"{self.name}: the response is not for this request")
            if not answer.is_error and not bytes(answer.result):
                raise ChainUnavailable(
                    f"{self.name}: the response has neither a result nor an error"
                )
            found[id] = self._refusal_of(answer) if answer.is_error else answer.result
        if len(found) != len(ids):
            raise ChainUnavailable(f"{self.name}: the batch response is incomplete")
        return [found[id] for id in ids]

    def _refusal_of(self, answer: _RpcResponse) -> Refusal:
        return Refusal(self._words.read_error(bytes(answer.error)))

    def _decode_responses(self, raw: bytes, *, is_single: bool) -> Sequence[_RpcResponse]:
        try:
            if is_single:
                return [_RESPONSE_DECODER.decode(raw)]
            if raw.lstrip()[:1] == b"{":
                raise NodeRefused(f"{self.name}: refused a batch", self._words.read_body(raw))
            return _BATCH_DECODER.decode(raw)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise ChainUnavailable(f"{self.name}: the response is not JSON-RPC") from error
