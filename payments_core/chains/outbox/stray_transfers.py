"""Tokens sent to an address of ours that accepts none: each raises an alarm.

A recipient's explorer shows our operator as the sender of a transaction, and our factory as what
was called. Tokens sent there belong to no account, and nothing here moves them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

from payments_core.chains.outbox.record import Sender
from payments_core.chains.port import Chain, HasContracts, ScannedTransfer
from payments_core.engine.ports import Ports
from payments_core.storage.lookups import locate_all
from payments_core.storage.port import LocatedRecord, Storage
from payments_core.tenants.modes import is_of_mode

MAX_ALARMS = 5
"""The maximum number of transactions named for one scan; anybody can send many."""

_log = logging.getLogger(__name__)


class StrayTransfers:
    """Listens to the scanner of one mode."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain], mode: str) -> None:
        self._storage = ports.storage
        self._chains = chains
        self._mode = mode

    def filter_known(self, recipients: set[str]) -> set[str]:
        """The recipients that send for an environment, or are contracts of ours."""
        operators = {found.record.address for found in find_operators(self._storage, recipients)}
        return operators | (recipients & find_contracts(self._chains).keys())

    def on_transfers(self, chain_id: int, transfers: Sequence[ScannedTransfer]) -> None:
        """Raise an alarm for each transaction that sent a token there, the largest first. Transfers
        of zero, which anybody can make in any name, are ignored.
        """
        paid = [transfer for transfer in transfers if transfer.amount_atomic > 0]
        owners = self._find_owners({transfer.recipient for transfer in paid})
        strays = [transfer for transfer in paid if transfer.recipient in owners]
        strays.sort(key=lambda transfer: transfer.amount_atomic, reverse=True)
        for transfer in strays[:MAX_ALARMS]:
            _log.critical(
                "ALARM: transaction %s on chain %s sent %s of token %s from %s to %s %s, "
                "where nothing moves it",
                transfer.transaction_hash, chain_id, transfer.amount_atomic,
                transfer.token_address, transfer.sender, owners[transfer.recipient],
                transfer.recipient,
            )  # fmt: skip
        if len(strays) > MAX_ALARMS:
            _log.critical(
                "ALARM: %d more transfers on chain %s went to addresses of ours that accept none",
                len(strays) - MAX_ALARMS, chain_id,
            )  # fmt: skip

    def _find_owners(self, recipients: set[str]) -> Mapping[str, str]:
        """The description of each recipient that is one of them."""
        contracts = find_contracts(self._chains)
        words = {one: f"our {contracts[one]}" for one in recipients & contracts.keys()}
        for found in find_operators(self._storage, recipients):
            if is_of_mode(self._storage, found.partition, self._mode):
                words[found.record.address] = f"the operator of {found.partition}"
        return words


def find_operators(storage: Storage, addresses: Iterable[str]) -> Iterator[LocatedRecord[Sender]]:
    """The senders, on any chain, that have or had one of these addresses."""
    return locate_all(storage, Sender, "by_address", ((one,) for one in sorted(addresses)))


def find_contracts(chains: Mapping[int, Chain]) -> Mapping[str, str]:
    """Our contracts that hold nothing, by their addresses, with a description."""
    return {
        address: name
        for chain in chains.values()
        if isinstance(chain, HasContracts)
        for name, address in chain.contracts().items()
    }
