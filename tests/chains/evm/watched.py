"""A service that watches addresses on a real node, and what a scan of the chain must find there.

Half of the addresses are escrows of Payments, half are deposit addresses. What has to be found the
logs of the node say; what was found is read from the file without any of the service's own code.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs

from payments_core.addresses import encode_checksum_address
from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.responses import TRANSFER
from payments_core.deposits.discovery import WATCH_DEPOSIT
from payments_core.payments.receipts.discovery import WATCH_TRANSACTION
from payments_core.payments.receipts.record import tracked_transaction_id
from tests.chains.evm.kill_victim import chain_at, storage_in
from tests.chains.evm.nodes import PAYER, Node
from tests.service.world import BASE, RING, USDC, World

RICH = 10**15
AT_ONCE = 1_000
"""Over so many blocks the logs are asked for, to compare with."""

Found = tuple[str, ...]


@attrs.frozen
class Watched:
    """The addresses, and whose they are."""

    payments: Mapping[str, str]
    deposits: frozenset[str]

    @property
    def addresses(self) -> list[str]:
        """All of them, in an order that says nothing."""
        return sorted([*self.payments, *self.deposits])


def watch(folder: Path, node: Node, count: int) -> Watched:
    """Make the service's file, with so many addresses; the node gets the token."""
    (folder / "keys").write_text(RING)
    chain = chain_at(node.url)
    chain.prepare_node()
    node.do(PAYER, USDC.address, calls.MINT.call(PAYER, RICH))
    storage = storage_in(folder)
    world = World(storage, {BASE: chain}).open()
    details = [world.payment("1.00").payment for _ in range(count // 2)]
    deposits = [
        world.resources.deposits.issue_address(world.account(f"user {n}").id, BASE)
        for n in range(count - count // 2)
    ]
    world.service.close()
    return Watched(
        {str(payment.escrow_address): payment.id for payment in details},
        frozenset(issued.address.address for issued in deposits),
    )


def to_be_found(node: Node, watched: Watched) -> Counter[Found]:
    """What the node's logs say has to be found."""
    found: set[Found] = set()
    newest = int(node.ask("eth_blockNumber"), 16)
    for first in range(0, newest + 1, AT_ONCE):
        span = {"fromBlock": hex(first), "toBlock": hex(min(first + AT_ONCE - 1, newest))}
        logs = node.ask("eth_getLogs", {"address": USDC.address, "topics": [TRANSFER], **span})
        places: Counter[str] = Counter()
        for log in sorted(logs, key=lambda log: int(log["logIndex"], 16)):
            hash = log["transactionHash"]
            place, places[hash] = places[hash], places[hash] + 1
            to = encode_checksum_address(bytes.fromhex(log["topics"][2][26:]))
            if to in watched.payments:
                found.add(("evidence", tracked_transaction_id(watched.payments[to], BASE, hash)))
            elif to in watched.deposits and int(log["data"], 16):  # nothing is no deposit
                amount = str(int(log["data"], 16))
                found.add(("deposit", hash, str(place), to, amount, log["blockHash"]))
    return Counter(found)


def has_been_found(folder: Path) -> Counter[Found]:
    """What was written, each as often as it was."""
    evidence = [("evidence", str(row["id"])) for row in rows(folder, "evidence")]
    fields = ("transaction_hash", "position", "address", "amount_atomic", "block_hash")
    deposits = [
        ("deposit", *(str(row[field]) for field in fields)) for row in rows(folder, "deposits")
    ]
    return Counter([*evidence, *deposits])


def assert_each_is_looked_at_by_one_job(folder: Path) -> None:
    """One job for each, and none without."""
    jobs = Counter(
        (job["kind"], job["subject"])
        for job in rows(folder, "jobs")
        if job["kind"] in (WATCH_TRANSACTION, WATCH_DEPOSIT)
    )
    evidence = [(WATCH_TRANSACTION, row["id"]) for row in rows(folder, "evidence")]
    deposits = [(WATCH_DEPOSIT, row["id"]) for row in rows(folder, "deposits")]
    assert jobs == Counter([*evidence, *deposits])


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """What a table holds."""
    with closing(sqlite3.connect(folder / "data.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found = connection.execute(f"SELECT id, body FROM {table}").fetchall()
    return [{**json.loads(body), "id": id} for id, body in found]
