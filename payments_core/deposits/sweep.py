"""The sweep: funds at a deposit address are brought to the account's vault.

Every deposit has its own sweep, of exactly its amount, so that the settled amount is what arrived.
On a real chain anybody may bring the funds to the vault, and nowhere else: a sweep that fails
for that reason still settles its deposit, and where another deposit has come to the address
meanwhile, a check sweeps what is left. Dust is swept like everything else, at any fee: an
account sees all that was sent to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from payments_core.chains.outbox.owners import TransferToSend
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    TransferOutcome,
    TransferPurpose,
    TransferToWatch,
    new_transfer,
    watch_job,
)
from payments_core.chains.port import (
    AddressSpec,
    Chain,
    ChainUnavailable,
    SignedTransaction,
)
from payments_core.clock import Instant
from payments_core.deposits import lifecycle
from payments_core.deposits.chain_view import observe_deposit
from payments_core.deposits.record import Deposit
from payments_core.engine.decision import Decision
from payments_core.networks import Networks
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get

SWEEP = "deposits.sweep"
WATCH_SWEEP = "deposits.watch_sweep"


def vault_address(chain: Chain, partition: str, account_id: str) -> str:
    """Where an account's deposits go; an account older than the chain's support has it too."""
    return chain.derive(AddressSpec(partition, "vault", account_id))


def new_sweep(
    deposit: Deposit, id: str, vault: str, amount: int | None = None, *, now: Instant
) -> OutboundTransfer:
    """The transfer of a deposit, or of what is left of it, to the vault at that address."""
    return new_transfer(
        id,
        deposit.asset,
        "sweep",
        deposit.id,
        source=deposit.contract,
        recipient=vault,
        amount=deposit.amount_atomic if amount is None else amount,
        now=now,
    )


def find_left(chain: Chain, deposit: Deposit, height: int) -> int:
    """How much of a deposit is left at its address, at a height in which it is final, or above.

    A deposit address pays only its vault, and anybody may have it do so: what is missing there is
    in the vault. Raises ChainUnavailable.
    """
    held = chain.balances(deposit.asset.address, [deposit.address])
    if held.height < height:
        raise ChainUnavailable("the node is behind the node that answered before")
    return min(held.amounts[deposit.address], deposit.amount_atomic)


class SweepOwner:
    """A deposit whose funds go to the vault. `chains.outbox.jobs` sends and follows the sweep."""

    purpose: TransferPurpose = "sweep"
    record_type = Deposit
    send_kind = SWEEP
    watch_kind = WATCH_SWEEP
    on_unsent = None
    on_screened = None

    def __init__(self, chains: Mapping[int, Chain], networks: Networks) -> None:
        self._chains = chains
        self._networks = networks

    def find_to_send(self, record: Deposit) -> TransferToSend | None:
        """Find the sweep to send; None if it was withdrawn, since the deposit was reorged out."""
        if record.status != "confirmed" or record.sweep_id is None:
            return None
        return TransferToSend(record.chain_id, record.sweep_id)

    def locks(self, record: Deposit, transaction_hash: str) -> Sequence[Get]:
        """The deposit."""
        return (Get(Deposit, record.id, "exclusive"),)

    def on_sent(
        self, tx: Transaction, record: Deposit, signed: SignedTransaction, *, now: Instant
    ) -> Decision[None]:
        """The deposit is `confirmed` until its sweep is final."""
        assert record.sweep_id is not None
        of = {"sweepId": record.sweep_id}
        watch = watch_job(WATCH_SWEEP, f"deposit:{record.id}", record.id, of, now=now)
        return Decision(None, jobs=(watch,))

    def find_to_watch(self, record: Deposit, job: Job) -> TransferToWatch | None:
        """A deposit may meanwhile have another sweep, so the job names its own."""
        return TransferToWatch(job.arguments["sweepId"])

    def _is_swept(self, deposit: Deposit, height: int) -> bool:
        """Whether the deposit is final, and nothing is left at its address then."""
        chain = self._chains[deposit.chain_id]
        seen = observe_deposit(chain, deposit, self._networks)
        if seen.incoming is None or not seen.is_final:
            return False
        return find_left(chain, deposit, height) == 0

    def read_chain(self, partition: str, record: Deposit, outcome: TransferOutcome) -> bool:
        """Whether a failed sweep settles its deposit: somebody else has swept."""
        return outcome.reason is not None and self._is_swept(record, outcome.height)

    def lock(self, tx: Transaction, record: Deposit, outgoing_id: str) -> Deposit | None:
        """The deposit, if it still waits for this sweep."""
        deposit = _lock_deposit(tx, record.id)
        if deposit.status != "confirmed" or deposit.sweep_id != outgoing_id:
            return None
        return deposit

    def on_final(
        self,
        tx: Transaction,
        locked: Deposit,
        outcome: TransferOutcome,
        facts: bool,
        *,
        now: Instant,
    ) -> Decision[None]:
        """In the vault, or failed permanently."""
        if outcome.reason is None or facts:
            change = lifecycle.settle(locked, now=now)
        else:
            change = lifecycle.fail(locked, outcome.reason, now=now)
        return change.as_decision()

    def on_reversed(
        self, tx: Transaction, outgoing: OutboundTransfer, reason: str, *, now: Instant
    ) -> Decision[None]:
        """The deposit is out of the vault again."""
        deposit = _lock_deposit(tx, outgoing.owner_id)
        if deposit.status != "settled" or deposit.sweep_id != outgoing.id:
            return Decision(None)
        return lifecycle.reverse_settlement(deposit, reason, now=now).as_decision()


def _lock_deposit(tx: Transaction, deposit_id: str) -> Deposit:
    deposit = tx.get(Deposit, deposit_id, for_update=True)
    assert deposit is not None
    return deposit
