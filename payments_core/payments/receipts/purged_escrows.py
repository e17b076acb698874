"""Transfers to the escrows of purged Payments: each raises an alarm."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from payments_core.chains.port import ScannedTransfer
from payments_core.engine.ports import Ports
from payments_core.payments.purged import PurgedPayment
from payments_core.storage.lookups import locate_all
from payments_core.storage.port import LocatedRecord, Storage
from payments_core.tenants.modes import is_of_mode

_log = logging.getLogger(__name__)


class PurgedEscrows:
    """Listens to the scanner of one mode."""

    def __init__(self, ports: Ports, mode: str) -> None:
        self._storage = ports.storage
        self._mode = mode

    def filter_known(self, recipients: set[str]) -> set[str]:
        """The recipients that were the escrow of a purged Payment."""
        found = find_purged_escrows(self._storage, recipients)
        return {located.record.escrow_address for located in found}

    def on_transfers(self, chain_id: int, transfers: Sequence[ScannedTransfer]) -> None:
        """Raise an alarm for each transfer. Nothing moves that money: an operator decides."""
        recipients = {transfer.recipient for transfer in transfers}
        for located in find_purged_escrows(self._storage, recipients):
            if not is_of_mode(self._storage, located.partition, self._mode):
                continue
            purged = located.record
            for hash in sorted({t.transaction_hash for t in transfers if _pays(t, purged)}):
                _log.critical(
                    "ALARM: transaction %s on chain %s paid to the escrow %s of %s in %s,"
                    " which expired with nothing received and was purged",
                    hash,
                    chain_id,
                    purged.escrow_address,
                    purged.id,
                    located.partition,
                )


def find_purged_escrows(
    storage: Storage, addresses: Iterable[str]
) -> Iterator[LocatedRecord[PurgedPayment]]:
    """The purged Payments whose escrows these are."""
    keys = ((address,) for address in sorted(addresses))
    return locate_all(storage, PurgedPayment, "by_escrow", keys)


def _pays(transfer: ScannedTransfer, purged: PurgedPayment) -> bool:
    return transfer.recipient == purged.escrow_address
