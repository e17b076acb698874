"""The two transactions of a role module: sent, followed, and concluded.

`chains.outbox.jobs` sends and follows them like transfers: each is stored before it is
sent, so that a crash sends the same bytes again. Their success proves little, since a call to an
address without code succeeds: the contracts are asked for the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

from payments_core.chains.outbox.owners import TransferToSend
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    TransferOutcome,
    TransferPurpose,
    TransferToWatch,
    new_module_step,
    send_job,
    watch_job,
)
from payments_core.chains.port import AddressSpec, Chain, ChainUnavailable, SignedTransaction
from payments_core.chains.role_modules import ModuleChain, ModuleState
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.evolve import evolve
from payments_core.legacy.role_modules import lifecycle
from payments_core.legacy.role_modules.record import RoleModuleInstallation
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get

StepStatus = Literal["deploying", "enabling"]

SEND: Mapping[StepStatus, str] = {
    "deploying": "role_modules.deploy",
    "enabling": "role_modules.enable",
}
WATCH: Mapping[StepStatus, str] = {
    "deploying": "role_modules.watch_deploy",
    "enabling": "role_modules.watch_enable",
}
PURPOSE: Mapping[StepStatus, TransferPurpose] = {
    "deploying": "deploy_module",
    "enabling": "enable_module",
}


@attrs.frozen
class StepFacts:
    """The state of the module, and the facts that the next step needs."""

    state: ModuleState
    partition: str
    operator: str


def start_step(
    partition: str, installation: RoleModuleInstallation, operator: str, *, now: Instant
) -> Decision[None]:
    """The transaction of the installation's present step, and the job that sends it."""
    status: StepStatus = "deploying" if installation.status == "deploying" else "enabling"
    step = installation.deploy_step if status == "deploying" else installation.enable_step
    outgoing = new_module_step(
        installation.outgoing_id,
        installation.chain_id,
        installation.id,
        step,
        operator=operator,
        now=now,
    )
    job = send_job(SEND[status], partition, outgoing, now)
    return Decision(None, inserts=(outgoing,), jobs=(job,))


class ModuleStepOwner:
    """An installation as the owner of one of its two transactions."""

    record_type = RoleModuleInstallation
    on_unsent = None
    on_screened = None

    def __init__(self, chains: Mapping[int, Chain], status: StepStatus) -> None:
        self._chains = chains
        self._status = status
        self.purpose: TransferPurpose = PURPOSE[status]
        self.send_kind: str = SEND[status]
        self.watch_kind: str = WATCH[status]

    def find_to_send(self, record: RoleModuleInstallation) -> TransferToSend | None:
        """While the installation is at this step. It is never withdrawn."""
        if record.status != self._status:
            return None
        return TransferToSend(record.chain_id, record.outgoing_id)

    def locks(self, record: RoleModuleInstallation, transaction_hash: str) -> Sequence[Get]:
        """The installation."""
        return (Get(RoleModuleInstallation, record.id, "exclusive"),)

    def on_sent(
        self,
        tx: Transaction,
        record: RoleModuleInstallation,
        signed: SignedTransaction,
        *,
        now: Instant,
    ) -> Decision[None]:
        """Record the hash of the transaction that was sent, with the job that watches it."""
        current = _lock(tx, record.id)
        if current.outgoing_id != record.outgoing_id:
            return Decision(None)
        sent = evolve(current, transaction_hash=signed.hash, updated_at_ms=now)
        of = {"outgoingId": record.outgoing_id}
        watch = watch_job(self.watch_kind, f"module:{record.id}", record.id, of, now=now)
        return Decision(None, replaces=(sent,), jobs=(watch,))

    def find_to_watch(self, record: RoleModuleInstallation, job: Job) -> TransferToWatch | None:
        """The installation may have started again, so the job names its transaction."""
        outgoing_id = job.arguments["outgoingId"]
        return TransferToWatch(outgoing_id) if record.outgoing_id == outgoing_id else None

    def read_chain(
        self, partition: str, record: RoleModuleInstallation, outcome: TransferOutcome
    ) -> StepFacts:
        """The contracts' answers after the transaction is final."""
        chain = self._chains[record.chain_id]
        assert isinstance(chain, ModuleChain)
        state = chain.read_module(partition, record.vault_address, record.tokens)
        if state is None or (outcome.reason is None and not self._is_done(state)):
            raise ChainUnavailable("the node is behind the node that answered before")
        operator = chain.derive(AddressSpec(partition, "operator", "operator"))
        return StepFacts(state, partition, operator)

    def lock(
        self, tx: Transaction, record: RoleModuleInstallation, outgoing_id: str
    ) -> RoleModuleInstallation | None:
        """The installation, if it still waits for this transaction."""
        current = _lock(tx, record.id)
        return current if current.outgoing_id == outgoing_id else None

    def on_final(
        self,
        tx: Transaction,
        locked: RoleModuleInstallation,
        outcome: TransferOutcome,
        facts: StepFacts,
        *,
        now: Instant,
    ) -> Decision[None]:
        """The next step, the end, or a failure. Anybody may deploy a module, or bring a signature:
        a step that failed because it was already done is done."""
        if not self._is_done(facts.state):
            reason = outcome.reason or "transaction_failed"
            return lifecycle.apply_trigger(locked, "fail", now=now, failure=reason).as_decision()
        if self._status == "enabling":
            return lifecycle.apply_trigger(locked, "enabled", now=now).as_decision()
        enabling = lifecycle.apply_trigger(
            locked, "deployed", now=now, outgoing_id=locked.enable_id
        )
        following = start_step(facts.partition, enabling.record, facts.operator, now=now)
        return enabling.as_decision().merge(following)

    def on_reversed(
        self, tx: Transaction, outgoing: OutboundTransfer, reason: str, *, now: Instant
    ) -> Decision[None]:
        """The module is no longer in place: the owner has to sign again."""
        current = _lock(tx, outgoing.owner_id)
        if not lifecycle.ROLE_MODULE.allows(current.status, "undo"):
            return Decision(None)
        return lifecycle.apply_trigger(current, "undo", now=now, failure=reason).as_decision()

    def _is_done(self, state: ModuleState) -> bool:
        return state.is_deployed if self._status == "deploying" else state.is_enabled


def _lock(tx: Transaction, id: str) -> RoleModuleInstallation:
    installation = tx.get(RoleModuleInstallation, id, for_update=True)
    assert installation is not None
    return installation
