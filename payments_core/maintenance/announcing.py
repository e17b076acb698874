"""The entry of a command that changes many records in many transactions, or a chain."""

from __future__ import annotations

from payments_core.engine.audit import Trace
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.ports import Ports
from payments_core.storage.port import DIRECTORY


def announce(
    ports: Ports, operation: str, *, partition: str = DIRECTORY, own_id: str | None = None
) -> None:
    """Leave the entry in the audit trail, before the command changes anything. Raises Unavailable.

    It is in an environment's partition, or in the directory if it is about the whole deployment.
    """
    trace = Trace(ports.host, operation, own_id=own_id, is_announced=True)
    ports.committer.commit(
        WorkerAuthority(partition, "upkeep", trace), lambda tx, id_sequence: Decision(None)
    )
