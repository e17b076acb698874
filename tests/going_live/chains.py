"""The nodes of the deployment's chains: anvil with blocks by time, our contracts, and test USDC."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import attrs

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import DEPLOYER, Deployment
from payments_core.chains.evm.artifacts import load_contract
from payments_core.networks import shipped_networks
from payments_core_http.cli.anvil.process import AnvilProcess
from tests.chains.evm.nodes import ADMIN, PAYER, Node, hexed

CHAIN_IDS = (8453, 137)
"""Between them Circle's CCTP goes."""
BLOCK_S = 1
EPOCH_BLOCKS = 1
"""A block is final with two on top of it."""
ETHER = 10**18
MINTED = 10**6 * 10**6
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""The topic of ERC-20's event `Transfer`."""


@attrs.frozen
class Transfer:
    """A transfer of USDC that is in a chain. Addresses have a checksum."""

    chain_id: int
    hash: str
    sender: str
    recipient: str
    amount_atomic: int


class TestChain:
    """One node, which the play uses past the proxy."""

    __test__ = False

    def __init__(self, chain_id: int) -> None:
        self.chain_id = chain_id
        self.usdc = shipped_networks().find_asset(chain_id, "USDC").address
        self._process = AnvilProcess(chain_id=chain_id, epoch_blocks=EPOCH_BLOCKS)
        self._process.start()
        self.url = self._process.url
        self.node = Node(self.url)
        self._lock = threading.Lock()
        self._prepare()

    def begin_blocks(self) -> None:
        """From now on blocks come by time, and not with each transaction."""
        self.node.ask("evm_setAutomine", False)
        self.node.ask("evm_setIntervalMining", BLOCK_S)

    def stop(self) -> None:
        """End the node."""
        self.node.close()
        self._process.stop()

    def allow(self, environment_id: str, operator: str) -> None:
        """As the admin, let an operator move the environment's funds; it gets coin for gas."""
        self.give_coin(operator)
        data = calls.set_operator(environment_id, operator, allowed=True)
        self._send(ADMIN, Deployment(ADMIN).factory, data)

    def give_coin(self, address: str) -> None:
        """Coin for gas."""
        self.node.ask("anvil_setBalance", address, hex(1_000 * ETHER))

    def pay(self, recipient: str, amount_atomic: int) -> str:
        """A transfer of the payer's wallet, which is in a block when this returns; its hash."""
        return self._send(PAYER, self.usdc, calls.transfer(recipient, amount_atomic))

    def count_tokens(self, address: str) -> int:
        """The USDC of an address now, in atomic units."""
        return int.from_bytes(self.node.call(self.usdc, calls.BALANCE_OF.call(address)))

    def count_sent(self, sender: str) -> int:
        """How many transactions of a sender are in the chain."""
        return int(self.node.ask("eth_getTransactionCount", sender, "latest"), 16)

    def read_transfers(self) -> Sequence[Transfer]:
        """Every transfer of USDC, in the chain's order."""
        asked = {"address": self.usdc, "topics": [TRANSFER], "fromBlock": "0x0"}
        return list(map(self._read, self.node.ask("eth_getLogs", asked)))

    def _read(self, log: dict[str, object]) -> Transfer:
        from eth_utils.address import to_checksum_address

        topics = log["topics"]
        assert isinstance(topics, list)
        sender, recipient = (to_checksum_address("0x" + topic[-40:]) for topic in topics[1:3])
        amount = int(str(log["data"]), 16)
        return Transfer(self.chain_id, str(log["transactionHash"]), sender, recipient, amount)

    def _prepare(self) -> None:
        runtime = load_contract("TestToken").runtime or b""
        for token in _tokens(self.chain_id):
            self.node.ask("anvil_setCode", token, hexed(runtime))
        self._send(ADMIN, DEPLOYER, calls.deploy(Deployment(ADMIN).creation))
        self._send(PAYER, self.usdc, calls.MINT.call(PAYER, MINTED))

    def _send(self, sender: str, to: str, data: bytes) -> str:
        transaction = {"from": sender, "to": to, "data": hexed(data), "gas": hex(8_000_000)}
        with self._lock:
            sent = str(self.node.ask("eth_sendTransaction", transaction))
            self.node.ask("anvil_mine", "0x1")  # blocks come by time; do not wait for the next
            assert self.node.receipt(sent).succeeded, f"{sent} failed on {self.chain_id}"
        return sent


def _tokens(chain_id: int) -> Iterable[str]:
    network = shipped_networks()[chain_id]
    return (asset.address for asset in (*network.tokens, *network.watch_list))
