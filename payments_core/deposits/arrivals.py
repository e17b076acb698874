"""Deposits found: what a scan of a chain means for deposit addresses.

Finding settles nothing. It writes the deposit, and has it looked at; the same transfer may be
found any number of times, and a block may be undone that was never found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import attrs

from payments_core.accounts.record import Account
from payments_core.chains.outgoing import our_own
from payments_core.chains.port import Chain, ChainUnavailable, ScannedTransfer
from payments_core.clock import Clock, Instant
from payments_core.decision import Decision, Follow, Scope
from payments_core.deposits import lifecycle
from payments_core.deposits.lifecycle import Arrival
from payments_core.deposits.looking import arrival_of
from payments_core.deposits.record import REORGED, Deposit, DepositAddress
from payments_core.identifiers import Draw
from payments_core.ledger import Ledger
from payments_core.storage.port import LOCATE_KEYS, Located, Snapshot, Storage, Transaction
from payments_core.tenants.modes import is_of_mode
from payments_core.tenants.record import Environment

WATCH_DEPOSIT = "deposits.watch"


class Arrivals:
    """Listens to the scanner of one mode."""

    def __init__(
        self,
        storage: Storage,
        ledger: Ledger,
        clock: Clock,
        chains: Mapping[int, Chain],
        mode: str,
    ) -> None:
        self._storage = storage
        self._ledger = ledger
        self._clock = clock
        self._chains = chains
        self._mode = mode

    def found(self, chain_id: int, transfers: Sequence[ScannedTransfer]) -> None:
        """Write every transfer to a deposit address, whatever chain the address was issued for.

        Our own transfers make no deposit, nor do those of nothing or of an unknown token. Raises
        ChainUnavailable.
        """
        addresses = self._addresses({transfer.recipient for transfer in transfers})
        hashes = {item.transaction_hash for item in transfers if item.recipient in addresses}
        hashes -= our_own(self._storage, hashes)
        for arrival in self._arrivals(chain_id, sorted(hashes)):
            for partition, issued in addresses.get(arrival.address, {}).items():
                self._arrived(partition, _address_on(chain_id, issued), arrival)

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

    def _arrivals(self, chain_id: int, hashes: Sequence[str]) -> list[Arrival]:
        """The transfers of these transactions that count, with their places."""
        views = self._chains[chain_id].transactions(hashes) if hashes else {}
        if views.keys() != set(hashes):
            raise ChainUnavailable("a transaction that a scan found cannot be told")
        seen = [view for hash in hashes if (view := views[hash]) is not None]
        found = [
            arrival_of(chain_id, view.hash, view.block, log)
            for view in seen
            if view.block is not None and view.succeeded
            for log in view.logs
        ]
        return [arrival for arrival in found if arrival is not None]

    def _addresses(
        self, recipients: set[str]
    ) -> Mapping[str, Mapping[str, Sequence[DepositAddress]]]:
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
            return Decision(
                None,
                inserts=(new.deposit,),
                events=new.events,
                jobs=(_watch(new.deposit.id, now),),
            )

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
