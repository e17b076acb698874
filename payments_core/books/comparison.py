"""Journal, chains and bank compared for a period, in constant memory, beside the running service.

Every Payment and bank transfer is compared that began in the period or has an entry in it, whole,
as it is now. What differs is read once more before it is named: the service goes on meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from payments_core.banks.incoming import FundingBank
from payments_core.banks.port import Bank
from payments_core.books.compared_kinds import Comparison, PaymentComparison, TransactionComparison
from payments_core.books.day_check import DayTotals
from payments_core.books.differences import Difference, differ_without_owner
from payments_core.books.pages import iter_forward, iter_newest
from payments_core.books.period import Period
from payments_core.books.tally import Tally
from payments_core.chains.port import Chain
from payments_core.clock import Clock
from payments_core.storage.maintenance import Progress
from payments_core.storage.port import Storage

PAGE = 100
"""How many resources are compared at a time: one snapshot, and few requests to each chain."""

ENTRIES_PAGE = 500


class BookComparison:
    """Compares one environment's books with the world. It writes nothing."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        chains: Mapping[int, Chain],
        bank: Bank | None,
        funding_bank: FundingBank | None,
    ) -> None:
        """The banks are those of the environment's mode."""
        self._storage = storage
        self._comparisons: tuple[Comparison[Any], ...] = (
            PaymentComparison(clock, chains, bank),
            TransactionComparison(clock, chains, funding_bank),
        )

    def compare(
        self, partition: str, period: Period, tally: Tally, progress: Progress | None = None
    ) -> Iterator[Difference]:
        """Each difference, as it is found; `tally` counts what was compared.

        Raises ChainUnavailable, BankUnavailable, StorageUnavailable, UnreadableDocument.
        """
        report = progress or (lambda what, count: None)
        for found in self._compare_all(partition, period, tally, report):
            tally.differences[found.kind] += 1
            yield found

    def _compare_all(
        self, partition: str, period: Period, tally: Tally, report: Progress
    ) -> Iterator[Difference]:
        totals = DayTotals()
        for comparison in self._comparisons:
            yield from self._compare_kind(comparison, partition, period, tally, totals, report)
        if any(kind.startswith("journal") for kind in tally.differences):
            return  # an entry that differs, differs from its closed day too: it is named once
        yield from self._storage.read(
            partition, lambda snapshot: tuple(totals.check(snapshot, period))
        )

    def _compare_kind(
        self,
        comparison: Comparison[Any],
        partition: str,
        period: Period,
        tally: Tally,
        totals: DayTotals,
        report: Progress,
    ) -> Iterator[Difference]:
        name = comparison.counted_as
        for begun in iter_newest(self._storage, partition, comparison.record, period, PAGE):
            yield from self._check(comparison, partition, [one.id for one in begun], tally)
            report(name.replace("_", " "), getattr(tally, name))
        of_entries = tally.entries
        for entries in iter_forward(
            self._storage, partition, comparison.entry, period, ENTRIES_PAGE
        ):
            older, lost = self._find_older(comparison, partition, period, entries, totals)
            for entry in lost:
                yield differ_without_owner(comparison.owner_of(entry), entry.id, entry.postings)
            for first in range(0, len(older), PAGE):
                yield from self._check(comparison, partition, older[first : first + PAGE], tally)
            tally.entries += len(entries)
            report(f"entries of {name.replace('_', ' ')}", tally.entries - of_entries)

    def _find_older(
        self,
        comparison: Comparison[Any],
        partition: str,
        period: Period,
        entries: Sequence[Any],
        totals: DayTotals,
    ) -> tuple[list[str], list[Any]]:
        """The resources of entries that began before the period, each at its first entry in it; and
        the entries whose resources are gone.

        The others are added up by days on the way.
        """
        ids = sorted({comparison.owner_of(entry) for entry in entries})
        owners = self._storage.read(
            partition, lambda snapshot: snapshot.get_many(comparison.record, ids)
        )
        lost = []
        for entry in entries:
            owner = owners.get(comparison.owner_of(entry))
            if owner is None:
                lost.append(entry)
                continue
            totals.post(entry.created_at_ms, comparison.asset_of(owner), entry.postings)
        old = [id for id, one in owners.items() if one.created_at_ms < period.since]
        if not old:
            return [], lost
        here = {entry.id for entry in entries}
        cases = self._storage.read(partition, lambda snapshot: comparison.load(snapshot, old))
        found = []
        for case in cases:
            rows = comparison.entries_of(case)
            inside = [row.id for row in rows if period.contains(row.created_at_ms)]
            if inside and inside[0] in here:
                found.append(comparison.id_of(case))
        return found, lost

    def _check(
        self, comparison: Comparison[Any], partition: str, ids: Sequence[str], tally: Tally
    ) -> Iterator[Difference]:
        """The differences that are still there when all sides are read again."""

        def check(ids: Sequence[str], tally: Tally) -> Mapping[str, Sequence[Difference]]:
            cases = self._storage.read(partition, lambda snapshot: comparison.load(snapshot, ids))
            return comparison.check(partition, cases, tally)

        found = check(ids, tally)
        name = comparison.counted_as
        setattr(tally, name, getattr(tally, name) + len(found))
        again = [id for id in ids if found.get(id)]
        if again:
            confirmed = check(again, Tally())
            for id in again:
                yield from confirmed.get(id, ())
