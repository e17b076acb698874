"""Discovery of deposits: the results of a chain scan for deposit addresses.

Discovery settles nothing. It writes the deposit, and has it checked; the same transfer may be
found any number of times, and a block that was never found may be undone.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from payments_core.accounts.record import Account
from payments_core.chains.backoff import back_off
from payments_core.chains.judge import lacks_transfer
from payments_core.chains.outbox.record import ReturnAddress, find_own_hashes
from payments_core.chains.port import (
    Block,
    Chain,
    ChainUnavailable,
    ScannedTransfer,
    TransactionView,
    is_coin_log,
)
from payments_core.chains.replaced_blocks import is_replaced
from payments_core.clock import Instant
from payments_core.deposits import lifecycle
from payments_core.deposits.chain_view import incoming_transfer_of
from payments_core.deposits.lifecycle import IncomingTransfer
from payments_core.deposits.record import REORGED, AnyDepositAddress, Deposit, DepositAddress
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.storage.damaged_records import leave_out_damaged
from payments_core.storage.lookups import locate_all
from payments_core.storage.port import ClaimedJob, Snapshot, Transaction
from payments_core.tenants.modes import is_of_mode
from payments_core.tenants.record import Environment

WATCH_DEPOSIT = "deposits.watch"
ARRIVE = "deposits.arrive"

LOOKUP_BATCH = 50
"""The number of transactions in one query."""

AddressRows = Mapping[str, Mapping[str, Sequence[AnyDepositAddress]]]
"""The rows of deposit addresses: by address, then by partition."""


_log = logging.getLogger(__name__)


class DepositDiscovery:
    """Listens to the scanner of one mode."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain], mode: str) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._mode = mode

    def filter_known(self, recipients: set[str]) -> set[str]:
        """The recipients that are deposit addresses, or addresses that have paid."""
        return set(self._find_addresses(recipients))

    def on_transfers(self, chain_id: int, transfers: Sequence[ScannedTransfer]) -> None:
        """Write every transfer to a deposit address, on any served chain.

        Our own transfers make no deposit, except for a log of native coin that was there before,
        nor do those of zero or of an unknown token. If
        a transaction cannot be verified now, a job asks until it can: a stranger may make one that
        no node shows, and the scan must continue.
        """
        addresses = self._find_addresses({transfer.recipient for transfer in transfers})
        to_us: dict[str, list[ScannedTransfer]] = defaultdict(list)
        for item in transfers:
            if item.recipient in addresses:
                to_us[item.transaction_hash].append(item)
        coin_logs = {hash for hash, found in to_us.items() if any(map(is_coin_log, found))}
        hashes = sorted(to_us.keys() - (find_own_hashes(self._storage, to_us) - coin_logs))
        for start in range(0, len(hashes), LOOKUP_BATCH):
            batch = hashes[start : start + LOOKUP_BATCH]
            views = self._read_transactions(chain_id, batch)
            for hash in batch:
                if hash in views and _is_shown(views[hash], to_us[hash]):
                    self._record_transfers(chain_id, views[hash], addresses)
                else:
                    partitions = {it for one in to_us[hash] for it in addresses[one.recipient]}
                    self._schedule_lookup(chain_id, to_us[hash][0], partitions)

    def retry_lookup(self, claimed: ClaimedJob) -> None:
        """The job: ask again for a transaction that could not be verified when it was found."""
        chain_id, hash = int(claimed.job.arguments["chainId"]), claimed.job.subject
        found = Block(int(claimed.job.arguments["height"]), claimed.job.arguments["block"])
        view = self._read_transactions(chain_id, [hash]).get(hash)
        addresses = self._find_addresses({log.recipient for log in view.logs} if view else set())
        if view is not None and (addresses or not found.is_same(view.block)):
            self._record_transfers(chain_id, view, addresses)
        elif not self._is_reorged(chain_id, found):  # else it is scanned again where it is now
            self._committer.finish(claimed, back_off(claimed.job, self._clock.now()))
            return
        self._committer.finish(claimed)

    def on_reorg(self, chain_id: int, first: int, last: int) -> None:
        """Have every deposit checked again that was seen in these blocks."""
        keys = ((chain_id, height) for height in range(first, last + 1))
        for located in locate_all(self._storage, Deposit, "by_block", keys):
            with leave_out_damaged(f"deposit {located.record.id}", located.partition):
                self._recheck_deposit(located.partition, located.record.id)

    def _read_transactions(
        self, chain_id: int, hashes: Sequence[str]
    ) -> Mapping[str, TransactionView]:
        """The transactions that can be verified, and are in a block."""
        try:
            views = self._chains[chain_id].transactions(hashes)
        except ChainUnavailable:
            return {}
        return {hash: view for hash, view in views.items() if view is not None and view.block}

    def _record_transfers(
        self, chain_id: int, view: TransactionView, addresses: AddressRows
    ) -> None:
        """Write the transfers of a transaction that are of worth, with their places in it."""
        assert view.block is not None
        for log in view.logs if view.succeeded else ():
            incoming = incoming_transfer_of(self._networks, chain_id, view.hash, view.block, log)
            if incoming is None:
                continue
            for partition, issued in addresses.get(incoming.address, {}).items():
                address = _choose_address(chain_id, issued)
                if not _is_paid_on(address, view):
                    with leave_out_damaged(f"a deposit by {view.hash}", partition):
                        self._record_deposit(partition, address, incoming)

    def _schedule_lookup(
        self, chain_id: int, transfer: ScannedTransfer, partitions: Iterable[str]
    ) -> None:
        hash, block = transfer.transaction_hash, transfer.block
        arguments = {"chainId": str(chain_id), "height": str(block.number), "block": block.hash}
        _log.info("chain %d: %s was found but cannot be verified yet", chain_id, hash)
        for partition in partitions:
            if not is_of_mode(self._storage, partition, self._mode):
                continue
            now = self._clock.now()
            ask = NewJob("chain", ARRIVE, f"arrival:{chain_id}:{hash}", now, hash, arguments)
            outcome: Decision[None] = Decision(None, jobs=(ask,))
            self._committer.commit(
                WorkerAuthority(partition, self._mode),
                lambda tx, id_sequence, it=outcome: it,  # type: ignore[misc]
            )

    def _is_reorged(self, chain_id: int, found: Block) -> bool:
        """Whether another block has taken the place of the one in which it was found."""
        try:
            return is_replaced(self._chains[chain_id], found.number, found.hash)
        except ChainUnavailable:
            return False

    def _find_addresses(self, recipients: set[str]) -> AddressRows:
        """The rows of the recipients that are deposit addresses, by partition."""
        rows: dict[str, dict[str, list[AnyDepositAddress]]] = defaultdict(lambda: defaultdict(list))
        keys = [(address,) for address in sorted(recipients)]  # one row for each chain
        for own in locate_all(self._storage, DepositAddress, "by_address", keys):
            rows[own.record.address][own.partition].append(own.record)
        for paying in locate_all(self._storage, ReturnAddress, "by_address", keys):
            rows[paying.record.address][paying.partition].append(paying.record)
        return rows

    def _record_deposit(
        self, partition: str, address: AnyDepositAddress, incoming: IncomingTransfer
    ) -> None:
        def load(snapshot: Snapshot) -> tuple[Environment, Account, Deposit | None]:
            environment = snapshot.get(Environment, partition)
            account = snapshot.get(Account, address.account_id)
            assert environment is not None
            assert account is not None
            return environment, account, _find_deposit(snapshot, incoming)

        environment, account, known = self._storage.read(partition, load)
        if environment.mode != self._mode or (
            known is not None and not _has_moved(known, incoming)
        ):
            return
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            # A row that is not found may still exist: its unique key then restarts this.
            found = _find_deposit(tx, incoming)
            if found is not None:
                known = _lock_deposit(tx, found.id)
                return (
                    _schedule_watch(known, now) if _has_moved(known, incoming) else Decision(None)
                )
            new = lifecycle.detect(
                id_sequence.issue("deposit"),
                address,
                incoming,
                external_user_id=account.external_user_id,
                api_version=environment.api_version,
                now=now,
            )
            return new.as_decision().merge(Decision(None, jobs=(_watch_job(new.record.id, now),)))

        self._committer.commit(WorkerAuthority(partition, self._mode), decide)

    def _recheck_deposit(self, partition: str, deposit_id: str) -> None:
        if not is_of_mode(self._storage, partition, self._mode):
            return
        now = self._clock.now()
        self._committer.commit(
            WorkerAuthority(partition, self._mode),
            lambda tx, id_sequence: _schedule_watch(_lock_deposit(tx, deposit_id), now),
        )


def _is_shown(view: TransactionView, found: Sequence[ScannedTransfer]) -> bool:
    """Whether a node shows the transfers of a transaction that a scan has found in its block."""
    return all(
        view.succeeded
        and not lacks_transfer(
            view,
            one.recipient,
            token_address=one.token_address,
            amount_atomic=one.amount_atomic,
        )
        for one in found
        if one.block.is_same(view.block)
    )


def _is_paid_on(address: AnyDepositAddress, view: TransactionView) -> bool:
    """Whether a transaction is our own, known here or lost, which pays from a vault.

    Anybody can have a token log a transfer of nothing from any address.
    """
    if isinstance(address, DepositAddress):
        return False
    return any(log.sender == address.address and log.amount_atomic for log in view.logs)


def _has_moved(known: Deposit, incoming: IncomingTransfer) -> bool:
    """Whether the chain shows a deposit elsewhere than it was last seen.

    A deposit that failed for another reason than a reorg waits for a check.
    """
    if known.status == "failed" and known.failure != REORGED:
        return False
    return known.block_hash != incoming.block_hash


def _schedule_watch(deposit: Deposit, now: Instant) -> Decision[None]:
    """Have it checked by its job, inserted unless there is one.

    The record is replaced in any case: a look in progress may have been too early, and
    finds the version changed.
    """
    jobs = () if deposit.watched else (_watch_job(deposit.id, now),)
    return Decision(None, replaces=(evolve(deposit, watched=True),), jobs=jobs)


def _watch_job(deposit_id: str, now: Instant) -> NewJob:
    return NewJob("chain", WATCH_DEPOSIT, f"deposit:{deposit_id}", now, deposit_id)


def _choose_address(chain_id: int, issued: Sequence[AnyDepositAddress]) -> AnyDepositAddress:
    """The row of that chain, or else the row that was issued first."""
    return min(issued, key=lambda row: (row.chain_id != chain_id, row.created_at_ms, row.id))


def _find_deposit(snapshot: Snapshot, incoming: IncomingTransfer) -> Deposit | None:
    key = (
        incoming.asset.chain_id,
        incoming.transaction_hash,
        incoming.position,
        incoming.address,
    )
    records = snapshot.find(Deposit, "by_log", key, limit=1).records
    return records[0] if records else None


def _lock_deposit(tx: Transaction, deposit_id: str) -> Deposit:
    deposit = tx.get(Deposit, deposit_id, for_update=True)
    assert deposit is not None
    return deposit
