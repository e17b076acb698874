"""What the router costs, measured between two anvils with our stand-ins for CCTP.

`python -m tests.routers.cctp.costs` prints the rows of the tables in
docs/how-to/route-with-cctp.md.
A request is one to one node: with several nodes for a chain, each is asked.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from payments_core.chains.http.client import HttpClient
from payments_core.clock import FixedClock
from payments_core.routers.cctp.forwarders import forwarders
from payments_core.routers.port import RouteOrder
from payments_core.storage.port import Storage
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.chains.evm.nodes import MERCHANT, OWNER, STRANGER
from tests.routers.cctp.shop import AMOUNT, ENDED_S, Shop, order
from tests.routers.cctp.world import (
    DESTINATION,
    SOURCE,
    USDC,
    Attesting,
    Cctp,
    open_storage,
    two_chains,
)

Counts = dict[str, int]


class Meter:
    """Counts the requests to each server, and the writes."""

    def __init__(self, cctp: Cctp) -> None:
        self.names = {
            **{node.url.removeprefix("http://"): name for node, name in zip(
                cctp.nodes.values(), ("source", "destination"), strict=True)},
            cctp.attesting.url.removeprefix("http://"): "service",
        }  # fmt: skip
        self.counts: Counter[str] = Counter()

    def measure(self, work: Callable[[], object]) -> Counts:
        """What a piece of work takes."""
        self.counts.clear()
        sends, writes = HttpClient.send, SqliteStorage.transact

        def send(client: HttpClient, *arguments: object, **more: object) -> object:
            self.counts[self.names[client.name]] += 1
            return sends(client, *arguments, **more)  # type: ignore[arg-type]

        def transact(storage: SqliteStorage, *arguments: object) -> object:
            self.counts["writes"] += 1
            return writes(storage, *arguments)  # type: ignore[arg-type]

        with (
            mock.patch.object(HttpClient, "send", send),
            mock.patch.object(SqliteStorage, "transact", transact),
        ):
            work()
        return dict(self.counts)


def request_lines(cctp: Cctp, storage: Storage) -> Iterator[str]:
    """The rows of requests: an offer from its first look to its last."""
    shop, meter = Shop(cctp, storage, FixedClock()), Meter(cctp)
    shop.router.offer(order("warm"))  # connections, and what is loaded at its first use

    def row(name: str, work: Callable[[], object]) -> str:
        found = meter.measure(work)
        for node in cctp.nodes.values():  # each answers before its block is made
            node.wait_until_mined()
        columns = ("source", "destination", "service", "writes")
        return f"| {name} | {' | '.join(str(found.get(column, 0)) for column in columns)} |"

    def look() -> object:
        return shop.router.follow_offer("offer_1")

    yield row("`offer`", shop.offer)
    yield row("a look at an offer that waits", look)
    cctp.pay(shop.offer().address, AMOUNT)
    yield row("the look that sees the payment, and burns", look)
    yield row("the next look: the burn is in a block, not signed yet", look)
    yield row("a look that waits for the signature", look)
    cctp.mine()
    yield row("the look that gets the signature, and mints", look)
    yield row("the next look: the mint is in a block, not final yet", look)
    yield row("a look that waits for its finality", look)
    cctp.mine()
    yield row("the look that finds it final", look)
    yield row("a look at an offer that is delivered", look)


def gas_lines(cctp: Cctp, storage: Storage) -> Iterator[str]:
    """The rows of gas, of the transactions that the router sent."""
    cctp.nodes[SOURCE].ask("evm_mine")
    deployed = cctp.nodes[SOURCE].do(STRANGER, *forwarders().deployment).gas_used
    yield f"| deploying `CctpForwarders`, once for a chain | {deployed:,} |"
    shop = Shop(cctp, storage, FixedClock(), is_deployed=False)
    cctp.pay(shop.offer().address, 2 * AMOUNT)
    assert shop.look() == "delivered"
    shop.look(until=())
    cctp.pay(shop.offer("short").address, AMOUNT - 1)
    shop.progress("short")
    shop.advance(ENDED_S)
    assert shop.look("short") == "returned"
    send = RouteOrder(
        key="send", source=USDC[SOURCE], destination=USDC[DESTINATION], amount_atomic=AMOUNT,
        expected_atomic=AMOUNT, minimum_atomic=AMOUNT, recipient=MERCHANT, return_to=OWNER,
    )  # fmt: skip
    address = shop.router.open(send)
    for number in range(2):
        hash = cctp.pay(address, AMOUNT)
        for _ in range(4):
            shop.router.deliver("send", hash)
            cctp.mine()
        assert shop.router.deliver("send", hash).state == "delivered", number
    names = {
        SOURCE: (
            "burning an offer, which creates its forwarder",
            "giving back what was paid twice",
            "giving back a short payment, which creates its forwarder",
            "burning a send, which creates its forwarder",
            "burning a second payment of it",
        ),
        DESTINATION: (
            "the first mint of all, with the token's first supply",
            "a mint, the recipient's first USDC",
            "a mint",
        ),
    }
    for number, wanted in names.items():
        for name, gas in zip(wanted, sent_gas(cctp, number), strict=True):
            yield f"| {name} | {gas:,} |"


def sent_gas(cctp: Cctp, number: int) -> list[int]:
    """The gas of what the router's key sent on a chain, in its order."""
    node = cctp.nodes[number]
    newest = int(node.ask("eth_blockNumber"), 16)
    found = []
    for height in range(newest + 1):
        for sent in node.ask("eth_getBlockByNumber", hex(height), True)["transactions"]:
            if sent["from"].lower() == cctp.operator.lower():
                found.append(node.receipt(sent["hash"]).gas_used)
    return found


def lines(cctp: Cctp) -> Iterator[str]:
    """The rows of both tables."""
    for rows in (request_lines, gas_lines):
        before = {number: node.ask("evm_snapshot") for number, node in cctp.nodes.items()}
        with tempfile.TemporaryDirectory() as folder:
            storage = open_storage(Path(folder))
            yield from rows(cctp, storage)
            storage.close()
        for number, node in cctp.nodes.items():
            assert node.ask("evm_revert", before[number])


def main() -> None:
    """Print the rows, measured on new nodes."""
    with two_chains() as nodes:
        attesting = Attesting(nodes)
        try:
            for line in lines(Cctp(nodes, attesting)):
                print(line)
        finally:
            attesting.stop()


if __name__ == "__main__":
    main()
