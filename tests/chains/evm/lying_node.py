"""A node that says what a real one says, except where a test has it lie."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.chains.evm.nodes import Node, Refused
from tests.chains.loopback import Answer, serving

Params = Sequence[Any]
Lie = Callable[[Params, Any], Any]
"""From what was asked, and the truth, to what is said."""


class LyingNode:
    """In front of a real node. It lies about the methods in `lies`, and then mangles all."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.url = ""
        self.lies: dict[str, Lie] = {}
        self.mangle: Callable[[bytes], bytes] | None = None
        self.lied = 0

    def honest(self) -> None:
        """Answer only the truth from now on."""
        self.lies, self.mangle = {}, None

    def answer(self, method: str, path: str, body: bytes) -> Answer:
        """What it says to a request."""
        asked = json.loads(body)
        if isinstance(asked, list):
            said = json.dumps([self._one(request) for request in asked]).encode()
        else:
            said = json.dumps(self._one(asked)).encode()
        if self.mangle is None:
            return 200, said
        self.lied += 1
        return 200, self.mangle(said)

    def _one(self, request: dict[str, Any]) -> dict[str, Any]:
        method, params = request["method"], request["params"]
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            truth = truly(self.node, method, *params)
        except Refused as refused:
            return {**answer, "error": {"code": -32000, "message": str(refused)}}
        lie = self.lies.get(method)
        said = truth if lie is None else lie(params, truth)
        self.lied += said != truth
        return {**answer, "result": said}


def truly(node: Node, method: str, *params: Any) -> Any:
    """What the node says, over a connection of the asking thread's own. Raises Refused."""
    own = Node(node.url)
    try:
        return own.ask(method, *params)
    finally:
        own.close()


@contextmanager
def lying(node: Node) -> Iterator[LyingNode]:
    """One in front of that node, for as long as the context is open."""
    lying_node = LyingNode(node)
    with serving(lying_node.answer) as url:
        lying_node.url = url
        yield lying_node


def lag(blocks: int, node: Node) -> dict[str, Lie]:
    """The lies of a node that does not have the newest so many blocks yet."""

    def newest() -> int:
        return max(0, int(truly(node, "eth_blockNumber"), 16) - blocks)

    def block(params: Params, truth: Any) -> Any:
        behind = {"latest": 0, "finalized": 8}.get(params[0])
        if behind is not None:
            return truly(node, "eth_getBlockByNumber", hex(max(0, newest() - behind)), False)
        return truth if int(params[0], 16) <= newest() else None

    def within(params: Params, truth: Any) -> Any:
        is_there = truth and truth["blockNumber"] and int(truth["blockNumber"], 16) <= newest()
        return truth if is_there else None

    def logs(params: Params, truth: Any) -> Any:
        return [log for log in truth if int(log["blockNumber"], 16) <= newest()]

    return {
        "eth_getBlockByNumber": block,
        "eth_getTransactionReceipt": within,
        "eth_getTransactionByHash": within,
        "eth_getLogs": logs,
    }
