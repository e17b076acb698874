"""The sweep: what arrived at a deposit address is brought to the account's vault.

Every deposit has a sweep of its own, of exactly its amount, so that what settles is what arrived.
On a real chain anybody may bring what is there to the vault, and nowhere else: a sweep that fails
for that settles its deposit all the same. Dust is swept like everything else, whatever the fee: an
account sees all that was sent to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.chains.backoff import POLL_MS, poll_again, wait_for_chain
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import LookOutdated, Outgoing, concluded, transfer
from payments_core.chains.port import AddressSpec, Chain, ChainUnavailable, Contract
from payments_core.clock import Instant
from payments_core.deposits import lifecycle
from payments_core.deposits.lifecycle import Change
from payments_core.deposits.looking import look
from payments_core.deposits.record import Deposit
from payments_core.engine.decision import Decision, Follow, Scope
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.storage.port import Claimed, Transaction

SWEEP = "deposits.sweep"
WATCH_SWEEP = "deposits.watch_sweep"


def vault_address(chain: Chain, partition: str, account_id: str) -> str:
    """Where an account's deposits go; an account older than the chain's service has it as well."""
    return chain.derive(AddressSpec(partition, "vault", account_id))


def sweep_of(deposit: Deposit, id: str, vault: str, *, now: Instant) -> Outgoing:
    """The transfer of a deposit to the vault at that address."""
    return transfer(
        id,
        deposit.asset,
        "sweep",
        deposit.id,
        source=Contract("deposit", deposit.account_id, deposit.address),
        recipient=vault,
        amount=deposit.amount,
        now=now,
    )


def sweep_reversed(
    tx: Transaction, outgoing: Outgoing, reason: str, *, now: Instant
) -> Decision[None]:
    """What becomes of a settled deposit whose sweep was undone and has failed."""
    deposit = tx.get(Deposit, outgoing.owner_id, for_update=True)
    assert deposit is not None
    if deposit.status != "settled" or deposit.sweep_id != outgoing.id:
        return Decision(None)
    change = lifecycle.unsettle(Change(deposit), reason, now=now)
    return Decision(None, replaces=(change.deposit,), events=change.events)


class SweepJobs:
    """Sends sweeps and follows them to finality."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain], outbox: Outbox) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._outbox = outbox

    def send(self, claimed: Claimed) -> None:
        """Hand the sweep to the chain. Its bytes are fixed: sent again, they move nothing more."""
        scope = Scope.of(claimed)
        deposit = self._deposit(claimed)
        sweep_id = deposit.sweep_id
        if deposit.status != "confirmed" or sweep_id is None:
            self._ledger.finish(claimed)
            return
        try:
            signed = self._outbox.signed(scope, deposit.chain_id, sweep_id)
            if signed is not None:
                self._outbox.broadcast(scope, signed, sweep_id)
        except ChainUnavailable:
            self._wait(claimed)
            return
        if signed is None:  # withdrawn: the deposit was reorged out
            self._ledger.finish(claimed)
            return
        watch = Follow(
            "chain",
            WATCH_SWEEP,
            f"deposit:{deposit.id}",
            self._clock.now() + POLL_MS,
            deposit.id,
            {"sweepId": sweep_id},
        )
        self._ledger.finish(claimed, Decision(None, jobs=(watch,)))

    def watch(self, claimed: Claimed) -> None:
        """Look at the sweep: not final, in the vault, or failed for good."""
        scope = Scope.of(claimed)
        deposit = self._deposit(claimed)
        sweep_id = claimed.job.arguments["sweepId"]
        try:
            outcome = self._outbox.outcome(scope, sweep_id)
            settles = outcome.reason is None or (
                not outcome.is_pending and self._is_swept(deposit, outcome.height)
            )
        except ChainUnavailable:
            self._wait(claimed)
            return
        if outcome.is_pending:
            self._ledger.finish(claimed, poll_again(self._clock.now()))
            return

        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            current = tx.get(Deposit, deposit.id, for_update=True)
            assert current is not None
            if current.status != "confirmed" or current.sweep_id != sweep_id:
                return Decision(None)
            now = self._clock.now()
            if settles:
                change = lifecycle.settle(Change(current), now=now)
            else:
                assert outcome.reason is not None
                change = lifecycle.fail(Change(current), outcome.reason, now=now)
            ended = Decision(None, replaces=(change.deposit,), events=change.events)
            return ended.joined(concluded(tx, sweep_id, outcome, now=now))

        try:
            self._ledger.commit(scope, decide, claimed=claimed)
        except LookOutdated:
            self._ledger.finish(claimed, poll_again(self._clock.now()))

    def _is_swept(self, deposit: Deposit, height: int) -> bool:
        """Whether the deposit is final, and by then nothing is left at its address."""
        chain = self._chains[deposit.chain_id]
        seen = look(chain, deposit)
        if seen.arrival is None or not seen.is_final:
            return False
        left = chain.balances(deposit.asset.address, [deposit.address])
        if left.height < height:
            raise ChainUnavailable("the node is behind the one that was asked before")
        return left.amounts[deposit.address] == 0

    def _deposit(self, claimed: Claimed) -> Deposit:
        deposit = self._storage.read(
            claimed.partition, lambda snapshot: snapshot.get(Deposit, claimed.job.subject)
        )
        assert deposit is not None
        return deposit

    def _wait(self, claimed: Claimed) -> None:
        self._ledger.finish(claimed, wait_for_chain(claimed.job, self._clock.now()))
