"""After the restore of an older state: senders that the chains are ahead of.

Later transactions are unknown here but have happened on chain. The outbox compares before it signs
(`chains/outbox/lost.py`), so that nothing is paid twice. This module shows an operator how
far storage and chains are apart, stops all senders until an operator has checked, and fills the
nonces of transactions that every pool has dropped.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.chains.outbox.nonces import load_senders
from payments_core.chains.outbox.record import (
    SENDER_LANE_PREFIX,
    Sender,
    load_transfer,
    sender_lane,
)
from payments_core.chains.outbox.reorg_recovery import RESEND
from payments_core.chains.port import AddressSpec, Chain
from payments_core.engine.audit import Trace
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.maintenance.announcing import announce
from payments_core.maintenance.parked_jobs import ParkedJob
from payments_core.plain_calls import call_plainly
from payments_core.storage.jobs import NEVER, Job, is_parked, mark_parked
from payments_core.storage.maintenance import scan_all
from payments_core.storage.port import Storage, Transaction
from payments_core.tenants.modes import is_of_mode
from payments_core.tenants.record import Environment

FILL_NONCES = "senders.fill_nonces"
"""The operation of the audit trail."""


@attrs.frozen
class SenderBehindChain:
    """A sender that has used more nonces than are known here: its transactions are lost.

    `seen_nonce` also counts those that are not final, and those that a pool had and dropped.
    Nothing of the sender is signed before all of them are final.
    """

    environment_id: str
    chain_id: int
    address: str
    next_nonce: int
    final_nonce: int
    seen_nonce: int

    @property
    def forgotten_count(self) -> int:
        """The number of lost transactions."""
        return self.seen_nonce - self.next_nonce


def find_senders_behind_chain(
    storage: Storage, chains: Mapping[int, Chain], mode: str
) -> tuple[SenderBehindChain, ...]:
    """The senders of a mode that the chains are ahead of.

    Only senders of the restored state are checked. A sender that cannot be read, or whose
    environment cannot, is skipped with an alarm. Raises ChainUnavailable, NoMaintenanceAccess,
    StorageUnavailable.
    """
    modes = {one.record.id: one.record.mode for one in scan_all(storage, Environment)}
    found = []
    for one in scan_all(storage, Sender):
        sender = one.record
        chain = chains.get(sender.chain_id)
        if chain is None or modes.get(one.partition) != mode:
            continue
        address = sender.id.partition(":")[2]
        known = _count_known(storage, one.partition, sender)
        seen = max(chain.pending_nonce(address), sender.seen_nonce)
        if seen > known:
            final = chain.final_nonce(address)
            found.append(
                SenderBehindChain(one.partition, sender.chain_id, address, known, final, seen)
            )
    return tuple(found)


def _count_known(storage: Storage, partition: str, sender: Sender) -> int:
    """How many nonces of a sender have bytes that are known here: all, or all except the last."""
    if sender.last_outgoing_id is None:
        return sender.next_slot
    last = load_transfer(storage, partition, sender.last_outgoing_id)
    return sender.next_slot - (last.raw is None)


def stop_sending(ports: Ports, mode: str) -> tuple[ParkedJob, ...]:
    """Stop every sender by parked jobs in its lane: the existing jobs, or a new one.

    Call it before any worker starts. New transfers queue up behind; `parked` lists
    the jobs and `retry` releases one, which runs first. A new job has the sender's
    transactions checked, and those resent that the chain does not know. Raises
    NoMaintenanceAccess, StorageUnavailable, Unavailable.
    """
    storage, stopped = ports.storage, []
    for one in scan_all(storage, Job):
        job = one.record
        if not job.lane.startswith(SENDER_LANE_PREFIX) or not job.queue.startswith(f"{mode}."):
            continue
        if is_parked(job) or _park_job(ports, one.partition, job.id):
            stopped.append(ParkedJob(one.partition, job))
    lanes = {one.job.lane for one in stopped}
    for found in scan_all(storage, Sender):
        lane = sender_lane(found.partition, found.record.chain_id)
        if lane not in lanes and is_of_mode(storage, found.partition, mode):
            lanes.add(lane)
            stopped.append(_park_sender(ports, found.partition, found.record.chain_id, mode))
    return tuple(stopped)


def _park_sender(ports: Ports, partition: str, chain_id: int, mode: str) -> ParkedJob:
    """A parked job in a lane that has none."""

    def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[ParkedJob]:
        job = Job(
            id=id_sequence.issue("job"),
            queue=f"{mode}.chain",
            lane=sender_lane(partition, chain_id),
            kind=RESEND,
            due_at=0,
            subject=str(chain_id),
            arguments={"first": str(NEVER)},
            lease_until=NEVER,
        )
        mark = mark_parked(job, ports.clock.now())
        return Decision(ParkedJob(partition, job), inserts=(job, mark))

    return ports.committer.commit(_stopping(ports, partition), decide)


def _park_job(ports: Ports, partition: str, job_id: str) -> bool:
    def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
        job = tx.get(Job, job_id, for_update=True)
        if job is None or is_parked(job):
            return Decision(job is not None)
        parked = evolve(job, lease_until=NEVER)
        mark = mark_parked(parked, ports.clock.now())
        return Decision(True, inserts=(mark,), replaces=(parked,))

    return ports.committer.commit(_stopping(ports, partition), decide)


def _stopping(ports: Ports, partition: str) -> WorkerAuthority:
    """The authority of who runs the deployment, with an entry in the audit trail."""
    return WorkerAuthority(partition, "upkeep", Trace(ports.host, "jobs.stop"))


@attrs.frozen
class FilledNonce:
    """A nonce of a sender's address that was filled by a transaction that moves nothing."""

    address: str
    nonce: int
    transaction_hash: str


def fill_nonces(
    ports: Ports, chains: Mapping[int, Chain], environment_id: str, chain_id: int
) -> tuple[FilledNonce, ...]:
    """Send a transaction that moves nothing for each nonce that lost transactions have left unused.

    It is for senders that wait for transactions that every pool has dropped, and that somebody
    may still have: when their nonces are used, they can never be mined. A new key waits for those
    of earlier keys too. If a node has another transaction with the nonce, it is left alone.
    Each sender has an entry in the audit trail before its first transaction. Raises
    ChainUnavailable, SignerRefused if the key of a nonce is not configured, StorageUnavailable,
    Unavailable.
    """
    chain = chains[chain_id]
    operator = chain.derive(AddressSpec(environment_id, "operator", "operator"))
    senders = ports.storage.read(environment_id, lambda snapshot: load_senders(snapshot, chain_id))
    filled = []
    for sender in sorted(senders, key=lambda one: one.address != operator):  # the present key first
        former = () if sender.address == operator else (sender.address,)
        unused = range(chain.pending_nonce(sender.address), sender.seen_nonce)
        if unused:
            announce(ports, FILL_NONCES, partition=environment_id, own_id=sender.address)
        for nonce in unused:
            nothing = chain.prepare_noop(environment_id, nonce, *former)
            call_plainly("broadcast", chain.broadcast, nothing)
            filled.append(FilledNonce(sender.address, nonce, nothing.hash))
    return tuple(filled)
