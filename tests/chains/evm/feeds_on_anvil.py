"""Feeds of ours at the shipped feeds' addresses on anvil, and the nodes that read them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from eth_abi.abi import encode
from eth_hash.auto import keccak

from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.artifacts import load_contract
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.signers import LocalSigner
from payments_core.clock import SECOND, FixedClock
from payments_core.pricing.chainlink import ChainlinkPricing
from payments_core.pricing.feeds import shipped_feeds
from tests.chains.evm.deployed import call
from tests.chains.evm.nodes import ADMIN, STRANGER, Node, hexed

LONG_AGO_S = 30 * 86_400


class FreshChain(EvmChain):
    """One whose blocks are of now: tests report and look within the second that readers share."""

    heads_shared_for_s = 0.0


class Feeds:
    """The shipped feeds of a chain, sound at first; a rollup's sequencer is up for a month."""

    def __init__(
        self,
        node: Node,
        chain_id: int,
        clock: FixedClock | None = None,
        currencies: Sequence[str] = (),
    ) -> None:
        self.node, self.chain_id = node, chain_id
        self.clock = clock or FixedClock()
        self.rests = 0.0
        feeds = shipped_feeds()[chain_id]
        self.addresses = {symbol: feed.address for symbol, feed in feeds.by_symbol.items()}
        self.addresses |= {code: feeds.currencies[code].address for code in currencies}
        if feeds.sequencer is not None:
            self.addresses["sequencer"] = feeds.sequencer
        runtime = hexed(load_contract("TestAggregator").runtime or b"")
        for address in self.addresses.values():
            node.ask("anvil_setCode", address, runtime)
            node.do(STRANGER, address, call("setDecimals(uint8)", 8))
        self.report()
        self.report_sequencer(0, self.now_s - LONG_AGO_S)

    @property
    def now_s(self) -> int:
        return self.clock.now() // SECOND

    def report(self, **usd: str) -> None:
        """All feeds of prices report these, or about a dollar."""
        for symbol in self.addresses.keys() - {"sequencer"}:
            answer = int(Decimal(usd.get(symbol, "0.9999")) * 10**8)
            self.send(symbol, "report(int256,uint256)", answer, self.now_s)

    def report_sequencer(self, answer: int, at_s: int) -> None:
        if "sequencer" in self.addresses:
            self.send("sequencer", "report(int256,uint256)", answer, at_s)

    def set_round(self, symbol: str, *fields: int) -> None:
        """Any round: its id, answer, when it began and ended, and the round of its answer."""
        data = keccak(b"setRound((uint80,int256,uint256,uint256,uint80))")[:4]
        data += encode(["(uint80,int256,uint256,uint256,uint80)"], [fields])
        self.node.do(STRANGER, self.addresses[symbol], data)

    def send(self, symbol: str, signature: str, *arguments: object) -> None:
        self.node.do(STRANGER, self.addresses[symbol], call(signature, *arguments))

    def chain(self, urls: Sequence[str]) -> EvmChain:
        """The chain by these nodes, whose rests end when the test says."""
        quorum = NodeQuorum(urls, self.chain_id, clock=lambda: self.rests)
        return FreshChain(quorum, Deployment(ADMIN), LocalSigner(bytes(range(32))))

    def open(self, *urls: str, shared_for_s: float = 0.0) -> ChainlinkPricing:
        """Prices by these nodes, or by the one."""
        chains = {self.chain_id: self.chain(urls or (self.node.url,))}
        return ChainlinkPricing(
            chains, shipped_feeds(), clock=self.clock, shared_for_s=shared_for_s
        )
