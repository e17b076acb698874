"""The sources of an account's transactions, and their merge into one list.

Each source is an index of a collection, newest first. A list merges them lazily: it reads only as
many rows of each as necessary.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import ClassVar

import attrs

from payments_core.accounts.vaults.record import Vault
from payments_core.clock import Instant
from payments_core.deposits.record import Deposit
from payments_core.engine.identifiers import LENGTH
from payments_core.evolve import evolve
from payments_core.field_views import FieldView, instant_view
from payments_core.legacy.transactions.translation import (
    PREFIXES,
    STATUSES,
    TYPES,
    Origin,
    TransactionStatus,
    TransactionType,
)
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import Position, Snapshot, Where
from payments_core.storage.records import Value

CHUNK = 20
"""The number of rows of a source that are read at once."""

AUTHORIZED = Where("authorized_at", ">", 0)
"""An operation is a transaction once the payer has authorized it."""

_SETTLEMENT: Mapping[TransactionType | None, tuple[Where, ...]] = {
    "settlement": (Where("settlement", "=", 1),),
    "payment": (Where("settlement", "=", 0),),
}
"""Whether an operation settled a quote by its payer's signature, if that is requested."""

_PREFIX_OF = {kind: prefix for prefix, kind in PREFIXES.items()}


@attrs.frozen(kw_only=True)
class Filters:
    """The filters on an account's transactions; None means all."""

    type: TransactionType | None = None
    status: TransactionStatus | None = None
    chain_id: int | None = None


@attrs.frozen
class Place:
    """A place in the list: when a transaction was created, and the letters of its id."""

    created_at_ms: Instant
    letters: str

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")


@attrs.frozen
class Source:
    """Rows of one index that satisfy `where`."""

    kind: type[Origin]
    index: str
    key: tuple[Value, ...]
    where: tuple[Where, ...] = ()

    def position(self, before: Place | None) -> Position | None:
        """The position in the index after a place in the list."""
        if before is None:
            return None
        return before.created_at_ms, f"{_PREFIX_OF[self.kind]}_{before.letters}"


def find_sources(account_id: str, vaults: Sequence[Vault], filters: Filters) -> tuple[Source, ...]:
    """Every index that has transactions of the account, under the filters.

    An account receives Payments, and sends and collects have it as a side; its vaults fund the
    Payments of others, and are paid back.
    """
    on_chain = [vault for vault in vaults if filters.chain_id in (None, vault.chain_id)]
    chain = () if filters.chain_id is None else (Where("chain_id", "=", filters.chain_id),)
    funded = (AUTHORIZED, *_SETTLEMENT.get(filters.type, ()))
    sources = [
        Source(Deposit, "by_account", (account_id,), chain),
        Source(Payment, "by_account", (account_id,), chain),
        Source(Payment, "by_sent_to", (account_id,), chain),
        *(Source(FundingOperation, "by_vault", (vault.id,), funded) for vault in on_chain),
        *(
            Source(Refund, "by_destination", (address,), chain)
            for address in sorted({vault.address for vault in on_chain})
        ),
    ]
    return tuple(
        narrowed
        for source in sources
        if filters.type is None or filters.type in TYPES[source.kind]
        for narrowed in _narrow(source, filters.status)
    )


def merge(snapshot: Snapshot, sources: Sequence[Source], before: Place | None) -> Iterator[Origin]:
    """The rows of all sources, newest first, after a place."""
    walks = [_walk(snapshot, source, before) for source in sources]
    return heapq.merge(*walks, key=_order, reverse=True)


def count_rows(
    snapshot: Snapshot, sources: Sequence[Source], before: Place | None, *, limit: int
) -> int:
    """How many rows all sources have after a place, at most `limit`."""
    total = 0
    for source in sources:
        if total >= limit:
            break
        total += snapshot.count(
            source.kind,
            source.index,
            source.key,
            where=source.where,
            after=source.position(before),
            limit=limit - total,
        )
    return total


def place_of(record: Origin) -> Place:
    """The place of a record in the list."""
    return Place(record.created_at_ms, record.id[-LENGTH:])


def _narrow(source: Source, status: TransactionStatus | None) -> tuple[Source, ...]:
    """A source for each status of the record that matches the transaction's status."""
    if status is None:
        return (source,)
    return tuple(
        evolve(source, where=(*source.where, Where("status", "=", stored)))
        for stored, shown in STATUSES[source.kind].items()
        if shown == status
    )


def _walk(snapshot: Snapshot, source: Source, before: Place | None) -> Iterator[Origin]:
    after = source.position(before)
    while True:
        page = snapshot.find(
            source.kind,
            source.index,
            source.key,
            where=source.where,
            after=after,
            limit=CHUNK,
            skip_damaged=True,
        )
        yield from page.records
        # A page without a row has scanned the maximum: the search ends.
        if page.next is None or not page.records:
            return
        after = page.next


def _order(record: Origin) -> tuple[Instant, str]:
    return record.created_at_ms, record.id[-LENGTH:]
