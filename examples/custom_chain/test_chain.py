"""The adapter, held to the suite of the port."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import attrs

from payments_core import Acceptance
from payments_core.addresses import encode_checksum_address
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.port import Chain
from payments_core.conformance.chain import ChainConformance
from payments_core.entropy import system_entropy

from .adapter import LedgerChain
from .network import NETWORK
from .node import Ledger

SIGNER = LocalSigner(system_entropy(32))


class TestLedgerChain(ChainConformance):
    token = NETWORK.tokens[0].address
    other_token = "0x" + "3" * 40
    finality_blocks = NETWORK.finality.depth
    can_choose_policy = True
    can_reorg = True
    can_fail = True

    def setup_method(self) -> None:
        self.folder = TemporaryDirectory()
        self.node = Ledger(Path(self.folder.name, "ledger.db"))
        self.node.create()

    def teardown_method(self) -> None:
        self.folder.cleanup()

    def open(self) -> Chain:
        return LedgerChain(self.node, NETWORK, SIGNER)

    def open_with(self, acceptance: tuple[Acceptance, ...]) -> Chain:
        return LedgerChain(self.node, attrs.evolve(NETWORK, acceptance=acceptance), SIGNER)

    def new_address(self) -> str:
        return encode_checksum_address(system_entropy(20))

    def send_external_transfer(self, token: str, recipient: str, amount_atomic: int) -> str:
        return self.node.pay(token, recipient, amount_atomic)

    def send_failed_transaction(self, token: str, recipient: str) -> str:
        return self.node.pay(token, recipient, 1, fails=True)

    def mine_blocks(self, count: int) -> None:
        self.node.mine(count)

    def reorg(self, depth: int) -> None:
        self.node.reorg(depth)

    def fail(self) -> None:
        self.node.path.rename(self.node.path.with_suffix(".away"))

    def restore(self) -> None:
        self.node.path.with_suffix(".away").rename(self.node.path)
