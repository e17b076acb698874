"""The rows of an account that the operations on its deposits read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from payments_core.accounts.record import Account
from payments_core.deposits.record import REORGED, Deposit, DepositAddress
from payments_core.errors import NotFound
from payments_core.storage.port import Page, Position, Snapshot, Where

MAX_SHOWN_DEPOSITS = 50
"""A check returns this many of the newest deposits."""

MAX_RETRIED_SWEEPS = 20
"""A check sends this many failed sweeps again; each of them asks the chain."""

MAX_ADDRESSES = 1_000
MAX_FAILED_SWEEPS = 200

T = TypeVar("T")


def require_addresses(snapshot: Snapshot, account_id: str) -> tuple[DepositAddress, ...]:
    """The deposit addresses of an account, oldest first. Raises NotFound without the account."""
    if snapshot.get(Account, account_id) is None:
        raise NotFound("account")
    return load_addresses(snapshot, account_id)


def load_addresses(snapshot: Snapshot, account_id: str) -> tuple[DepositAddress, ...]:
    """The deposit addresses, oldest first."""
    return _collect_pages(
        lambda after: snapshot.find(DepositAddress, "by_account", (account_id,), after=after),
        MAX_ADDRESSES,
    )


def load_newest_deposits(snapshot: Snapshot, account_id: str) -> tuple[Deposit, ...]:
    """The deposits that a check returns, newest first."""
    return _collect_pages(
        lambda after: snapshot.find(Deposit, "by_account", (account_id,), after=after),
        MAX_SHOWN_DEPOSITS,
    )


def load_failed_sweeps(
    snapshot: Snapshot, account_id: str, chain_ids: Sequence[int]
) -> tuple[Deposit, ...]:
    """The deposits on these chains whose sweep a check sends again, newest first."""
    where = (Where("failure", "!=", REORGED),)
    key = (account_id, "failed")
    found = _collect_pages(
        lambda after: snapshot.find(Deposit, "by_status", key, where=where, after=after),
        MAX_FAILED_SWEEPS,
    )
    return tuple(deposit for deposit in found if deposit.chain_id in chain_ids)[:MAX_RETRIED_SWEEPS]


def _collect_pages(find: Callable[[Position | None], Page[T]], limit: int) -> tuple[T, ...]:
    """The records of as many pages as needed, since a page may be short."""
    found: list[T] = []
    after: Position | None = None
    while len(found) < limit:
        page = find(after)
        found += page.records
        after = page.next
        if after is None:
            break
    return tuple(found[:limit])
