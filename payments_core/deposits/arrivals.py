"""Deposits found: what a scan of a chain means for deposit addresses.

Finding settles nothing. It writes the deposit, and has it looked at; the same transfer may be
found any number of times, and a block may be undone that was never found.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import attrs

from payments_core.accounts.record import Account
from payments_core.chains.backoff import wait_for_chain
from payments_core.chains.outbox.record import our_own
from payments_core.chains.port import (
    Block,
    Chain,
    ChainUnavailable,
    ScannedTransfer,
    TransactionView,
)
from payments_core.clock import Instant
from payments_core.deposits import lifecycle
from payments_core.deposits.lifecycle import Arrival
from payments_core.deposits.looking import arrival_of
from payments_core.deposits.record import REORGED, Deposit, DepositAddress
from payments_core.engine.decision import Decision, Follow, Scope
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.storage.port import LOCATE_KEYS, Claimed, Located, Snapshot, Transaction
from payments_core.tenants.modes import is_of_mode
from payments_core.tenants.record import Environment

WATCH_DEPOSIT = "deposits.watch"
ARRIVE = "deposits.arrive"

TOLD_AT_ONCE = 50
"""So many transactions are asked for in one question."""

Addresses = Mapping[str, Mapping[str, Sequence[DepositAddress]]]
"""The rows of deposit addresses: by address, then by partition."""

_log = logging.getLogger(__name__)


class Arrivals:
    """Listens to the scanner of one mode."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain], mode: str) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._mode = mode

    def wanted(self, recipients: set[str]) -> set[str]:
        """Those of the recipients that are deposit addresses."""
        return set(self._addresses(recipients))

    def found(self, chain_id: int, transfers: Sequence[ScannedTransfer]) -> None:
        """Write every transfer to a deposit address, whatever chain the address was issued for.

        Our own transfers make no deposit, nor do those of nothing or of an unknown token. What
        cannot be told of a transaction now, a job asks until it can: a stranger may make one that
        no node tells, and the scan must go on.
        """
        addresses = self._addresses({transfer.recipient for transfer in transfers})
        to_us = {item.transaction_hash: item for item in transfers if item.recipient in addresses}
        hashes = sorted(to_us.keys() - our_own(self._storage, to_us))
        for start in range(0, len(hashes), TOLD_AT_ONCE):
            batch = hashes[start : start + TOLD_AT_ONCE]
            views = self._told(chain_id, batch)
            for hash in batch:
                if hash in views:
                    self._note(chain_id, views[hash], addresses)
                else:
                    self._later(chain_id, to_us[hash], addresses[to_us[hash].recipient])

    def arrive(self, claimed: Claimed) -> None:
        """The job: ask once more for a transaction that could not be told when it was found."""
        chain_id, hash = int(claimed.job.arguments["chainId"]), claimed.job.subject
        found = Block(int(claimed.job.arguments["height"]), claimed.job.arguments["block"])
        view = self._told(chain_id, [hash]).get(hash)
        if view is not None:
            self._note(chain_id, view, self._addresses({log.recipient for log in view.logs}))
        elif not self._is_undone(chain_id, found):  # else it is scanned again where it is now
            self._ledger.finish(claimed, wait_for_chain(claimed.job, self._clock.now()))
            return
        self._ledger.finish(claimed)

    def undone(self, chain_id: int, first: int, last: int) -> None:
        """Have every deposit looked at again that was seen in these blocks."""
        for start in range(first, last + 1, LOCATE_KEYS):
            heights = range(start, min(start + LOCATE_KEYS, last + 1))
            after: tuple[str, str] | None = None
            while page := self._storage.locate(
                Deposit, "by_block", [(chain_id, height) for height in heights], after=after
            ):
                for located in page:
                    self._undone(located.partition, located.record.id)
                after = (page[-1].partition, page[-1].record.id)

    def _told(self, chain_id: int, hashes: Sequence[str]) -> Mapping[str, TransactionView]:
        """Those of the transactions that can be told, and are in a block."""
        try:
            views = self._chains[chain_id].transactions(hashes)
        except ChainUnavailable:
            return {}
        return {hash: view for hash, view in views.items() if view is not None and view.block}

    def _note(self, chain_id: int, view: TransactionView, addresses: Addresses) -> None:
        """Write the transfers of a transaction that count, with their places in it."""
        assert view.block is not None
        for log in view.logs if view.succeeded else ():
            arrival = arrival_of(chain_id, view.hash, view.block, log)
            if arrival is None:
                continue
            for partition, issued in addresses.get(arrival.address, {}).items():
                self._arrived(partition, _address_on(chain_id, issued), arrival)

    def _later(self, chain_id: int, transfer: ScannedTransfer, partitions: Iterable[str]) -> None:
        hash, block = transfer.transaction_hash, transfer.block
        arguments = {"chainId": str(chain_id), "height": str(block.number), "block": block.hash}
        _log.info("chain %d: %s was found, and cannot be told yet", chain_id, hash)
        for partition in partitions:
            if not is_of_mode(self._storage, partition, self._mode):
                continue
            now = self._clock.now()
            ask = Follow("chain", ARRIVE, f"arrival:{chain_id}:{hash}", now, hash, arguments)
            outcome: Decision[None] = Decision(None, jobs=(ask,))
            self._ledger.commit(
                Scope(partition, self._mode),
                lambda tx, draw, it=outcome: it,  # type: ignore[misc]
            )

    def _is_undone(self, chain_id: int, found: Block) -> bool:
        """Whether another block has taken the place of the one in which it was found."""
        try:
            block = self._chains[chain_id].block(found.number)
        except ChainUnavailable:
            return False
        return block is not None and block.hash != found.hash

    def _addresses(self, recipients: set[str]) -> Addresses:
        """Those of the recipients that are deposit addresses: their rows, by partition."""
        rows: dict[str, dict[str, list[DepositAddress]]] = defaultdict(lambda: defaultdict(list))
        keys = [(address,) for address in sorted(recipients)]
        for start in range(0, len(keys), LOCATE_KEYS):
            for located in self._located(keys[start : start + LOCATE_KEYS]):
                rows[located.record.address][located.partition].append(located.record)
        return rows

    def _located(self, keys: Sequence[tuple[str]]) -> list[Located[DepositAddress]]:
        """All rows of these addresses: an address has one for each chain it was issued for."""
        found: list[Located[DepositAddress]] = []
        after: tuple[str, str] | None = None
        while page := self._storage.locate(DepositAddress, "by_address", keys, after=after):
            found += page
            after = (page[-1].partition, page[-1].record.id)
        return found

    def _arrived(self, partition: str, address: DepositAddress, arrival: Arrival) -> None:
        def look(snapshot: Snapshot) -> tuple[Environment, Account, Deposit | None]:
            environment = snapshot.get(Environment, partition)
            account = snapshot.get(Account, address.account_id)
            assert environment is not None
            assert account is not None
            return environment, account, _found(snapshot, arrival)

        environment, account, known = self._storage.read(partition, look)
        if environment.mode != self._mode or (known is not None and not _is_news(known, arrival)):
            return
        now = self._clock.now()

        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            # One that is not found may be there all the same: its unique key then begins this anew.
            found = _found(tx, arrival)
            if found is not None:
                known = _locked(tx, found.id)
                return _again(known, now) if _is_news(known, arrival) else Decision(None)
            new = lifecycle.detect(
                draw.id("deposit"),
                address,
                arrival,
                external_user_id=account.external_user_id,
                api_version=environment.api_version,
                now=now,
            )
            return new.as_decision().joined(Decision(None, jobs=(_watch(new.record.id, now),)))

        self._ledger.commit(Scope(partition, self._mode), decide)

    def _undone(self, partition: str, deposit_id: str) -> None:
        if not is_of_mode(self._storage, partition, self._mode):
            return
        now = self._clock.now()
        self._ledger.commit(
            Scope(partition, self._mode), lambda tx, draw: _again(_locked(tx, deposit_id), now)
        )


def _is_news(known: Deposit, arrival: Arrival) -> bool:
    """Whether the chain shows a deposit elsewhere than it was last seen.

    One that failed for another reason than a reorg waits for a check.
    """
    if known.status == "failed" and known.failure != REORGED:
        return False
    return known.block_hash != arrival.block_hash


def _again(deposit: Deposit, now: Instant) -> Decision[None]:
    """Have it looked at, by a job of its own unless it has one.

    The record is replaced in any case: a look that is under way may have been too early, and
    finds the version changed.
    """
    jobs = () if deposit.watched else (_watch(deposit.id, now),)
    return Decision(None, replaces=(attrs.evolve(deposit, watched=True),), jobs=jobs)


def _watch(deposit_id: str, now: Instant) -> Follow:
    return Follow("chain", WATCH_DEPOSIT, f"deposit:{deposit_id}", now, deposit_id)


def _address_on(chain_id: int, issued: Sequence[DepositAddress]) -> DepositAddress:
    """The row of that chain, or else the one that was issued first."""
    return min(issued, key=lambda row: (row.chain_id != chain_id, row.created_at, row.id))


def _found(snapshot: Snapshot, arrival: Arrival) -> Deposit | None:
    key = (
        arrival.chain_id,
        arrival.transaction_hash,
        arrival.position,
        arrival.address,
    )
    records = snapshot.find(Deposit, "by_log", key, limit=1).records
    return records[0] if records else None


def _locked(tx: Transaction, deposit_id: str) -> Deposit:
    deposit = tx.get(Deposit, deposit_id, for_update=True)
    assert deposit is not None
    return deposit
