"""What an integrator may do to a sandbox: fund, mine, run what is due, move the clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import attrs

from payments_core.accounts.record import Account
from payments_core.assets import asset_of
from payments_core.chains.port import AddressSpec, Heads
from payments_core.chains.simulated import SimulatedChain
from payments_core.clock import SECOND, Clock, Instant
from payments_core.credentials.authorization import Authority
from payments_core.decision import Decision, Ledger
from payments_core.errors import (
    AmountOutOfRange,
    CapabilityNotActive,
    NotFound,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.idempotency.record import Idempotent
from payments_core.jobs.worker import Worker
from payments_core.money import MoneyError, parse_amount
from payments_core.sandbox.clock import SandboxClock
from payments_core.storage.port import DIRECTORY, Storage
from payments_core.tenants.record import App

T = TypeVar("T")

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
        ledger: Ledger,
        chains: Mapping[int, SimulatedChain],
        clock: Clock,
        worker: Worker,
    ) -> None:
        self._storage = storage
        self._ledger = ledger
        self._chains = chains
        self._clock = clock
        self._worker = worker

    def fund(
        self,
        authority: Authority,
        account_id: str,
        chain_id: int,
        symbol: str,
        amount: str,
        *,
        idempotent: Idempotent | None = None,
    ) -> Funded:
        """Credit an account's vault; final when it answers.

        The transaction is named after the idempotency key: a retry after a crash in between finds
        it on the chain.

        Raises NotFound, UnsupportedChain, UnsupportedAsset, ValidationFailed, AmountOutOfRange.
        """
        self._begin(authority, idempotent)
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
        if idempotent is None:
            name = self._ledger.draw().id("mint")
        else:  # after its retention the same key is another request
            period = self._clock.now() // idempotent.retention_ms
            name = f"{idempotent.id}/{idempotent.fingerprint}/{period}"
        hash = chain.mint(asset.address, address, amount_atomic, name)
        funded = Funded(account.id, chain_id, symbol, amount, amount_atomic, address, hash)
        return self._answered(authority, funded, idempotent)

    def heads(self) -> dict[int, Heads]:
        """The newest and the newest final block of every chain."""
        self._require_alone()
        return {chain_id: chain.heads() for chain_id, chain in self._chains.items()}

    def chain(self, chain_id: int) -> SimulatedChain:
        """The simulated chain of that id. Raises UnsupportedChain."""
        if chain_id not in self._chains:
            raise UnsupportedChain(chain_id)
        return self._chains[chain_id]

    def mine(
        self,
        authority: Authority,
        chain_id: int,
        count: int,
        *,
        idempotent: Idempotent | None = None,
    ) -> Heads:
        """Add blocks to a chain. Raises UnsupportedChain, ValidationFailed."""
        if not 1 <= count <= MOST_BLOCKS:
            raise ValidationFailed.at("count", f"must be 1 to {MOST_BLOCKS}")
        self._begin(authority, idempotent)
        return self._answered(authority, self.chain(chain_id).mine(count), idempotent)

    def run(self, authority: Authority, *, idempotent: Idempotent | None = None) -> int:
        """Do all work that is due now; returns how many jobs ran."""
        self._begin(authority, idempotent)
        with self._worker.alone():
            ran = self._worker.run_until_idle()
        return self._answered(authority, ran, idempotent)

    def advance(
        self, authority: Authority, seconds: int, *, idempotent: Idempotent | None = None
    ) -> tuple[Instant, int]:
        """Move the clock, and do what falls due on the way, in order, before answering.

        Returns the new instant and how many jobs ran. Raises ValidationFailed,
        CapabilityNotActive where the clock is not the sandbox's.
        """
        self._begin(authority, idempotent)
        clock = self._clock
        if not isinstance(clock, SandboxClock):
            raise CapabilityNotActive("the sandbox clock")
        if not 1 <= seconds <= LONGEST_ADVANCE_S:
            raise ValidationFailed.at("advanceSeconds", f"must be 1 to {LONGEST_ADVANCE_S}")
        with self._worker.alone():
            until = clock.now() + seconds * SECOND
            ran = self._worker.run_through(until, clock.advance_to)
            done = clock.now(), ran
        return self._answered(authority, done, idempotent)

    def _begin(self, authority: Authority, idempotent: Idempotent | None) -> None:
        """Let no key that was used before touch chain or clock: no refusal would undo that."""
        self._require_alone()
        if idempotent is not None:
            self._ledger.replay(authority, idempotent)

    def _answered(self, authority: Authority, result: T, idempotent: Idempotent | None) -> T:
        """Store the answer of what has been done to chain or clock, which no transaction spans.

        A crash before that lets a retry do it again, except for funding.
        """
        if idempotent is None:
            return result
        return self._ledger.commit(
            authority, lambda tx, draw: Decision(result), idempotent=idempotent
        )

    def _require_alone(self) -> None:
        """Raise NotFound unless one app has the deployment to itself: clock and chains are
        everybody's."""
        apps = self._storage.read(
            DIRECTORY, lambda snapshot: snapshot.find(App, "by_created", limit=2)
        )
        if len(apps.records) != 1:
            raise NotFound("sandbox")
