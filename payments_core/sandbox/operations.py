"""What an integrator may do to a sandbox: fund, mine, run what is due, move the clock."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.accounts.record import Account
from payments_core.assets import asset_of
from payments_core.chains.port import AddressSpec, Heads
from payments_core.chains.simulated import SimulatedChain
from payments_core.clock import SECOND, Instant
from payments_core.credentials.authorization import Authority
from payments_core.errors import (
    AmountOutOfRange,
    CapabilityNotActive,
    NotFound,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.jobs.worker import Worker
from payments_core.money import MoneyError, parse_amount
from payments_core.sandbox.clock import SandboxClock
from payments_core.storage.port import Storage

LONGEST_ADVANCE_S = 366 * 86_400
MOST_BLOCKS = 100_000


@attrs.frozen
class Funded:
    """A credit of the faucet, already final."""

    account_id: str
    chain_id: int
    asset_symbol: str
    amount: str
    amount_atomic: int
    address: str
    transaction_hash: str


class Sandbox:
    """The doors of one sandbox deployment."""

    def __init__(
        self,
        storage: Storage,
        chains: Mapping[int, SimulatedChain],
        clock: SandboxClock | None,
        worker: Worker,
    ) -> None:
        self._storage = storage
        self._chains = chains
        self._clock = clock
        self._worker = worker

    def fund(
        self, authority: Authority, account_id: str, chain_id: int, symbol: str, amount: str
    ) -> Funded:
        """Credit an account's vault; final when it answers.

        Raises NotFound, UnsupportedChain, UnsupportedAsset, ValidationFailed, AmountOutOfRange.
        """
        account = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Account, account_id)
        )
        if account is None:
            raise NotFound("account")
        asset = asset_of(chain_id, symbol)
        chain = self.chain(chain_id)
        try:
            amount_atomic = parse_amount(amount, asset.decimals)
        except MoneyError as error:
            raise ValidationFailed.at("amount", str(error)) from None
        if amount_atomic == 0:
            raise AmountOutOfRange("it must be more than zero")
        address = chain.derive(AddressSpec(authority.partition, "vault", account.id))
        hash = chain.mint(asset.address, address, amount_atomic)
        return Funded(account.id, chain_id, symbol, amount, amount_atomic, address, hash)

    def chain(self, chain_id: int) -> SimulatedChain:
        """The simulated chain of that id. Raises UnsupportedChain."""
        if chain_id not in self._chains:
            raise UnsupportedChain(chain_id)
        return self._chains[chain_id]

    def mine(self, chain_id: int, count: int) -> Heads:
        """Add blocks to a chain. Raises UnsupportedChain, ValidationFailed."""
        if not 1 <= count <= MOST_BLOCKS:
            raise ValidationFailed.at("count", f"must be 1 to {MOST_BLOCKS}")
        return self.chain(chain_id).mine(count)

    def run(self) -> int:
        """Do all work that is due now; returns how many jobs ran."""
        self._worker.pause()
        try:
            return self._worker.run_until_idle()
        finally:
            self._worker.resume()

    def advance(self, seconds: int) -> tuple[Instant, int]:
        """Move the clock, and do what falls due on the way, in order, before answering.

        Returns the new instant and how many jobs ran. Raises ValidationFailed,
        CapabilityNotActive where the clock is not the sandbox's.
        """
        if self._clock is None:
            raise CapabilityNotActive("the sandbox clock")
        if not 1 <= seconds <= LONGEST_ADVANCE_S:
            raise ValidationFailed.at("advanceSeconds", f"must be 1 to {LONGEST_ADVANCE_S}")
        self._worker.pause()
        try:
            until = self._clock.now() + seconds * SECOND
            ran = self._worker.run_through(until, self._clock.advance_to)
            return self._clock.now(), ran
        finally:
            self._worker.resume()
