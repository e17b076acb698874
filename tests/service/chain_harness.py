"""One simulated chain on a storage, with transfers of third parties."""

from __future__ import annotations

from payments_core.chains.port import AddressSpec, Contract, SignedTransaction, TransferIntent
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.chains.simulated.failures import Failures
from payments_core.clock import FixedClock
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.ports import Ports
from payments_core.storage.port import Storage
from tests.shipped import asset_of

BASE = 8453
USDC = asset_of(BASE, "USDC").address
OTHER_TOKEN = asset_of(1, "USDC").address
ANN = "0x00000000000000000000000000000000000A11cE"
BOB = "0x0000000000000000000000000000000000000B0b"
EVE = "0x000000000000000000000000000000000000E0E0"
RING = KeyRing.parse(KeyRing.generate())


class ChainHarness:
    """One chain on a storage, with a clock that stands."""

    def __init__(self, storage: Storage) -> None:
        self.clock = FixedClock()
        self.ports = Ports.over(storage, RING, self.clock)
        self.committer = self.ports.committer
        self.storage = storage
        self.chain = self.another()
        self.failures = Failures(self.ports)
        self.vault = self.chain.derive(AddressSpec("env_a", "vault", "acct_a"))

    def another(self, chain_id: int = BASE) -> SimulatedChain:
        """What another process on the same storage sees."""
        return SimulatedChain(chain_id, self.ports)

    def signed(self, slot: int, recipient: str = BOB, amount: int = 10) -> SignedTransaction:
        source = Contract("vault", "acct_a", self.vault)
        intent = TransferIntent(f"out-{slot}", "env_a", USDC, source, recipient, amount)
        return self.chain.prepare(intent, slot)

    def newest(self, holder: str) -> int:
        """What somebody holds when everything so far is final."""
        self.chain.mine(3)
        return self.chain.balances(USDC, [holder]).amounts[holder]

    def give(self, holder: str, amount: int, name: str) -> str:
        return self.chain.transfer(USDC, None, holder, amount, name)
