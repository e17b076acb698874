"""Two anvils with our stand-ins for CCTP at the real addresses, and the attestation service."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.artifacts import load_contract
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.signers import LocalSigner
from payments_core.clock import FixedClock
from payments_core.networks import Asset, shipped_networks
from payments_core.record_types import RECORD_TYPES
from payments_core.routers.cctp.attestations import AttestationService
from payments_core.routers.cctp.deployments import DEPLOYMENTS
from payments_core.routers.cctp.line import KEY_NAME
from payments_core.routers.cctp.router import CctpRouter, CctpSettings
from payments_core.storage.port import Storage
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.chains.evm.deployed import call
from tests.chains.evm.nodes import ADMIN, PAYER, STRANGER, Node, anvil_or_skip, hexed
from tests.routers.cctp.attestation_server import ATTESTERS

SOURCE, DESTINATION = 8453, 137
USDC = {
    chain_id: shipped_networks().find_asset(chain_id, "USDC") for chain_id in (SOURCE, DESTINATION)
}
KEY = b"the key of a router of no chain."
SIGNER = LocalSigner(KEY)
ETHER = 10**18
ROOT = Path(__file__).resolve().parents[3]


class Attesting:
    """The process of the attestation service, and what it is told."""

    def __init__(self, nodes: dict[int, Node]) -> None:
        told = [f"{DEPLOYMENTS[number].domain}={node.url}" for number, node in nodes.items()]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.routers.cctp.attestation_server", *told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def tell(self, **facts: Any) -> dict[str, Any]:
        """Set what is to go wrong next, the fast fee, or the end of fast messages."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=30)
        connection.request("POST", "/control", json.dumps(facts))
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def count_requests(self) -> int:
        """How often it was asked for messages."""
        found: int = self.tell()["requests"]
        return found

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)


class Cctp:
    """Two nodes with CCTP on them, and shorthands for what tests do there."""

    def __init__(self, nodes: dict[int, Node], attesting: Attesting) -> None:
        self.nodes = nodes
        self.attesting = attesting
        self.operator = SIGNER.address(KEY_NAME)
        for number, other in ((SOURCE, DESTINATION), (DESTINATION, SOURCE)):
            self._deploy(number, other)

    def _deploy(self, number: int, other: int) -> None:
        node, cctp, remote = self.nodes[number], DEPLOYMENTS[number], DEPLOYMENTS[other]
        for address, name in (
            (cctp.messenger, "TestTokenMessenger"),
            (cctp.transmitter, "TestMessageTransmitter"),
            (USDC[number].address, "TestToken"),
        ):
            node.ask("anvil_setCode", address, hexed(load_contract(name).runtime or b""))
        node.do(
            STRANGER,
            cctp.transmitter,
            call("configure(uint32,address[],uint256)", cctp.domain, ATTESTERS, 2),
        )
        self.tell(number, "configure(address,address)", cctp.transmitter, USDC[number].address)
        self.tell(
            number,
            "addRemote(uint32,bytes32,bytes32)",
            remote.domain,
            *(bytes(12) + bytes.fromhex(it[2:]) for it in (remote.messenger, USDC[other].address)),
        )
        node.ask("anvil_setBalance", self.operator, hex(10 * ETHER))

    def tell(self, number: int, function: str, *arguments: object) -> None:
        """Call the messenger of a chain."""
        self.nodes[number].do(STRANGER, DEPLOYMENTS[number].messenger, call(function, *arguments))

    def pay(self, address: str, amount_atomic: int, sender: str = PAYER) -> str:
        """Pay USDC to an address on the source chain; the transaction's hash."""
        node, token = self.nodes[SOURCE], USDC[SOURCE].address
        node.do(STRANGER, token, call("mint(address,uint256)", sender, amount_atomic))
        paid = node.do(sender, token, call("transfer(address,uint256)", address, amount_atomic))
        hash: str = paid.raw["transactionHash"]
        return hash

    def balance(self, number: int, holder: str) -> int:
        """What somebody has of a chain's USDC."""
        token = USDC[number].address
        return int.from_bytes(self.nodes[number].call(token, call("balanceOf(address)", holder)))

    def mine(self, blocks: int = 12) -> None:
        """So many blocks on both chains: by default all before are final."""
        for node in self.nodes.values():
            node.ask("anvil_mine", hex(blocks))

    def count_mints(self, recipient: str) -> int:
        """How many transfers of new USDC the recipient has on the destination chain."""
        logs = self.nodes[DESTINATION].ask(
            "eth_getLogs",
            {
                "fromBlock": "0x0",
                "address": USDC[DESTINATION].address,
                "topics": [
                    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
                    "0x" + 64 * "0",
                    "0x" + recipient[2:].lower().rjust(64, "0"),
                ],
            },
        )
        return len(logs)

    def open_chain(self, number: int) -> EvmChain:
        """A chain, as a process of the service has it."""
        return open_chain(number, self.nodes[number].url)

    def open_router(
        self,
        storage: Storage,
        clock: FixedClock,
        settings: CctpSettings | None = None,
        chains: dict[int, Any] | None = None,
    ) -> CctpRouter:
        """A router, as a process of the service has it."""
        chains = chains or {number: self.open_chain(number) for number in self.nodes}
        service = AttestationService(self.attesting.url)
        return CctpRouter(service, chains, storage, settings=settings, clock=clock)


class FreshChain(EvmChain):
    """A chain whose heads no two reads share: tests do not wait for a second."""

    heads_shared_for_s = 0.0


def open_chain(number: int, url: str, signer: Any = SIGNER) -> EvmChain:
    """A chain on a node."""
    return FreshChain(NodeQuorum([url], number), Deployment(ADMIN), signer)


def open_storage(folder: Path) -> SqliteStorage:
    """The folder's file, with every table."""
    storage = SqliteStorage(folder / "data.db", RECORD_TYPES)
    storage.migrate()
    return storage


@contextmanager
def two_chains() -> Iterator[dict[int, Node]]:
    """Two anvils. Skips where there is no anvil."""
    with (
        anvil_or_skip(chain_id=SOURCE) as first,
        anvil_or_skip(chain_id=DESTINATION) as second,
    ):
        nodes = {SOURCE: Node(first.url), DESTINATION: Node(second.url)}
        yield nodes
        for node in nodes.values():
            node.close()


def assets() -> Sequence[Asset]:
    """USDC on the source chain, and on the destination chain."""
    return USDC[SOURCE], USDC[DESTINATION]
