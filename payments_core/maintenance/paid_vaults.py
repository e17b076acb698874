"""Vaults that have paid but are stored as `counterfactual`: an earlier release did not record it.

A vault's first payment deploys its code. This release records that when the payment is
final; earlier payments are found here, in the records of vaults' payments.
"""

from __future__ import annotations

from collections.abc import Iterator

from payments_core.accounts.vaults.record import Vault
from payments_core.engine.audit import Trace
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.maintenance import Progress, scan_all
from payments_core.storage.port import Storage, Transaction


def mark_paid_vaults(ports: Ports, *, progress: Progress | None = None) -> int:
    """Mark every vault that has paid as `deployed`; return how many were not.

    It may be repeated, and run beside the service. Raises NoMaintenanceAccess, StorageUnavailable.
    """
    return sum(
        _mark(ports, partition, vault_id)
        for partition, vault_id in sorted(set(_find_paid(ports.storage, progress)))
    )


def _find_paid(storage: Storage, progress: Progress | None) -> Iterator[tuple[str, str]]:
    """The partition and id of each vault that has made a payment, a refund or a send."""
    for operation in scan_all(storage, FundingOperation, progress=progress):
        if operation.record.status == "confirmed":
            yield operation.partition, operation.record.vault_id
    for refund in scan_all(storage, Refund, progress=progress):
        if refund.record.status == "succeeded" and refund.record.vault_id is not None:
            yield refund.partition, refund.record.vault_id
    for payment in scan_all(storage, Payment, progress=progress):
        if payment.record.succeeded_at_ms is not None and payment.record.source is not None:
            yield payment.partition, payment.record.source.vault_id


def _mark(ports: Ports, partition: str, vault_id: str) -> bool:
    known = ports.storage.read(partition, lambda snapshot: snapshot.get(Vault, vault_id))
    if known is None or known.status == "deployed":
        return False

    def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
        vault = tx.get(Vault, vault_id, for_update=True)
        if vault is None or vault.status == "deployed":
            return Decision(False)
        paid = evolve(vault, status="deployed", updated_at_ms=ports.clock.now())
        return Decision(True, replaces=(paid,))

    trace = Trace(ports.host, "vaults.mark_deployed", (vault_id,))
    return ports.committer.commit(WorkerAuthority(partition, "upkeep", trace), decide)
