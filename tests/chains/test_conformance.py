"""The chain suite on the simulated chain, and on a real EVM node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count

import attrs
import pytest

from payments_core.acceptance import Acceptance
from payments_core.addresses import encode_checksum_address
from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.port import Chain
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.chains.simulated.failures import Failures
from payments_core.clock import FixedClock
from payments_core.conformance.chain import ChainConformance
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.ports import Ports
from payments_core.entropy import system_entropy
from payments_core.networks import shipped_networks
from payments_core.sandbox.chains import SandboxChain
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.cli.anvil.chain import FINALITY_BLOCKS, AnvilChain
from payments_core_http.cli.anvil.process import AnvilProcess
from tests.chains.evm.nodes import ACCOUNTS, ADMIN, Node, anvil_or_skip
from tests.chains.evm.safes import CounterfactualSafe
from tests.shipped import asset_of

BASE, ETHEREUM = 8453, 1
RING = KeyRing.parse(KeyRing.generate())


class InSandbox(ChainConformance):
    """What both have: the operations of a sandbox."""

    sandbox_chain: SandboxChain
    can_reorg = True
    _names = count()

    def new_address(self) -> str:
        return encode_checksum_address(system_entropy(20))

    def send_external_transfer(self, token: str, recipient: str, amount_atomic: int) -> str:
        return self.sandbox_chain.transfer(token, None, recipient, amount_atomic, self._name())

    def send_failed_transaction(self, token: str, recipient: str) -> str:
        return self.sandbox_chain.transfer(token, None, recipient, 1, self._name(), reverts=True)

    def mine_blocks(self, count: int) -> None:
        self.sandbox_chain.mine(count)

    def reorg(self, depth: int) -> None:
        self.sandbox_chain.reorg(depth)

    def _name(self) -> str:
        return f"{system_entropy(4).hex()}-{next(self._names)}"


class TestSimulated(InSandbox):
    token = asset_of(ETHEREUM, "USDC").address
    other_token = asset_of(ETHEREUM, "USDT").address
    can_fail = True

    @pytest.fixture(autouse=True)
    def _place(self) -> None:
        self.begin()

    def begin(self) -> None:
        """On a chain without any transaction."""
        self.storage, self.clock = MemoryStorage(), FixedClock()
        self.ports = Ports.over(self.storage, RING, self.clock)
        self.sandbox_chain = self.open()

    def open(self) -> SimulatedChain:
        return SimulatedChain(ETHEREUM, self.ports)

    def fail(self) -> None:
        Failures(self.ports).arm("chain", "any", 7, ETHEREUM)

    def restore(self) -> None:
        """All that were ordered have happened."""


@pytest.fixture(scope="module")
def node() -> AnvilProcess:
    with anvil_or_skip() as process:
        yield process


class TestAnvil(InSandbox):
    token = asset_of(BASE, "USDC").address
    finality_blocks = FINALITY_BLOCKS
    can_fail = True

    @pytest.fixture(autouse=True)
    def _place(self, node: AnvilProcess) -> Iterator[None]:
        self.node = node
        self.sandbox_chain = AnvilChain(node.url, BASE, LocalSigner(bytes(range(32))))
        self.sandbox_chain.prepare_node()
        with closing(Node(node.url)) as self.rpc:
            yield

    def open(self) -> Chain:
        return AnvilChain(self.node.url, BASE, LocalSigner(bytes(range(32))))

    can_hold_contracts = True
    can_choose_policy = True

    def open_with(self, acceptance: tuple[Acceptance, ...]) -> Chain:
        network = attrs.evolve(shipped_networks()[BASE], acceptance=acceptance)
        signer = LocalSigner(bytes(range(32)))
        quorum = NodeQuorum([self.node.url], BASE)
        return EvmChain(quorum, Deployment(ADMIN), signer, network=network)

    def new_contract_wallet(self) -> CounterfactualSafe:
        salt = int.from_bytes(system_entropy(8), "big")
        return CounterfactualSafe(self.rpc, BASE, ACCOUNTS[3], salt)

    def fail(self) -> None:
        self.node.stop()

    def restore(self) -> None:
        self.node.start()
        self.sandbox_chain = AnvilChain(self.node.url, BASE, LocalSigner(bytes(range(32))))
