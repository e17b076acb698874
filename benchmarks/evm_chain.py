"""A chain of many blocks on a real node, made quickly: anvil mines every one of them, in segments.

What a block costs anvil grows with the blocks that it remembers (without end), and from the Prague
fork on with the hashes that a contract keeps (EIP-2935). So the fork is an older one, and each
segment begins with the newest few blocks only. For the same reason the token only writes its logs
and keeps no balances, which no scan reads. In the end all blocks are joined to one state, from
which anvil serves the whole chain: the hashes are those that it gave, and each block names the one
before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.artifacts import load_contract
from payments_core_http.cli.anvil.process import AnvilProcess
from tests.chains.evm.nodes import PAYER, Node

SEGMENT = 5_000
REMEMBERED = 64
OPTIONS = ("--hardfork", "cancun")

State = dict[str, Any]


def grow(state: Path, token: str, recipient: Callable[[], str], blocks: int, every: int) -> None:
    """Mine so many blocks on a state, and a transfer of the token from PAYER in every n-th.

    Each transfer goes where `recipient` says.
    """
    only_logs = load_contract("SpoofToken")
    joined: dict[str, dict[Any, Any]] = {"blocks": {}, "transactions": {}}
    for _ in range(0, blocks, SEGMENT):
        _put_by(state, joined)
        with AnvilProcess(state=state, history=64, options=OPTIONS) as process:
            node = Node(process.url)
            node.ask("anvil_setCode", token, f"0x{(only_logs.runtime or b'').hex()}")
            for _ in range(SEGMENT // every):
                data = "0x" + calls.transfer(recipient(), 1_000_000).hex()
                sent = {"from": PAYER, "to": token, "data": data, "gas": hex(100_000)}
                node.ask("eth_sendTransaction", sent)  # most often in a block of its own
                node.ask("anvil_mine", hex(every - 1))
            node.close()
    last = _put_by(state, joined)
    last |= {name: list(items.values()) for name, items in joined.items()}
    state.write_text(json.dumps(last))


def _put_by(state: Path, joined: dict[str, dict[Any, Any]]) -> State:
    """Take over the blocks and transactions of a state, and leave the newest few in it."""
    dumped: State = json.loads(state.read_text())
    blocks = {int(block["header"]["number"], 16): block for block in dumped["blocks"]}
    for number in sorted(blocks):
        joined["blocks"].setdefault(number, blocks[number])
    for transaction in dumped["transactions"]:
        joined["transactions"].setdefault(transaction["info"]["transaction_hash"], transaction)
    dumped["blocks"] = [blocks[number] for number in sorted(blocks)[-REMEMBERED:]]
    dumped["transactions"] = []
    state.write_text(json.dumps(dumped))
    return dumped
