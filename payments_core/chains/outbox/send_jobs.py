"""A send job as it was read: its owner, its record, and what to send of that."""

from __future__ import annotations

from typing import Any

import attrs

from payments_core.chains.outbox.owners import TransferOwner, TransferToSend
from payments_core.engine.decision import WorkerAuthority
from payments_core.storage.port import ClaimedJob, Snapshot
from payments_core.storage.records import Record


@attrs.frozen
class SendJob:
    """A send job, its owner, the record that it names, and what to send of that."""

    owner: TransferOwner[Any]
    claimed: ClaimedJob
    record: Record
    transfer: TransferToSend | None

    @property
    def authority(self) -> WorkerAuthority:
        """Under which the job commits."""
        return WorkerAuthority.of(self.claimed)

    @property
    def is_ready(self) -> bool:
        """Whether there is a transfer to send, and no doubt about it."""
        return self.transfer is not None and not self.transfer.is_unknown


def read_send_job(snapshot: Snapshot, owner: TransferOwner[Any], claimed: ClaimedJob) -> SendJob:
    """The job with its record, as it is stored now."""
    record = snapshot.get(owner.record_type, claimed.job.subject)
    assert record is not None, f"no subject {claimed.job.subject}"
    return SendJob(owner, claimed, record, owner.find_to_send(record))
