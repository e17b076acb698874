"""After an older state was put back: what the chains know better, and senders that wait for that.

What was sent since is forgotten here and has happened there. A transfer that had no bytes yet when
the backup was made would be signed again, into a slot that the chain has filled: it is told to have
failed, though the one before it paid. So nothing is sent until somebody has looked.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.chains.outbox.record import SENDER_LANE_PREFIX, Sender, sender_lane
from payments_core.chains.outbox.reorg_recovery import RESEND
from payments_core.chains.port import Chain
from payments_core.engine.committer import Committer
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.maintenance.parked_jobs import ParkedJob, is_parked
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.maintenance import scan_all
from payments_core.storage.port import Storage, Transaction
from payments_core.tenants.modes import is_of_mode
from payments_core.tenants.record import Environment


@attrs.frozen
class SenderBehindChain:
    """A sender that has filled more slots than are known here: so many transactions are forgotten.

    The next transfers of it take those slots, and fail without moving anything.
    """

    environment_id: str
    chain_id: int
    address: str
    next_nonce: int
    final_nonce: int

    @property
    def forgotten_count(self) -> int:
        """How many transactions they are, of those that are final."""
        return self.final_nonce - self.next_nonce


def find_senders_behind_chain(
    storage: Storage, chains: Mapping[int, Chain], mode: str
) -> tuple[SenderBehindChain, ...]:
    """The senders of a mode that the chains are ahead of.

    Only senders that the restored state knows are asked for, and only what is final counts. One
    that cannot be read, or whose environment cannot, is missing, with an alarm. Raises
    ChainUnavailable, NoMaintenanceAccess, StorageUnavailable.
    """
    modes = {one.record.id: one.record.mode for one in scan_all(storage, Environment)}
    found = []
    for one in scan_all(storage, Sender):
        sender = one.record
        chain = chains.get(sender.chain_id)
        if chain is None or modes.get(one.partition) != mode:
            continue
        address = sender.id.partition(":")[2]
        used = chain.final_nonce(address)
        if used > sender.next_slot:
            found.append(
                SenderBehindChain(one.partition, sender.chain_id, address, sender.next_slot, used)
            )
    return tuple(found)


def stop_sending(storage: Storage, committer: Committer, mode: str) -> tuple[ParkedJob, ...]:
    """Stop every sender, by a parked job in its lane: those that are there, or one of its own.

    Call it before any worker starts. What is asked for meanwhile queues up behind; `parked` lists
    the jobs and `retry` lets one go, which goes first. A job of its own has the sender's
    transactions looked for, and those sent again that the chain does not know. Raises
    NoMaintenanceAccess, StorageUnavailable, Unavailable.
    """
    stopped = []
    for one in scan_all(storage, Job):
        job = one.record
        if not job.lane.startswith(SENDER_LANE_PREFIX) or not job.queue.startswith(f"{mode}."):
            continue
        if is_parked(job) or _park_job(committer, one.partition, job.id):
            stopped.append(ParkedJob(one.partition, job))
    lanes = {one.job.lane for one in stopped}
    for found in scan_all(storage, Sender):
        lane = sender_lane(found.partition, found.record.chain_id)
        if lane not in lanes and is_of_mode(storage, found.partition, mode):
            lanes.add(lane)
            stopped.append(_park_sender(committer, found.partition, found.record.chain_id, mode))
    return tuple(stopped)


def _park_sender(committer: Committer, partition: str, chain_id: int, mode: str) -> ParkedJob:
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
        return Decision(ParkedJob(partition, job), inserts=(job,))

    return committer.commit(WorkerAuthority(partition, "upkeep"), decide)


def _park_job(committer: Committer, partition: str, job_id: str) -> bool:
    def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
        job = tx.get(Job, job_id, for_update=True)
        if job is None or is_parked(job):
            return Decision(job is not None)
        return Decision(True, replaces=(attrs.evolve(job, lease_until=NEVER),))

    return committer.commit(WorkerAuthority(partition, "upkeep"), decide)
